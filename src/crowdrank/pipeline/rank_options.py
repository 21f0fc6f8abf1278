"""The options of `rank`, and how progress is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, TypeAlias

from crowdrank.engines import Engine, check_engine
from crowdrank.errors import SettingError
from crowdrank.leaderboard.options import LeaderboardOptions
from crowdrank.models import Model
from crowdrank.results import Ranking

Stage: TypeAlias = Callable[[str], AbstractContextManager[Callable[[str], None]]]
"""Reports progress: a context manager for one named stage, which yields a function that shows a detail."""
ColumnRoles: TypeAlias = Mapping[str, str | None]

AUTO = "auto"
UNCERTAINTY_METHODS = ("model", "bootstrap", "none")
MISSING_RULES = ("unknown", "worse")
MEASURES = ("ndcg", "rbp")
_NOT_WITH_MEASURE = ("by", "criteria", "control", "time", "system", "score_scale", "anchors", "link_to")


@dataclass(frozen=True, kw_only=True)
class RankOptions(LeaderboardOptions):
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
    measure: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.uncertainty not in UNCERTAINTY_METHODS:
            raise SettingError(f"uncertainty must be model, bootstrap or none, got {self.uncertainty!r}.")
        if self.missing is not None and self.missing not in MISSING_RULES:
            raise SettingError(f"missing must be unknown or worse, got {self.missing!r}.")
        if self.control and self.model == AUTO:
            raise SettingError("control=True needs bradley-terry or thurstone; model='auto' compares others too.")
        if self.by or self.criteria or self.weights:
            _check_combinable(self)
        if self.measure is not None:
            _check_measure(self)
        if not 0 < self.level < 1:
            raise SettingError(f"level must be between 0 and 1, got {self.level}.")
        if self.engine is None or isinstance(self.engine, str):
            check_engine(self.engine, self.scheduler, self.memory)

    @property
    def roles(self) -> dict[str, str | None]:
        """`columns` with `query` as one of the roles; an empty query, or clusters by it, mean that there is none.

        Categories and criteria are read as queries: each is a leaderboard.
        """
        if self.by or self.criteria:
            return {**self.columns, "query": self.board_column}
        if self.query is None and self.cluster is not None and _names_query(self.cluster):
            return {"query": None, **self.columns}
        return {**self.columns, **({} if self.query is None else {"query": self.query or None})}

    @property
    def has_side_information(self) -> bool:
        return self.gold_pairs is not None or bool(self.annotator_quality) or bool(self.annotator_order)


def _check_combinable(options: RankOptions) -> None:
    from crowdrank.leaderboard.categories import check_combinable

    names_query = bool(options.query or options.columns.get("query"))
    check_combinable(options, options.uncertainty, options.model == AUTO, names_query)


def _check_measure(options: RankOptions) -> None:
    if options.measure not in MEASURES:
        raise SettingError(f"measure must be ndcg or rbp, got {options.measure!r}.")
    if options.uncertainty == "none":
        raise SettingError(f"measure={options.measure!r} counts ranks in draws: leave uncertainty='none' out.")
    if other := next((name for name in _NOT_WITH_MEASURE if getattr(options, name)), None):
        raise SettingError(f"measure={options.measure!r} replaces scores by expected gains: leave {other}= out.")


def _names_query(cluster: str) -> bool:
    from crowdrank.leaderboard.options import names_query

    return names_query(cluster)


@contextmanager
def silent(label: str) -> Iterator[Callable[[str], None]]:
    """A stage that shows nothing."""
    yield lambda detail: None
