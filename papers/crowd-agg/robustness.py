"""CrowdAgg, §6.4: quality of the order when spammers join, who answer as much as everyone else.

Topics of 20 items and 30 annotators with 25 preferences each; the number of spammers is a percentage of the annotators.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measure import FIRST_SEED, Check, Key, Table, decimals, drawn, options, over_seeds, report, with_error
from topics import BASELINES, OURS, PUBLISHED, TOPICS, fit

from crowdrank import CrowdAgg
from crowdrank.evaluation import ndcg
from crowdrank.models import Model

TOPIC, HONEST = TOPICS["preferences 20/30/25"], 30
SHARES = (0.0, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5)
KINDS = {"random": 0.5, "reversed": 0.0}
QUALITIES = {"very mixed": "beta(2,1)", "better than a coin": "uniform(0.5,0.95)"}
WITHOUT = "crowd-agg, no heads counted"
METHODS: dict[str, Model] = {
    OURS: CrowdAgg(),
    WITHOUT: CrowdAgg(resolve_sign=False),
    "crowd-agg, published": PUBLISHED,
    **{name: BASELINES[name] for name in ("greedy-order", "bradley-terry", "mpm", "em-elo", "crowd-bt")},
}
SHOWS = METHODS | {"spammers": partial(TOPIC.draw, spammers=HONEST // 2, spammer_quality=0.0, seed=FIRST_SEED)}
AIM, AT = 0.88, "25 %"

NOTES = """
NDCG@10 as in [table 2](table2.md). Random spammers answer at random, reversed ones always name the worse item; each
answers as many pairs as an annotator. The quality of annotators is drawn from Beta(2, 1), under which a quarter of them
are wrong more often than right (*very mixed*), or from U(.5, .95) (*better than a coin*). *No heads counted* is
crowd-agg with `resolve_sign=False`. mpm and em-elo resolve the sign by a vote of the annotators, crowd-bt by the
distribution of quality with a share of reversed annotators; greedy-order and bradley-terry do not model annotators.
The coefficient of variation is the paper's measure of robustness: the standard
deviation divided by the mean of a row's means, from no spammers to half as many as annotators.
"""


def panel(quality: str, kind: str) -> str:
    return f"{kind} spammers, annotators {quality}"


def trial(column: tuple[str, str, float], seed: int, quick: bool) -> Mapping[Key, float]:
    quality, kind, share = column
    added = round(share * HONEST)
    crowd = TOPIC.draw(quality=QUALITIES[quality], spammers=added, spammer_quality=KINDS[kind], seed=seed)
    grades, where = TOPIC.grades(crowd.truth), f"{panel(quality, kind)}: {share:.0%}".replace("%", " %")
    return {(name, where): ndcg(fit(model, crowd.judgments).scores, grades, k=10) for name, model in METHODS.items()}


def of_panel(found: Mapping[Key, list[float]], title: str) -> dict[Key, list[float]]:
    return {(row, name.partition(": ")[2]): v for (row, name), v in found.items() if name.startswith(f"{title}:")}


def variation(found: Mapping[Key, list[float]], titles: list[str]) -> dict[Key, list[float]]:
    cells = {}
    for title in titles:
        for row in METHODS:
            means = [np.mean(values) for (name, _), values in of_panel(found, title).items() if name == row]
            cells[row, title] = [float(np.std(means) / np.mean(means))]
    return cells


def aim(found: Mapping[Key, list[float]], title: str) -> Check:
    with_heads, without = (found[row, f"{title}: {AT}"] for row in (OURS, WITHOUT))
    shown = f"{with_error(with_heads)} (without heads counted {with_error(without)})"
    return Check(f"{OURS}, {AT} {title}", f"at least {decimals(AIM)}", shown, float(np.mean(with_heads)) >= AIM)


if __name__ == "__main__":
    told = options(__file__, __doc__, trials=30)
    shares = (0.0, 0.25) if told.quick else SHARES
    columns = [(quality, kind, share) for quality in QUALITIES for kind in KINDS for share in shares]
    found = over_seeds(trial, columns, told)
    titles = [panel(quality, kind) for quality in QUALITIES for kind in KINDS]
    tables = [Table(of_panel(found, title), title=f"NDCG@10, {title}") for title in titles]
    tables.append(Table(variation(found, titles), title="Coefficient of variation of NDCG@10"))
    report(told, f"{NOTES}\n{drawn(told)}", tables, [aim(found, panel(q, "reversed")) for q in QUALITIES])
