"""CrowdAgg, Table 2 on real judgments: grades, preferences and lists whose truth is known.

snow2008 and peergrading_aaai15 (grades), country_population (preferences), lee_rankings and MQ2008-agg (lists).
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import polars as pl
from measure import Check, Key, Table, data_folder, decimals, options, report, with_error
from topics import BASELINES, OF_GRADES, OURS, Paired, fit, less

from crowdrank import (
    TRM,
    Comparisons,
    CrowdAgg,
    Footrule,
    Mallows,
    MarkovChain,
    MeanRating,
    MedianRank,
    PlackettLuce,
    Rankings,
    ReciprocalRankFusion,
    read,
)
from crowdrank.data import Items
from crowdrank.errors import ConvergenceWarning, DataWarning
from crowdrank.evaluation import kendall_correlation, ndcg, spearman_correlation
from crowdrank.models import Model

DEFAULT, FIRST = "graded-response", "borda"
OF_LISTS: dict[str, Model] = {
    "plackett-luce": PlackettLuce(),
    "mallows": Mallows(),
    "footrule": Footrule(),
    "median-rank": MedianRank(),
    "rrf": ReciprocalRankFusion(),
    **{f"markov-chain, {c}": MarkovChain(chain=c) for c in ("mc1", "mc2", "mc3", "mc4")},
}
OF_PAIRS = {name: model for name, model in BASELINES.items() if name != "bayesian-crowd-bt"}
AGREEMENT: dict[str, Model] = {
    OURS: CrowdAgg(),
    "crowd-agg, rbp": CrowdAgg(measure="rbp"),
    "crowd-agg, answer": CrowdAgg(win_rule="answer"),
    "crowd-agg, printed": CrowdAgg(win_rule="printed"),
}
GRADES = {DEFAULT: OF_GRADES[DEFAULT], **OF_GRADES, "mean-rating, prior_count=0": MeanRating(prior_count=0)}
GRADES |= AGREEMENT | OF_PAIRS | OF_LISTS
LISTS: dict[str, Model] = {FIRST: OF_PAIRS[FIRST], **OF_LISTS, "bradley-terry": OF_PAIRS["bradley-terry"]}
LISTS |= {"crowd-bt": OF_PAIRS["crowd-bt"], "trm": TRM()}
SHOWS = GRADES | LISTS
PROBABLE = ("plackett-luce", "mallows", "bradley-terry", "crowd-bt", "trm")
INDIVIDUAL = "mean individual"
DEPTHS = {2: 0.62, 4: 0.70, 6: 0.75, 8: 0.78}
RESAMPLES = 1000
SLOW = "mpm"  # where queries are large
ABOVE = "share of tasks above the mean individual"
PEERS = "peergrading_aaai15"
SETS = ("snow2008", PEERS, "country_population", "lee_rankings", "mq2008_agg")

NOTES = """
All models have their default settings. **Grades**: correlation with gold; for snow2008 the mean over its eight queries
± standard error between queries, for peergrading over 23 pieces graded by staff ± that of a bootstrap over them; and
the difference from graded-response, the default for grades, on the same queries or pieces. Models for lists read each
annotator's items ordered by grade, models for comparisons read every two items that one annotator graded.
**Preferences**: Kendall's correlation with the true order of 15 countries, ± standard deviation over resampled
annotators. **Lists**: Kendall's correlation with the true order, mean over the tasks of lee_rankings whose sheets are
clearly readable (confidence *clear*), ± standard error between tasks; *mean individual* is the mean over the people of
a task. MQ2008-agg: NDCG of queries with at most 8 documents, the mean over those with a relevant one; documents missing
from a list are worse than the listed ones (`missing="worse"`). p is for a two-sided paired t test. These sets were used
while the models were developed, so the results of the best models may be slightly optimistic.
"""


@dataclass(frozen=True)
class Measured(Table):
    """Single numbers with errors of their own: every one is of one data set."""

    error: Mapping[Key, float] = field(default_factory=dict)

    def _cell(self, row: str, column: str) -> str:
        if (row, column) not in self.found:
            return ""
        sign = "+" if "less" in column and self.found[row, column][0] >= 0 else ""
        return f"{sign}{decimals(self.found[row, column][0])} ± {decimals(self.error[row, column])}"

    def records(self) -> Iterator[dict[str, Any]]:
        for record in super().records():
            yield record | {"standard_error": round(self.error[record["row"], record["column"]], 5)}


def quickly(model: Model) -> Model:
    return replace(model, draws=20, warmup=20) if isinstance(model, TRM) else model


def truth(path: Path, items: Items, column: str) -> np.ndarray:
    """Of each item, larger is better; nan where it is not known."""
    gold = pl.read_csv(path, infer_schema=False)
    query = gold["query"] if "query" in gold.columns else pl.Series([None] * gold.height, dtype=pl.String)
    known = dict(zip(zip(query, gold["item"], strict=True), gold[column].cast(pl.Float64), strict=True))
    named = items.queries[items.query] if items.has_queries else [None] * len(items)
    return np.array([known.get(key, np.nan) for key in zip(named, items.labels, strict=True)])


def blocks(items: Items) -> list[slice]:
    return [items.of_query(query) for query in range(len(items.queries))]


def grades(folder: Path, name: str, column: str, quick: bool) -> Measured:
    """Spearman's and Kendall's correlation of every method, and the difference from the default."""
    rows = pl.read_csv(folder / name / "ratings.csv", infer_schema=False)
    if quick and "query" in rows.columns:
        rows = rows.filter(pl.col("query").is_in(["joy", "wordsim"]))
    ratings = read(rows, kind="ratings")
    true = truth(folder / name / "gold.csv", ratings.items, column)
    known = np.flatnonzero(np.isfinite(true))
    one = len(ratings.items.queries) == 1
    rng = np.random.default_rng(0)
    again = [rng.choice(known, len(known)) for _ in range(50 if quick else RESAMPLES)] if one else []
    parts = [known] if one else [np.arange(block.start, block.stop) for block in blocks(ratings.items)]
    value: dict[Key, list[float]] = {}
    error: dict[Key, float] = {}
    first: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for method, model in GRADES.items():
        if quick and one and method == SLOW:
            continue
        scores = fit(model, ratings).scores
        for what, measure in (("Spearman", spearman_correlation), ("Kendall", kendall_correlation)):
            whole, varied = (np.array([measure(scores[r], true[r]) for r in rows]) for rows in (parts, again or parts))
            base = first.setdefault(what, (whole, varied))
            # the spread of resamples is the error itself, that between queries the error of their mean times √queries
            root = 1.0 if one else len(parts) ** 0.5
            value[method, what], error[method, what] = [float(whole.mean())], float(varied.std(ddof=1) / root)
            if method != DEFAULT:
                key = method, f"{what}, less {DEFAULT}"
                value[key] = [float(np.mean(whole - base[0]))]
                error[key] = float(np.std(varied - base[1], ddof=1) / root)
    return Measured(value, title=f"Grades: {name}", error=error)


def default_is_among_the_best(table: Measured) -> Check:
    """Within one standard error of the difference from whichever method is best, by Spearman's correlation."""
    rows = {row: table.found[row, "Spearman"][0] for row in table.rows}
    best = max(rows, key=lambda row: rows[row])
    short, error = rows[best] - rows[DEFAULT], table.error.get((best, f"Spearman, less {DEFAULT}"), 0.0)
    shown = "the best" if best == DEFAULT else f"{best} is ahead by {decimals(short)} ± {decimals(error)}"
    return Check(f"{DEFAULT}, {table.title}", "best, or within one standard error of it", shown, short <= error)


def preferences(folder: Path, quick: bool) -> Measured:
    votes = read(folder / "country_population" / "pairwise.csv")
    assert isinstance(votes, Comparisons)
    true = truth(folder / "country_population" / "gold.csv", votes.items, "label")
    rng, people = np.random.default_rng(0), len(votes.annotators)
    times = [np.bincount(rng.integers(people, size=people), minlength=people) for _ in range(5 if quick else 100)]
    value, error = {}, {}
    for method, model in (AGREEMENT | OF_PAIRS).items():
        key = method, "Kendall"
        value[key] = [kendall_correlation(fit(model, votes).scores, true)]
        again = [fit(model, votes.reweighted(votes.weights * drawn[votes.annotator])).scores for drawn in times]
        error[key] = float(np.std([kendall_correlation(scores, true) for scores in again], ddof=1))
    return Measured(value, title="Preferences: country_population", error=error)


def tasks(folder: Path, quick: bool) -> dict[Key, list[float]]:
    """Kendall's correlation by task of lee_rankings, and the share of tasks where it is above the mean individual's."""
    place = folder / "lee_rankings"
    clear = pl.read_csv(place / "lists.csv").filter(pl.col("confidence") == "clear")["query"].to_list()
    rows = pl.read_csv(place / "rankings.csv").filter(pl.col("query").is_in(clear[:4] if quick else clear))
    lists = read(rows, kind="rankings")
    assert isinstance(lists, Rankings)
    true = -truth(place / "gold.csv", lists.items, "true_rank")
    alone = individuals(lists, true)
    found = {(INDIVIDUAL, "Kendall"): alone}
    for method, model in LISTS.items():
        scores = fit(quickly(model) if quick else model, lists).scores
        own = [kendall_correlation(scores[block], true[block]) for block in blocks(lists.items)]
        found[method, "Kendall"] = own
        found[method, ABOVE] = np.greater(own, alone).astype(float).tolist()
    return found


def every_aggregate_beats_individuals(cells: Mapping[Key, list[float]]) -> Check:
    shares = {row: float(np.mean(cells[row, ABOVE])) for row in LISTS}
    least = min(shares, key=lambda row: shares[row])
    shown = f"the least {decimals(shares[least])} ({least})" if shares[least] < 1 else f"all of {len(shares)} methods"
    return Check("tasks of lee_rankings above the mean individual, every method", "all", shown, shares[least] == 1)


def individuals(lists: Rankings, true: np.ndarray) -> list[float]:
    """By task, the mean over its people."""
    query = lists.items.query[lists.item[lists.offsets[:-1]]]
    own = [
        kendall_correlation(-lists.place[begin:end], true[lists.item[begin:end]])
        for begin, end in zip(lists.offsets[:-1], lists.offsets[1:], strict=True)
    ]
    return (np.bincount(query, own) / np.bincount(query)).tolist()


def documents(folder: Path, quick: bool) -> dict[Key, list[float]]:
    """NDCG by query of MQ2008-agg, what a list leaves out being worse."""
    place = folder / "mq2008_agg"
    gold = pl.read_csv(place / "dev_gold.csv", infer_schema=False)
    few = gold.group_by("query").len().filter(pl.col("len") <= max(DEPTHS)).sort("query")["query"].to_list()
    rows = pl.read_csv(place / "dev_rankings.csv", infer_schema=False).select("query", "worker", "item", "rank")
    lists = read(rows.filter(pl.col("query").is_in(few[:20] if quick else few)), kind="rankings")
    assert isinstance(lists, Rankings)
    whole, true = lists.with_missing_last(), truth(place / "dev_gold.csv", lists.items, "label")
    graded = [block for block in blocks(lists.items) if true[block].any()]
    found = {}
    for method, model in LISTS.items():
        scores = fit(quickly(model) if quick else model, whole).scores
        for k in DEPTHS:
            found[method, f"@{k}"] = [ndcg(scores[block], true[block], k=k) for block in graded]
    return found


def of_a_probable_model(cells: Mapping[Key, list[float]]) -> Check:
    """The probabilistic model that is furthest above the least of the aims, or least short of them."""
    spare = {row: min(float(np.mean(cells[row, f"@{k}"])) - aim for k, aim in DEPTHS.items()) for row in PROBABLE}
    best = max(spare, key=lambda row: spare[row])
    shown = " / ".join(with_error(cells[best, f"@{k}"]) for k in DEPTHS)
    aims = "/".join(decimals(aim) for aim in DEPTHS.values())
    return Check(
        f"a probabilistic model, @{'/'.join(map(str, DEPTHS))}",
        f"at least {aims}",
        f"{best}: {shown}",
        round(spare[best], 3) >= 0,
    )


if __name__ == "__main__":
    told = options(__file__, __doc__)
    folder = data_folder()
    if folder is None or not all((folder / name).is_dir() for name in SETS):
        print(f"Nothing to rank: {', '.join(SETS)} were not all found; set CROWDRANK_DATA.", file=sys.stderr)
        sys.exit()  # no failure: the other tables are not to wait for a file
    warnings.simplefilter("ignore", ConvergenceWarning if told.quick else DataWarning)
    graded = [grades(folder, *which, told.quick) for which in (("snow2008", "label"), (PEERS, "staff_grade"))]
    listed, found = tasks(folder, told.quick), documents(folder, told.quick)
    aims = {(FIRST, f"@{k}"): aim for k, aim in DEPTHS.items()}
    against = {key: values for key, values in listed.items() if key[1] == "Kendall"}
    tables = [
        *graded,
        preferences(folder, told.quick),
        Table(listed, title="Lists: lee_rankings"),
        Paired(less(against, FIRST), title=f"Lists: lee_rankings, less {FIRST}"),
        Table(found, title="Lists: NDCG, MQ2008-agg", at_least=aims),
        Paired(less(found, FIRST), title=f"Lists: NDCG, MQ2008-agg, less {FIRST}"),
    ]
    checks = [*map(default_is_among_the_best, graded), every_aggregate_beats_individuals(listed)]
    checks.append(of_a_probable_model(found))
    size = f"{len(against[FIRST, 'Kendall'])} tasks of lee_rankings, {len(found[FIRST, '@2'])} queries of MQ2008-agg."
    report(told, f"{NOTES}\n{size}", tables, checks)
