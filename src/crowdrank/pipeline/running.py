"""From a source of judgments to a ranking: `prepare` does everything before the fit, `run` the rest."""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdrank.arrays import Int32Array
from crowdrank.data import AnnotatorDetails, Comparisons, Judgments, Rankings, SideInformation
from crowdrank.data.side_information import describe_kinds, encode_gold
from crowdrank.engines import LOCAL, Engine, ProgressEngine, open_engine
from crowdrank.errors import CrowdrankWarning, DataError, DataWarning, SettingError
from crowdrank.io import ImportReport
from crowdrank.models import Model, by_name, name_of
from crowdrank.models.base import model_settings
from crowdrank.models.selection import (
    ModelChoice,
    convert_for,
    default_model,
    has_setting,
    models_that,
    notes_for,
    parse_settings,
)
from crowdrank.pipeline.sources import (
    AUTO,
    ItemInformation,
    RankOptions,
    Stage,
    are_agreed,
    load_gold,
    load_init,
    load_people,
    read_gold_pairs,
    read_judgments,
    silent,
)
from crowdrank.results import Ranking, order_for_ndcg

if TYPE_CHECKING:
    from crowdrank.evaluation import Evaluation, Gold
    from crowdrank.results import Systems


# Judgments are refused if at least this share of the items was compared once, with each other, and there are at least
# this many items.
_LONE_SHARE, _FEWEST_LONE_ITEMS = 0.95, 10


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
    people : mapping from annotator to AnnotatorDetails
        Which annotators are human and which are language models, as far as it is known.
    """

    judgments: Judgments
    report: ImportReport | None
    choice: ModelChoice
    model: Model
    converted: Judgments
    conversion: str
    side_information: SideInformation | None
    items: ItemInformation
    people: Mapping[str, AnnotatorDetails]

    @cached_property
    def gold(self) -> tuple[Int32Array, Int32Array] | None:
        """Codes of the gold pairs that correct the scores after the fit; None if there are none, or the model does."""
        known = self.side_information
        if known is None or known.gold is None or isinstance(known.gold, str) or self.model.accepts_side_information:
            return None
        return encode_gold(self.converted.items, known.gold)


def prepare(
    source: Any, options: RankOptions, stage: Stage = silent, *, among: Container[str] | None = None
) -> PreparedData:
    """Read the judgments, choose the model (one of `among`, if given), and convert the judgments to what it reads."""
    items = ItemInformation.read(source, options)
    judgments, report = read_judgments(source, options, items.columns_to_read, stage)
    if options.has_boards:
        from crowdrank.pipeline.categories import check_boards

        check_boards(judgments, options)
    if items.feature_sides:
        from crowdrank.pipeline.adjustments import with_feature_sides

        judgments = with_feature_sides(judgments, items.feature_sides)
    if options.exclude or options.aliases:
        from crowdrank.pipeline.publishing import with_aliases, without_annotators

        judgments = with_aliases(without_annotators(judgments, options.exclude), options.aliases)
    if options.system is None and options.by is None:
        _check_connected(judgments)
    people = load_people(options, judgments)
    choice = _choose_model(judgments, items, people, options, stage, among)
    model = _make_model(choice, options)
    if people and options.people is None and model.accepts_people:
        choice = replace(choice, notes=(describe_kinds(people), *choice.notes))
    if options.changes_publication:
        from crowdrank.pipeline.publishing import check_publishable

        check_publishable(options, model, judgments.items)
    if options.time:
        from crowdrank.pipeline.adjustments import check_drift

        check_drift(options, model, judgments)
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
        side_information=_read_side_information(model, converted, people, options),
        items=items,
        people=people,
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


def _choose_model(
    judgments: Judgments,
    items: ItemInformation,
    people: Mapping[str, AnnotatorDetails],
    options: RankOptions,
    stage: Stage,
    among: Container[str] | None = None,
) -> ModelChoice:
    """The model that was named, the default, or with "auto" the one that predicts held-out judgments best."""
    if options.model is not None and options.model != AUTO:
        name = options.model if isinstance(options.model, str) else name_of(options.model)
        return ModelChoice(name, notes=notes_for(judgments, name, people))
    # known qualities of annotators need a model that weights them
    weighted = bool(options.annotator_quality or options.annotator_order)
    default = default_model(
        judgments,
        win_probabilities=options.system is not None,
        among=among,
        people={} if weighted else people,
        gold=options.gold_pairs is not None and not are_agreed(options.gold_pairs),
    )
    if options.model is None:
        return _default_with_options(judgments, options, default)
    from crowdrank.evaluation import compare_models

    if isinstance(judgments, Comparisons):  # the compared models get the requested features and no others
        judgments = items.add_features(judgments) if options.features else replace(judgments, features={})
    try:
        with stage("Comparing models") as update:
            found = compare_models(
                judgments,
                features=options.features or None,
                people=people,
                quick=True,
                seed=options.seed or 0,
                on_progress=lambda name, done, total: update(f"{name}, fit {done:,} of {total:,}"),
            ).recommendation
    except DataError as error:
        reason = f"{default.name} is the default model; no others were compared: {error}"
        return replace(default, reason=reason, compared=True)
    notes = notes_for(judgments, found.model, people)
    if options.features and not has_setting(by_name(found.model), "features"):
        notes += (f"{found.model} predicts best and does not use the features.",)
    return ModelChoice(found.model, found.why, compared=True, notes=notes)


def _default_with_options(judgments: Judgments, options: RankOptions, default: ModelChoice) -> ModelChoice:
    """The default model, or the one that has what the options ask for."""
    if options.control or options.time:
        from crowdrank.pipeline.adjustments import default_with_adjustment

        return default_with_adjustment(judgments, options, default.name)
    if options.by is not None:
        from crowdrank.pipeline.categories import default_for_categories

        return default_for_categories(judgments)
    return default


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
    # a comparison of models may find features useless
    if options.features and (options.model != AUTO or has_setting(cls, "features")):
        from crowdrank.pipeline.adjustments import feature_settings

        settings |= feature_settings(cls, choice.name, options)
    if options.by is not None:
        from crowdrank.pipeline.categories import pooling_settings

        settings |= pooling_settings(cls, choice.name)
    if options.measure is not None and has_setting(cls, "measure"):  # crowd-agg orders by it in its own way
        settings["measure"] = options.measure
    elif options.measure == "rbp":
        raise SettingError(f"measure='rbp' needs crowd-agg; {choice.name} can be ordered for ndcg.")
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


def _read_side_information(
    model: Model, data: Judgments, people: Mapping[str, AnnotatorDetails], options: RankOptions
) -> SideInformation | None:
    """Gold pairs and known qualities of annotators; raises an error if the model cannot use them."""
    if not options.has_side_information:
        usable = people and (model.accepts_side_information or model.accepts_people)
        return SideInformation(people=people) if usable else None
    if _conditions_on_gold(model, data, options):
        return SideInformation(gold=read_gold_pairs(options))
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
        gold=read_gold_pairs(options),
        people=people,
    )


def _conditions_on_gold(model: Model, data: Judgments, options: RankOptions) -> bool:
    """Whether gold pairs correct the scores after the fit: those of models of grades and lists, which know no gold."""
    only_gold = not (options.annotator_quality or options.annotator_order) and not are_agreed(options.gold_pairs)
    return only_gold and not isinstance(data, Comparisons) and not model.accepts_side_information


def describe_side_information(prepared: PreparedData) -> str:
    """Side information in one line; empty if there is none."""
    if prepared.gold is not None:
        pairs = len(prepared.gold[0])
        return f"{pairs:,} gold pair{'' if pairs == 1 else 's'} corrected the scores"
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
    found = [f"{n:,} {one if n == 1 else many}" for n, one, many in counts if n]
    return f"Side information: {', '.join(found)}." if found else ""


def opening_notes(prepared: PreparedData) -> list[str]:
    """Notes that are known before the fit: camps, rows left out, why this model, how judgments were converted."""
    choice, report = prepared.choice, prepared.report
    found = [*choice.notes]
    if report is not None:
        found += [report.dropped_summary(), *report.notes]
    found.append(choice.reason if choice.compared else "")
    found.append(f"The judgments were converted: {prepared.conversion}." if prepared.conversion else "")
    return [note for note in found if note]


# Standard deviation of the prior on scores for comparing systems, where the model would learn it.
_WIDE_PRIOR = 3.0
_DEPENDENT_COMPARISONS = (
    "Comparisons of one list are not independent, so differences between categories may be overstated."
)
# A ranking whose correlation with gold is below this probably has gold in which smaller is better.
_REVERSED_GOLD = -0.2


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
    gold, init, earlier = load_gold(options.gold, options.gold_columns), load_init(options), _load_earlier(options)
    with warnings.catch_warnings(record=True) as caught, ExitStack() as resources:
        warnings.simplefilter("always", CrowdrankWarning)
        prepared = prepare(source, options, stage)
        _check_warm_start(prepared.model, init)
        label = f"Ranking {len(prepared.converted.items):,} items"
        engine = resources.enter_context(_engine(options, label, stage))
        ranking = _fit(prepared, engine, init, options.uncertainty, options.cluster)
        if options.time:
            from crowdrank.pipeline.adjustments import with_drift

            ranking = with_drift(prepared.model, prepared.converted, ranking, options)
        ranking = replace(ranking, simultaneous=options.simultaneous)
        if options.criteria:
            from crowdrank.pipeline.categories import with_weighted_overall

            ranking = with_weighted_overall(ranking, options.weights)
        if options.measure == "ndcg" and not has_setting(type(prepared.model), "measure"):
            ranking = order_for_ndcg(ranking)
        ranking = _compute_lazy_parts(ranking)  # inside the block, which records their warnings and holds the engine
        evaluation = None if gold is None else _evaluate(ranking.overall or ranking, gold)
        systems = None
        if options.system:
            compared = _with_wide_prior(prepared, ranking, engine, options.uncertainty)
            systems = prepared.items.compare_systems(prepared.judgments, compared, options)
        if options.control:
            from crowdrank.pipeline.adjustments import with_uncontrolled_ranks

            ranking = with_uncontrolled_ranks(ranking, _fit_uncontrolled(prepared, engine, ranking))
    raised = tuple(found.message for found in caught if isinstance(found.message, CrowdrankWarning))
    notes = [*opening_notes(prepared), *_collect_notes(ranking, raised, evaluation)]
    published, more = _publish(ranking, options, earlier)
    notes += more
    if options.by is not None and prepared.conversion:
        notes.append(_DEPENDENT_COMPARISONS)
    return RankResult(
        **{name: getattr(prepared, name) for name in PreparedData.__dataclass_fields__},
        ranking=published.with_parts(notes=lambda: notes),
        fitted=ranking.on_scale(published.scale).with_parts(notes=lambda: notes),
        evaluation=evaluation,
        systems=systems,
        warnings=raised,
        options=options,
    )


def _load_earlier(options: RankOptions) -> Ranking | None:
    """The earlier ranking whose scale is kept."""
    if options.link_to is None or isinstance(options.link_to, Ranking):
        return options.link_to
    return Ranking.load(Path(options.link_to))


def _publish(ranking: Ranking, options: RankOptions, earlier: Ranking | None) -> tuple[Ranking, list[str]]:
    """The ranking as it is published, and notes."""
    if not options.changes_publication:
        return ranking, []
    from crowdrank.pipeline.publishing import publish

    return publish(ranking, options, earlier)


def _check_warm_start(model: Model, init: Ranking | None) -> None:
    if init is not None and not model.supports_warm_start:
        able = ", ".join(models_that("supports_warm_start"))
        raise SettingError(f"init= needs a model whose solver has starting values: {able}.")


@contextmanager
def _engine(options: RankOptions, label: str, stage: Stage) -> Iterator[Engine]:
    """The engine, which shows how many passes over the data it has made."""
    with ExitStack() as stack:
        update = stack.enter_context(stage(label))
        engine: Any = LOCAL if options.engine is None else options.engine
        if options.opens_engine:
            name: Any = options.engine
            engine = stack.enter_context(open_engine(name, options.scheduler, options.memory))
        yield ProgressEngine(engine, lambda count: update(f"pass {count:,}"))


def _fit(
    prepared: PreparedData, engine: Engine, init: Ranking | None, uncertainty: str, cluster: str | None = None
) -> Ranking:
    if prepared.gold is not None:
        from crowdrank.models.gold import condition_on_gold

        plain = replace(prepared, side_information=None)
        kind = "model" if uncertainty == "none" else uncertainty
        ranking = condition_on_gold(_fit(plain, engine, init, kind, cluster), *prepared.gold)
        return ranking.without_uncertainty() if uncertainty == "none" else ranking
    model, data, known = prepared.model, prepared.converted, prepared.side_information
    # Other models compute in this process; judgments that are streamed from disk reach them all the same.
    engine = engine if model.distributable else LOCAL
    ranking = model.fit(data, engine=engine, init=init, side_information=known)
    if cluster is not None and uncertainty != "none":
        from crowdrank.pipeline.adjustments import with_cluster_errors

        return with_cluster_errors(model, data, ranking, cluster, uncertainty, known)
    if uncertainty == "bootstrap":
        from crowdrank.models import with_bootstrap

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
    overall = None if ranking.overall is None else _compute_lazy_parts(ranking.overall)
    return replace(ranking.with_parts(**parts), overall=overall)


def _evaluate(ranking: Ranking, gold: Gold) -> Evaluation:
    from crowdrank.evaluation import evaluate

    return evaluate(ranking, gold)


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
