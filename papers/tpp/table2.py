"""TPP, Table II: distance of rankings from the truth, with longer lists, fewer answers and worse annotators.

100 queries of 10 domains, 10 annotators. DOC: items of a query; SR: share of their pairs that each annotator answers;
DEMO: average annotators dominate (1), three in ten are spammers (2), three in ten are malicious (3). τ: expertise of
spammers, 0.1 in the authors' simulator, 1 as printed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fits import (
    DISTANCE,
    OURS,
    PEER,
    PUBLISHED,
    SPAMMERS,
    Distances,
    Fits,
    as_printed,
    below,
    fits,
    less,
    measured,
    of_spammers,
    shown,
    with_spammers,
)
from measure import Check, Key, Table, drawn, options, report

NAMES = (
    "DOC5SR1.0DEMO1",
    "DOC5SR0.5DEMO1",
    "DOC5SR0.5DEMO2",
    "DOC5SR0.5DEMO3",
    "DOC30SR0.1DEMO1",
    "DOC30SR0.05DEMO1",
    "DOC30SR0.05DEMO2",
    "DOC30SR0.05DEMO3",
)
PUBLISHED_ROWS = (PUBLISHED, "TPPUNIDOM", "TPPUNIEXP", "TPPUNIDIFF", PEER)
OUR_ROWS = (OURS, "tpp, one domain")
ROWS = {"τ = 0.1": PUBLISHED_ROWS + OUR_ROWS, "τ = 1": (PUBLISHED, PEER, OURS)}
SHOWS = {
    what: model
    for spammers, rows in ROWS.items()
    for what, model in shown(rows, with_spammers(NAMES, spammers)).items()
}
PAPER = {
    PUBLISHED: (0.386, 0.574, 0.734, 1.592, 22.442, 40.640, 61.818, 129.156),
    "TPPUNIDOM": (0.414, 0.728, 0.852, 1.760, 25.636, 45.498, 70.548, 139.154),
    "TPPUNIEXP": (0.466, 0.846, 0.940, 2.550, 29.204, 45.636, 81.782, 142.496),
    "TPPUNIDIFF": (0.402, 0.628, 0.754, 1.540, 26.866, 47.258, 66.488, 135.04),
    PEER: (0.468, 0.856, 0.960, 2.990, 24.420, 48.820, 104.500, 153.390),
}
COVERED = ("scores covered", "difficulties covered")

NOTES = """
Kendall distance: number of wrongly ordered pairs per query, of 10 (DOC5) or 435 (DOC30); smaller is better. True scores
are sums of U[0,1] gaps, the only choice that matches the paper's levels. *TPP, published* and TPPUNI… are the paper's
Monte Carlo EM with ten domains; crowd-bt and tpp have default settings, so tpp estimates the number of domains. *tpp,
one domain* is the ablation TPPUNIDOM of tpp. Every method gets the same crowds, and differences are paired by crowd.
The paper's numbers are for one data set each, so the aims compare them with the spread of our data sets. *Covered* is
the share of true values that lie in tpp's 90 % intervals.
"""


def by_cell(rows: Mapping[str, tuple[float, ...]]) -> dict[Key, float]:
    return {(row, name): n for row, numbers in rows.items() for name, n in zip(NAMES, numbers, strict=True)}


def tables_of(found: Fits, spammers: str, printed: Mapping[Key, float]) -> tuple[list[Table], list[Check]]:
    """Distances, paired differences and coverage with one kind of spammers."""
    found = of_spammers(found, spammers)
    distances = measured(found, DISTANCE)
    ahead = Distances(less(distances, OURS, (PUBLISHED, PEER)), title=f"{spammers}: {OURS} less the others")
    coverage = {(what, name): v for what in COVERED for (_, name), v in measured(found, what, (OURS,)).items()}
    tables = [
        Distances(distances, printed, title=f"{spammers}: Kendall distance"),
        ahead,
        Table(coverage, title=f"{spammers}: share of true values in 90 % intervals"),
    ]
    of_the_paper = {key: number for key, number in printed.items() if key[0] == PUBLISHED}
    checks = [*as_printed(distances, of_the_paper), *below(ahead)]
    return tables, [replace(check, what=f"{spammers}: {check.what}") for check in checks]


if __name__ == "__main__":
    told = options(__file__, __doc__, "kept", trials=10)
    names, found = NAMES[3:5] if told.quick else NAMES, {}
    for spammers, rows in ROWS.items():
        found |= fits(told, with_spammers(names, spammers), rows)
    tables, checks = [], []
    for spammers in SPAMMERS:
        more, aims = tables_of(found, spammers, by_cell(PAPER) if spammers == "τ = 0.1" else {})
        tables += more
        checks += aims
    report(told, f"{NOTES}\n{drawn(told)}", tables, checks)
