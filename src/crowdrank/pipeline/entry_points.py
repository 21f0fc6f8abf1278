"""The public functions `rank` and `check`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from crowdrank.data import Comparisons
from crowdrank.engines import Engine
from crowdrank.errors import DataError, DataWarning, issue_warning
from crowdrank.models import Model
from crowdrank.pipeline.running import RankResult, run
from crowdrank.pipeline.sources import ColumnRoles, RankOptions
from crowdrank.results import Ranking

if TYPE_CHECKING:
    from crowdrank.evaluation import Check


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
    people: Any = None,
    engine: str | Engine | None = None,
    scheduler: str | None = None,
    memory: str | int | None = None,
    init: Ranking | str | PathLike[str] | None = None,
    uncertainty: Literal["model", "bootstrap", "none"] = "model",
    level: float = 0.95,
    simultaneous: bool = False,
    measure: Literal["ndcg", "rbp"] | None = None,
    missing: Literal["unknown", "worse"] | None = None,
    exclude: str | Sequence[str] | None = None,
    aliases: Mapping[str, str] | None = None,
    by: str | None = None,
    criteria: str | Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
    cluster: str | None = None,
    score_scale: Literal["elo", "jod", "probability"] | None = None,
    anchors: Mapping[str, float] | None = None,
    link_to: Ranking | str | PathLike[str] | None = None,
    min_comparisons: int = 0,
    time: str | int | bool | None = None,
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
    people : path, data frame or mapping, optional
        Columns about annotators: annotator, kind (human or llm), family (what judges have in common) and price. By
        default the kinds that their names make plain, if all do: gpt-4 and claude-3, human and expert_1.
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
    measure : {"ndcg", "rbp"}, optional
        Order the items for the largest expected NDCG, from the draws of any model; see
        `crowdrank.results.order_for_ndcg`. With crowd-agg it is the model's own setting, and "rbp" is possible.
    missing : {"unknown", "worse"}, optional
        How to treat items missing from a ranked list: ignore them, or rank them below the listed ones.
    exclude : str or sequence of str, optional
        Annotators to leave out.
    aliases : mapping of str to str, optional
        New names of items. Two items that get the same name become one.
    by : str, optional
        Column of categories, such as the language. Each is ranked, by bradley-terry or thurstone with partial pooling:
        categories with few judgments are drawn towards the overall. The queries of the result are the categories, and
        `Ranking.overall` is the ranking over all; see `crowdrank.results.category_differences`.
    criteria : str or sequence of str, optional
        Column that names the criterion of each judgment, or several columns of winners, one for each criterion. The
        queries of the result are the criteria, and `Ranking.overall` is their weighted mean; see
        `crowdrank.results.criterion_correlations`.
    weights : mapping of str to float, optional
        Weights of criteria in the overall; 1 for those that are not named.
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
    time : {"hour", "day", "week", "month"}, int or True, optional
        Let strengths drift over time, in periods of this length, this many periods, or with True as many as the votes
        allow. The ranking is that of the last period, and `Ranking.drift` has the curves and a test of change. For
        bradley-terry and thurstone; the judgments need a time.
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
    given = dict(locals())  # the arguments have the names of the options
    result = run(given.pop("source"), RankOptions.of(**given))
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
