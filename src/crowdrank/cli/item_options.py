"""What crowdrank rank is told about items: features for the model, and the systems they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crowdrank.data import Comparisons, Judgments
    from crowdrank.io import ItemTable
    from crowdrank.results import Ranking, Systems

ITEM = "item"
"""The system of --system where every item is one by its own name."""


@dataclass(frozen=True)
class AboutItems:
    """Where each feature and the system is to be found: in the file about items, or beside the judgments."""

    columns: ItemTable | None
    features: tuple[str, ...]
    system: str | None
    sides: tuple[str, ...]
    """The columns of the judgments that tell the system of their left and right items; none where others do."""

    @property
    def beside_judgments(self) -> list[str]:
        """Columns to be kept when the judgments are read."""
        own = [name for name in self.features if name != "position" and not self._of_items(name)]
        return list(dict.fromkeys([*own, *self.sides]))

    def add_to(self, comparisons: Comparisons) -> Comparisons:
        """The comparisons with the features that are columns about items."""
        columns = self.columns
        if columns is None:
            return comparisons
        found = {name: columns.align(comparisons.items, name) for name in self.features if self._of_items(name)}
        return comparisons.with_item_features(found)

    def systems(self, judgments: Judgments, ranking: Ranking, **wishes: Any) -> Systems | None:
        """How often each system beats each; None where nobody asked."""
        from crowdrank.results import compare_systems

        if not self.system:
            return None
        return compare_systems(ranking, self._system_of_item(judgments, ranking), **wishes)

    def _system_of_item(self, judgments: Judgments, ranking: Ranking) -> Any:
        from crowdrank.data import Comparisons
        from crowdrank.data.features import item_labels_from_sides
        from crowdrank.io import as_labels

        assert self.system is not None
        if self.sides and isinstance(judgments, Comparisons):
            left, right = (as_labels(judgments.features[name]) for name in self.sides)
            return item_labels_from_sides(judgments, left, right, self.system)
        if self.columns is not None and self.system in self.columns:
            return as_labels(self.columns.align(ranking.items, self.system))
        return ranking.items.labels

    def _of_items(self, name: str) -> bool:
        return self.columns is not None and name in self.columns


def about_items(
    judgments: Path,
    items: Path | None,
    roles: dict[str, str | None],
    features: tuple[str, ...],
    system: str | None,
    encoding: str | None,
) -> AboutItems:
    """Read the file about items, if there is one, and find out who tells the system."""
    from crowdrank.io import find_side_columns, read_items

    columns = None if items is None else read_items(items, roles)
    told = not system or system == ITEM or (columns is not None and system in columns)
    return AboutItems(columns, features, system, () if told else find_side_columns(judgments, str(system), encoding))
