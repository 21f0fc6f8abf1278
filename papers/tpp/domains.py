"""Not in the paper: how many domains are found if their number is not given.

DOC30SR0.1DEMO1: 100 queries of 30 items, 10 annotators who answer a tenth of the pairs; of 1, 2, 5 and 10 domains.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from fits import DISTANCE, OURS, Distances, Fits, fits, measured, shown
from measure import Key, Table, drawn, options, report

TRUE = (1, 2, 5, 10)
COLUMNS = {f"DOC30SR0.1DEMO1 of {count} domains": str(count) for count in TRUE}
SHOWS = shown([OURS], list(COLUMNS))
SETS = "sets of malicious annotators"
NOTES = """
tpp with default settings. A domain counts as found if it is the most likely domain of some query. Found domains are
matched one to one with the true ones, so that most queries agree; queries of a domain without a match count as wrong.
Domains with the same malicious annotators hardly differ in their answers, so the number of such sets is shown, too.
"""


def shares(found: Fits) -> dict[Key, list[float]]:
    right = {
        ("as many as there are", COLUMNS[name]): [float(count == int(COLUMNS[name])) for count in counts]
        for (_, name), counts in measured(found, "domains").items()
    }
    return right | by_number("queries in the right domain", measured(found, "in the right domain"))


def counts(found: Fits) -> dict[Key, list[float]]:
    told_apart = by_number(SETS, measured(found, SETS))
    return by_number("domains found", measured(found, "domains")) | told_apart


def by_number(row: str, found: dict[Key, list[float]]) -> dict[Key, list[float]]:
    return {(row, COLUMNS[name]): values for (_, name), values in found.items()}


def numbers(found: Fits) -> str:
    """Every number that was found, and how often."""
    lines = []
    for (_, name), counts in measured(found, "domains").items():
        each = zip(*np.unique(counts, return_counts=True), strict=True)
        lines.append(f"of {COLUMNS[name]}: " + ", ".join(f"{int(number)} ({times} ×)" for number, times in each))
    return "Found " + "; ".join(lines) + "."


if __name__ == "__main__":
    told = options(__file__, __doc__, "kept", trials=10)
    found = fits(told, list(COLUMNS)[1:3] if told.quick else list(COLUMNS), [OURS])
    tables = [
        Distances(counts(found), title="Number of domains, by the true one"),
        Table(shares(found), title="Shares, by the true number of domains"),
        Distances(by_number("distance", measured(found, DISTANCE)), title="Kendall distance"),
    ]
    report(told, f"{NOTES}\n{drawn(told)} {numbers(found)}", tables)
