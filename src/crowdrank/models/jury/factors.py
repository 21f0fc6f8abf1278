"""Factor analysis of judges: the few dimensions along which their answers to a pair agree or err together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.models.jury.cells import Cells

# Two factors, one for the truth and one for shared errors, need so many judges and pairs that two of them share.
_MIN_JUDGES, _MIN_SHARED_PAIRS = 4, 20
_MAX_DENSE_CELLS = 20_000_000
_STEPS = 60
# Half of the variance of a judge's own error stays the same when it is asked again.
_PERSISTENT = 0.5
# Loadings vary around their mean with this variance; a lone judge is expected to have this loading.
_LOADING_VARIANCE, _TYPICAL_LOADING, _JUDGES_IN_PRIOR = 0.1, 0.6, 1.0
_CELLS_IN_PRIOR = 5.0


@dataclass(frozen=True, eq=False)
class Factors:
    """Judge a answers pair p as λ_a·z_p plus its own error.

    Parameters
    ----------
    loadings : array, judges × factors
        λ_a.
    variance : array
        Variance of each judge's own error in a single answer.
    """

    loadings: FloatArray
    variance: FloatArray

    @property
    def count(self) -> int:
        return int(self.loadings.shape[1])

    def evidence(self, cells: Cells) -> tuple[FloatArray, FloatArray]:
        """Precision (pairs × factors × factors) and linear term (pairs × factors) of the likelihood of each z_p."""
        loading = self.loadings[cells.annotator]
        weight = answer_weight(cells) / self.variance[cells.annotator]
        precision = _sum_outer(cells.pair, weight, loading, cells.n_pairs)
        return precision, _sum_rows(cells.pair, (weight * cells.answer)[:, None] * loading, cells.n_pairs)


def answer_weight(cells: Cells) -> FloatArray:
    """How many independent answers a cell is worth: repeats share the judge's own error, so at most two."""
    persistent = _PERSISTENT if cells.n_annotators > 1 else 0.0
    return cells.count / (1 + np.maximum(cells.count - 1, 0.0) * persistent)


def fit_factors(cells: Cells) -> Factors:
    """Estimate loadings and error variances by EM: two factors, or one if the judges share too few pairs."""
    loadings = _start(cells)
    count = loadings.shape[1]
    squares = np.bincount(cells.annotator, cells.answer**2, cells.n_annotators)
    answered = np.bincount(cells.annotator, minlength=cells.n_annotators).astype(float)
    typical = max(float(squares.sum() / answered.sum()), 1e-3)
    variance = np.full(cells.n_annotators, 0.6 * typical)
    # Means of two answers vary less than one answer: variances are those of a cell of weight one.
    weight, eye = answer_weight(cells), np.eye(count)
    for _ in range(_STEPS):
        precision, linear = Factors(loadings, variance).evidence(cells)
        spread = np.linalg.inv(eye + precision)
        mean = np.einsum("pkl,pl->pk", spread, linear)
        second = spread + mean[:, :, None] * mean[:, None, :]
        share = weight / variance[cells.annotator]
        moment = _sum_rows(cells.annotator, (share[:, None, None] * second[cells.pair]).reshape(len(share), -1), cells.n_annotators)
        product = _sum_rows(cells.annotator, (share * cells.answer)[:, None] * mean[cells.pair], cells.n_annotators)
        centre = _mean_loading(loadings)
        moment = moment.reshape(-1, count, count) + eye / _LOADING_VARIANCE
        loadings = np.linalg.solve(moment, (product + centre / _LOADING_VARIANCE)[:, :, None])[:, :, 0]
        loading = loadings[cells.annotator]
        fitted = np.einsum("ck,ck->c", loading, mean[cells.pair])
        left = cells.answer**2 - 2 * cells.answer * fitted + (
            loading * np.einsum("ckl,cl->ck", second[cells.pair], loading)
        ).sum(axis=1)
        errors = np.bincount(cells.annotator, weight * left, cells.n_annotators)
        variance = (errors + _CELLS_IN_PRIOR * 0.6 * typical) / (answered + _CELLS_IN_PRIOR)
        variance = np.maximum(variance, 0.02)
    return Factors(loadings, variance)


def _mean_loading(loadings: FloatArray) -> FloatArray:
    """The mean loading. With one factor, a typical positive loading counts as one more judge."""
    if loadings.shape[1] > 1:
        return np.asarray(loadings.mean(axis=0))
    judges = len(loadings)
    return (loadings.sum(axis=0) + _JUDGES_IN_PRIOR * _TYPICAL_LOADING) / (judges + _JUDGES_IN_PRIOR)


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


def _sum_rows(group: FloatArray, rows: FloatArray, size: int) -> FloatArray:
    return np.stack([np.bincount(group, column, size) for column in rows.T], axis=1)


def _sum_outer(group: FloatArray, weight: FloatArray, rows: FloatArray, size: int) -> FloatArray:
    count = rows.shape[1]
    found = np.empty((size, count, count))
    for k in range(count):
        for m in range(k + 1):
            found[:, k, m] = found[:, m, k] = np.bincount(group, weight * rows[:, k] * rows[:, m], size)
    return found
