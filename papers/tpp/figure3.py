"""TPP, Figure 3: share of queries in the right domain and log-likelihood, by iteration.

DOC5SR0.5DEMO1, but with 100 queries of two equally large domains: 5 items, 10 annotators who answer half the pairs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
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
LIKELIHOOD = "log-likelihood of TPP, published"
METHOD = MonteCarloEM(domains=2)
SHOWS = shown([TOLD, OURS], [NAME]) | {PUBLISHED: TPP(inference="mcem", domains=2)}
SHOWN = ("0", "1", "2", "3", "5", "7", "10", "20", "40")
PAPER = {(PUBLISHED, "0"): 0.5, (PUBLISHED, "10"): 0.895}

NOTES = """
The share of queries in the right domain, with the labelling that suits most of them (so that chance gives slightly more
than one half). *TPP, published* is the paper's Monte Carlo EM with the number of domains given; once it has converged,
later columns repeat the last value. The log-likelihood is the mean of ln P(D, Z | Θ) over the draws of an E-step (6 in
the paper), in thousands; the first E-step gives the value of iteration 1. tpp estimates the number of domains. It has
no iterations, and its final value is in the last column.
"""


def trial(kept: Path | None, column: str, seed: int, quick: bool) -> dict[Key, float]:
    found = keep(None if quick else kept, (NAME, f"{PUBLISHED} by iteration"), seed, lambda: climbed(seed, quick))
    cells = by_iteration(PUBLISHED, found["in the right domain"], 0)
    return cells | by_iteration(LIKELIHOOD, found["log-likelihood"], 1)


def by_iteration(row: str, values: Sequence[float], first: int) -> dict[Key, float]:
    """Values from the iteration `first` on, the last one repeated."""
    return {(row, str(n)): values[min(n - first, len(values) - 1)] for n in range(first, METHOD.iterations + 1)}


def climbed(seed: int, quick: bool) -> Record:
    crowd = crowd_named(NAME, seed, quick)
    votes, true = crowd.judgments, crowd.queries["domain"]
    assert isinstance(votes, Comparisons)
    found = METHOD.fit(layout_from_comparisons(votes), votes.items, len(votes.annotators))
    shares = [float(np.mean(matched(guess, true)[guess] == true)) for guess in found.domain_path]
    likelihood = (found.log_likelihood / 1000).tolist()
    return {"converged": found.converged, "in the right domain": shares, "log-likelihood": likelihood}


def draw(found: Found, place: Path) -> None:
    """The mean over crowds, and the standard deviation, as the paper has it."""
    try:
        import altair
    except ImportError:
        print('No figure: pip install "crowdrank[papers]" brings what draws it.', file=sys.stderr)
        return
    points, likelihood = [], []
    for (row, column), values in found.items():
        mean, spread = float(np.mean(values)), float(np.std(values))
        # what has no iterations is a line across
        for iteration in (int(column),) if row in (PUBLISHED, LIKELIHOOD) else (0, METHOD.iterations):
            point = {"method": row, "iteration": iteration, "mean": mean}
            if row == LIKELIHOOD:
                likelihood.append(point | {"low": mean - spread, "high": mean + spread})
            else:
                points.append(point | {"low": mean - spread, "high": min(mean + spread, 1.0)})
    panels = []
    for rows, title in ((points, "queries in the right domain"), (likelihood, "log-likelihood, thousands")):
        base = altair.Chart(pl.DataFrame(rows)).encode(
            x=altair.X("iteration:Q"),
            color=altair.Color("method:N", title=None, sort=[PUBLISHED, TOLD, OURS, LIKELIHOOD]),
        )
        axis: dict[str, Any] = {"title": title, "scale": altair.Scale(zero=False)}
        band = base.mark_area(opacity=0.2).encode(y=altair.Y("low:Q", **axis), y2="high:Q")
        line = base.mark_line().encode(y=altair.Y("mean:Q", **axis))
        panels.append((band + line).properties(width=320, height=240))
    altair.hconcat(*panels).save(place)


if __name__ == "__main__":
    told = options(__file__, __doc__, "kept")
    steps = over_seeds(partial(trial, told.kept), [NAME], told)
    ended = measured(fits(told, [NAME], [TOLD, OURS]), "in the right domain")
    ends = {(row, str(METHOD.iterations)): values for (row, _), values in ended.items()}
    shown = {key: values for key, values in steps.items() if key[1] in SHOWN}
    likelihood = {key: values for key, values in shown.items() if key[0] == LIKELIHOOD}
    shares = {key: values for key, values in shown.items() if key[0] == PUBLISHED}
    tables = [Table(shares | ends, PAPER), Table(likelihood, title="Log-likelihood, in thousands")]
    report(told, f"{NOTES}\n{drawn(told)}", tables)
    if told.out is not None:
        draw(steps | ends, told.out / "figure3.svg")
