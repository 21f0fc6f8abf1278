"""Gold pairs for models that do not read them: the posterior of the scores, given that a few orders are known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array
from crowdrank.inference.special import inverse_mills, log_normal_cdf
from crowdrank.results import Annotators, Ranking, Uncertainty

# The better item of a gold pair is ahead by this much of a typical standard error, give or take: gold may be wrong.
_NOISE = 0.3
# Prior odds that scores are not reversed, against the evidence of the gold pairs.
_FORWARD_ODDS = 99.0
_MAX_ROUNDS, _DAMPING, _SETTLED = 100, 0.7, 1e-6
_LEAST_PRECISION = 1e-10


def condition_on_gold(ranking: Ranking, better: Int32Array, worse: Int32Array) -> Ranking:
    """Return a ranking whose scores take into account pairs of items whose order is known.

    Parameters
    ----------
    ranking : Ranking
        A ranking with joint draws of its scores.
    better, worse : array of int
        Codes of the better and the worse item of each pair.

    Notes
    -----
    The draws give a normal distribution of the scores of each query. A gold pair has the likelihood
    Φ((s_better − s_worse) / ε), ε being 0.3 of the typical standard error. Expectation propagation finds the normal
    distribution closest to the product; mean and draws are moved to it (Matheron's rule). So a pair that already has
    its order stays nearly as it is, and one that has not moves with everything that is correlated with it. If the gold
    pairs are far more probable with all scores reversed, scores and qualities of annotators are reversed first.

    Reference: Minka (2001), Expectation propagation for approximate Bayesian inference.
    """
    centred = ranking.uncertainty.draws - ranking.uncertainty.draws.mean(axis=0)
    noise = _NOISE * float(np.sqrt(np.mean(ranking.uncertainty.std_error**2)))
    if not noise > 0:
        return ranking
    by_query = _by_query(ranking, better, worse, centred)
    forward, backward = (sum(one.log_evidence(sign, noise) for one in by_query) for sign in (1.0, -1.0))
    is_reversed = backward - forward > np.log(_FORWARD_ODDS)
    sign = -1.0 if is_reversed else 1.0
    scores, draws = sign * ranking.scores, sign * centred
    rng = np.random.default_rng(0)
    for pairs in by_query:
        shift, moved = pairs.condition(sign, noise, rng)
        scores[pairs.own] += shift
        draws[:, pairs.own] += moved
    centre = ranking.items.centre
    scores, draws = centre(scores), centre(draws)
    method = f"{ranking.uncertainty.method}, given the gold pairs"
    found = replace(ranking.uncertainty, draws=scores + draws, std_error=draws.std(axis=0), method=method)
    return _with_scores(ranking, scores, found, is_reversed)


def _with_scores(ranking: Ranking, scores: FloatArray, uncertainty: Uncertainty, is_reversed: bool) -> Ranking:
    changed = replace(ranking, scores=scores).with_parts(uncertainty=lambda: uncertainty)
    if not is_reversed:
        return changed
    before = ranking.notes
    note = "According to the gold pairs, the crowd answers in reverse, so the order was reversed."
    changed = changed.with_parts(notes=lambda: [note, *before])
    return changed.with_parts(annotators=lambda: _reversed(ranking.annotators)) if ranking.has_annotators else changed


def _reversed(annotators: Annotators) -> Annotators:
    """The annotators, if what they see as better is worse."""
    estimates: Mapping[str, Any] = annotators.estimates
    if "quality" not in estimates:
        return annotators
    value, low, high = estimates["quality"]
    return replace(annotators, estimates={**estimates, "quality": (1 - value, 1 - high, 1 - low)})


class Sites(NamedTuple):
    """The normal approximation of each gold pair's likelihood: precision, and precision times mean."""

    precision: FloatArray
    linear: FloatArray


@dataclass(frozen=True, eq=False)
class QueryPairs:
    """The gold pairs of a query, and the normal distribution of its scores.

    Parameters
    ----------
    own : slice
        The items of the query.
    scores : array of float
        Their scores.
    draws : array, draws × items
        Draws around zero.
    better, worse : array of int
        The pairs, as positions in the query.
    """

    own: slice
    scores: FloatArray
    draws: FloatArray
    better: Int32Array
    worse: Int32Array

    @property
    def _differences(self) -> FloatArray:
        return self.draws[:, self.better] - self.draws[:, self.worse]

    @property
    def _mean(self) -> FloatArray:
        return self.scores[self.better] - self.scores[self.worse]

    @property
    def _covariance(self) -> FloatArray:
        differences = self._differences
        return np.asarray(differences.T @ differences / len(differences))

    def log_evidence(self, sign: float, noise: float) -> float:
        """Log probability of the known orders, one by one, if the scores are multiplied by `sign`."""
        deviation = np.sqrt(noise**2 + np.diag(self._covariance))
        return float(np.sum(log_normal_cdf(sign * self._mean / deviation)))

    def condition(self, sign: float, noise: float, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """By how much the scores, and the draws around them, change if the scores are multiplied by `sign` before."""
        mean, covariance = sign * self._mean, self._covariance
        sites = _propagate(mean, covariance, noise)
        differences = sign * self._differences
        # cov(scores, differences) (covariance + site variances)⁻¹
        across = sign * self.draws.T @ differences / len(self.draws)
        gain = np.linalg.solve(covariance + np.diag(1 / sites.precision), across.T).T
        seen = differences + rng.standard_normal(differences.shape) / np.sqrt(sites.precision)
        return gain @ (sites.linear / sites.precision - mean), -seen @ gain.T


def _by_query(ranking: Ranking, better: Int32Array, worse: Int32Array, draws: FloatArray) -> list[QueryPairs]:
    query, found = ranking.items.query[better], []
    for code in np.unique(query):
        own, rows = ranking.items.of_query(int(code)), np.flatnonzero(query == code)
        first, second = better[rows] - own.start, worse[rows] - own.start
        found.append(QueryPairs(own, ranking.scores[own], draws[:, own], first, second))
    return found


def _propagate(mean: FloatArray, covariance: FloatArray, noise: float) -> Sites:
    """Expectation propagation for Π Φ(zₖ / noise) with z ~ N(mean, covariance), all sites at once."""
    sites = Sites(np.full(len(mean), _LEAST_PRECISION), np.zeros(len(mean)))
    for _ in range(_MAX_ROUNDS):
        posterior = covariance - covariance @ np.linalg.solve(covariance + np.diag(1 / sites.precision), covariance)
        centre = mean + posterior @ (sites.linear - sites.precision * mean)
        variance = np.maximum(np.diag(posterior), 1e-300)
        # without the site itself
        cavity = 1 / np.maximum(1 / variance - sites.precision, _LEAST_PRECISION)
        cavity_mean = cavity * (centre / variance - sites.linear)
        deviation = np.sqrt(noise**2 + cavity)
        ahead = cavity_mean / deviation
        ratio = inverse_mills(ahead)
        matched_mean = cavity_mean + cavity * ratio / deviation
        matched = cavity - cavity**2 * ratio * (ahead + ratio) / deviation**2
        precision = np.maximum(1 / matched - 1 / cavity, _LEAST_PRECISION)
        linear = matched_mean / matched - cavity_mean / cavity
        change = float(np.max(np.abs(precision - sites.precision) / precision))
        sites = Sites(
            sites.precision + _DAMPING * (precision - sites.precision),
            sites.linear + _DAMPING * (linear - sites.linear),
        )
        if change < _SETTLED:
            break
    return sites
