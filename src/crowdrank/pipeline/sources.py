"""Reading of what `rank` is given: the judgments, gold, gold pairs and an earlier ranking."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from crowdrank.data import Comparisons, Judgments, Rankings, Ratings, people_from_names
from crowdrank.engines import Engine, check_engine
from crowdrank.errors import CrowdrankError, FormatError, SettingError, UnknownNameError
from crowdrank.io import ImportReport, needs_scan, read, read_with_report
from crowdrank.models import Model
from crowdrank.results import SCALES, Ranking

if TYPE_CHECKING:
    from crowdrank.data import AnnotatorDetails
    from crowdrank.evaluation import Gold
    from crowdrank.io import ItemTable
    from crowdrank.results import Systems

# The options of `rank`, how progress is reported, and what is read: judgments, gold, people, side information.

Stage: TypeAlias = Callable[[str], AbstractContextManager[Callable[[str], None]]]
"""Reports progress: a context manager for one named stage, which yields a function that shows a detail."""
ColumnRoles: TypeAlias = Mapping[str, str | None]

AUTO = "auto"
UNCERTAINTY_METHODS = ("model", "bootstrap", "none")
MISSING_RULES = ("unknown", "worse")
MEASURES = ("ndcg", "rbp")
_MAPPINGS = (
    "settings",
    "columns",
    "gold_columns",
    "items_columns",
    "annotator_quality",
    "aliases",
    "weights",
    "anchors",
)
_NOT_WITH_MEASURE = ("by", "criteria", "control", "time", "system", "score_scale", "anchors", "link_to")


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
    items: Any = None
    items_columns: ColumnRoles = field(default_factory=dict)
    system: str | None = None
    features: Sequence[str] = ()
    control: bool = False
    exclude: Sequence[str] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    by: str | None = None
    criteria: Sequence[str] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    cluster: str | None = None
    score_scale: str | None = None
    anchors: Mapping[str, float] = field(default_factory=dict)
    link_to: Ranking | str | PathLike[str] | None = None
    min_comparisons: int = 0
    time: str | int | bool | None = None

    def __post_init__(self) -> None:
        if self.uncertainty not in UNCERTAINTY_METHODS:
            raise SettingError(f"uncertainty must be model, bootstrap or none, got {self.uncertainty!r}.")
        if self.missing is not None and self.missing not in MISSING_RULES:
            raise SettingError(f"missing must be unknown or worse, got {self.missing!r}.")
        if self.control and not self.features:
            raise SettingError("control=True needs features= whose effect is to be removed.")
        if self.control and self.model == AUTO:
            raise SettingError("control=True needs bradley-terry or thurstone; model='auto' compares others too.")
        _check_scale(self)
        if any(not 0 <= weight < float("inf") for weight in self.weights.values()):
            raise SettingError(f"weights= must be zero or more, got {dict(self.weights)}.")
        if self.time and (self.control or self.cluster is not None or self.by or self.criteria):
            raise SettingError("time= cannot be combined with control=, cluster=, by= or criteria=.")
        if self.min_comparisons < 0:
            raise SettingError(f"min_comparisons must be zero or more, got {self.min_comparisons}.")
        if self.by or self.criteria or self.weights:
            _check_combinable(self)
        if self.measure is not None:
            _check_measure(self)
        if not 0 < self.level < 1:
            raise SettingError(f"level must be between 0 and 1, got {self.level}.")
        if self.opens_engine:
            name: Any = self.engine
            check_engine(name, self.scheduler, self.memory)

    @classmethod
    def of(cls, **given: Any) -> RankOptions:
        """Options as users give them: None where there is nothing, and a single name in place of several."""
        for name in ("features", "exclude", "criteria"):
            value = given.get(name) or ()
            given[name] = (value,) if isinstance(value, str) else tuple(value)
        given |= {name: given.get(name) or {} for name in _MAPPINGS}
        return cls(**given | {"annotator_order": given.get("annotator_order") or ()})

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
    def opens_engine(self) -> bool:
        """Whether an engine is opened for this call; otherwise it is the local one, or one that the caller opened."""
        asked = self.scheduler is not None or self.memory is not None
        return isinstance(self.engine, str) or (self.engine is None and asked)

    @property
    def board_column(self) -> str | None:
        """The column whose values are leaderboards of their own; None without one, or with several of winners."""
        return self.by or (self.criteria[0] if len(self.criteria) == 1 else None)

    @property
    def has_boards(self) -> bool:
        """Whether there are several leaderboards: one per category or criterion."""
        return bool(self.by or self.criteria)

    @property
    def changes_publication(self) -> bool:
        """Whether scores are shown on another scale, or some items apart as provisional."""
        scaled = self.score_scale is not None or bool(self.anchors) or self.link_to is not None
        return scaled or self.min_comparisons > 0 or self.has_boards

    @property
    def has_side_information(self) -> bool:
        return self.gold_pairs is not None or bool(self.annotator_quality) or bool(self.annotator_order)


def _check_scale(options: RankOptions) -> None:
    if options.score_scale is not None and options.score_scale not in SCALES:
        raise UnknownNameError("scale", options.score_scale, SCALES)
    if options.anchors and options.score_scale not in ("elo", "jod"):
        raise SettingError("anchors= needs score_scale='elo' or score_scale='jod'.")
    if options.anchors and options.link_to is not None:
        raise SettingError("link_to= fixes the scale by the items of another ranking: leave anchors= out.")
    if options.link_to is not None and options.score_scale == "probability":
        raise SettingError("link_to= needs a scale without limits, not score_scale='probability'.")


def _check_combinable(options: RankOptions) -> None:
    from crowdrank.pipeline.categories import check_combinable

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
    from crowdrank.pipeline.adjustments import names_query

    return names_query(cluster)


@contextmanager
def silent(label: str) -> Iterator[Callable[[str], None]]:
    """A stage that shows nothing."""
    yield lambda detail: None


def is_judgments(source: Any) -> bool:
    return isinstance(source, Comparisons | Ratings | Rankings)


def read_judgments(
    source: Any, options: RankOptions, features: Sequence[str], stage: Stage
) -> tuple[Judgments, ImportReport | None]:
    """Read the source into memory, or stream it from disk if it is a folder, a pattern or must not fill the memory."""
    if len(options.criteria) > 1:
        return _read_criteria(source, options, features, stage)
    in_memory_only = {name: getattr(options, name) for name in ("kind", "format", "encoding", "header")}
    if is_judgments(source):
        described = {"columns": options.columns or options.query, **in_memory_only}
        if given := [name for name, value in described.items() if value not in (None, {})]:
            raise SettingError(f"{given[0]}= describes a file or table, but the source is {type(source).__name__}.")
        if options.board_column is None:
            return source, None
        from crowdrank.pipeline.categories import as_boards

        return as_boards(source, options.board_column), None
    is_path = isinstance(source, str | PathLike)
    label = f"Reading {Path(source).name}" if is_path else "Reading the table"
    if not is_path or not _is_streamed(source, options):
        with stage(label):
            return read_with_report(
                source, columns=options.roles, features=features, strict=options.strict, **in_memory_only
            )
    for name, value in (*in_memory_only.items(), ("features", features)):
        if value and (name, value) != ("kind", "comparisons"):
            what = "features= other than position" if name == "features" else f"{name}="
            raise SettingError(
                f"{what} can be used only when the file is read into memory, and {source} is streamed from disk. "
                f"Leave it out, or read one file without memory= and engine='out-of-core'."
            )
    from crowdrank.io import scan_with_report

    with stage(label) as update:
        return scan_with_report(
            source, columns=options.roles, strict=options.strict, progress=lambda rows: update(f"{rows:,} judgments")
        )


def _read_criteria(
    source: Any, options: RankOptions, features: Sequence[str], stage: Stage
) -> tuple[Judgments, ImportReport | None]:
    """Read a source with a column of winners for each criterion."""
    from crowdrank.pipeline.categories import join_criteria

    reports: list[ImportReport | None] = []

    def read_column(column: str) -> Comparisons:
        columns = {**options.columns, "winner": column, "query": None}
        own = replace(options, criteria=(), weights={}, columns=columns, kind="comparisons")
        votes, report = read_judgments(source, own, (), stage)
        if not isinstance(votes, Comparisons):
            raise SettingError("Several criteria are columns of winners of comparisons.")
        reports.append(report)
        return votes

    if is_judgments(source) or features:
        what = "Comparisons, Ratings or Rankings" if is_judgments(source) else "features= or cluster="
        raise SettingError(f"Several columns of criteria cannot be combined with {what}: pass a table with one column.")
    return join_criteria(tuple(options.criteria), read_column), reports[0]


def _is_streamed(source: str | PathLike[str], options: RankOptions) -> bool:
    if options.engine == "out-of-core" or options.memory is not None or needs_scan(source):
        return True
    if options.engine is None or isinstance(options.engine, str):
        return False
    from crowdrank.engines import OutOfCore

    return isinstance(options.engine, OutOfCore)


def load_gold(source: Any, columns: ColumnRoles) -> Gold | None:
    """Gold from a file or table; None and Gold are returned as they are."""
    if source is None:
        return None
    from crowdrank.evaluation import Gold
    from crowdrank.io import read_gold

    if isinstance(source, Gold):
        return source
    with columns_named_by("gold_columns"):
        found = read_gold(source, columns=columns)
    return Gold.of(found.item, found.value, query=found.query)


@contextmanager
def columns_named_by(argument: str) -> Iterator[None]:
    """Let errors about the columns of a table name the argument that is about this table."""
    try:
        yield
    except CrowdrankError as error:
        if isinstance(error, UnknownNameError):
            error.remedy = f"Check {argument}={{}}."
        error.problem = re.sub(r"\bcolumns=", f"{argument}=", error.problem)
        error.remedy = re.sub(r"\bcolumns=", f"{argument}=", error.remedy)
        error.option = argument if error.option == "columns" else error.option
        raise


def load_people(options: RankOptions, judgments: Judgments) -> dict[str, AnnotatorDetails]:
    """What is known about annotators: what the user says, or else what their names make plain."""
    if options.people is not None:
        from crowdrank.io import read_people

        return read_people(options.people)
    return people_from_names(map(str, judgments.annotators)) if judgments.annotator is not None else {}


def are_agreed(gold_pairs: Any) -> bool:
    """Whether gold pairs are those that nearly all annotators agree on."""
    return isinstance(gold_pairs, str) and gold_pairs == "agreed"


def read_gold_pairs(options: RankOptions) -> Comparisons | Iterable[tuple[Any, Any]] | Literal["agreed"] | None:
    given = options.gold_pairs
    if given is None or isinstance(given, Comparisons | list | tuple) or are_agreed(given):
        return given  # type: ignore[no-any-return]
    try:
        pairs = read(given, kind="comparisons", columns={} if options.query is None else {"query": options.query})
    except FormatError as error:
        if "columns=" not in str(error):
            raise
        # `columns` names the columns of the judgments; no option names those of this file.
        found = str(error).split("; ")[0].split(". ")[0]
        raise FormatError(
            f"{found}. Gold pairs need the columns left, right and winner, or winner and loser."
        ) from error
    assert isinstance(pairs, Comparisons)
    return pairs


def load_init(options: RankOptions) -> Ranking | None:
    if options.init is None or isinstance(options.init, Ranking):
        return options.init
    return Ranking.load(Path(options.init))


# What is known about items besides the judgments: features, systems, and clusters of the judgments.


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
        from crowdrank.pipeline.adjustments import ANNOTATOR, find_feature_sides

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
