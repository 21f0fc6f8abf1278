"""Dawid & Skene (1979): items have a latent true class, and each annotator has a confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data import Judgments, Ratings
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions, Model, build_ranking, check_solver, require_kind, with_annotators
from crowdrank.models.ratings.shrinkage import draw_count
from crowdrank.results import Convergence, Ranking, Uncertainty

_CONVERGENCE_UNIT = "of change in a class probability in the last step"
# The prior confusion matrix is ∝ exp(−_DECAY·|true − answered class|); it counts as one answer per class.
_DECAY = 1.0
# Tolerance of the pooled fit: it only provides the centre of the annotators' priors.
_POOLED_TOLERANCE = 1e-5
# Fits to shuffled grades, which show how much of the fit is noise, and their tolerance.
_SHUFFLES, _SHUFFLED_TOLERANCE = 4, 1e-3
# Floor of probabilities before taking logarithms.
_TINY = 1e-300
# Up to this many distinct grades, each grade is a class.
MAX_DISTINCT_GRADES = 10


@dataclass(frozen=True, kw_only=True)
class DawidSkene(Model):
    """Latent true classes of the items and a confusion matrix per annotator (Dawid-Skene), fitted by EM.

    Parameters
    ----------
    bins : int, default 5
        Number of classes, by quantiles, if there are more than ten distinct grades. Otherwise each grade is a class.
    annotator_prior_count : float, default 5.0
        Pseudo-answers per true class, distributed as the pooled confusion matrix, that are added to each annotator.
    query_prior_count : float, default 10.0
        Pseudo-items, distributed as the overall class frequencies, that are added to each query.
    tolerance : float, default 1e-6
        Stop when no class probability of an item changes by more than this in one EM step.
    max_steps : int, default 2000
        Maximum number of EM steps.
    seed : int, default 0
        Seed of the draws behind rank intervals.

    Notes
    -----
    P(class of item i = c) = πc in its query, and P(annotator k answers y | class c) = Πₖ[c, y]. EM alternates the
    posterior of the classes with the (Dirichlet-smoothed) estimates of π and Πₖ. A first fit with one confusion matrix
    for all annotators provides the centre of the priors. The score is the expected grade of an item's class.

    Reference: Dawid & Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm.

    Examples
    --------
    >>> who = ["x"] * 3 + ["y"] * 3 + ["z"] * 3
    >>> grades = Ratings.of(["a", "b", "c"] * 3, [1, 1, 0, 1, 0, 0, 1, 1, 0], annotator=who)
    >>> DawidSkene().fit(grades).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Ratings
    models_annotators: ClassVar[bool] = True
    draws_classes: ClassVar[bool] = True

    bins: int = 5
    annotator_prior_count: float = 5.0
    query_prior_count: float = 10.0
    tolerance: float = 1e-6
    max_steps: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        check_solver(self)
        check_bins(self.bins)
        for name in ("annotator_prior_count", "query_prior_count"):
            if not 0 < getattr(self, name) < np.inf:
                raise SettingError(f"{name} must be positive, got {getattr(self, name)}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        ratings = require_kind(Ratings, judgments, self)
        em = DawidSkeneEM(ratings, GradeClasses.of(ratings, self.bins))
        pooled, _ = em.run(em.initial_probabilities(), None, self, max(self.tolerance, _POOLED_TOLERANCE))
        estimate, convergence = em.run(pooled.probabilities, pooled, self, self.tolerance)
        ranking = build_ranking(
            self,
            ratings,
            estimate.scores,
            log_likelihood=estimate.log_likelihood,
            convergence=convergence,
            centred=False,
            measure=lambda: estimate.uncertainty(self.seed, self._tempering(em, estimate)),
        )
        return with_annotators(ranking, ratings, lambda: {"quality": estimate.quality(self.annotator_prior_count)})

    def _tempering(self, em: DawidSkeneEM, estimate: ConfusionEstimate) -> float:
        """Which part of the gain in log-likelihood by classes is real, not fitted to noise: between 0 and 1.

        The same fit is made to grades that are shuffled within each annotator and query, so that no item is better than
        another; what it gains there is noise.
        """
        rng = np.random.default_rng(self.seed)
        by_chance = []
        for _ in range(_SHUFFLES):
            shuffled = em.shuffled(rng)
            pooled, _ = shuffled.run(shuffled.initial_probabilities(), None, self, _SHUFFLED_TOLERANCE)
            fitted, _ = shuffled.run(pooled.probabilities, pooled, self, _SHUFFLED_TOLERANCE)
            by_chance.append(fitted.log_likelihood)
        gain = estimate.log_likelihood - em.log_likelihood_without_classes(self.annotator_prior_count)
        real = estimate.log_likelihood - float(np.mean(by_chance)) - 2.0 * float(np.std(by_chance))
        return float(np.clip(real / gain, 0.0, 1.0)) if gain > 0 else 0.0


@dataclass(frozen=True)
class ConfusionEstimate:
    """State of EM after one step.

    Parameters
    ----------
    em : DawidSkeneEM
        The data.
    probabilities : array of shape (items, classes)
        Posterior probability of each class of each item.
    class_priors : array of shape (queries, classes)
        Frequencies of the classes in each query.
    confusion : array of shape (annotators, classes, classes)
        P(answer | true class) of each annotator; the first axis has length 1 in the pooled fit.
    log_likelihood : float
        Log-likelihood of the grades, with the classes summed out.
    """

    em: DawidSkeneEM
    probabilities: FloatArray
    class_priors: FloatArray
    confusion: FloatArray
    log_likelihood: float

    @property
    def scores(self) -> FloatArray:
        """The expected grade of each item's class."""
        return np.asarray(np.sum(self.probabilities * self.em.class_grades, axis=1))

    def uncertainty(self, seed: int, tempering: float) -> Uncertainty:
        """Posterior draws of the classes, so that items of one class share a rank.

        The likelihood of the grades is raised to the power of `tempering`, because annotators are given as estimated,
        and their estimates are fitted to the same grades.
        """
        grades, items = self.em.class_grades, len(self.scores)
        prior = np.log(np.maximum(self.class_priors, _TINY))[self.em.ratings.items.query]
        likelihood = np.log(np.maximum(self.probabilities, _TINY)) - prior
        probabilities = _normalised(prior + tempering * likelihood)
        mean = np.sum(probabilities * grades, axis=1, keepdims=True)
        variance = np.sum(probabilities * (grades - mean) ** 2, axis=1)
        uniforms = np.random.default_rng(seed).random((draw_count(items), items))
        drawn = np.zeros(uniforms.shape, np.int64)
        for below in np.cumsum(probabilities, axis=1).T[:-1]:
            drawn += uniforms > below
        method = "posterior of the classes, given the annotators"
        return Uncertainty(grades[np.arange(items), drawn], np.sqrt(variance), method, sampled=True)

    def quality(self, prior_count: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """P(the better of two items of different classes gets the higher grade), a tie counting half; 95 % interval."""
        frequencies = self.probabilities.mean(axis=0)
        pairs = np.triu(np.outer(frequencies, frequencies), 1).T  # [better, worse]
        pairs /= max(float(pairs.sum()), _TINY)
        below = np.cumsum(self.confusion, axis=2) - 0.5 * self.confusion
        quality = np.einsum("bw,kby,kwy->k", pairs, self.confusion, below)
        answers = self.em.annotator_weight + prior_count
        half_width = 1.96 * np.sqrt(np.maximum(quality * (1 - quality), 0.0) / np.maximum(answers, 1.0))
        return quality, np.maximum(quality - half_width, 0.0), np.minimum(quality + half_width, 1.0)


@dataclass(frozen=True)
class DawidSkeneEM:
    """EM for the Dawid-Skene model on ratings with their classes."""

    ratings: Ratings
    classes: GradeClasses

    @cached_property
    def annotator(self) -> Int32Array:
        """Annotator of each rating; ratings without annotators are treated as one annotator's."""
        annotator = self.ratings.annotator
        return np.zeros(len(self.ratings), np.int32) if annotator is None else annotator

    @cached_property
    def n_annotators(self) -> int:
        return max(1, len(self.ratings.annotators))

    @cached_property
    def annotator_weight(self) -> FloatArray:
        """Total weight of each annotator's ratings."""
        return np.bincount(self.annotator, self.ratings.weights, self.n_annotators).astype(np.float64)

    @cached_property
    def class_grades(self) -> FloatArray:
        """The grade that each class stands for, per item: items × classes."""
        return np.asarray(self.classes.value[self.ratings.items.query])

    @cached_property
    def prior_confusion(self) -> FloatArray:
        """Confusion matrix of an unknown annotator: neighbouring classes are confused more often than distant ones."""
        classes = np.arange(self.classes.size)
        similarity = np.exp(-_DECAY * np.abs(classes[:, None] - classes))
        return np.asarray(similarity / similarity.sum(axis=1, keepdims=True))

    def initial_probabilities(self) -> FloatArray:
        """Class probabilities of each item from its own grades and the prior confusion matrix."""
        rows = np.log(self.prior_confusion.T[self.classes.code]) * self.ratings.weights[:, None]
        return _normalised(self._per_item(rows))

    def shuffled(self, rng: np.random.Generator) -> DawidSkeneEM:
        """The same annotators with their grades shuffled within each query."""
        cell = self.annotator.astype(np.int64) * len(self.ratings.items.queries) + self._query
        order, at_random = np.argsort(cell, kind="stable"), np.lexsort((rng.random(len(cell)), cell))
        code = np.empty_like(self.classes.code)
        code[order] = self.classes.code[at_random]
        return replace(self, classes=replace(self.classes, code=code))

    @property
    def _query(self) -> IntArray:
        return self.ratings.items.query[self.ratings.item].astype(np.int64)

    def log_likelihood_without_classes(self, prior_count: float) -> float:
        """Log-likelihood of the grades if all items are alike: each annotator has a distribution of grades."""
        size = self.classes.size
        counts = np.bincount(self.annotator * np.int64(size) + self.classes.code, self.ratings.weights)
        counts = np.resize(np.append(counts, np.zeros(self.n_annotators * size)), (self.n_annotators, size))
        share = counts + prior_count * counts.sum(axis=0) / counts.sum()
        log_share = np.log(share / share.sum(axis=1, keepdims=True))
        return float(self.ratings.weights @ log_share[self.annotator, self.classes.code])

    def run(
        self, probabilities: FloatArray, pooled: ConfusionEstimate | None, model: DawidSkene, tolerance: float
    ) -> tuple[ConfusionEstimate, Convergence]:
        """Alternate M-steps and E-steps until the class probabilities stop changing.

        Without `pooled`, all annotators share one confusion matrix and all queries one class distribution; with it, it
        is the centre of the priors.
        """
        for step in range(1, model.max_steps + 1):
            class_priors, confusion = self._m_step(probabilities, pooled, model)
            estimate = self._e_step(class_priors, confusion)
            change = float(np.max(np.abs(estimate.probabilities - probabilities)))
            probabilities = estimate.probabilities
            if change <= tolerance:
                return estimate, Convergence(True, step, change, _CONVERGENCE_UNIT)
        return estimate, Convergence(False, model.max_steps, change, _CONVERGENCE_UNIT)

    def _m_step(
        self, probabilities: FloatArray, pooled: ConfusionEstimate | None, model: DawidSkene
    ) -> tuple[FloatArray, FloatArray]:
        """Class priors and confusion matrices: expected counts plus pseudo-counts, normalised."""
        items, size = self.ratings.items, self.classes.size
        cell = (0 if pooled is None else self.annotator.astype(np.int64)) * size + self.classes.code
        n_annotators = 1 if pooled is None else self.n_annotators
        weight = self.ratings.weights[:, None] * probabilities[self.ratings.item]
        counts = np.stack([np.bincount(cell, column, n_annotators * size) for column in weight.T])
        counts = counts.reshape(size, n_annotators, size).transpose(1, 0, 2)
        if pooled is None:
            confusion = counts + self.prior_confusion
            priors = np.broadcast_to(probabilities.sum(axis=0) + 1.0 / size, (len(items.queries), size))
        else:
            confusion = counts + model.annotator_prior_count * pooled.confusion
            sums = np.add.reduceat(probabilities, items.starts[:-1], axis=0)
            priors = sums + model.query_prior_count * pooled.class_priors
        return priors / priors.sum(axis=1, keepdims=True), confusion / confusion.sum(axis=2, keepdims=True)

    def _e_step(self, class_priors: FloatArray, confusion: FloatArray) -> ConfusionEstimate:
        """Posterior class probabilities and log-likelihood, by log-sum-exp."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(confusion, _TINY))
        annotator = self.annotator if len(confusion) > 1 else 0
        rows = logs[annotator, :, self.classes.code] * self.ratings.weights[:, None]
        joint = self._per_item(rows) + np.log(np.maximum(class_priors, _TINY))[self.ratings.items.query]
        top = joint.max(axis=1)
        value = float(np.sum(top + np.log(np.exp(joint - top[:, None]).sum(axis=1))))
        return ConfusionEstimate(self, _normalised(joint), class_priors, confusion, value)

    def _per_item(self, rows: FloatArray) -> FloatArray:
        size = len(self.ratings.items)
        return np.stack([np.bincount(self.ratings.item, column, size) for column in rows.T], axis=1).astype(np.float64)


def _normalised(log_joint: FloatArray) -> FloatArray:
    """Rows of log weights as probabilities."""
    weights = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


# Grades as ordered classes: the grades themselves if there are few, else quantile bins


def check_bins(bins: int) -> None:
    """Refuse a number of bins that makes no sense."""
    if not 2 <= bins <= 1000:
        raise SettingError(f"bins must lie between 2 and 1000, got {bins}.")


@dataclass(frozen=True)
class GradeClasses:
    """The class of each rating.

    Parameters
    ----------
    code : array
        Class of each rating; 0 is the worst.
    value : array of shape (queries, classes)
        The grade that each class stands for, in each query.
    per_query : bool, default False
        Whether each query has its own scale.
    """

    code: IntArray
    value: FloatArray
    per_query: bool = False

    @property
    def size(self) -> int:
        """Number of classes."""
        return int(self.value.shape[1])

    @classmethod
    def of(cls, ratings: Ratings, bins: int) -> GradeClasses:
        """Few distinct grades form one scale for all queries; otherwise each query has its own quantile bins.

        Equal grades share a bin: the one that contains the middle of their ranks.
        """
        grades, code = np.unique(ratings.grade, return_inverse=True)
        queries = len(ratings.items.queries)
        if len(grades) <= max(MAX_DISTINCT_GRADES, bins):
            return cls(code, np.broadcast_to(grades, (queries, len(grades))))
        query = ratings.items.query[ratings.item]
        rank = _fractional_ranks(query, ratings.grade, ratings.weights)
        code = np.minimum((rank * bins).astype(np.int64), bins - 1)
        return cls(code, _mean_grades(query * bins + code, ratings, queries, bins), per_query=True)


def _fractional_ranks(query: Int32Array, grade: FloatArray, weight: FloatArray) -> FloatArray:
    """The fraction of its query's weight that lies below each grade, counting half of the equal grades."""
    order = np.lexsort((grade, query))
    is_new = np.append(True, (np.diff(grade[order]) != 0) | (np.diff(query[order]) != 0))
    tie = np.cumsum(is_new) - 1
    tied = np.bincount(tie, weight[order])
    middle = np.cumsum(tied) - tied / 2
    query_of_tie = query[order][is_new]
    total = np.bincount(query_of_tie, tied)
    ranks = np.empty(len(grade))
    ranks[order] = ((middle - (np.cumsum(total) - total)[query_of_tie]) / total[query_of_tie])[tie]
    return ranks


def _mean_grades(cell: IntArray, ratings: Ratings, queries: int, size: int) -> FloatArray:
    """The mean grade of each class; an empty class is interpolated between its neighbours."""
    weight = np.bincount(cell, ratings.weights, queries * size).reshape(queries, size)
    total = np.bincount(cell, ratings.weights * ratings.grade, queries * size).reshape(queries, size)
    classes, means = np.arange(size), np.zeros((queries, size))
    for query in range(queries):
        used = np.flatnonzero(weight[query])
        if len(used):
            means[query] = np.interp(classes, used, total[query, used] / weight[query, used])
    return means
