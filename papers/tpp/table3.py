"""TPP, Table III and Figure 5: many annotators with few answers each, and detection of malicious annotators.

100 queries of 30 items and 10 domains, annotators as in DEMO1. ANNO: annotators; SR: share of the pairs of a query that
each of them answers. τ: expertise of spammers, 0.1 in the authors' simulator, 1 as printed.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import polars as pl
from fits import (
    DISTANCE,
    FALSE_POSITIVES,
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
from measure import Check, Table, drawn, options, report
from provenance import record

NAMES = ("ANNO100SR0.01", "ANNO100SR0.02", "ANNO200SR0.01", "ANNO200SR0.02")
METHODS = (PUBLISHED, PEER, OURS)
SHOWS = shown(METHODS, [name for spammers in SPAMMERS for name in with_spammers(NAMES, spammers)])
PAPER = dict(zip(NAMES, (36.208, 24.328, 25.734, 16.290), strict=True))
PAPER_AUC = dict(zip(NAMES, (0.837, 0.924), strict=False))

NOTES = """
Kendall distance is over 435 pairs per query; smaller is better. AUC is the area under the curve of −τ as a test for
malicious annotators, over annotators and domains. Found domains are matched one to one with the true ones, so that most
queries agree; if too few were found, a true domain is represented by the one that contains most of its queries. The
paper prints no area for 200 annotators; figure5.svg is its Figure 5, with spammers of τ = 0.1. *TPP, published* is the
paper's Monte Carlo EM; crowd-bt and tpp have default settings. Differences are paired by crowd. The paper's numbers are
for one data set each, so the aims compare them with the spread of our data sets.
"""


def tables_of(found: Fits, spammers: str, printed: bool) -> tuple[list[Table], list[Check]]:
    """Distances, paired differences and areas with one kind of spammers."""
    found = of_spammers(found, spammers)
    distances = measured(found, DISTANCE)
    paper = {(PUBLISHED, name): n for name, n in PAPER.items()} if printed else {}
    areas = {(PUBLISHED, name): n for name, n in PAPER_AUC.items()} if printed else {}
    ahead = Distances(less(distances, OURS, (PUBLISHED, PEER)), title=f"{spammers}: {OURS} less the others")
    tables = [
        Distances(distances, paper, title=f"{spammers}: Kendall distance"),
        ahead,
        Table(measured(found, "AUC", (PUBLISHED, OURS)), areas, title=f"{spammers}: AUC, malicious annotators"),
    ]
    checks = [*as_printed(distances, paper), *below(ahead)]
    return tables, [replace(check, what=f"{spammers}: {check.what}") for check in checks]


def draw(found: Fits, place: Path) -> None:
    """Figure 5: mean receiver operating characteristic over crowds."""
    try:
        import altair
    except ImportError:
        print('No figure: install "crowdrank[papers]" to draw it.', file=sys.stderr)
        return
    points = [
        {"crowd": name, "method": method, "false positives": x, "true positives": y}
        for (method, name), curves in measured(found, "ROC", (PUBLISHED, OURS)).items()
        for x, y in zip(FALSE_POSITIVES, np.mean(curves, axis=0).tolist(), strict=True)
    ]
    chart = altair.Chart(pl.DataFrame(points)).mark_line()
    axes = {"x": "false positives:Q", "y": "true positives:Q", "color": "crowd:N", "strokeDash": "method:N"}
    chart.encode(**axes).properties(width=320, height=320).save(place)


if __name__ == "__main__":
    told = options(__file__, __doc__, "kept", trials=10)
    names = NAMES[:1] if told.quick else NAMES
    found = fits(told, [name for spammers in SPAMMERS for name in with_spammers(names, spammers)], METHODS)
    tables, checks = [], []
    for spammers in SPAMMERS:
        more, aims = tables_of(found, spammers, printed=spammers == "τ = 0.1")
        tables += more
        checks += aims
    report(told, f"{NOTES}\n{drawn(told)}", tables, checks)
    if told.out is not None:
        draw(of_spammers(found, "τ = 0.1"), told.out / "figure5.svg")
        record(told.script, told.out, "figure5")
