"""Beliefs that are columns of numbers, changed row by row: copied, made longer for who is new, and written to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.errors import DataError, SettingError
from crowdrank.online.beliefs import Beliefs, Roll
from crowdrank.online.sequential import Answers, Sequential


class Columnar(Sequential):
    """A model is then what it believes of the unknown, and a loop that takes answers in."""

    @property
    @abstractmethod
    def of_new_item(self) -> Mapping[str, float]:
        """What is believed of an item that nobody judged, by name."""

    @property
    def of_new_annotator(self) -> Mapping[str, float]:
        """What is believed of an annotator who has not judged, by name; nothing unless told."""
        return {}

    @abstractmethod
    def take_in(
        self, answers: Answers, of_items: Mapping[str, FloatArray], of_annotators: Mapping[str, FloatArray]
    ) -> int:
        """Change the columns in place, row by row; how many rows were left out."""

    def nobody(self) -> Beliefs:
        return Beliefs(
            items=Roll.of(()),
            annotators=Roll.of(()),
            of_items=dict.fromkeys(self.of_new_item, np.zeros(0)),
            of_annotators=dict.fromkeys(self.of_new_annotator, np.zeros(0)),
        )

    def after(self, beliefs: Beliefs, items: Roll, annotators: Roll, answers: Answers) -> Beliefs:
        of_items = _extended(beliefs.of_items, self.of_new_item, len(items), self)
        of_annotators = _extended(beliefs.of_annotators, self.of_new_annotator, len(annotators), self)
        left_out = self.take_in(answers, of_items, of_annotators)
        return Beliefs(
            items=items,
            annotators=annotators,
            of_items=of_items,
            of_annotators=of_annotators,
            judged=beliefs.judged + len(answers.left),
            left_out=beliefs.left_out + left_out,
        )


def check_positive(model: object, *names: str) -> None:
    for name in names:
        value = getattr(model, name)
        if not 0 < value < np.inf:
            raise SettingError(f"{name} must be positive, got {value!r}.")


def check_finite(model: object, *names: str) -> None:
    for name in names:
        value = getattr(model, name)
        if not np.isfinite(value):
            raise SettingError(f"{name} must be a finite number, got {value!r}.")


def _extended(
    columns: Mapping[str, FloatArray], new: Mapping[str, float], size: int, model: object
) -> dict[str, FloatArray]:
    """Copies that may be written to, long enough for those who are new."""
    if columns.keys() != new.keys():
        kept, held = (" and ".join(names) or "nothing" for names in (new, columns))
        raise DataError(
            f"{type(model).__name__} keeps {kept}, these beliefs hold {held}: they are another model's. "
            f"Begin with {type(model).__name__}().start()."
        )
    longer = {name: np.full(size, float(value)) for name, value in new.items()}
    for name, column in columns.items():
        longer[name][: len(column)] = column
    return longer
