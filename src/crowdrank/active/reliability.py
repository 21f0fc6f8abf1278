"""How far a board can be relied on, told from the questions that were drawn at random.

Questions that were chosen by what was answered before make differences look surer than they are. Those drawn at random
do not: what they say, and how well they were foretold by what was answered before them, is a fair witness.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crowdrank.active.collection import Log
from crowdrank.active.prequential import Foretold, chances_of_left, foretold
from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import Comparisons
from crowdrank.errors import CrowdrankWarning, DataError, DisconnectedError, SeparationError, SettingError
from crowdrank.models import BayesianCrowdBT, name_of
from crowdrank.results import Ranking

RANDOM = "random"
"""What questions that were drawn at random say chose them."""
_RECORDED = ("policy", "probability")
_WIDEST = 0.5
"""An interval of the reliability wider than this tells nothing."""
_PARTS = 4
"""Boards that foretell the second half of the judgments."""
_MOST_GROUPS = 100
_BEYOND = 2.6
"""Jackknife errors on either side of an interval: more than 1.96, for the items of one board err together."""


class Estimate(NamedTuple):
    """A reliability, and between which it lies with 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} (95 %: {self.low:.2f} to {self.high:.2f})"

    def lengthened(self, times: float) -> Estimate:
        """Spearman and Brown: the reliability of `times` as many judgments."""
        return Estimate(*(times * share / (1 + (times - 1) * share) for share in self))


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """What the questions drawn at random say of a board. None stands for what cannot be told."""

    model: str
    items: int
    judgments: int
    random: int
    """How many of the judgments were drawn at random."""
    separation: Estimate | None = None
    """Scale separation reliability of the board fitted to the random share: the share of the variance of true scores
    that it has found, 0 for noise and 1 for certainty."""
    split_half: Estimate | None = None
    """The same from halves of the random share that know nothing of each other: their scores' correlation, stepped up
    to the whole share by Spearman and Brown's formula."""
    foretold: Foretold | None = None
    """How those of them in the second half of the judgments were foretold by boards of all that came before. (What came
    after knows of them: they had part in choosing it.)"""
    stopped_short: int = 0
    """How many of the fits did not converge."""

    @property
    def of_all(self) -> Estimate | None:
        """The reliability that as many judgments as there are in all would have, had all been drawn at random."""
        return None if self.split_half is None else self.split_half.lengthened(self.judgments / self.random)

    @property
    def too_few(self) -> bool:
        """Whether the random share is too small to tell."""
        return self.of_all is None or self.of_all.high - self.of_all.low > _WIDEST

    def lines(self) -> list[str]:
        """In plain words."""
        told = [
            f"{self.random:,} of {self.judgments:,} judgments were drawn at random "
            f"({self.random / max(1, self.judgments):.0%}); reliability is told from these."
        ]
        if not self.random:
            return [*told, f"None was: how far the board can be relied on cannot be told. {_REMEDY}"]
        if self.separation is None:
            return [*told, f"They are too few to fit {self.model} to. {_REMEDY}"]
        told.append(f"Alone they separate {self.items:,} items with reliability {self.separation}.")
        if self.split_half is not None:
            told.append(f"Halves of them that know nothing of each other agree with {self.split_half}.")
        if self.too_few:
            told.append(f"That is too small a share to tell what the whole is worth. {_REMEDY}")
        elif self.of_all is not None and self.random < self.judgments:
            told.append(f"As many as all judgments, drawn at random, would have reached {self.of_all}.")
        if self.foretold is not None:
            told += self.foretold.lines()
        if self.stopped_short:
            told.append(f"Fits that did not converge: {self.stopped_short}; these numbers are rough.")
        return told


_REMEDY = "Ask more, or draw a larger share at random."


def reliability(
    judgments: Log | Comparisons,
    *,
    policy: Sequence[str] | None = None,
    model: Any = None,
    halves: int = 3,
    seed: int = 0,
) -> Reliability:
    """How far the board that `model` fits can be relied on (BayesianCrowdBT unless told).

    `judgments` is the log of a collection, or comparisons in the order of asking (by time, where times are known) with
    a feature `policy`, or with what chose each of them as `policy`: "random" for those drawn at random. `halves` is how
    often the random share is cut in two.
    """
    if halves < 1:
        raise SettingError(f"halves must be at least 1, got {halves}.")
    model = BayesianCrowdBT() if model is None else model
    comparisons, drawn = _parted(judgments, policy)
    random = comparisons.take(np.flatnonzero(drawn))
    found = Reliability(model=name_of(model), items=len(comparisons.items), judgments=len(drawn), random=len(random))
    if len(random) < 4 or found.items < 4:
        return found
    rng = np.random.default_rng(seed)
    try:
        board = fitted(model, random)
        pairs = [_both(model, random, rng) for _ in range(halves)]
        told = _foretold(model, comparisons, drawn) if hasattr(model, "predict") else None
    except (DisconnectedError, SeparationError):
        return found
    return replace(
        found,
        separation=_separation(board, model),
        split_half=_split_half(pairs),
        foretold=told,
        stopped_short=sum(not fit.convergence.converged for fit in (board, *(fit for pair in pairs for fit in pair))),
    )


def fitted(model: Any, comparisons: Comparisons) -> Ranking:
    """The board, without a word on thin data: what comes of it is measured, and whether it converged recorded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdrankWarning)
        board: Ranking = model.fit(comparisons)
        return board


def _parted(judgments: Log | Comparisons, policy: Sequence[str] | None) -> tuple[Comparisons, BoolArray]:
    """The comparisons as they came, without their record of choice, and which of them were drawn at random."""
    if isinstance(judgments, Log):
        return judgments.comparisons(), np.array([q.policy == RANDOM for q in judgments.questions], bool)
    chosen_by = judgments.features.get("policy") if policy is None else policy
    if chosen_by is None:
        raise DataError(
            'Nothing says which judgments were drawn at random: read the file with features=["policy"], or give '
            "`policy`, the name of what chose each."
        )
    if len(chosen_by) != len(judgments):
        raise DataError(f"policy: {len(chosen_by)} names for {len(judgments)} judgments.")
    features = {name: column for name, column in judgments.features.items() if name not in _RECORDED}
    drawn = np.array([str(name) == RANDOM for name in chosen_by], bool)
    order = np.arange(len(drawn)) if judgments.time is None else np.argsort(judgments.time, kind="stable")
    return replace(judgments, features=features).take(order), drawn[order]


def _foretold(model: Any, comparisons: Comparisons, drawn: BoolArray) -> Foretold:
    """The second half in parts, those drawn at random of each foretold by the board of all before it."""
    edges = np.linspace(len(drawn) // 2, len(drawn), _PARTS + 1).astype(int)
    left, outcome = [], []
    for begin, end in pairwise(edges):
        rows = begin + np.flatnonzero(drawn[begin:end])
        if len(rows):
            unseen = comparisons.take(rows)
            left.append(chances_of_left(model, fitted(model, comparisons.take(slice(begin))), unseen))
            outcome.append(unseen.outcome)
    return foretold(np.concatenate([np.zeros(0), *left]), np.concatenate([np.zeros(0, np.int8), *outcome]))


def _cut(comparisons: Comparisons, rng: np.random.Generator) -> tuple[Comparisons, Comparisons]:
    rows = rng.permutation(len(comparisons))
    return comparisons.take(rows[: len(rows) // 2]), comparisons.take(rows[len(rows) // 2 :])


def _both(model: Any, comparisons: Comparisons, rng: np.random.Generator) -> tuple[Ranking, Ranking]:
    one, other = _cut(comparisons, rng)
    return fitted(model, one), fitted(model, other)


def _separation(board: Ranking, model: Any) -> Estimate:
    if getattr(model, "prior_scale", None) == "learnt":
        return _of_posterior(board)
    scores, noise = board.items.centre(board.scores), board.uncertainty.std_error**2
    free = len(scores) - len(board.items.queries)

    def share(kept: BoolArray) -> float:
        """What is found less noise, over what is found: a fixed prior says nothing of how far scores are spread."""
        found = float(np.sum(scores[kept] ** 2)) / (free - np.sum(~kept))
        error = float(np.mean(noise[kept]))
        return 1 - error / found if found else 0.0

    return _jackknifed(share, len(scores))


def _of_posterior(board: Ranking) -> Estimate:
    """Var(means) / (var(means) + mean variance): low where the unit of scores is not known, for that is variance too.

    Each draw may be the truth: how the means correlate with the draws says between what the reliability lies.
    """
    draws = board.items.centre(board.uncertainty.draws)
    mean = draws.mean(axis=0)
    total = float(np.mean(draws**2))
    value = float(np.mean(mean**2)) / total if total else 0.0
    size = np.linalg.norm(draws, axis=1) * np.linalg.norm(mean)
    alike = np.maximum(np.divide(draws @ mean, size, out=np.zeros_like(size), where=size > 0), 0)
    low, high = np.quantile(alike**2, (0.025, 0.975))
    return Estimate(value, min(float(low), value), max(float(high), value))


def _split_half(pairs: Sequence[tuple[Ranking, Ranking]]) -> Estimate:
    scores = np.array([[half.items.centre(half.scores) for half in pair] for pair in pairs])

    def correlations(kept: BoolArray) -> FloatArray:
        one, other = scores[:, 0, kept], scores[:, 1, kept]
        size = np.sqrt(np.sum(one**2, axis=1) * np.sum(other**2, axis=1))
        together: FloatArray = np.divide(np.sum(one * other, axis=1), size, out=np.zeros_like(size), where=size > 0)
        return together

    def stepped_up(kept: BoolArray) -> float:
        alike = max(float(np.mean(correlations(kept))), -0.5)
        return 2 * alike / (1 + alike)

    return _jackknifed(stepped_up, scores.shape[-1])


def _jackknifed(statistic: Callable[[BoolArray], float], items: int) -> Estimate:
    """With its interval, by how it changes when items are left out in turn, or in groups where there are many."""
    groups = min(items, _MOST_GROUPS)
    group = np.arange(items) % groups
    without = np.array([statistic(group != n) for n in range(groups)])
    error = float(np.sqrt((groups - 1) / groups * np.sum((without - without.mean()) ** 2)))
    value = statistic(np.ones(items, bool))
    return Estimate(*np.clip((value, value - _BEYOND * error, value + _BEYOND * error), 0, 1).tolist())
