"""Juries with a known truth: some judges see it, the others share an error."""

import numpy as np

from crowdrank.data import Comparisons, Rankings, Ratings

QUESTIONS = 60


def jury(good=3, bad=9, *, orders=("first", "second"), questions=QUESTIONS, seed=1):
    """Two answers per question. Good judges see the truth, bad ones something else, all of them the same."""
    rng = np.random.default_rng(seed)
    truth, error = rng.choice([-1, 1], (2, questions))
    rows = []
    for judge in range(good + bad):
        name = f"good{judge}" if judge < good else f"bad{judge - good}"
        seen = 2 * truth if judge < good else 1.2 * error - 0.2 * truth
        own = rng.normal(0, 0.5, questions)
        for left in orders:
            right, side = ("second", 1) if left == "first" else ("first", -1)
            chosen = np.where(seen + own + 0.3 * side + rng.normal(0, 0.8, questions) > 0, "first", "second")
            rows += [(f"q{q:02}", left, right, winner, name) for q, winner in enumerate(chosen.tolist())]
    query, left, right, winner, annotator = zip(*rows, strict=True)
    return Comparisons.of(left, right, winner, query=query, annotator=annotator), truth


def gold_pairs(truth, count):
    better, worse = (np.where(truth[:count] * sign > 0, "first", "second") for sign in (1, -1))
    return Comparisons.of(better, worse, better, query=[f"q{q:02}" for q in range(count)])


def share_right(ranking, truth):
    first, second = ranking.scores.reshape(-1, 2).T
    return float(np.mean(np.sign(first - second) == truth))


def graded_jury(kind, good=3, bad=9, *, queries=30, items=4, seed=1):
    """Judges who grade items from 1 to 5 ("ratings") or order them ("lists"); bad ones share an error."""
    rng = np.random.default_rng(seed)
    truth, error = rng.normal(size=(2, queries, items))
    labels = [f"i{n}" for n in range(items)]
    rows, lists = [], []
    for judge in range(good + bad):
        name = f"good{judge}" if judge < good else f"bad{judge - good}"
        seen = truth if judge < good else 1.2 * error - 0.2 * truth
        seen = seen + rng.normal(0, 0.5, seen.shape)
        for q in range(queries):
            grades = np.clip(np.round(3 + 1.2 * seen[q]), 1, 5).astype(int)
            rows += [(f"q{q:02}", label, grade, name) for label, grade in zip(labels, grades.tolist(), strict=True)]
            lists.append(([[labels[n]] for n in np.argsort(-seen[q])], f"q{q:02}", name))
    if kind == "lists":
        orders, query, annotator = zip(*lists, strict=True)
        return Rankings.of_lists(orders, query=query, annotator=annotator), truth
    query, item, grade, annotator = zip(*rows, strict=True)
    return Ratings.of(item, grade, query=query, annotator=annotator), truth


def graded_gold(truth, count):
    """The better one of the first two items of the first queries."""
    ahead = truth[:count, 0] > truth[:count, 1]
    better, worse = np.where(ahead, "i0", "i1"), np.where(ahead, "i1", "i0")
    return Comparisons.of(better, worse, better, query=[f"q{q:02}" for q in range(count)])
