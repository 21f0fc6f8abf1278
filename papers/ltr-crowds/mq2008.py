"""Learning to rank from crowds, Figures 13 to 15: real features and grades, simulated annotators.

The paper's OHSUMED is not available; the 471 development queries of MQ2008 (5 to 121 documents, 46 features, grades 0
to 2) replace it. There are 10 annotators with θ in [-.25, .02], so occasionally one of them is reversed.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import polars as pl
from learners import (
    DIRECT,
    METHODS,
    OURS,
    TRUTH,
    WEIGHING,
    Fine,
    Lesson,
    Paired,
    Taught,
    at_least,
    at_most,
    less,
    lists_about,
    measured,
)
from measure import Check, Key, Table, data_folder, drawn, options, over_seeds, report

from crowdrank import Gold
from crowdrank.ltr import CrowdRanker, Features

FILE = Path("mq2008_ltr") / "dev_features_train.csv.gz"
ANNOTATORS, LOW, HIGH = 10, -0.25, 0.02
TRAINED_ON = 2 / 3
DEPTHS = (1, 3, 5, 10)
LINEAR, TREES = "linear", "lightgbm"
BENT = (OURS, DIRECT, "pooled", "borda", TRUTH)
"""Methods that trees are grown by, too."""
SHOWS = {
    **{f"linear, {method}": Taught(method=method) for method in METHODS},
    **{f"lightgbm, {method}": Taught(CrowdRanker(ranker="lightgbm"), method) for method in BENT},
}
GRADES = "truth, ties left open"
EXPERTISE = "Expertise"

NOTES = f"""
In each trial a random two thirds of the queries are used for training and the others for testing; NDCG (gain 2^grade −
1) is the mean over test queries with a relevant document. As in the paper, one perfect order of each query is drawn at
random among those that its grades allow, and annotators' lists are drawn around it (Mallows, θ uniform in [{LOW},
{HIGH}]). *truth* is trained on that perfect order, *{GRADES}* from the grades. No other method uses the grades:
ltr-crowds chooses the labels map or expected by annotators' lists alone, and S1 to S3 use the same labels. S1 knows the
perfect order of a quarter of the queries, S2 the θ of the best annotator to within a quarter, S3 that this annotator is
better than all others. Expertise: NDCG@3 of annotators by the estimated θ, where the best of 10 has the grade 10. The
settings of trees were chosen on other splits of these queries.
"""


@cache
def documents() -> Features:
    folder = data_folder()
    assert folder is not None
    frame = pl.read_csv(folder / FILE, schema_overrides={"query": pl.String, "item": pl.String}).drop("split")
    return Features.of(frame, query="query", item="item", grade="label")


def lesson_of(seed: int, quick: bool) -> tuple[Lesson, Gold]:
    """Queries by lot, with a crowd's lists; and the grades of those to learn from."""
    rng, whole = np.random.default_rng([seed, 8]), documents()
    order = rng.permutation(len(whole.items.queries))[: 30 if quick else None]
    cut = round(TRAINED_ON * len(order))
    train, test = (whole.take(np.flatnonzero(np.isin(whole.items.query, part))) for part in (order[:cut], order[cut:]))
    assert train.grades is not None
    assert test.grades is not None
    perfect = train.grades + rng.random(len(train)) / 2
    theta = rng.uniform(LOW, HIGH, ANNOTATORS)
    lists = lists_about(train.items, perfect, theta, rng)
    gold = Gold.of(
        item=train.items.labels, value=train.grades, query=train.items.queries[train.items.query], graded=False
    )
    features = replace(train, grades=None)
    return Lesson(lists, features, perfect, theta, replace(test, grades=None), test.grades), gold


def trial(column: str, seed: int, quick: bool) -> Mapping[Key, float]:
    lesson, gold = lesson_of(seed, quick)
    settings = CrowdRanker(ranker=column, iterations=2 if quick else 15)
    functions = lesson.fits(METHODS if column == LINEAR else BENT, settings)
    chosen = functions[OURS].settings["labels"]
    for labels in ("map", "expected"):
        same = labels == chosen
        function = functions[OURS] if same else lesson.fit(OURS, replace(settings, labels=labels, held_out=0))
        functions[f"{OURS}, labels {labels}"] = function
    functions[GRADES] = replace(settings, method=TRUTH, held_out=0).fit(lesson.lists, lesson.features, gold)
    found = {(f"NDCG: {column}, {name}", f"@{k}"): lesson.ndcg(f, k) for name, f in functions.items() for k in DEPTHS}
    if column == LINEAR:
        for name in WEIGHING:
            found[f"{EXPERTISE}: {name}", "NDCG@3"] = lesson.told_apart(functions[name], 3)
            found[f"{EXPERTISE}: {name}", "RMSE of θ"] = lesson.error(functions[name])
    return found


def tables(found: Mapping[Key, list[float]]) -> Iterator[Table]:
    cells = measured(found, "NDCG")
    yield Fine(cells, title="NDCG")
    for kind in (LINEAR, TREES):
        first, *others = dict.fromkeys(row for row, _ in cells if row.startswith(kind))
        yield Paired(less(cells, first, others), title=f"NDCG: {first}, less the others")
    both = [less(cells, f"{TREES}, {name}", [f"{LINEAR}, {name}"]) for name in (*BENT, GRADES)]
    yield Paired({key: values for some in both for key, values in some.items()}, title="NDCG: trees less linear")
    yield Fine(measured(found, EXPERTISE), title=EXPERTISE)


def checks(found: Mapping[Key, list[float]]) -> Iterator[Check]:
    cells = {row: np.array(values) for (row, column), values in measured(found, "NDCG").items() if column == "@5"}
    ours = cells[f"{TREES}, {OURS}"]
    yield at_least(f"NDCG@5, {TREES} above {LINEAR}, {OURS}", 0.02, ours - cells[f"{LINEAR}, {OURS}"])
    for name in (TRUTH, GRADES):
        yield at_most(f"NDCG@5, {TREES}, behind {name}", 0.02, cells[f"{TREES}, {name}"] - ours)


def run(told: Namespace) -> None:
    found = over_seeds(trial, [LINEAR, TREES], told)
    report(told, f"{NOTES}\n{drawn(told)}", list(tables(found)), list(checks(found)))


if __name__ == "__main__":
    told = options(__file__, __doc__, trials=10)
    folder = data_folder()
    if folder is None or not (folder / FILE).is_file():
        print("Nothing to learn from: MQ2008's features were not found; set CROWDRANK_DATA.", file=sys.stderr)
        sys.exit()  # no failure: the other tables are not to wait for a file
    run(told)
