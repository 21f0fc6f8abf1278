"""Which direction among the factors of the judges is the truth: by gold answers, or by consistency with oneself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import EncodedSideInformation
from crowdrank.data.side_information import AnnotatorDetails
from crowdrank.inference.special import inverse_mills
from crowdrank.models.jury.factors import Factors

# Prior belief without gold: the most consistent judge agrees with the truth as 0.8 (1 is always, 0 is chance, −1 is
# never), others less by the cube of their relative reliability, each give or take 0.35.
_BEST_AGREEMENT, _POWER, _SPREAD = 0.8, 3, 0.35
_UNKNOWN_AGREEMENT = 0.5
# Without answers to one pair twice, the belief is a guess: gold answers count against it as if it were this much wider.
_GUESS_WIDTH = 2.0
# The better item of a gold pair is ahead by β·z ± this much: what no judge sees may decide.
GOLD_SPREAD = 0.5
_MAX_STEPS, _SMALL_STEP = 50, 1e-9
_KNOWN_SPREAD = 0.1
_MAX_NORM = 0.95


@dataclass(frozen=True, eq=False)
class TruthDirection:
    """Normal posterior of β: the expected truth of a pair (1 if its first item is better, else −1) is β·z.

    Parameters
    ----------
    mean : array
        Posterior mean of β, at most 0.95 long.
    covariance : array
        Posterior covariance.
    """

    mean: FloatArray
    covariance: FloatArray

    @property
    def unexplained(self) -> float:
        """Share of the truth that no judge sees: errors that all of them share."""
        return float(1 - self.mean @ self.mean)

    def draw(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draws of β, at most 0.95 long."""
        root = np.linalg.cholesky(self.covariance + 1e-12 * np.eye(len(self.mean)))
        return _bounded(self.mean + rng.standard_normal((count, len(self.mean))) @ root.T)


def find_direction(
    factors: Factors, reliability: FloatArray, known: EncodedSideInformation, gold_factors: FloatArray
) -> TruthDirection:
    """Combine the prior belief about judges with the gold answers: a probit regression with a normal prior on β.

    Parameters
    ----------
    factors : Factors
        Loadings of the judges.
    reliability : array of float
        Correlation between two answers of a judge on one pair; NaN if unknown.
    known : EncodedSideInformation
        Families, and known qualities of judges.
    gold_factors : array, gold pairs × factors
        Factors of the better item minus those of the worse one.
    """
    loadings, count = factors.loadings, factors.count
    weight = _judge_weights(factors, known.people) / _SPREAD**2
    expected = expected_agreement(reliability)
    for code, quality in _known_quality(known).items():
        expected[code], weight[code] = 2 * quality - 1, 1 / _KNOWN_SPREAD**2
    precision = np.eye(count) + (weight[:, None] * loadings).T @ loadings
    target = loadings.T @ (weight * expected)
    covariance = np.asarray(np.linalg.inv(precision), float)
    mean = _bounded(covariance @ target)
    if len(gold_factors):
        mean, covariance = learn_from_gold(mean, gold_prior(covariance, reliability), gold_factors)
    return TruthDirection(_bounded(mean), (covariance + covariance.T) / 2)


def gold_prior(covariance: FloatArray, reliability: FloatArray) -> FloatArray:
    """The prior covariance of β beside gold: wider if it is a guess, since nobody answered a pair twice."""
    return covariance if np.isfinite(reliability).any() else covariance * _GUESS_WIDTH**2


def learn_from_gold(
    mean: FloatArray, covariance: FloatArray, gold_factors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mode and covariance of β given P(the better item of a gold pair is ahead) = Φ(β·z / 0.5), by Newton's method.

    Parameters
    ----------
    mean, covariance : array
        Normal prior of β.
    gold_factors : array, gold pairs × factors
        Factors z of the better item minus those of the worse one.
    """
    precision = np.linalg.inv(covariance)
    rows = gold_factors / GOLD_SPREAD
    found = mean
    for _ in range(_MAX_STEPS):
        ahead = rows @ found
        ratio = inverse_mills(ahead)
        information = precision + (rows * (ratio * (ratio + ahead))[:, None]).T @ rows
        step = np.linalg.solve(information, rows.T @ ratio - precision @ (found - mean))
        found = found + step
        if np.abs(step).max() < _SMALL_STEP:
            break
    return found, np.asarray(np.linalg.inv(information))


def expected_agreement(reliability: FloatArray) -> FloatArray:
    """What each judge's agreement with the truth is expected to be, before any gold."""
    known = np.isfinite(reliability)
    if not known.any() or reliability[known].max() <= 0:
        return np.full(len(reliability), _UNKNOWN_AGREEMENT)
    found = _BEST_AGREEMENT * (reliability / reliability[known].max()) ** _POWER
    return np.asarray(np.where(known, found, found[known].mean()))


def effective_number(factors: Factors, direction: TruthDirection, answer_weight: FloatArray) -> float:
    """How many independent judges err as these do: (Σ λ)² / Σ λ² over the eigenvalues λ of their error correlation.

    Errors are what is left of the factors across the direction of the truth, and each judge's own error in a judgment
    that is worth `answer_weight` answers.
    """
    unit = direction.mean / max(float(np.linalg.norm(direction.mean)), 1e-12)
    across = factors.loadings - np.outer(factors.loadings @ unit, unit)
    return _participation(across, factors.variance / answer_weight)


def _judge_weights(factors: Factors, people: Mapping[int, AnnotatorDetails]) -> FloatArray:
    """Weights of the judges in the prior: they sum to the number of independent ones, and families weigh the same."""
    weight = np.ones(len(factors.loadings))
    families: dict[str, list[int]] = {}
    for code, details in people.items():
        if details.family is not None:
            families.setdefault(details.family, []).append(code)
    for members in families.values():
        weight[members] = 1 / len(members)
    return np.asarray(weight * (_participation(factors.loadings, factors.variance) / weight.sum()))


def _participation(loadings: FloatArray, variance: FloatArray) -> float:
    scale = np.sqrt((loadings**2).sum(axis=1) + variance)
    scaled = loadings / scale[:, None]
    own = variance / scale**2
    # ‖ΛΛᵀ + D‖² without the judges × judges matrix.
    total = np.sum((scaled.T @ scaled) ** 2) + 2 * np.sum(own * (scaled**2).sum(axis=1)) + np.sum(own**2)
    return float(len(loadings) ** 2 / total)


def _known_quality(known: EncodedSideInformation) -> dict[int, float]:
    """Known qualities, and the middle of known intervals."""
    middle = {code: (max(low, 0.0) + min(high, 1.0)) / 2 for code, (low, high) in known.between.items()}
    return middle | dict(known.quality)


def _bounded(direction: FloatArray) -> FloatArray:
    length = np.linalg.norm(direction, axis=-1, keepdims=True)
    return np.asarray(direction * np.minimum(1.0, _MAX_NORM / np.maximum(length, 1e-12)))
