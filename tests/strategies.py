"""Hypothesis strategies for judgments: connected within each query, so that every model can rank them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from inspect import signature
from typing import Any

import numpy as np
from hypothesis import strategies as st

from crowdrank.data import Comparisons, Rankings, Ratings
from crowdrank.errors import ConvergenceWarning, DataWarning
from crowdrank.models import CrowdBT

EXPLORING = os.environ.get("HYPOTHESIS_PROFILE") == "explore"
"""Whether `make explore` runs, which has time for more examples."""

# Sums of such weights are exact in any order, so that rounding never makes or breaks a tie.
EXACT_WEIGHTS = st.sampled_from([0.5, 1.0, 2.0, 3.0])
FINE_WEIGHTS = st.integers(1, 1 << 20).map(lambda n: n / (1 << 16))
WHOLE_WEIGHTS = st.sampled_from([1.0, 2.0, 3.0])
COUNT_WHOLE_JUDGMENTS = ("TPP", "TRM")
"""Models that take a weight for repetitions, and refuse half a judgment."""


@st.composite
def comparisons(
    draw: Any,
    *,
    most_queries: int = 2,
    most_items: int = 6,
    most_more: int = 15,
    ties: bool = True,
    weights: st.SearchStrategy[float] | None = EXACT_WEIGHTS,
    both_ways: bool = False,
) -> Comparisons:
    """A tree over each query's items and more pairs on top; `both_ways` adds a win to each side of the tree."""
    rows = []
    for query in range(draw(st.integers(1, most_queries))):
        size = draw(st.integers(2, most_items))
        tree = [(draw(st.integers(0, n - 1)), n) for n in range(1, size)]
        pair = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)).filter(lambda p: p[0] != p[1])
        more = draw(st.lists(pair, max_size=most_more))
        outcomes = st.sampled_from([1, 0, -1] if ties else [1, -1])
        rows += [(query, a, b, draw(outcomes)) for a, b in tree + more]
        if both_ways:
            rows += [(query, a, b, sign) for a, b in tree for sign in (1, -1)]
    query, left, right, outcome = zip(*rows, strict=True)
    annotator = draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    weight = None
    if weights is not None and draw(st.booleans()):
        weight = draw(st.lists(weights, min_size=len(rows), max_size=len(rows)))
    return comparisons_of(query, left, right, outcome, annotator=annotator, weight=weight)


def comparisons_of(
    query: Any, left: Any, right: Any, outcome: Any, *, annotator: Any = None, weight: Any = None
) -> Comparisons:
    """Comparisons from numbers instead of labels."""
    lefts, rights = [f"i{a}" for a in left], [f"i{b}" for b in right]
    winner = [a if o > 0 else b if o < 0 else "tie" for a, b, o in zip(lefts, rights, outcome, strict=True)]
    return Comparisons.of(
        lefts,
        rights,
        winner,
        query=None if query is None else [f"q{q}" for q in query],
        annotator=None if annotator is None else [f"w{a}" for a in annotator],
        weight=weight,
    )


@st.composite
def places(draw: Any, size: int, *, shortest: int = 1, ties: bool = True) -> list[list[str]]:
    """One list of some of `size` items, best first, sometimes with ties."""
    order = draw(st.permutations(range(size)))[: draw(st.integers(shortest, size))]
    found: list[list[str]] = []
    for item in order:
        if ties and found and draw(st.integers(0, 3)) == 0:
            found[-1].append(f"i{item}")
        else:
            found.append([f"i{item}"])
    return found


@st.composite
def rankings(
    draw: Any,
    *,
    most_queries: int = 2,
    most_items: int = 6,
    most_lists: int = 5,
    ties: bool = True,
    pairs: bool = False,
) -> Rankings:
    """One full list without ties per query, and others of all lengths; or only lists of two, over a tree of items."""
    lists, queries = [], []
    for query in range(draw(st.integers(1, most_queries))):
        size = draw(st.integers(2, most_items))
        if pairs:
            tree = [(draw(st.integers(0, n - 1)), n) for n in range(1, size)]
            pair = st.permutations(range(size)).map(lambda order: order[:2])
            drawn = [draw(st.permutations(p)) for p in tree] + draw(st.lists(pair, max_size=most_lists))
            own = [[[f"i{item}"] for item in p] for p in drawn]
        else:
            own = [draw(places(size, shortest=size, ties=False))]
            own += draw(st.lists(places(size, ties=ties), max_size=most_lists))
        lists += own
        queries += [f"q{query}"] * len(own)
    annotator = [f"w{draw(st.integers(0, 3))}" for _ in lists]
    return Rankings.of_lists(lists, query=queries, annotator=annotator)


@st.composite
def ratings(draw: Any, *, most_items: int = 6) -> Ratings:
    """Every annotator grades every item."""
    size, annotators = draw(st.integers(2, most_items)), draw(st.integers(1, 4))
    grades = draw(st.lists(st.integers(0, 5), min_size=size * annotators, max_size=size * annotators))
    return Ratings.of(
        [f"i{n}" for n in range(size)] * annotators,
        grades,
        annotator=np.repeat([f"w{n}" for n in range(annotators)], size),
    )


@st.composite
def some_ratings(
    draw: Any,
    *,
    most_queries: int = 2,
    most_items: int = 6,
    most_more: int = 15,
    weights: st.SearchStrategy[float] | None = EXACT_WEIGHTS,
) -> Ratings:
    """Every item has a grade, some have more; not all grades are alike."""
    rows = []
    for query in range(draw(st.integers(1, most_queries))):
        size = draw(st.integers(2, most_items))
        more = draw(st.lists(st.integers(0, size - 1), max_size=most_more))
        rows += [(query, item, draw(st.integers(0, 3)), draw(st.integers(0, 4))) for item in [*range(size), *more]]
    rows += [(0, 0, 0, 0), (0, 1, 0, 4)]
    query, item, annotator, grade = zip(*rows, strict=True)
    weight = None
    if weights is not None and draw(st.booleans()):
        weight = draw(st.lists(weights, min_size=len(rows), max_size=len(rows)))
    return Ratings.of(
        [f"i{n}" for n in item],
        grade,
        annotator=[f"w{n}" for n in annotator],
        query=[f"q{n}" for n in query],
        weight=weight,
    )


def kinds_read(kind: Any) -> tuple[type, ...]:
    """The kinds of judgment a model reads, as a tuple."""
    return kind.reads if isinstance(kind.reads, tuple) else (kind.reads,)


def judgments_for(kind: Any, **wishes: Any) -> st.SearchStrategy[Any]:
    """Judgments of any kind that this model reads; options that do not apply to a kind are ignored."""
    known = {Comparisons: comparisons, Rankings: rankings, Ratings: some_ratings}
    if kind.__name__ in COUNT_WHOLE_JUDGMENTS and wishes.get("weights", EXACT_WEIGHTS) is not None:
        wishes["weights"] = WHOLE_WEIGHTS
    made = []
    for read in kinds_read(kind):
        names = signature(known[read]).parameters
        made.append(known[read](**{k: v for k, v in wishes.items() if k in names}))
    return st.one_of(made)


def samples(kind: Any) -> bool:
    """Whether the result is made of random draws, and so only close to the optimum."""
    return kind.samples


def brief(kind: Any, **settings: Any) -> Any:
    """The model with default settings; with few draws if it samples."""
    small = {"chains": 2, "draws": 10, "warmup": 10, "max_sweeps": 60}
    names = {entry.name for entry in fields(kind)} if samples(kind) else set()
    return kind(**{name: value for name, value in small.items() if name in names}, **settings)


def precise(kind: Any, **settings: Any) -> Any:
    """The model with a very small tolerance."""
    if samples(kind):
        return brief(kind, **settings)
    names = {entry.name for entry in fields(kind)}
    wanted = {"tolerance": 1e-10} | settings
    return kind(**{k: v for k, v in wanted.items() if k in names})


def joint_crowd_bt(**settings: Any) -> CrowdBT:
    """Crowd-BT at the mode of scores and qualities together, with fixed priors."""
    fixed: Any = {"estimation": "joint", "prior_scale": 3.0, "quality_prior": (3.0, 0.5), "ties": "drop"}
    return CrowdBT(**(fixed | settings))


def weighted(judgments: Any, weight: Any) -> Any:
    """The same judgments with these weights."""
    return replace(judgments, weight=np.asarray(weight, dtype=np.float64))


@contextmanager
def few_draws_allowed() -> Iterator[None]:
    """Ignore warnings about chains that have not converged."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "bayesian|tpp|trm", ConvergenceWarning)
        yield


@contextmanager
def disconnected_allowed() -> Iterator[None]:
    """Ignore warnings about disconnected components."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield
