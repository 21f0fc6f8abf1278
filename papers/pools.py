"""Shared code of the scripts on choosing questions: collections of recorded votes, accuracy curves, differences."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from measure import Key, Table, decimals, standard_error

from crowdrank import Comparisons
from crowdrank.active import Policy, Question, QuestionHistory, Random, Rules
from crowdrank.active.candidates import Candidate, CandidateSet
from crowdrank.active.collection import SimulatedCollection
from crowdrank.active.gain_formulas import FORMULAS, item_gain, quality_gain
from crowdrank.engines.compilation import compiled
from crowdrank.online import Beliefs, OnlineModel
from crowdrank.online.moments import win_probability

AREA = "AUC"
RANDOM = "random"
Curve = dict[int, float]
Grade = Callable[[np.ndarray], float]
"""Scores in, accuracy out."""


class Recorded:
    """Annotators who say what they said."""

    def __init__(self, votes: Comparisons) -> None:
        names, people = votes.items.labels, votes.annotators
        self._said: dict[tuple[frozenset[str], str], deque[str]] = defaultdict(deque)
        assert votes.annotator is not None
        columns = (votes.left, votes.right, votes.outcome, votes.annotator)
        for left, right, outcome, who in zip(*(column.tolist() for column in columns), strict=True):
            winner = left if outcome > 0 else right
            self._said[frozenset((names[left], names[right])), people[who]].append(names[winner])

    def winner(self, left: str, right: str, annotator: str, rng: np.random.Generator) -> str:
        return self._said[frozenset((left, right)), annotator].popleft()


class PoolGain:
    """What `InformationGain` asks of a pool, but it remembers: only what the last answer changed is scored anew.

    One collection each: it is a policy with a memory.
    """

    def __init__(self, exploration: float, halve_every: int | None = None) -> None:
        self.exploration, self.halve_every = exploration, halve_every
        self._last: Beliefs | None = None
        self._gains = np.zeros((2, 0))

    def next(
        self,
        beliefs: Beliefs,
        asked: QuestionHistory | None = None,
        annotator: str | None = None,
        rng: np.random.Generator | None = None,
    ) -> Question:
        assert asked is not None
        assert asked.pool is not None
        choices, pool, rng = CandidateSet(beliefs, asked), asked.pool, rng or np.random.default_rng()
        self._score(beliefs, pool)
        rows = pool.rows()
        of_items, of_quality = self._gains[:, rows]
        gain = of_items + self._weight(int(asked.annotator_counts.sum())) * of_quality
        top = rows[gain >= gain.max() * (1 - 1e-12)]
        row = int(top[rng.integers(len(top))])
        choice = Candidate(int(pool.first[row]), int(pool.second[row]), int(pool.annotator[row]), 1 / len(top), "gain")
        return choices.to_question(choice, rng)

    def _weight(self, asked: int) -> float:
        return self.exploration if self.halve_every is None else self.exploration * 0.5 ** (asked // self.halve_every)

    def _score(self, beliefs: Beliefs, pool: Any) -> None:
        rows = np.arange(len(pool.first))
        if self._last is None:
            self._gains = np.zeros((2, len(rows)))
        else:
            items = _changed(self._last.item_columns, beliefs.item_columns)
            people = _changed(self._last.annotator_columns, beliefs.annotator_columns)
            rows = rows[pool.remaining & (items[pool.first] | items[pool.second] | people[pool.annotator])]
        self._last = beliefs
        _gains(
            rows,
            pool.first,
            pool.second,
            pool.annotator,
            beliefs.mean,
            beliefs.variance,
            beliefs.alpha,
            beliefs.beta,
            self._gains,
        )


def _changed(before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]) -> np.ndarray:
    return np.any([before[name] != after[name] for name in after], axis=0)


@compiled(*FORMULAS)
def _gains(rows, one, other, annotator, mean, variance, alpha, beta, gains):  # type: ignore[no-untyped-def]
    """The two parts of eq. 10, that of the items and that which γ weighs."""
    for row in rows:
        i, j, k = one[row], other[row], annotator[row]
        lead = mean[i] - mean[j]
        truthful = win_probability(lead, variance[i] + variance[j])
        gains[0, row] = item_gain(lead, variance[i], variance[j], truthful, alpha[k], beta[k])
        gains[1, row] = quality_gain(truthful, alpha[k], beta[k])


def policy_of(name: str, votes: int) -> Policy:
    """random, γ=…, or "γ=…, halving" after every quarter of the votes, as §4 has it."""
    if name == RANDOM:
        return Random()
    exploration, _, halving = name.removeprefix("γ=").partition(", ")
    return PoolGain(float(exploration), votes // 4 if halving else None)


def curve(
    name: str, votes: Comparisons, model: OnlineModel, beliefs: Beliefs, grade: Grade, seed: int, every: int = 50
) -> Curve:
    """Accuracy of the online means after every so many of the votes, and after the last."""
    run = SimulatedCollection(policy=policy_of(name, len(votes)), model=model, rules=Rules(pool=votes))
    steps = run.run(Recorded(votes), beliefs, len(votes), np.random.default_rng([seed, 1]))
    marks = {*range(every, len(votes), every), len(votes)}
    return {step.votes: grade(step.beliefs.mean) for step in steps if step.votes in marks}


def area(points: Curve) -> float:
    """The normalised area under the curve: the mean accuracy along it."""
    return float(np.mean(list(points.values())))


Found = Mapping[Key, Sequence[float]]


def differences(found: Found, row: str, column: str, baseline: str = RANDOM) -> list[float]:
    """Trial by trial, on the same crowds."""
    return np.subtract(found[row, column], found[baseline, column]).tolist()


def beside(found: Found, title: str, baseline: str = RANDOM) -> Table:
    """Differences of every other row from the baseline."""
    cells = {(row, column): differences(found, row, column, baseline) for row, column in found if row != baseline}
    return Table(cells, title=title)


def signed(values: Sequence[float]) -> str:
    mean = float(np.mean(values))
    return f"{'+' if mean >= 0 else '−'}{decimals(abs(mean))} ± {decimals(standard_error(values))}"


def draw_curves(panels: Mapping[str, Found], rows: Sequence[str], place: Path) -> None:
    """A panel each, of these rows; columns that are numbers of votes are what is drawn."""
    try:
        import altair
    except ImportError:
        print('No figure: pip install "crowdrank[papers]" brings what draws it.')
        return
    points = [
        {"panel": panel, "policy": row, "votes": int(column), "accuracy": round(float(np.mean(values)), 4)}
        for panel, found in panels.items()
        for (row, column), values in found.items()
        if row in rows and column.isdigit()
    ]
    lines = (
        altair.Chart(pl.DataFrame(points))
        .mark_line(strokeWidth=1.5, clip=True)
        .encode(
            x=altair.X("votes:Q", title="votes"),
            y=altair.Y("accuracy:Q", scale=altair.Scale(zero=False)),
            color=altair.Color("policy:N", title=None, sort=list(rows)),
        )
    )
    facet = altair.Facet("panel:N", title=None, sort=list(panels))
    lines.properties(width=260, height=220).facet(facet, columns=2).resolve_scale(x="independent").save(place)
