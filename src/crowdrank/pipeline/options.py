"""The options of `rank`, and how progress is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, TypeAlias

from crowdrank.engines import Engine, check_engine
from crowdrank.errors import SettingError
from crowdrank.models import Model
from crowdrank.results import Ranking

Stage: TypeAlias = Callable[[str], AbstractContextManager[Callable[[str], None]]]
"""Reports progress: a context manager for one named stage, which yields a function that shows a detail."""
ColumnRoles: TypeAlias = Mapping[str, str | None]

UNCERTAINTY_METHODS = ("model", "bootstrap", "none")
MISSING_RULES = ("unknown", "worse")


@dataclass(frozen=True, kw_only=True)
class RankOptions:
    """The options of `rank`, checked before anything is read.

    Each is described in `rank`; `settings` holds the settings of the model. Text values of settings are converted to
    the type of the setting.
    """

    model: str | Model | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    columns: ColumnRoles = field(default_factory=dict)
    query: str | None = None
    kind: str | None = None
    format: str | None = None
    encoding: str | None = None
    header: bool | None = None
    strict: bool = False
    features: Sequence[str] = ()
    items: Any = None
    items_columns: ColumnRoles = field(default_factory=dict)
    system: str | None = None
    missing: str | None = None
    gold: Any = None
    gold_columns: ColumnRoles = field(default_factory=dict)
    gold_pairs: Any = None
    annotator_quality: Mapping[str, float | tuple[float, float]] = field(default_factory=dict)
    annotator_order: Sequence[tuple[str, str]] = ()
    people: Any = None
    engine: str | Engine | None = None
    scheduler: str | None = None
    memory: str | int | None = None
    init: Ranking | str | PathLike[str] | None = None
    uncertainty: str = "model"
    level: float = 0.95
    simultaneous: bool = False

    def __post_init__(self) -> None:
        if self.uncertainty not in UNCERTAINTY_METHODS:
            raise SettingError(f"uncertainty must be model, bootstrap or none, got {self.uncertainty!r}.")
        if self.missing is not None and self.missing not in MISSING_RULES:
            raise SettingError(f"missing must be unknown or worse, got {self.missing!r}.")
        if not 0 < self.level < 1:
            raise SettingError(f"level must be between 0 and 1, got {self.level}.")
        if self.engine is None or isinstance(self.engine, str):
            check_engine(self.engine, self.scheduler, self.memory)

    @property
    def roles(self) -> dict[str, str | None]:
        """`columns` with `query` as one of the roles; an empty query means that there is none."""
        return {**self.columns, **({} if self.query is None else {"query": self.query or None})}

    @property
    def has_side_information(self) -> bool:
        return self.gold_pairs is not None or bool(self.annotator_quality) or bool(self.annotator_order)


@contextmanager
def silent(label: str) -> Iterator[Callable[[str], None]]:
    """A stage that shows nothing."""
    yield lambda detail: None
