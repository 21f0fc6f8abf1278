"""Factor analysis of judges: the few dimensions along which their answers to a pair agree or err together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.models.jury.cells import Cells

# Two factors, one for the truth and one for shared errors, need so many judges and pairs that two of them share.
_MIN_JUDGES, _MIN_SHARED_PAIRS = 3, 30
_MAX_DENSE_CELLS = 20_000_000
_STEPS = 60
# Share of the variance of a judge's own error that stays the same when it is asked again, if nobody was asked twice.
_PERSISTENT, _LEAST_PERSISTENT, _MOST_PERSISTENT = 0.5, 0.02, 0.9
# Loadings vary around their mean with this variance; a lone judge is expected to have this loading.
_LOADING_VARIANCE, _TYPICAL_LOADING, _JUDGES_IN_PRIOR = 0.1, 0.6, 1.0
_CELLS_IN_PRIOR, _LEAST_VARIANCE = 5.0, 0.02


@dataclass(frozen=True, eq=False)
class Factors:
    """Judge a answers pair p as λ_a·z_p plus its own error.

    Parameters
    ----------
    loadings : array, judges × factors
        λ_a.
    variance : array
        Variance of each judge's own error in a single answer.
    persistent : float
        Share of that variance that stays the same when a judge is asked again.
    """

    loadings: FloatArray
    variance: FloatArray
    persistent: float

    @property
    def count(self) -> int:
        return int(self.loadings.shape[1])

    def evidence(self, cells: Cells) -> tuple[FloatArray, FloatArray]:
        """Precision (pairs × factors × factors) and linear term (pairs × factors) of the likelihood of each z_p."""
        loading = self.loadings[cells.annotator]
        weight = self.answer_weight(cells) / self.variance[cells.annotator]
        precision = _sum_outer(cells.pair, weight, loading, cells.n_pairs)
        return precision, _sum_rows(cells.pair, (weight * cells.answer)[:, None] * loading, cells.n_pairs)

    def answer_weight(self, cells: Cells) -> FloatArray:
        """How many independent answers a cell is worth: repeats share what is persistent in the judge's own error."""
        return np.asarray(cells.count / (1 + np.maximum(cells.count - 1, 0.0) * self.persistent))


def fit_factors(cells: Cells) -> Factors:
    """Estimate loadings and error variances by EM: two factors, or one if the judges share too few pairs."""
    loadings = _start(cells)
    typical = 0.6 * max(float(np.mean(cells.answer**2)), 1e-3)
    factors = Factors(loadings, np.full(len(loadings), typical), _persistent(cells, loadings))
    for _ in range(_STEPS):
        factors = _em_step(cells, factors, typical)
    return factors


def _em_step(cells: Cells, factors: Factors, typical: float) -> Factors:
    who, eye = cells.annotator, np.eye(factors.count)
    weight = factors.answer_weight(cells)
    precision, linear = factors.evidence(cells)
    spread = np.linalg.inv(eye + precision)
    mean = np.einsum("pkl,pl->pk", spread, linear)[cells.pair]
    second = spread[cells.pair] + mean[:, :, None] * mean[:, None, :]
    share = weight / factors.variance[who]
    rows = (share[:, None, None] * second).reshape(len(share), -1)
    moment = _sum_rows(who, rows, cells.n_annotators).reshape(-1, *eye.shape) + eye / _LOADING_VARIANCE
    product = _sum_rows(who, (share * cells.answer)[:, None] * mean, cells.n_annotators)
    target = product + _mean_loading(factors.loadings) / _LOADING_VARIANCE
    loadings = np.asarray(np.linalg.solve(moment, target[:, :, None])[:, :, 0], float)
    own = loadings[who]
    squared = (own * np.einsum("ckl,cl->ck", second, own)).sum(axis=1)
    left = cells.answer**2 - 2 * cells.answer * (own * mean).sum(axis=1) + squared
    errors = np.bincount(who, weight * left, cells.n_annotators) + _CELLS_IN_PRIOR * typical
    answered = np.bincount(who, minlength=cells.n_annotators) + _CELLS_IN_PRIOR
    return Factors(loadings, np.maximum(errors / answered, _LEAST_VARIANCE), _persistent(cells, loadings))


def _persistent(cells: Cells, loadings: FloatArray) -> float:
    """What two answers of a judge to one pair have in common beyond its factors, of all that is not its factors."""
    if np.isnan(cells.reliability[0]):
        return _PERSISTENT if cells.n_annotators > 1 else _LEAST_PERSISTENT
    number = np.bincount(cells.annotator, np.maximum(cells.count - 1, 0.0), cells.n_annotators)
    seen = (loadings**2).sum(axis=1)
    common = float(number @ (cells.reliability * cells.mean_square - seen))
    total = float(number @ (cells.mean_square - seen))
    return float(np.clip(common / max(total, 1e-12), _LEAST_PERSISTENT, _MOST_PERSISTENT))


def _mean_loading(loadings: FloatArray) -> FloatArray:
    """The mean loading. With one factor, a typical positive loading counts as one more judge."""
    if loadings.shape[1] > 1:
        return np.asarray(loadings.mean(axis=0))
    judges = len(loadings)
    return np.asarray((loadings.sum(axis=0) + _JUDGES_IN_PRIOR * _TYPICAL_LOADING) / (judges + _JUDGES_IN_PRIOR))


def _start(cells: Cells) -> FloatArray:
    """Starting loadings: the two principal axes of the correlations among judges, if they share enough pairs."""
    one = np.full((cells.n_annotators, 1), _TYPICAL_LOADING)
    judges = cells.n_annotators
    if judges < _MIN_JUDGES or judges * cells.n_pairs > _MAX_DENSE_CELLS:
        return one
    answers, asked = np.zeros((2, judges, cells.n_pairs))
    answers[cells.annotator, cells.pair] = cells.answer
    asked[cells.annotator, cells.pair] = 1.0
    shared = asked @ asked.T
    typical = (shared.sum() - np.trace(shared)) / (judges * (judges - 1))
    if typical < _MIN_SHARED_PAIRS:
        return one
    scale = np.sqrt(np.maximum((answers**2).sum(axis=1) / np.maximum(np.diag(shared), 1), 1e-6))
    # Judges who share few pairs are taken as less correlated than they look.
    products = answers @ answers.T / (shared + 2.0)
    np.fill_diagonal(products, scale**2)
    values, axes = np.linalg.eigh(products / np.outer(scale, scale))
    return np.asarray(scale[:, None] * axes[:, -2:] * np.sqrt(np.maximum(values[-2:] - 0.5, 0.25)))


def _sum_rows(group: IntArray, rows: FloatArray, size: int) -> FloatArray:
    return np.stack([np.bincount(group, column, size) for column in rows.T], axis=1)


def _sum_outer(group: IntArray, weight: FloatArray, rows: FloatArray, size: int) -> FloatArray:
    count = rows.shape[1]
    found = np.empty((size, count, count))
    for k in range(count):
        for m in range(k + 1):
            found[:, k, m] = found[:, m, k] = np.bincount(group, weight * rows[:, k] * rows[:, m], size)
    return found
