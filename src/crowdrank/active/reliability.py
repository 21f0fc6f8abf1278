"""Reliability of a leaderboard, measured from the questions that were drawn at random.

Questions that were chosen by earlier answers make differences look more certain than they are. Questions drawn at
random do not: a ranking fitted to them alone, and how well earlier answers predicted them, are unbiased evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from crowdrank.active.collection import AnswerLog
from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import Comparisons
from crowdrank.errors import DataError, DisconnectedError, SeparationError, SettingError, muted_warnings
from crowdrank.models import by_name, name_of
from crowdrank.models.base import Model
from crowdrank.models.selection import default_model
from crowdrank.results import Ranking

# Prequential evaluation: how well a leaderboard predicted later answers, and how well calibrated it was.

_EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_OVERCONFIDENT_Z = 2.6
"""Standard deviations below the expected accuracy that occur by chance once in a hundred times."""


@runtime_checkable
class PredictiveModel(Protocol):
    """A model that predicts judgments."""

    def predict(self, ranking: Ranking, judgments: Comparisons) -> FloatArray:
        """Return the probabilities of left, tie and right, one row per judgment."""
        ...


class CalibrationBin(NamedTuple):
    """Answers whose more probable side had a predicted probability between `low` and `high`.

    `expected` is the mean predicted probability, and `accuracy` the share that was predicted right.
    """

    low: float
    high: float
    answers: int
    expected: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class PrequentialScore:
    """Predictions of answers before they were seen, compared with the answers.

    Parameters
    ----------
    answers : int
        Number of predicted answers.
    gain : float
        Mean log score above that of a coin toss, in nats per answer: 0 for no information, log 2 for certainty.
    std_error : float
        Standard error of `gain`.
    expected : float
        Accuracy that the leaderboard expected of its predictions.
    accuracy : float
        Share of answers that it predicted right.
    z : float
        Difference of `accuracy` and `expected` in standard deviations. Well below zero, the leaderboard is
        overconfident.
    bins : tuple of CalibrationBin
        The same by predicted probability.
    """

    answers: int
    gain: float
    std_error: float
    expected: float
    accuracy: float
    z: float
    bins: tuple[CalibrationBin, ...]

    @property
    def overconfident(self) -> bool:
        """Whether the leaderboard was right less often than it expected, beyond chance."""
        return self.z < -_OVERCONFIDENT_Z

    def lines(self) -> list[str]:
        """Describe the result in sentences."""
        if not self.answers:
            return []
        better = "better than a coin toss" if self.gain > 1.96 * self.std_error else "no better than a coin toss"
        verdict = "It is overconfident" if self.overconfident else "It is well calibrated"
        return [
            f"Predicting {self.answers:,} later answers, the leaderboard was right {self.accuracy:.0%} of the time; it "
            f"expected {self.expected:.0%} (z = {self.z:+.1f}). {verdict}.",
            f"Its predictions were {better}: {self.gain:+.3f} ± {self.std_error:.3f} nats per answer.",
        ]


def probability_left_wins(model: PredictiveModel, board: Ranking, held_out: Comparisons) -> FloatArray:
    """Probability that left wins, given that it is not a tie, by a ranking that `model` fitted."""
    probabilities = model.predict(board, held_out)
    return np.asarray(probabilities[:, 0] / (probabilities[:, 0] + probabilities[:, 2]))


def prequential_score(left: FloatArray, outcome: npt.NDArray[np.int8]) -> PrequentialScore:
    """Compare predicted probabilities that left wins with the outcomes (1, 0 for a tie, −1); ties are dropped.

    Examples
    --------
    >>> score = prequential_score(np.array([0.9, 0.8, 0.6]), np.array([1, 1, -1], np.int8))
    >>> score.answers, round(score.accuracy, 2), round(score.expected, 2)
    (3, 0.67, 0.77)
    """
    left, won = left[outcome != 0], outcome[outcome != 0] > 0
    favoured, count = np.maximum(left, 1 - left), len(left)
    # a prediction of exactly one half counts as half right, whatever the answer, and has no variance
    right = np.where(left == 0.5, 0.5, (left > 0.5) == won)
    deviation = float(np.sqrt(np.sum(np.where(left == 0.5, 0, favoured * (1 - favoured)))))
    gains = np.log(2 * np.clip(np.where(won, left, 1 - left), 1e-300, 1))
    expected, accuracy = (float(np.mean(column)) if count else 0.5 for column in (favoured, right))
    return PrequentialScore(
        answers=count,
        gain=float(np.mean(gains)) if count else 0.0,
        std_error=float(np.std(gains, ddof=1) / np.sqrt(count)) if count > 1 else float("nan"),
        expected=expected,
        accuracy=accuracy,
        z=count * (accuracy - expected) / deviation if deviation else 0.0,
        bins=_bins(favoured, right),
    )


def _bins(favoured: FloatArray, right: FloatArray) -> tuple[CalibrationBin, ...]:
    # the last bin includes both of its ends
    place = np.clip(np.digitize(favoured, _EDGES) - 1, 0, len(_EDGES) - 2)
    found = []
    for n, (low, high) in enumerate(pairwise(_EDGES)):
        rows = place == n
        if rows.any():
            means = float(favoured[rows].mean()), float(right[rows].mean())
            found.append(CalibrationBin(low, high, int(rows.sum()), *means))
    return tuple(found)


RANDOM = "random"
"""Policy name of questions that were drawn at random."""
_RECORDED = ("policy", "probability")
_MAX_WIDTH = 0.5
"""An interval of the reliability wider than this is inconclusive."""
_N_CHECKPOINTS = 4
"""Number of leaderboards that predict the second half of the judgments."""
_MAX_JACKKNIFE_GROUPS = 100
_JACKKNIFE_Z = 2.6
"""Jackknife errors on either side of an interval. More than 1.96, because the errors of one leaderboard's items are
correlated."""


class Estimate(NamedTuple):
    """A reliability between 0 and 1, with a 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} (95 %: {self.low:.2f} to {self.high:.2f})"

    def extrapolate(self, times: float) -> Estimate:
        """Return the reliability of `times` as many judgments, by the Spearman–Brown formula.

        Examples
        --------
        >>> round(Estimate(0.5, 0.4, 0.6).extrapolate(2).value, 3)
        0.667
        """
        return Estimate(*(times * share / (1 + (times - 1) * share) for share in self))


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """Reliability of a leaderboard, measured from the questions that were drawn at random.

    Parameters
    ----------
    model : str
        Name of the model that fits the leaderboard.
    items : int
        Number of items.
    judgments : int
        Number of judgments.
    random : int
        How many of them were drawn at random.
    separation : Estimate, optional
        Scale separation reliability of a leaderboard fitted to the random judgments alone: the share of the variance
        of the scores that is not noise. None if there are too few.
    split_half : Estimate, optional
        Correlation between leaderboards of two halves of the random judgments, extrapolated to all random judgments
        by the Spearman–Brown formula. None if there are too few.
    prequential : PrequentialScore, optional
        How well random judgments of the second half were predicted by leaderboards of all earlier judgments. (Later
        judgments are not independent of them: the answers influenced which questions followed.) None if the model
        does not predict.
    n_not_converged : int, default 0
        Number of fits that did not converge.
    """

    model: str
    items: int
    judgments: int
    random: int
    separation: Estimate | None = None
    split_half: Estimate | None = None
    prequential: PrequentialScore | None = None
    n_not_converged: int = 0

    @property
    def projected(self) -> Estimate | None:
        """Reliability that all judgments would have, had all been drawn at random."""
        return None if self.split_half is None else self.split_half.extrapolate(self.judgments / self.random)

    @property
    def too_few(self) -> bool:
        """Whether there are too few random judgments for a conclusion."""
        return self.projected is None or self.projected.high - self.projected.low > _MAX_WIDTH

    def lines(self) -> list[str]:
        """Describe the result in sentences."""
        lines = [
            f"{self.random:,} of {self.judgments:,} judgments were drawn at random "
            f"({self.random / max(1, self.judgments):.0%}); reliability is measured from these."
        ]
        if not self.random:
            return [*lines, f"Without random judgments, reliability cannot be measured. {_REMEDY}"]
        if self.separation is None:
            return [*lines, f"There are too few to fit {self.model}. {_REMEDY}"]
        lines.append(f"Reliability of the ranking of {self.items:,} items by these alone: {self.separation}.")
        if self.split_half is not None:
            lines.append(f"Agreement of their independent halves: {self.split_half}.")
        if self.too_few:
            lines.append(f"There are too few random judgments to assess the whole leaderboard. {_REMEDY}")
        elif self.projected is not None and self.random < self.judgments:
            lines.append(f"Projected reliability if all judgments had been drawn at random: {self.projected}.")
        if self.prequential is not None:
            lines += self.prequential.lines()
        if self.n_not_converged:
            lines.append(f"{self.n_not_converged} fits did not converge, so these numbers are approximate.")
        return lines


_REMEDY = "Collect more judgments, or draw a larger share at random."


def reliability(
    judgments: AnswerLog | Comparisons,
    *,
    policy: Sequence[str] | None = None,
    model: Model | None = None,
    halves: int = 3,
    seed: int = 0,
) -> Reliability:
    """Measure the reliability of a leaderboard.

    Parameters
    ----------
    judgments : AnswerLog or Comparisons
        The log of a simulated collection, or comparisons in the order of asking (by time, if there are times) with a
        feature ``policy``.
    policy : sequence of str, optional
        Name of the policy that chose each judgment, ``"random"`` for those drawn at random; needed if the comparisons
        have no such feature.
    model : Model, optional
        The model that fits the leaderboard; by default that of `crowdrank.rank`.
    halves : int, default 3
        How often the random judgments are split in two.
    seed : int, default 0
        Seed of the splits.

    Returns
    -------
    Reliability

    Examples
    --------
    >>> from crowdrank import BradleyTerry
    >>> from crowdrank.simulation import mixed_crowd
    >>> votes = mixed_crowd(items=8, votes_each=20).judgments
    >>> found = reliability(votes, policy=["random"] * len(votes), model=BradleyTerry())
    >>> found.random, found.too_few
    (480, False)
    """
    if halves < 1:
        raise SettingError(f"halves must be at least 1, got {halves}.")
    comparisons, at_random = _split_record(judgments, policy)
    model = by_name(default_model(comparisons).name)() if model is None else model
    random = comparisons.take(np.flatnonzero(at_random))
    found = Reliability(
        model=name_of(model), items=len(comparisons.items), judgments=len(at_random), random=len(random)
    )
    if len(random) < 4 or found.items < 4:
        return found
    rng = np.random.default_rng(seed)
    try:
        board = fit_quietly(model, random)
        pairs = [_fit_halves(model, random, rng) for _ in range(halves)]
        prequential = _prequential(model, comparisons, at_random) if isinstance(model, PredictiveModel) else None
    except (DisconnectedError, SeparationError):
        return found
    fits = (board, *(fit for pair in pairs for fit in pair))
    return replace(
        found,
        separation=_separation(board),
        split_half=_split_half(pairs),
        prequential=prequential,
        n_not_converged=sum(not fit.convergence.converged for fit in fits),
    )


def fit_quietly(model: Model, comparisons: Comparisons) -> Ranking:
    """Fit without warnings about thin data: the fit is evaluated, and convergence is recorded in it."""
    with muted_warnings():
        return model.fit(comparisons)


def _split_record(judgments: AnswerLog | Comparisons, policy: Sequence[str] | None) -> tuple[Comparisons, BoolArray]:
    """Return the comparisons in order, without the record of their choice, and which of them were drawn at random."""
    if isinstance(judgments, AnswerLog):
        return judgments.comparisons(), np.array([q.policy == RANDOM for q in judgments.questions], bool)
    chosen_by = judgments.features.get("policy") if policy is None else policy
    if chosen_by is None:
        raise DataError(
            'It is unknown which judgments were drawn at random: read the file with features=["policy"], or pass '
            "policy=, the name of the policy that chose each judgment."
        )
    if len(chosen_by) != len(judgments):
        raise DataError(f"policy: {len(chosen_by)} names for {len(judgments)} judgments; pass one per judgment.")
    features = {name: column for name, column in judgments.features.items() if name not in _RECORDED}
    at_random = np.array([str(name) == RANDOM for name in chosen_by], bool)
    order = np.arange(len(at_random)) if judgments.time is None else np.argsort(judgments.time, kind="stable")
    return replace(judgments, features=features).take(order), at_random[order]


def _prequential(model: Model, comparisons: Comparisons, at_random: BoolArray) -> PrequentialScore:
    """Predict the random judgments of the second half, block by block, from all judgments before each block."""
    assert isinstance(model, PredictiveModel)
    edges = np.linspace(len(at_random) // 2, len(at_random), _N_CHECKPOINTS + 1).astype(int)
    left, outcome = [], []
    for begin, end in pairwise(edges):
        rows = begin + np.flatnonzero(at_random[begin:end])
        if len(rows):
            held_out = comparisons.take(rows)
            board = fit_quietly(model, comparisons.take(slice(begin)))
            left.append(probability_left_wins(model, board, held_out))
            outcome.append(held_out.outcome)
    return prequential_score(np.concatenate([np.zeros(0), *left]), np.concatenate([np.zeros(0, np.int8), *outcome]))


def _fit_halves(model: Model, comparisons: Comparisons, rng: np.random.Generator) -> tuple[Ranking, Ranking]:
    rows = rng.permutation(len(comparisons))
    middle = len(rows) // 2
    return fit_quietly(model, comparisons.take(rows[:middle])), fit_quietly(model, comparisons.take(rows[middle:]))


def _separation(board: Ranking) -> Estimate:
    if board.settings.get("prior_scale") in ("learnt", "auto") and "prior_scale" in board.parameters:
        return _posterior_separation(board)
    scores, noise = board.items.centre(board.scores), board.uncertainty.std_error**2
    degrees_of_freedom = len(scores) - len(board.items.queries)

    def separation(kept: BoolArray) -> float:
        """(Observed variance − error variance) / observed variance."""
        observed = float(np.sum(scores[kept] ** 2)) / (degrees_of_freedom - np.sum(~kept))
        error = float(np.mean(noise[kept]))
        return 1 - error / observed if observed else 0.0

    return _jackknife(separation, len(scores))


def _posterior_separation(board: Ranking) -> Estimate:
    """Var(means) / (var(means) + mean variance); low while the scale of the scores is unknown, which is variance too.

    Any draw may be the truth, so the squared correlations of the draws with the means give the interval.
    """
    draws = board.items.centre(board.uncertainty.draws)
    mean = draws.mean(axis=0)
    total = float(np.mean(draws**2))
    value = float(np.mean(mean**2)) / total if total else 0.0
    size = np.linalg.norm(draws, axis=1) * np.linalg.norm(mean)
    correlation = np.maximum(np.divide(draws @ mean, size, out=np.zeros_like(size), where=size > 0), 0)
    low, high = np.quantile(correlation**2, (0.025, 0.975))
    return Estimate(value, min(float(low), value), max(float(high), value))


def _split_half(pairs: Sequence[tuple[Ranking, Ranking]]) -> Estimate:
    scores = np.array([[half.items.centre(half.scores) for half in pair] for pair in pairs])

    def correlations(kept: BoolArray) -> FloatArray:
        one, other = scores[:, 0, kept], scores[:, 1, kept]
        size = np.sqrt(np.sum(one**2, axis=1) * np.sum(other**2, axis=1))
        product = np.sum(one * other, axis=1)
        correlation: FloatArray = np.divide(product, size, out=np.zeros_like(size), where=size > 0)
        return correlation

    def stepped_up(kept: BoolArray) -> float:
        """Spearman–Brown for twice the judgments."""
        correlation = max(float(np.mean(correlations(kept))), -0.5)
        return 2 * correlation / (1 + correlation)

    return _jackknife(stepped_up, scores.shape[-1])


def _jackknife(statistic: Callable[[BoolArray], float], items: int) -> Estimate:
    """Estimate a statistic and its interval by leaving out items in turn, in groups if there are many."""
    n_groups = min(items, _MAX_JACKKNIFE_GROUPS)
    group = np.arange(items) % n_groups
    without = np.array([statistic(group != n) for n in range(n_groups)])
    error = float(np.sqrt((n_groups - 1) / n_groups * np.sum((without - without.mean()) ** 2)))
    value = statistic(np.ones(items, bool))
    return Estimate(*np.clip((value, value - _JACKKNIFE_Z * error, value + _JACKKNIFE_Z * error), 0, 1).tolist())
