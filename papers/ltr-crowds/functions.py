"""Not in the paper: annotators who err together, as §6.2's eight ranking functions that share features do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from learners import Fine, Paired, at_least, less
from measure import Check, Key, drawn, options, over_seeds, report
from systems import DEFAULT, DEPTHS, METHODS, fits
from systems import SHOWS as SHOWS
from topk import FIRST, FUNCTIONS, functions

NOTES = """
*Eight ranking functions* is as in topk.py. *auto*, the default, is ltr-crowds, or pooled if that predicts the lists of
held-out training queries better. The rule was chosen on functions 1 to 4.
"""


def trial(column: str, seed: int, quick: bool) -> Mapping[Key, float]:
    lesson = functions(seed, quick)
    found = fits(lesson.lists, lesson.features, lesson.gold(), FIRST, quick)
    return {(method, f"{column}, @{k}"): lesson.ndcg(f, k) for method, f in found.items() for k in DEPTHS}


def checks(found: Mapping[Key, list[float]]) -> Iterator[Check]:
    where = f"{FUNCTIONS}, @5"
    ahead = np.subtract(found[DEFAULT, where], found["borda", where]).tolist()
    yield at_least(f"{where}: {DEFAULT} less borda", 0.0, ahead)


if __name__ == "__main__":
    told = options(__file__, __doc__, trials=5)
    found = over_seeds(trial, [FUNCTIONS], told)
    tables = [
        Fine(found, title="NDCG"),
        Paired(less(found, DEFAULT, METHODS[1:]), title=f"NDCG: {DEFAULT} less the others"),
    ]
    report(told, f"{NOTES}\n{drawn(told)}", tables, list(checks(found)))
