"""TPP, Figure 3: share of queries in the right domain, by iteration.

DOC5SR0.5DEMO1, but with 100 queries of two equally large domains: 5 items, 10 annotators who answer half the pairs.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import polars as pl
from fits import OURS, PUBLISHED, Found, Record, crowd_named, fits, keep, matched, measured, shown
from measure import Key, Table, drawn, options, over_seeds, report

from crowdrank import TPP, Comparisons
from crowdrank.models.thurstonian.layout import layout_from_comparisons
from crowdrank.models.thurstonian.mcem import MonteCarloEM

NAME = "DOC5SR0.5DEMO1 of 2 even domains"
TOLD = "tpp, domains=2"
METHOD = MonteCarloEM(domains=2)
SHOWS = shown([TOLD, OURS], [NAME]) | {PUBLISHED: TPP(inference="mcem", domains=2)}
SHOWN = ("0", "1", "2", "3", "5", "7", "10", "20", "40")
PAPER = {(PUBLISHED, "0"): 0.5, (PUBLISHED, "10"): 0.895}

NOTES = """
The share of queries in the right domain, with the labelling that suits most of them (so that chance gives slightly more
than one half). *TPP, published* is the paper's Monte Carlo EM with the number of domains given; once it has converged,
later columns repeat the last value. tpp estimates the number of domains; it has no iterations, and its final value is
in the last column.
"""


def trial(kept: Path | None, column: str, seed: int, quick: bool) -> dict[Key, float]:
    found = keep(None if quick else kept, (NAME, f"{PUBLISHED} by iteration"), seed, lambda: climbed(seed, quick))
    shares = found["in the right domain"]
    last = len(shares) - 1
    return {(PUBLISHED, str(n)): shares[min(n, last)] for n in range(METHOD.iterations + 1)}


def climbed(seed: int, quick: bool) -> Record:
    crowd = crowd_named(NAME, seed, quick)
    votes, true = crowd.judgments, crowd.queries["domain"]
    assert isinstance(votes, Comparisons)
    found = METHOD.fit(layout_from_comparisons(votes), votes.items, len(votes.annotators))
    shares = [float(np.mean(matched(guess, true)[guess] == true)) for guess in found.domain_path]
    return {"converged": found.converged, "in the right domain": shares}


def draw(found: Found, place: Path) -> None:
    """The mean over crowds, and the standard deviation, as the paper has it."""
    try:
        import altair
    except ImportError:
        print('No figure: pip install "crowdrank[papers]" brings what draws it.', file=sys.stderr)
        return
    points = []
    for (row, column), values in found.items():
        mean, spread = float(np.mean(values)), float(np.std(values))
        # what has no iterations is a line across
        for iteration in (0, METHOD.iterations) if row != PUBLISHED else (int(column),):
            point = {"method": row, "iteration": iteration, "share": mean}
            points.append(point | {"low": mean - spread, "high": min(mean + spread, 1.0)})
    base = altair.Chart(pl.DataFrame(points)).encode(
        x=altair.X("iteration:Q"), color=altair.Color("method:N", title=None, sort=[PUBLISHED, TOLD, OURS])
    )
    axis: dict[str, Any] = {"title": "queries in the right domain", "scale": altair.Scale(zero=False)}
    band = base.mark_area(opacity=0.2).encode(y=altair.Y("low:Q", **axis), y2="high:Q")
    line = base.mark_line().encode(y=altair.Y("share:Q", **axis))
    (band + line).properties(width=360, height=240).save(place)


if __name__ == "__main__":
    told = options(__file__, __doc__, "kept")
    steps = over_seeds(partial(trial, told.kept), [NAME], told)
    ended = measured(fits(told, [NAME], [TOLD, OURS]), "in the right domain")
    ends = {(row, str(METHOD.iterations)): values for (row, _), values in ended.items()}
    shown = {key: values for key, values in steps.items() if key[1] in SHOWN}
    report(told, f"{NOTES}\n{drawn(told)}", [Table(shown | ends, PAPER)])
    if told.out is not None:
        draw(steps | ends, told.out / "figure3.svg")
