"""What is known about items besides the judgments: features, systems, and clusters of the judgments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crowdrank.data import Comparisons, Judgments
from crowdrank.pipeline.rank_options import RankOptions
from crowdrank.pipeline.sources import columns_named_by, is_judgments
from crowdrank.results import Ranking

if TYPE_CHECKING:
    from crowdrank.io import ItemTable
    from crowdrank.results import Systems


@dataclass(frozen=True)
class ItemInformation:
    """Where each feature and the system of an item come from: a table about items, or columns of the judgments.

    Parameters
    ----------
    table : ItemColumns or None
        The table about items.
    features : tuple of str
        The requested features.
    system : str or None
        The column that names systems, or "item" if every item is a system.
    side_columns : tuple of str
        Columns of the judgments that name the systems of the left and right items; empty if they come from elsewhere.
    feature_sides : mapping of str to tuple of str
        Columns of the judgments that hold a feature of the left and right items.
    cluster : tuple of str
        Column of the judgments that names their clusters, if there is one.
    """

    table: ItemTable | None
    features: tuple[str, ...]
    system: str | None
    side_columns: tuple[str, ...]
    feature_sides: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    cluster: tuple[str, ...] = ()

    @classmethod
    def read(cls, source: Any, options: RankOptions) -> ItemInformation:
        """Read the table about items, if there is one, and find the columns that name systems."""
        if options.items is None and options.system is None and not options.features and options.cluster is None:
            return cls(None, (), None, ())
        from crowdrank.io import find_side_columns, read_items
        from crowdrank.leaderboard.clusters import ANNOTATOR
        from crowdrank.leaderboard.control import find_feature_sides

        with columns_named_by("items_columns"):
            table = None if options.items is None else read_items(options.items, options.items_columns)
        system = options.system
        elsewhere = not system or system == "item" or (table is not None and system in table)
        header = {name: [] for name in getattr(source, "features", ())} if is_judgments(source) else source
        sides = () if elsewhere else find_side_columns(header, str(system), options.encoding)
        own = [name for name in options.features if table is None or name not in table]
        pairs = find_feature_sides(header, own, options.encoding) if own else {}
        cluster = () if options.cluster in (None, ANNOTATOR) else (str(options.cluster),)
        return cls(table, tuple(options.features), system, sides, pairs, cluster)

    @property
    def columns_to_read(self) -> list[str]:
        """Columns to keep when the judgments are read."""
        from crowdrank.data.features import POSITION

        own = [name for name in self.features if name != POSITION and not self._in_table(name)]
        single = [name for name in own if name not in self.feature_sides]
        pairs = [column for pair in self.feature_sides.values() for column in pair]
        return list(dict.fromkeys([*single, *pairs, *self.side_columns, *self.cluster]))

    def add_features(self, comparisons: Comparisons) -> Comparisons:
        """The comparisons with the features that are columns of the table about items."""
        if self.table is None:
            return comparisons
        columns = {n: self.table.align(comparisons.items, n) for n in self.features if self._in_table(n)}
        return comparisons.with_item_features(columns)

    def compare_systems(self, judgments: Judgments, ranking: Ranking, options: RankOptions) -> Systems:
        """How often each system beats each other one."""
        from crowdrank.results import compare_systems

        return compare_systems(
            ranking,
            self._system_of_item(judgments, ranking),
            level=options.level,
            uncertainty=options.uncertainty != "none",
            seed=options.seed or 0,
        )

    def _system_of_item(self, judgments: Judgments, ranking: Ranking) -> Any:
        from crowdrank.data.features import item_labels_from_sides
        from crowdrank.io import as_labels

        assert self.system is not None
        if self.side_columns and isinstance(judgments, Comparisons):
            left, right = (as_labels(judgments.features[name]) for name in self.side_columns)
            return item_labels_from_sides(judgments, left, right, self.system)
        if self.table is not None and self.system in self.table:
            return as_labels(self.table.align(ranking.items, self.system))
        return ranking.items.labels

    def _in_table(self, name: str) -> bool:
        return self.table is not None and name in self.table
