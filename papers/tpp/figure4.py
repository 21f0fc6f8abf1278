"""TPP, Figure 4: aggregation of the lists of 25 retrieval systems (MQ2008-agg).

Queries with at most 8 documents. A system lists some of the documents of a query, the best first.
"""

from __future__ import annotations

import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import polars as pl
from fits import Fits, Record, keep, less
from measure import Key, Table, data_folder, options, over_seeds, report

from crowdrank import TPP, TRM, Borda, Comparisons, CrowdBT, Gold, Rankings, evaluate, read, read_gold
from crowdrank.errors import DataWarning
from crowdrank.models import Model

DEPTHS = (2, 4, 6, 8)
MOST_DOCUMENTS = 8
SPARSE, DRAWS = 0.2, 3
DATA = "mq2008_agg"
BASELINE, OURS, ON_LISTS = "borda", "tpp", "trm"
# Documents of a query are often as good as tied, so that the noise of short chains would show in NDCG.
PATIENT = TPP(r_hat=1.05, max_sweeps=2000)
MODELS: dict[str, Model] = {
    BASELINE: Borda(),
    ON_LISTS: TRM(),
    "crowd-bt": CrowdBT(),
    "tpp, 1 domain": replace(PATIENT, domains=1),
    "tpp, 3 domains": replace(PATIENT, domains=3),
    "tpp, 5 domains": replace(PATIENT, domains=5),
    OURS: PATIENT,
}
SHOWS = MODELS
READINGS = ("lists as they are", "missing documents last")
AUTHORS = "the authors' evaluation"
BY_THE_AUTHORS = (BASELINE, "crowd-bt", "tpp, 1 domain", "tpp, 3 domains", "tpp, 5 domains")
SHARES = {"SR1.0": 1.0, "SR0.2": SPARSE}

NOTES = f"""
Documents missing from a list are either ignored or ranked below the listed ones. With SR0.2 a fifth of the pairs of all
lists is kept, at random, and NDCG is the mean of {DRAWS} draws; trm reads whole lists, so it has no SR0.2. All models
have default settings, except that tpp's chains run until R̂ is below 1.05; plain tpp estimates the number of domains.
NDCG has the usual gain 2^grade − 1, and is the mean over queries with a relevant document ± standard error between
queries. Differences are paired by query. The paper's figure has curves but no numbers.

*{AUTHORS}* is that of the authors' program, which explains the levels of their curves: a larger number in a
list counts as better, although it means a lower place; the sum of NDCG@k stops at k − 1; pairs are drawn with
replacement; and Borda's counts begin anew with every system, so that only the last one counts. Its numbers say nothing
about the methods.
"""


@cache
def queries(quick: bool) -> tuple[dict[str, Rankings], Gold]:
    """The lists of small queries, read both ways, and the grades of all documents."""
    folder = data_folder()
    assert folder is not None
    gold = read_gold(folder / DATA / "dev_gold.csv")
    assert gold.query is not None
    names, sizes = np.unique(gold.query, return_counts=True)
    small = names[sizes <= MOST_DOCUMENTS].tolist()
    rows = pl.read_csv(folder / DATA / "dev_rankings.csv", infer_schema=False).select("query", "worker", "item", "rank")
    lists = read(rows.filter(pl.col("query").is_in(small[:20] if quick else small)), kind="rankings")
    assert isinstance(lists, Rankings)
    readings = dict(zip(READINGS, (lists, lists.with_missing_last()), strict=True))
    return readings, Gold.of(gold.item, gold.value, query=gold.query)


def trial(kept: Path | None, column: tuple[str, str, str], seed: int, quick: bool) -> Mapping[Key, Any]:
    name, reading, sparsity = column
    panel, kept = f"{reading}, {sparsity}", None if quick else kept
    return {(name, panel): keep(kept, (f"MQ2008 {panel}", name), seed, lambda: fit(*column, seed, quick))}


def fit(name: str, reading: str, sparsity: str, seed: int, quick: bool) -> Record:
    """NDCG of every query with something relevant, by depth."""
    model, (readings, gold) = quickly(MODELS[name]) if quick else MODELS[name], queries(quick)
    if reading == AUTHORS:
        return fit_as_the_authors(model, readings[READINGS[0]], gold, SHARES[sparsity], seed)
    lists, share = readings[reading], SHARES[sparsity]
    whole = isinstance(model, (Borda, TRM)) and share == 1
    with warnings.catch_warnings():
        # a prior holds documents together that no list has both of
        warnings.simplefilter("ignore", DataWarning)
        ranking = model.fit(lists if whole else some_pairs(lists, share, seed))
    found: Record = {"converged": ranking.convergence.converged}
    if isinstance(model, TPP):
        found["domains"] = int(np.count_nonzero(ranking.domains.sizes))
    for k in DEPTHS:
        found[f"@{k}"] = evaluate(ranking, gold, k=k).by_query["ndcg"].drop_nans().to_list()
    return found


def fit_as_the_authors(model: Model, lists: Rankings, gold: Gold, share: float, seed: int) -> Record:
    """NDCG of every query with something relevant, by the depths that the authors' program names."""
    pairs = last_system(lists.to_comparisons()) if isinstance(model, Borda) else lists.to_comparisons()
    rows = np.random.default_rng(seed).integers(len(pairs), size=round(share * len(pairs)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        ranking = model.fit(pairs.take(np.sort(rows)).with_outcomes_reversed())
    found: Record = {"converged": ranking.convergence.converged}
    for k in DEPTHS:
        found[f"@{k}"] = evaluate(ranking, gold, k=k - 1).by_query["ndcg"].drop_nans().to_list()
    return found


def last_system(pairs: Comparisons) -> Comparisons:
    """The pairs of the last annotator of each query."""
    assert pairs.annotator is not None
    query = pairs.items.query[pairs.left]
    last = np.full(len(pairs.items.queries), -1)
    np.maximum.at(last, query, pairs.annotator)
    return pairs.take(np.flatnonzero(pairs.annotator == last[query]))


def some_pairs(lists: Rankings, share: float, seed: int) -> Comparisons:
    pairs = lists.to_comparisons()
    if share == 1:
        return pairs
    rng = np.random.default_rng(seed)
    return pairs.take(np.sort(rng.choice(len(pairs), round(share * len(pairs)), replace=False)))


def quickly(model: Model) -> Model:
    if isinstance(model, TPP):
        return replace(model, draws=20, max_sweeps=60)
    return replace(model, draws=20, warmup=20) if isinstance(model, TRM) else model


def fits(told: Namespace) -> dict[Key, list[Record]]:
    """Of every model to every panel, one record a draw of pairs."""
    found: dict[Key, list[Record]] = {}
    for sparsity, share in SHARES.items():
        names = [name for name in MODELS if share == 1 or name != ON_LISTS]
        columns = [(name, reading, sparsity) for reading in READINGS for name in names]
        columns += [(name, AUTHORS, sparsity) for name in BY_THE_AUTHORS]
        told.trials = 1 if share == 1 or told.quick else DRAWS
        found |= cast(Any, over_seeds(partial(trial, told.kept), columns, told))
    return found


def by_depth(found: Fits, panel: str) -> dict[Key, list[float]]:
    """Query by query, the mean over draws."""
    return {
        (name, f"@{k}"): np.mean([record[f"@{k}"] for record in records], axis=0).tolist()
        for (name, where), records in found.items()
        if where == panel
        for k in DEPTHS
    }


def tables(found: Fits) -> Iterator[Table]:
    for reading in (*READINGS, AUTHORS):
        for sparsity in SHARES:
            cells = by_depth(found, f"{reading}, {sparsity}")
            others = dict.fromkeys(name for name, _ in cells if name != BASELINE)
            ahead = {key: values for name in others for key, values in less(cells, name, [BASELINE]).items()}
            yield Table(cells, title=f"NDCG, {reading}, {sparsity}")
            yield Table(ahead, title=f"NDCG, {reading}, {sparsity}: less {BASELINE}")


def domains(found: Fits) -> str:
    numbers = {
        panel: "/".join(f"{record['domains']}" for record in records)
        for (name, panel), records in found.items()
        if name == OURS
    }
    return f"Domains found by {OURS}: " + "; ".join(f"{number} ({panel})" for panel, number in numbers.items()) + "."


if __name__ == "__main__":
    told = options(__file__, __doc__, "kept")
    folder = data_folder()
    if folder is None or not (folder / DATA).is_dir():
        print("Nothing to rank: MQ2008-agg was not found; set CROWDRANK_DATA.", file=sys.stderr)
        sys.exit()  # no failure: the other tables are not to wait for a file
    found = fits(told)
    of_all = len(queries(told.quick)[0][READINGS[0]].items.queries)
    graded = len(found[BASELINE, f"{READINGS[0]}, SR1.0"][0]["@2"])
    short = ", ".join(f"{count} of {name}" for name, count in told.stopped_short.items()) or "none"
    numbers = f"{of_all} queries, {graded} of them with a relevant document. Fits that did not converge: {short}."
    report(told, f"{NOTES}\n{numbers} {domains(found)}", list(tables(found)))
