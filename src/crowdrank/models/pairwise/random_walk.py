"""Strengths that drift: a Gaussian random walk of each item's score over periods, for bradley-terry and thurstone.

With s_t the scores of all items in period t, and times cut into T periods of equal length,

    s_1 ~ N(0, τ²),    s_t = s_{t−1} + N(0, σ²),    answers of period t by the model at s_t.

τ and the tie parameter are those of the model without time. For each σ of a grid, 0 among them, Newton's method finds
the mode. The curvature is block tridiagonal, so a step costs T factorisations of
items × items (the smoother of Rauch, Tung & Striebel 1965 in information form). The Laplace evidence of each σ weighs
the grid; scores and errors are those of the mixture. Half of the prior is on σ = 0: nothing changes.

The test that nothing changed is the score test of σ² = 0: with r_t the gradient of period t at the scores without time,
the statistic of an item is Σ_t (Σ_{u≥t} r_u)², and its null distribution that of r from a normal distribution with the
curvature as covariance, after the scores are fitted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Items
from crowdrank.errors import DataError, SettingError
from crowdrank.inference.curvature import invert_triangular
from crowdrank.models.pairwise.likelihood import FORMULAS
from crowdrank.models.pairwise.paired import PairwiseModel, choose_formula
from crowdrank.results import Ranking, Uncertainty
from crowdrank.results.drift import Drift

MAX_ITEMS = 500
"""Curves are estimated for up to this many items: the curvature of each period is a full matrix."""
PERIODS = {"hour": 3_600.0, "day": 86_400.0, "week": 604_800.0, "month": 2_629_800.0}
"""Lengths of named periods in seconds."""
MAX_PERIODS = 500
_FEWEST_PERIODS, _MOST_PERIODS, _VOTES_PER_ITEM = 4, 24, 5
_RATES = np.geomspace(0.02, 1.5, 10)
_MAX_STEPS, _TOLERANCE = 60, 1e-3
_NULL_DRAWS, _DRAWS = 2_000, 1_000
_NEGLIGIBLE = 1e-4


class Votes(NamedTuple):
    """Distinct votes with their weights, by period."""

    period: IntArray
    left: IntArray
    right: IntArray
    outcome: FloatArray
    weight: FloatArray


def period_edges(time: FloatArray, period: str | int | bool, items: int) -> FloatArray:
    """Where periods begin and the last one ends.

    Parameters
    ----------
    time : array of float
        Known times.
    period : {"hour", "day", "week", "month"}, int or True
        Length of a period, the number of periods, or True for as many as the votes allow, at most 24.
    items : int
        Number of items.
    """
    low, high = float(time.min()), float(time.max())
    if not high > low:
        raise DataError("All judgments have the same time, so no change can be seen.")
    if isinstance(period, str) and period != "auto":
        if period not in PERIODS:
            raise SettingError(f"time must be one of {', '.join(PERIODS)} or a number of periods, got {period!r}.")
        length = PERIODS[period]
        low = length * np.floor(low / length)
        count = int((high - low) // length) + 1
        edges = low + length * np.arange(count + 1)
    else:
        automatic = isinstance(period, bool | str)
        fitting = int(np.clip(len(time) // (_VOTES_PER_ITEM * items), _FEWEST_PERIODS, _MOST_PERIODS))
        count = fitting if automatic else int(period)
        edges = np.linspace(low, high, count + 1)
    if not 2 <= count <= MAX_PERIODS:
        raise SettingError(f"time= gives {count:,} periods; choose a length that gives 2 to {MAX_PERIODS}.")
    return np.asarray(edges, np.float64)


def fit_over_time(
    model: PairwiseModel, comparisons: Comparisons, ranking: Ranking, period: str | int | bool = True
) -> Ranking:
    """Return the ranking of the last period, with the curves of all items as its `drift`.

    Parameters
    ----------
    model : BradleyTerry or Thurstone
        The model of the answers within a period.
    comparisons : Comparisons
        The judgments, with times. Those without a time are left out.
    ranking : Ranking
        The fit of the model to all judgments, without time.
    period : {"hour", "day", "week", "month"}, int or True, default True
        Length of a period, number of periods, or True to choose by the number of votes.

    Returns
    -------
    Ranking
        Scores at the end, with their uncertainty and `drift`.
    """
    items = comparisons.items
    if comparisons.time is None or np.isnan(comparisons.time).all():
        raise DataError("time= needs a column with the time of each judgment, and there is none.")
    if len(items) > MAX_ITEMS:
        raise DataError(f"Curves over time are estimated for up to {MAX_ITEMS:,} items, got {len(items):,}.")
    kept, formula = choose_formula(model, comparisons)
    assert kept.time is not None
    kept = kept.take(np.flatnonzero(~np.isnan(kept.time)))
    assert kept.time is not None
    edges = period_edges(kept.time, period, len(items))
    code = np.clip(np.searchsorted(edges, kept.time, side="right") - 1, 0, len(edges) - 2)
    votes = _count_votes(kept, code)
    scale = ranking.parameters.get("prior_scale", model.prior_scale)
    if not isinstance(scale, int | float):
        raise SettingError('time= needs a prior on scores: prior_scale="auto" or a number.')
    smoother = _Smoother(votes, len(edges) - 1, items, formula, ranking.parameters.get("tie", 0.0), float(scale))
    found = _integrate(smoother, ranking.scores)
    p_value, item_p_values = _score_test(smoother, ranking.scores, model.seed)
    judged = np.zeros((len(edges) - 1, len(items)), np.int64)
    for side in (kept.left, kept.right):
        np.add.at(judged, (code, side), 1)
    drift = Drift(
        items=items,
        edges=edges,
        scores=found.scores,
        std_errors=found.errors,
        n_judgments=judged,
        change_errors=found.change_errors,
        rate=found.rate,
        probability=found.probability,
        p_value=p_value,
        item_p_values=item_p_values,
        native=ranking.native,
    )

    def measure() -> Uncertainty:
        return Uncertainty(found.draw_last(model.seed), found.errors[-1], "smoothing over time", sampled=True)

    parameters = {**ranking.parameters, "drift": found.rate}
    last = np.array(found.scores[-1])
    return replace(ranking.with_parts(uncertainty=measure), scores=last, parameters=parameters, drift=drift)


def _count_votes(comparisons: Comparisons, period: IntArray) -> Votes:
    """Equal votes of a period become one row."""
    columns: list[Any] = [period, comparisons.left, comparisons.right, comparisons.outcome]
    rows, code = np.unique(np.stack([c.astype(np.int64) for c in columns]), axis=1, return_inverse=True)
    weight = np.bincount(code.ravel(), comparisons.weights, rows.shape[1]).astype(np.float64)
    return Votes(rows[0], rows[1], rows[2], rows[3].astype(np.float64), weight)


@dataclass(frozen=True, eq=False)
class _Mode:
    """The mode of all scores at one rate σ, with the factors of the block tridiagonal curvature."""

    rate: float
    scores: FloatArray
    log_evidence: float
    variances: FloatArray
    last_covariance: FloatArray
    change_variances: FloatArray


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Modes with their weights."""

    modes: list[_Mode]
    weights: FloatArray
    items: Items

    @cached_property
    def scores(self) -> FloatArray:
        return np.asarray(sum(w * mode.scores for w, mode in zip(self.weights, self.modes, strict=True)))

    @cached_property
    def errors(self) -> FloatArray:
        parts = [mode.variances + (mode.scores - self.scores) ** 2 for mode in self.modes]
        return np.asarray(np.sqrt(sum(w * part for w, part in zip(self.weights, parts, strict=True))))

    @cached_property
    def change_errors(self) -> FloatArray:
        change = self.scores[-1] - self.scores[0]
        parts = [m.change_variances + (m.scores[-1] - m.scores[0] - change) ** 2 for m in self.modes]
        return np.asarray(np.sqrt(sum(w * part for w, part in zip(self.weights, parts, strict=True))))

    @property
    def rate(self) -> float:
        return float(self.weights @ [mode.rate for mode in self.modes])

    @property
    def probability(self) -> float:
        return float(sum(w for w, mode in zip(self.weights, self.modes, strict=True) if mode.rate > 0))

    def draw_last(self, seed: int) -> FloatArray:
        """Draws of the scores of the last period."""
        rng = np.random.default_rng(seed)
        drawn = []
        for mode, count in zip(self.modes, rng.multinomial(_DRAWS, self.weights), strict=True):
            root = np.linalg.cholesky(mode.last_covariance + 1e-12 * np.eye(len(self.items)))
            noise = rng.standard_normal((count, len(self.items))) @ root.T
            drawn.append(mode.scores[-1] + self.items.centre(noise))
        return np.concatenate(drawn)


@dataclass(frozen=True, eq=False)
class _Smoother:
    """The log posterior of all scores at a given σ, and its maximisation."""

    votes: Votes
    periods: int
    items: Items
    formula: int
    tie: float
    scale: float

    def likelihood(self, scores: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient (periods × items) and curvature (a Laplacian for each period)."""
        size, (period, left, right, outcome, weight) = len(self.items), self.votes
        at = period if len(scores) > 1 else np.zeros_like(period)
        value, slope, curvature, *_ = FORMULAS[self.formula](scores[at, left] - scores[at, right], outcome, self.tie)
        count = len(scores)
        gradient = np.zeros((count, size))
        np.add.at(gradient, (at, left), weight * slope)
        np.add.at(gradient, (at, right), -weight * slope)
        cells = (at * size + left) * size + right
        pairs = np.bincount(cells, weight * curvature, count * size * size).reshape(count, size, size)
        blocks: FloatArray = np.asarray(-pairs - pairs.transpose(0, 2, 1), np.float64)
        diagonal = np.arange(size)
        blocks[:, diagonal, diagonal] -= blocks.sum(axis=2)
        return float(weight @ value), gradient, blocks

    def prior(self, count: int, rate: float) -> FloatArray:
        """Precision of one item's curve: tridiagonal."""
        step = 1.0 / rate**2 if count > 1 else 0.0
        matrix = np.zeros((count, count))
        n = np.arange(count)
        matrix[n, n] = 2 * step
        matrix[0, 0] = matrix[-1, -1] = step
        matrix[n[1:], n[:-1]] = matrix[n[:-1], n[1:]] = -step
        matrix[0, 0] += 1.0 / self.scale**2
        return matrix

    def mode(self, rate: float, start: FloatArray) -> _Mode:
        """Maximise by Newton's method with halved steps. With rate 0 there is a single period."""
        count = self.periods if rate > 0 else 1
        scores = np.array(np.broadcast_to(start, (count, len(self.items)))) if start.ndim == 1 else start.copy()
        precision = self.prior(count, rate)
        step_precision = -float(precision[0, 1]) if count > 1 else 0.0
        value, gradient, blocks = self._posterior(scores, precision)
        for _ in range(_MAX_STEPS):
            factors = _Factors.of(blocks, step_precision)
            step = factors.solve(gradient)
            decrease = float(np.sum(gradient * step))
            if decrease < _TOLERANCE**2:
                break
            length = 1.0
            while True:
                tried = self._posterior(scores + length * step, precision)
                if tried[0] >= value + 1e-4 * length * decrease or length < 1e-4:
                    break
                length /= 2
            scores = scores + length * step
            value, gradient, blocks = tried
        factors = _Factors.of(blocks, step_precision)
        log_prior = np.linalg.slogdet(precision)[1]
        evidence = value + 0.5 * len(self.items) * float(log_prior) - 0.5 * factors.log_determinant
        return self._describe(rate, scores, evidence, factors)

    def _posterior(self, scores: FloatArray, precision: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        value, gradient, blocks = self.likelihood(scores)
        pulled = precision @ scores
        diagonal = np.arange(len(self.items))
        blocks[:, diagonal, diagonal] += np.diag(precision)[:, None]
        return value - 0.5 * float(np.sum(scores * pulled)), gradient - pulled, blocks

    def _describe(self, rate: float, scores: FloatArray, evidence: float, factors: _Factors) -> _Mode:
        centre = self.items.centre

        def centred(matrix: FloatArray) -> FloatArray:
            return centre(centre(matrix).T).T

        covariances, first_with_last = factors.covariances()
        covariances = [centred(matrix) for matrix in covariances]
        if rate == 0:  # one period stands for all
            variance = np.diag(covariances[0])
            return _Mode(
                rate,
                np.tile(centre(scores[0]), (self.periods, 1)),
                evidence,
                np.tile(variance, (self.periods, 1)),
                covariances[0],
                np.zeros(len(variance)),
            )
        variances = np.array([np.diag(matrix) for matrix in covariances])
        change = variances[0] + variances[-1] - 2 * np.diag(centred(first_with_last))
        return _Mode(rate, centre(scores), evidence, variances, covariances[-1], np.maximum(change, 0.0))


class _Factors(NamedTuple):
    """Factors of a block tridiagonal matrix with blocks −q·1 beside the diagonal: inverse roots of its pivots."""

    roots: list[FloatArray]
    off: float

    @classmethod
    def of(cls, blocks: FloatArray, off: float) -> _Factors:
        roots: list[FloatArray] = []
        for block in blocks:
            pivot = block - off**2 * (roots[-1].T @ roots[-1]) if roots else block
            roots.append(invert_triangular(np.linalg.cholesky(pivot)))
        return cls(roots, off)

    @property
    def log_determinant(self) -> float:
        return -2 * float(sum(np.log(np.diag(root)).sum() for root in self.roots))

    def solve(self, vector: FloatArray) -> FloatArray:
        found = np.empty_like(vector)
        for t, root in enumerate(self.roots):
            carried = self.off * found[t - 1] if t else 0.0
            found[t] = root.T @ (root @ (vector[t] + carried))
        for t in range(len(self.roots) - 2, -1, -1):
            found[t] += self.off * (self.roots[t].T @ (self.roots[t] @ found[t + 1]))
        return found

    def covariances(self) -> tuple[list[FloatArray], FloatArray]:
        """Blocks on the diagonal of the inverse, and its block of the first and last period."""
        inverses = [root.T @ root for root in self.roots]
        found = [inverses[-1]]
        across = inverses[-1]
        for inverse in inverses[-2::-1]:
            gain = self.off * inverse
            found.append(inverse + gain @ found[-1] @ gain.T)
            across = gain @ across
        return found[::-1], across


def _integrate(smoother: _Smoother, start: FloatArray) -> _Mixture:
    """Modes on the grid of σ, weighted by their evidence; half of the prior is on σ = 0."""
    modes = [smoother.mode(0.0, start)]
    scores: FloatArray = start
    for rate in _RATES:
        modes.append(smoother.mode(float(rate), scores))
        scores = modes[-1].scores
    prior = np.append(0.5, np.full(len(_RATES), 0.5 / len(_RATES)))
    weights = np.log(prior) + [mode.log_evidence for mode in modes]
    weights = np.exp(weights - weights.max())
    weights = np.where(weights < _NEGLIGIBLE * weights.max(), 0.0, weights)
    kept = np.flatnonzero(weights)
    return _Mixture([modes[n] for n in kept], weights[kept] / weights.sum(), smoother.items)


def _score_test(smoother: _Smoother, scores: FloatArray, seed: int) -> tuple[float, FloatArray]:
    """P-values that nothing changed: of all items together, and of each."""
    from scipy.special import gammaincc

    at_all_times = np.tile(scores, (smoother.periods, 1))
    _, gradient, blocks = smoother.likelihood(at_all_times)
    size = len(scores)
    hessian = blocks.sum(axis=0) + np.eye(size) / smoother.scale**2
    # What is left after the scores are fitted to all periods together.
    gains = blocks @ np.linalg.inv(hessian)
    observed = _path_statistic(gradient - gains @ gradient.sum(axis=0))
    rng = np.random.default_rng(seed)
    values, vectors = np.linalg.eigh(blocks)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    drawn = np.empty((_NULL_DRAWS, size))
    block = max(1, 4_000_000 // (smoother.periods * size))
    for low in range(0, _NULL_DRAWS, block):
        count = min(block, _NULL_DRAWS - low)
        noise = np.einsum("tij,tjb->tib", roots, rng.standard_normal((smoother.periods, size, count)))
        noise -= np.einsum("tij,jb->tib", gains, noise.sum(axis=0))
        drawn[low : low + count] = _path_statistic(noise).T

    def tail(value: Any, null: FloatArray) -> Any:
        """Upper tail of a gamma distribution with the mean and variance of the draws."""
        mean, variance = null.mean(axis=0), np.maximum(null.var(axis=0), 1e-300)
        return gammaincc(np.maximum(mean**2 / variance, 1e-9), value * mean / variance)

    typical = np.maximum(drawn.mean(axis=0), 1e-12)
    together = float(tail(float(np.sum(observed / typical)), (drawn / typical).sum(axis=1)))
    return together, np.asarray(tail(observed, drawn))


def _path_statistic(gradient: FloatArray) -> FloatArray:
    """Σ_t (Σ_{u≥t} r_u)² over all periods but the first, for each item (axis 1)."""
    remaining = np.cumsum(gradient[::-1], axis=0)[::-1][1:]
    return np.asarray(np.sum(remaining**2, axis=0))
