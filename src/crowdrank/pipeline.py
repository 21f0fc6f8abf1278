"""From a source of judgments to a ranking: read, choose a model, convert, fit, quantify uncertainty, evaluate.

`rank` is the public function. `run` takes the same options and also returns everything that the command line and
reports show: the import report, the reason for the model, the evaluation against gold and the comparison of systems.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from crowdrank.data import Comparisons, Judgments, Rankings, Ratings, SideInformation
from crowdrank.engines import LOCAL, Engine, OutOfCore, ProgressEngine, check_engine, open_engine
from crowdrank.errors import (
    CrowdrankWarning,
    DataError,
    DataWarning,
    FormatError,
    SettingError,
    issue_warning,
)
from crowdrank.io import (
    ImportReport,
    needs_scan,
    read,
    read_gold,
    read_with_report,
    scan_with_report,
)
from crowdrank.leaderboard.clusters import names_query, with_cluster_errors
from crowdrank.leaderboard.control import (
    default_choice,
    feature_settings,
    with_feature_sides,
    with_uncontrolled_ranks,
)
from crowdrank.leaderboard.items import ItemInformation, columns_named_by
from crowdrank.leaderboard.names import with_aliases, without_annotators
from crowdrank.leaderboard.options import LeaderboardOptions
from crowdrank.leaderboard.publishing import check_link, check_publishable, publish
from crowdrank.models import Model, by_name, name_of, with_bootstrap
from crowdrank.models.base import model_settings
from crowdrank.models.selection import (
    ModelChoice,
    convert_for,
    default_model,
    has_setting,
    models_that,
    parse_settings,
    taste_notes,
    tastes_of,
)
from crowdrank.results import Ranking, Systems

if TYPE_CHECKING:
    from crowdrank.evaluation import Check, Evaluation, Gold

Stage: TypeAlias = Callable[[str], AbstractContextManager[Callable[[str], None]]]
"""Reports progress: a context manager for one named stage, which yields a function that shows a detail."""
ColumnRoles: TypeAlias = Mapping[str, str | None]

AUTO = "auto"
UNCERTAINTY_METHODS = ("model", "bootstrap", "none")
MISSING_RULES = ("unknown", "worse")
# Standard deviation of the prior on scores for comparing systems, where the model would learn it.
_WIDE_PRIOR = 3.0
# Judgments are refused if at least this share of at least so many items was compared once, with each other.
_LONE_SHARE, _FEWEST_LONE_ITEMS = 0.95, 10
# A ranking correlated with its gold below this is probably graded upside down.
_REVERSED_GOLD = -0.2


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
    engine: str | Engine | None = None
    scheduler: str | None = None
    memory: str | int | None = None
    init: Ranking | str | PathLike[str] | None = None
    uncertainty: str = "model"
    level: float = 0.95
    simultaneous: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.uncertainty not in UNCERTAINTY_METHODS:
            raise SettingError(f"uncertainty must be model, bootstrap or none, got {self.uncertainty!r}.")
        if self.missing is not None and self.missing not in MISSING_RULES:
            raise SettingError(f"missing must be unknown or worse, got {self.missing!r}.")
        if self.control and self.model == AUTO:
            raise SettingError("control=True needs bradley-terry or thurstone; model='auto' compares others too.")
        if not 0 < self.level < 1:
            raise SettingError(f"level must be between 0 and 1, got {self.level}.")
        if self.engine is None or isinstance(self.engine, str):
            check_engine(self.engine, self.scheduler, self.memory)

    @property
    def roles(self) -> dict[str, str | None]:
        """`columns` with `query` as one of the roles; an empty query, or clusters by it, mean that there is none."""
        if self.query is None and names_query(self.cluster):
            return {"query": None, **self.columns}
        return {**self.columns, **({} if self.query is None else {"query": self.query or None})}

    @property
    def has_side_information(self) -> bool:
        return self.gold_pairs is not None or bool(self.annotator_quality) or bool(self.annotator_order)


@dataclass(frozen=True, kw_only=True)
class PreparedData:
    """Everything that is known before the fit.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        The judgments as read.
    report : ImportReport or None
        How each row was handled; None if the source is not a file or table.
    choice : ModelChoice
        The name of the model, and why it was chosen.
    model : Model
        The model with its settings.
    converted : Comparisons, Ratings or Rankings
        The judgments as the model reads them.
    conversion : str
        How they were converted; empty if they were not.
    side_information : SideInformation or None
        Gold pairs, and knowledge about annotators.
    items : ItemInformation
        Columns about items.
    """

    judgments: Judgments
    report: ImportReport | None
    choice: ModelChoice
    model: Model
    converted: Judgments
    conversion: str
    side_information: SideInformation | None
    items: ItemInformation


@dataclass(frozen=True, kw_only=True)
class RankResult(PreparedData):
    """A ranking with everything that the command line and reports show.

    Parameters
    ----------
    ranking : Ranking
        The result. Its `notes` are those that the command prints.
    fitted : Ranking
        The same ranking with its provisional items.
    evaluation : Evaluation or None
        The ranking against the gold, if there is gold.
    systems : Systems or None
        How often each system beats each other one, if `system` was given.
    warnings : tuple of Warning
        Warnings that were raised; the notes have their text.
    options : RankOptions
        The options of the call.
    """

    ranking: Ranking
    fitted: Ranking
    evaluation: Evaluation | None
    systems: Systems | None
    warnings: tuple[Warning, ...]
    options: RankOptions

    @property
    def has_uncertainty(self) -> bool:
        return self.options.uncertainty != "none"


def rank(
    source: Any,
    *,
    model: str | Model | None = None,
    gold: Any = None,
    columns: ColumnRoles | None = None,
    query: str | None = None,
    kind: str | None = None,
    format: str | None = None,  # noqa: A002 - the name that users expect
    encoding: str | None = None,
    header: bool | None = None,
    features: str | Sequence[str] | None = None,
    control: bool = False,
    items: Any = None,
    system: str | None = None,
    gold_columns: ColumnRoles | None = None,
    items_columns: ColumnRoles | None = None,
    gold_pairs: Any = None,
    annotator_quality: Mapping[str, float | tuple[float, float]] | None = None,
    annotator_order: Sequence[tuple[str, str]] | None = None,
    engine: str | Engine | None = None,
    scheduler: str | None = None,
    memory: str | int | None = None,
    init: Ranking | str | PathLike[str] | None = None,
    uncertainty: Literal["model", "bootstrap", "none"] = "model",
    level: float = 0.95,
    simultaneous: bool = False,
    missing: Literal["unknown", "worse"] | None = None,
    exclude: str | Sequence[str] | None = None,
    aliases: Mapping[str, str] | None = None,
    cluster: str | None = None,
    score_scale: Literal["elo", "jod", "probability"] | None = None,
    anchors: Mapping[str, float] | None = None,
    link_to: Ranking | str | PathLike[str] | None = None,
    min_comparisons: int = 0,
    seed: int | None = None,
    strict: bool = False,
    **settings: Any,
) -> Ranking:
    """Rank the items of a file or table of judgments.

    Reads the judgments, chooses a model unless one is named, converts the judgments to the kind that it reads, fits
    it and quantifies the uncertainty. It does what the command `crowdrank rank` does.

    Parameters
    ----------
    source : path, data frame, mapping of columns, Comparisons, Ratings or Rankings
        The judgments. A folder or a pattern such as "votes/*.parquet" is streamed from disk.
    model : str or Model, optional
        Name of a model, a model with its settings, or "auto" to compare models on these judgments. By default chosen
        by the kind of judgments and whether they name annotators.
    gold : path, data frame, mapping or Gold, optional
        True values of items. The ranking is evaluated against them.
    columns : mapping, optional
        The column of each role, such as `{"annotator": "who"}`; None as column means that there is none.
    query : str, optional
        The column that holds the query; each query is ranked on its own.
    kind : {"comparisons", "ratings", "rankings"}, optional
        The kind of judgments, if the columns allow several.
    format, encoding : str, optional
        Format of the file (see `crowdrank formats`) and text encoding, if they are not recognised.
    header : bool, optional
        Whether the first line of a text file names the columns; guessed by default.
    features : str or sequence of str, optional
        Features that should not matter: "position", columns of the judgments (or two columns such as length_left and
        length_right), or columns of `items`. They need `control`, or factor-bt.
    control : bool, default False
        Whether the effects of `features` are estimated next to the scores, by bradley-terry or thurstone, and removed
        from the ranking. `covariate_effects` and `rank_changes` of `crowdrank.results` show what that changes.
    items : path, data frame or mapping, optional
        Columns about items, for `features` and `system`.
    system : str, optional
        Column that names the system behind each item, or "item". `run(...).systems` has the comparison.
    gold_columns, items_columns : mapping, optional
        Like `columns`, for `gold` (roles item, query, value, rank) and `items` (roles item, query).
    gold_pairs : path, Comparisons, list of pairs or "agreed", optional
        Pairs whose better item is known (better item first), or "agreed" for those that nearly all annotators agree on.
    annotator_quality : mapping, optional
        Known quality of annotators: a number, or a tuple (low, high).
    annotator_order : sequence of pairs, optional
        Pairs of annotators, the better one first.
    engine : {"local", "out-of-core", "dask"} or Engine, optional
        Where to compute.
    scheduler : str, optional
        Address of a running Dask scheduler.
    memory : str or int, optional
        Memory limit, such as "4GB"; the file is streamed from disk.
    init : Ranking or path, optional
        An earlier ranking to start the solver from. The result is the same, reached in fewer steps.
    uncertainty : {"model", "bootstrap", "none"}, default "model"
        How standard errors and rank intervals are computed.
    level : float, default 0.95
        Level of the intervals in the comparison of systems. `Ranking.table` has a level of its own.
    simultaneous : bool, default False
        Whether rank intervals hold for all items of a query together, as for a published table, instead of one by one.
    missing : {"unknown", "worse"}, optional
        How to treat items missing from a ranked list: ignore them, or rank them below the listed ones.
    exclude : str or sequence of str, optional
        Annotators to leave out.
    aliases : mapping of str to str, optional
        New names of items. Two items that get the same name become one.
    cluster : str, optional
        Column that says which comparisons belong together, such as the prompt, or "annotator". Errors take the
        judgments of one cluster as dependent.
    score_scale : {"elo", "jod", "probability"}, optional
        Scale on which tables show the scores: Elo points, just-objectionable differences, or the probability to beat
        the average item. By default the unit of the model.
    anchors : mapping of str to float, optional
        Values of items on the scale, such as `{"gpt-4": 1000}`.
    link_to : Ranking or path, optional
        An earlier ranking whose scale is kept: the items that both have keep their mean.
    min_comparisons : int, default 0
        Items with fewer judgments get no rank: they are in `Ranking.provisional`.
    seed : int, optional
        Seed of the model's random numbers.
    strict : bool, default False
        Raise an error if any row cannot be used, instead of dropping it.
    **settings
        Settings of the model, such as `prior_scale=1`.

    Returns
    -------
    Ranking
        Scores, ranks and their uncertainty. Its `notes` list caveats.

    See Also
    --------
    crowdrank.pipeline.run : the same with import report, evaluation and comparison of systems.

    Examples
    --------
    >>> votes = {"left": ["a", "b", "a"], "right": ["b", "c", "c"], "winner": ["a", "b", "a"]}
    >>> ranking = rank(votes, uncertainty="none")
    >>> ranking.model, ranking.table()["item"].to_list()
    ('bradley-terry', ['a', 'b', 'c'])
    """
    options = RankOptions(
        model=model,
        settings=settings,
        seed=seed,
        columns=columns or {},
        query=query,
        kind=kind,
        format=format,
        encoding=encoding,
        header=header,
        strict=strict,
        features=(features,) if isinstance(features, str) else tuple(features or ()),
        control=control,
        items=items,
        items_columns=items_columns or {},
        system=system,
        missing=missing,
        gold=gold,
        gold_columns=gold_columns or {},
        gold_pairs=gold_pairs,
        annotator_quality=annotator_quality or {},
        annotator_order=annotator_order or (),
        engine=engine,
        scheduler=scheduler,
        memory=memory,
        init=init,
        uncertainty=uncertainty,
        level=level,
        simultaneous=simultaneous,
        exclude=(exclude,) if isinstance(exclude, str) else tuple(exclude or ()),
        aliases=aliases or {},
        cluster=cluster,
        score_scale=score_scale,
        anchors=anchors or {},
        link_to=link_to,
        min_comparisons=min_comparisons,
    )
    result = run(source, options)
    if result.report is not None and (sentence := result.report.dropped_summary()):
        issue_warning(sentence, DataWarning, stacklevel=2)
    for warning in result.warnings:
        warnings.warn(warning, stacklevel=2)
    return result.ranking


def check(
    source: Any,
    *,
    model: str | Model | None = None,
    simulations: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Check:
    """Simulate answers on the design of these judgments, and count how often intervals, groups and verdicts hold.

    The model is fitted, then refitted to simulated answers to the same questions by the same annotators: answers from
    the fitted model, whose truth is known, and coin tosses. It does what the command `crowdrank check` does.

    Parameters
    ----------
    source : path, data frame, mapping of columns, Comparisons, Ratings or Rankings
        The judgments. Ratings and rankings are converted if the model reads comparisons.
    model : str or Model, optional
        The model to check; by default the one that `rank` chooses.
    simulations : int, optional
        Number of simulations of each kind; by default 100, fewer above 2,000 answers.
    level : float, default 0.95
        Level of the intervals and claims.
    seed : int, default 0
        Seed of the simulations.
    on_progress : callable, optional
        Called after each simulation with the number done and their total.
    **options
        Options of `RankOptions`: `columns`, `query`, `kind`, `format`, `encoding`, `settings` …

    Returns
    -------
    Check
        Its `lines()` state the conclusions.

    Examples
    --------
    >>> from crowdrank.simulation import crowd_bt
    >>> votes = crowd_bt(items=8, annotators=5, pairs=28, votes=5, labels="logistic").judgments
    >>> found = check(votes, model="bradley-terry", simulations=10)
    >>> found
    <Check of bradley-terry on 140 answers: 10 simulations of each kind>
    >>> found.fitted.ranks.value > 0.8
    True
    """
    result = run(source, RankOptions(model=model, level=level, **options))
    return check_result(result, simulations=simulations, seed=seed, on_progress=on_progress)


def check_result(
    result: RankResult,
    *,
    simulations: int | None = None,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> Check:
    """Check a ranking that `run` made; see `check`."""
    from crowdrank.evaluation import check_design

    if not isinstance(result.converted, Comparisons):
        kind = type(result.converted).__name__.lower()
        raise DataError(
            f"The check simulates comparisons, but {result.choice.name} reads {kind}. Choose a model of comparisons, "
            "such as crowd-bt."
        )
    return check_design(
        result.model,
        result.converted,
        result.ranking,
        simulations=simulations,
        level=result.options.level,
        seed=seed,
        on_progress=on_progress,
    )


@contextmanager
def silent(label: str) -> Iterator[Callable[[str], None]]:
    """A stage that shows nothing."""
    yield lambda detail: None


def run(source: Any, options: RankOptions, stage: Stage = silent) -> RankResult:
    """Rank a source of judgments and return the ranking with its import report, evaluation and comparison of systems.

    Parameters
    ----------
    source : path, data frame, mapping of columns, Comparisons, Ratings or Rankings
        The judgments.
    options : RankOptions
        See `rank`.
    stage : callable, optional
        Shows progress: `with stage("Reading votes.csv") as update: update("1,000 judgments")`.

    Returns
    -------
    RankResult
        It holds the warnings that were raised, and its notes have their text; none is issued.
    """
    # Files are opened before the fit, so that a wrong name fails before a long computation.
    gold, init, earlier = load_gold(options.gold, options.gold_columns), _load_init(options), check_link(options)
    with warnings.catch_warnings(record=True) as caught, ExitStack() as resources:
        warnings.simplefilter("always", CrowdrankWarning)
        prepared = prepare(source, options, stage)
        _check_warm_start(prepared.model, init)
        label = f"Ranking {len(prepared.converted.items):,} items"
        engine = resources.enter_context(_engine(options, label, stage))
        ranking = _fit(prepared, engine, init, options.uncertainty, options.cluster)
        ranking = replace(ranking, simultaneous=options.simultaneous)
        ranking = _compute_lazy_parts(ranking)  # inside the block, which records their warnings and holds the engine
        evaluation = None if gold is None else _evaluate(ranking, gold)
        systems = None
        if options.system:
            compared = _with_wide_prior(prepared, ranking, engine, options.uncertainty)
            systems = prepared.items.compare_systems(
                prepared.judgments, compared, options.level, options.uncertainty != "none", options.seed or 0
            )
        if options.control:
            ranking = with_uncontrolled_ranks(ranking, _fit_uncontrolled(prepared, engine, ranking))
    raised = tuple(found.message for found in caught if isinstance(found.message, CrowdrankWarning))
    notes = [*opening_notes(prepared), *_collect_notes(ranking, raised, evaluation)]
    published, more = publish(ranking, options, earlier)
    notes += more
    return RankResult(
        **{name: getattr(prepared, name) for name in PreparedData.__dataclass_fields__},
        ranking=published.with_parts(notes=lambda: notes),
        fitted=ranking.on_scale(published.scale).with_parts(notes=lambda: notes),
        evaluation=evaluation,
        systems=systems,
        warnings=raised,
        options=options,
    )


def prepare(
    source: Any, options: RankOptions, stage: Stage = silent, *, among: Container[str] | None = None
) -> PreparedData:
    """Read the judgments, choose the model (one of `among`, if given), and convert the judgments to what it reads."""
    items = ItemInformation.read(source, options, options.encoding)
    judgments, report = _read_judgments(source, options, items.columns_to_read, stage)
    judgments = with_feature_sides(judgments, items.feature_sides)
    judgments = with_aliases(without_annotators(judgments, options.exclude), options.aliases)
    if options.system is None:
        _check_connected(judgments)
    choice = _choose_model(judgments, items, options, stage, among)
    model = _make_model(choice, options)
    check_publishable(options, model, judgments.items)
    filled, filling = _fill_missing(judgments, options.missing)
    converted, conversion = convert_for(model, filled)
    if options.features and isinstance(converted, Comparisons):
        converted = items.add_features(converted)
    return PreparedData(
        judgments=judgments,
        report=report,
        choice=choice,
        model=model,
        converted=converted,
        conversion="; ".join(filter(None, (filling, conversion))),
        side_information=_read_side_information(model, converted, options),
        items=items,
    )


def _check_connected(judgments: Judgments) -> None:
    """Raise DataError if nearly every item was compared once, with another that was compared once."""
    items = len(judgments.items)
    if not isinstance(judgments, Comparisons) or items < _FEWEST_LONE_ITEMS:
        return
    lone = judgments.n_judgments_per_item == 1
    if lone.mean() < _LONE_SHARE or judgments.n_judgments > items / (2 * _LONE_SHARE):
        return
    nearly = "" if lone.all() else "Nearly all of "
    raise DataError(
        f"{nearly}{items:,} items were compared once each: there is nothing to rank.",
        remedy="An order needs items that were compared with several others. If these items are texts of a few authors "
        "or systems, rank those: columns={'left': 'COLUMN', 'right': 'COLUMN'}.",
        option="columns",
        value={"left": "COLUMN", "right": "COLUMN"},
    )


def _is_judgments(source: Any) -> bool:
    return isinstance(source, Comparisons | Ratings | Rankings)


def _read_judgments(
    source: Any, options: RankOptions, features: Sequence[str], stage: Stage
) -> tuple[Judgments, ImportReport | None]:
    """Read the source into memory, or stream it from disk if it is a folder, a pattern or must not fill the memory."""
    in_memory_only = {name: getattr(options, name) for name in ("kind", "format", "encoding", "header")}
    if _is_judgments(source):
        described = {"columns": options.columns or options.query, **in_memory_only}
        if given := [name for name, value in described.items() if value not in (None, {})]:
            raise SettingError(f"{given[0]}= describes a file or table, but the source is {type(source).__name__}.")
        return source, None
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
    with stage(label) as update:
        return scan_with_report(
            source, columns=options.roles, strict=options.strict, progress=lambda rows: update(f"{rows:,} judgments")
        )


def _is_streamed(source: str | PathLike[str], options: RankOptions) -> bool:
    out_of_core = options.engine == "out-of-core" or isinstance(options.engine, OutOfCore)
    return out_of_core or options.memory is not None or needs_scan(source)


def _choose_model(
    judgments: Judgments,
    items: ItemInformation,
    options: RankOptions,
    stage: Stage,
    among: Container[str] | None = None,
) -> ModelChoice:
    """The model that was named, the default, or with "auto" the one that predicts held-out judgments best."""
    if options.model is not None and options.model != AUTO:
        name = options.model if isinstance(options.model, str) else name_of(options.model)
        tastes = tastes_of(judgments)
        return ModelChoice(name, notes=() if tastes is None else taste_notes(tastes, name))
    default = default_model(judgments, win_probabilities=options.system is not None, among=among)
    if options.model is None:
        return default_choice(judgments, options) or default
    from crowdrank.evaluation import compare_models

    if isinstance(judgments, Comparisons):  # the compared models get the requested features and no others
        judgments = items.add_features(judgments) if options.features else replace(judgments, features={})
    try:
        with stage("Comparing models") as update:
            found = compare_models(
                judgments,
                features=options.features or None,
                quick=True,
                seed=options.seed or 0,
                on_progress=lambda name, done, total: update(f"{name}, fit {done:,} of {total:,}"),
            ).recommendation
    except DataError as error:
        reason = f"{default.name} is the default model; no others were compared: {error}"
        return replace(default, reason=reason, compared=True)
    tastes = tastes_of(judgments)
    notes = () if tastes is None else taste_notes(tastes, found.model)
    if options.features and not has_setting(by_name(found.model), "features"):
        notes += (f"{found.model} predicts best and does not use the features.",)
    return ModelChoice(found.model, found.why, compared=True, notes=notes)


def _make_model(choice: ModelChoice, options: RankOptions) -> Model:
    """The model with its settings; raises if the engine cannot run it."""
    given = None if options.model is None or isinstance(options.model, str) else options.model
    cls = by_name(choice.name) if given is None else type(given)
    if options.engine == "dask" and not cls.distributable:
        raise SettingError(
            f"{choice.name} computes on one machine: omit engine='dask', or use one of "
            f"{', '.join(models_that('distributable'))}."
        )
    settings = parse_settings(cls, options.settings, options.seed)
    if options.model != AUTO or has_setting(cls, "features"):  # a comparison of models may find features useless
        settings |= feature_settings(cls, choice.name, options)
    return cls(**settings) if given is None else replace(given, **settings)


def _fill_missing(judgments: Judgments, missing: str | None) -> tuple[Judgments, str]:
    """With "worse", put the items that a list leaves out at its end. Returns the rule in words, too."""
    if missing is None:
        return judgments, ""
    if not isinstance(judgments, Rankings):
        kind = type(judgments).__name__.lower()
        raise DataError(f"missing= is about items missing from ranked lists, but these judgments are {kind}.")
    if missing == "unknown":
        return judgments, ""
    return judgments.with_missing_last(), "items missing from a list rank below the listed ones"


def _read_side_information(model: Model, data: Judgments, options: RankOptions) -> SideInformation | None:
    """Gold pairs and known qualities of annotators; raises an error if the model cannot use them."""
    if not options.has_side_information:
        return None
    if not model.accepts_side_information or not isinstance(data, Comparisons):
        able = models_that("accepts_side_information")
        raise SettingError(
            f"gold_pairs=, annotator_quality= and annotator_order= need comparisons and a model that uses side "
            f"information: {', '.join(able[:-1])} or {able[-1]}."
        )
    quality = options.annotator_quality
    return SideInformation(
        quality={name: value for name, value in quality.items() if not isinstance(value, tuple)},
        between={name: value for name, value in quality.items() if isinstance(value, tuple)},
        better=options.annotator_order,
        gold=_gold_pairs(options),
    )


def describe_side_information(prepared: PreparedData) -> str:
    """Side information in one line; empty if there is none."""
    if prepared.side_information is None or not isinstance(prepared.converted, Comparisons):
        return ""
    with warnings.catch_warnings():  # the fit has already warned about gold pairs with unknown items
        warnings.simplefilter("ignore", DataWarning)
        known = prepared.side_information.encode(prepared.converted)
    annotators = len({*known.quality, *known.between})
    counts = (
        (len(known.gold_better), "gold pair", "gold pairs"),
        (annotators, "annotator's quality", "annotators' quality"),
        (len(known.better), "annotator order", "annotator orders"),
    )
    return f"Side information: {', '.join(f'{n:,} {one if n == 1 else many}' for n, one, many in counts if n)}."


def _gold_pairs(options: RankOptions) -> Comparisons | Iterable[tuple[Any, Any]] | Literal["agreed"] | None:
    given = options.gold_pairs
    if given is None or isinstance(given, Comparisons | list | tuple) or given == "agreed":
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


def _load_init(options: RankOptions) -> Ranking | None:
    if options.init is None or isinstance(options.init, Ranking):
        return options.init
    return Ranking.load(Path(options.init))


def _check_warm_start(model: Model, init: Ranking | None) -> None:
    if init is not None and not model.supports_warm_start:
        able = ", ".join(models_that("supports_warm_start"))
        raise SettingError(f"init= needs a model whose solver has starting values: {able}.")


@contextmanager
def _engine(options: RankOptions, label: str, stage: Stage) -> Iterator[Engine]:
    """The engine, which shows how many passes over the data it has made."""
    with ExitStack() as stack:
        update = stack.enter_context(stage(label))
        named = options.engine is None or isinstance(options.engine, str)
        engine: Any = options.engine
        if named:
            engine = stack.enter_context(open_engine(engine, options.scheduler, options.memory))
        yield ProgressEngine(engine, lambda count: update(f"pass {count:,}"))


def _fit(
    prepared: PreparedData, engine: Engine, init: Ranking | None, uncertainty: str, cluster: str | None = None
) -> Ranking:
    model, data, known = prepared.model, prepared.converted, prepared.side_information
    # Other models compute in this process; judgments that are streamed from disk reach them all the same.
    engine = engine if model.distributable else LOCAL
    ranking = model.fit(data, engine=engine, init=init, side_information=known)
    if cluster is not None and uncertainty != "none":
        return with_cluster_errors(model, data, ranking, cluster, uncertainty, known)
    if uncertainty == "bootstrap":
        return with_bootstrap(model, data, ranking, side_information=known)
    return ranking.without_uncertainty() if uncertainty == "none" else ranking


def _with_wide_prior(prepared: PreparedData, ranking: Ranking, engine: Engine, uncertainty: str) -> Ranking:
    """The ranking with little shrinkage, for comparing systems.

    A learnt spread shrinks the scores of each query towards each other. That is right for each query, but in the mean
    over many queries with few judgments it would hide a difference that all of them share.
    """
    if model_settings(prepared.model).get("prior_scale") != "auto":
        return ranking
    model = replace(prepared.model, prior_scale=_WIDE_PRIOR)  # type: ignore[call-arg]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdrankWarning)  # the fit of the ranking has raised them
        init = ranking if model.supports_warm_start else None
        return _fit(replace(prepared, model=model), engine, init, uncertainty)


def _fit_uncontrolled(prepared: PreparedData, engine: Engine, ranking: Ranking) -> Ranking:
    """The ranking without covariates, to compare with."""
    plain = replace(prepared.model, covariates=())  # type: ignore[call-arg]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdrankWarning)  # the fit of the ranking has raised them
        return _fit(replace(prepared, model=plain), engine, ranking, "none")


def _compute_lazy_parts(ranking: Ranking) -> Ranking:
    """The ranking with uncertainty, annotators and domains computed, where it has them."""
    parts: dict[str, Any] = {}
    for name in ("uncertainty", "annotators", "domains"):
        if getattr(ranking, f"has_{name}"):
            computed = getattr(ranking, name)
            parts[name] = lambda computed=computed: computed
    return ranking.with_parts(**parts)


def load_gold(source: Any, columns: ColumnRoles) -> Gold | None:
    """Gold from a file or table; None and Gold are returned as they are."""
    if source is None:
        return None
    from crowdrank.evaluation import Gold

    if isinstance(source, Gold):
        return source
    with columns_named_by("gold_columns"):
        found = read_gold(source, columns=columns)
    return Gold.of(found.item, found.value, query=found.query)


def _evaluate(ranking: Ranking, gold: Gold) -> Evaluation:
    from crowdrank.evaluation import evaluate

    return evaluate(ranking, gold)


def opening_notes(prepared: PreparedData) -> list[str]:
    """What is known before the fit: tastes, rows that were left out, why this model, how judgments were converted."""
    choice, report = prepared.choice, prepared.report
    found = [*choice.notes]
    if report is not None:
        found += [report.dropped_summary(), *report.notes]
    found.append(choice.reason if choice.compared else "")
    found.append(f"The judgments were converted: {prepared.conversion}." if prepared.conversion else "")
    return [note for note in found if note]


def _collect_notes(ranking: Ranking, raised: Sequence[Warning], evaluation: Evaluation | None) -> list[str]:
    """Warnings, then the notes of the ranking, and a note if the gold runs the other way."""
    messages = [str(warning) for warning in raised]
    raised_text = " ".join(messages)
    fresh = [note for note in ranking.notes if note.split(":")[0] not in raised_text]
    return messages + fresh + _note_on_gold(evaluation)


def _note_on_gold(evaluation: Evaluation | None) -> list[str]:
    if evaluation is None or not evaluation.kendall_correlation < _REVERSED_GOLD:
        return []
    return [
        f"The ranking runs against the gold (Kendall correlation {evaluation.kendall_correlation:.2f}). If smaller "
        "values are better there, pass gold_columns={'rank': 'COLUMN'}."
    ]
