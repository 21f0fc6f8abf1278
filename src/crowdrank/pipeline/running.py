"""`run`: prepare, fit, quantify uncertainty, evaluate, and collect the notes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from crowdrank.engines import LOCAL, Engine, ProgressEngine, open_engine
from crowdrank.errors import CrowdrankWarning, SettingError
from crowdrank.leaderboard.categories import category_notes, with_weighted_overall
from crowdrank.leaderboard.control import with_uncontrolled_ranks
from crowdrank.leaderboard.publishing import check_link, publish
from crowdrank.models import Model
from crowdrank.models.base import model_settings
from crowdrank.models.selection import has_setting, models_that
from crowdrank.pipeline.preparation import PreparedData, opening_notes, prepare
from crowdrank.pipeline.rank_options import RankOptions, Stage, silent
from crowdrank.pipeline.sources import load_gold, load_init
from crowdrank.results import Ranking, order_for_ndcg

if TYPE_CHECKING:
    from crowdrank.evaluation import Evaluation, Gold
    from crowdrank.results import Systems


# Standard deviation of the prior on scores for comparing systems, where the model would learn it.
_WIDE_PRIOR = 3.0
# A ranking correlated with its gold below this is probably graded upside down.
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
    gold, init, earlier = load_gold(options.gold, options.gold_columns), load_init(options), check_link(options)
    with warnings.catch_warnings(record=True) as caught, ExitStack() as resources:
        warnings.simplefilter("always", CrowdrankWarning)
        prepared = prepare(source, options, stage)
        _check_warm_start(prepared.model, init)
        label = f"Ranking {len(prepared.converted.items):,} items"
        engine = resources.enter_context(_engine(options, label, stage))
        ranking = _fit(prepared, engine, init, options.uncertainty, options.cluster)
        if options.time:
            from crowdrank.leaderboard.options import with_drift

            ranking = with_drift(prepared.model, prepared.converted, ranking, options)
        ranking = replace(ranking, simultaneous=options.simultaneous)
        if options.criteria:
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
            ranking = with_uncontrolled_ranks(ranking, _fit_uncontrolled(prepared, engine, ranking))
    raised = tuple(found.message for found in caught if isinstance(found.message, CrowdrankWarning))
    notes = [*opening_notes(prepared), *_collect_notes(ranking, raised, evaluation)]
    published, more = publish(ranking, options, earlier)
    notes += more + category_notes(prepared.conversion, options)
    return RankResult(
        **{name: getattr(prepared, name) for name in PreparedData.__dataclass_fields__},
        ranking=published.with_parts(notes=lambda: notes),
        fitted=ranking.on_scale(published.scale).with_parts(notes=lambda: notes),
        evaluation=evaluation,
        systems=systems,
        warnings=raised,
        options=options,
    )


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
        from crowdrank.leaderboard.options import with_cluster_errors

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
