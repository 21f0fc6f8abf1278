"""Cross-validation: models predict judgments that were held out of their fit."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import Comparisons, Judgments, Rankings, SideInformation
from crowdrank.errors import CrowdrankError, SettingError, muted_warnings
from crowdrank.models import name_of
from crowdrank.models.base import Model
from crowdrank.models.cross_validation import assign_folds, log_probabilities
from crowdrank.models.selection import convert_for
from crowdrank.results import Ranking

_MIN_LOG_PROBABILITY = np.log(1e-9)
"""Floor of log probabilities: one wrong prediction made with certainty must not decide everything."""

HoldOut = Literal["judgment", "annotator"]
"""Units that are held out: single judgments, or all judgments of an annotator."""


@dataclass(frozen=True)
class Estimate:
    """A mean with its standard error.

    Parameters
    ----------
    value : float
        The mean.
    std_error : float
        Its standard error; nan if unknown.
    """

    value: float
    std_error: float

    @property
    def clearly_positive(self) -> bool:
        """Whether the mean is more than two standard errors above zero."""
        return self.value > 2 * self.std_error


def clustered_mean(values: FloatArray, weight: FloatArray, cluster: IntArray) -> Estimate:
    """Return the weighted mean with the larger of the plain and the cluster-robust standard error."""
    mean = float(np.average(values, weights=weight))
    deviation = weight * (values - mean)
    by_cluster = np.bincount(cluster, deviation)
    variance = max(float(np.sum(deviation**2)), float(np.sum(by_cluster**2)))
    return Estimate(mean, float(np.sqrt(variance)) / float(np.sum(weight)))


@dataclass(frozen=True)
class CrossValidation:
    """Mean log-likelihood of held-out judgments.

    Parameters
    ----------
    mean : float
        Mean log-likelihood per judgment, in nats; closer to 0 is better, log ½ = −0.693 is a coin flip.
    std_error : float
        Standard error of the mean.
    n_judgments : int
        Number of judgments predicted.
    folds : int
        Number of folds.
    """

    mean: float
    std_error: float
    n_judgments: int
    folds: int


def cross_validate(
    model: Any,
    comparisons: Comparisons,
    *,
    folds: int = 5,
    by: HoldOut = "judgment",
    ties: Literal["drop", "keep"] = "drop",
    seed: int = 0,
) -> CrossValidation:
    """Return the cross-validated log-likelihood of a model.

    Parameters
    ----------
    model : Model
        A model with `predict`.
    comparisons : Comparisons
        The judgments.
    folds : int, default 5
        Number of folds.
    by : {"judgment", "annotator"}, default "judgment"
        Whether to hold out single judgments or all judgments of an annotator.
    ties : {"drop", "keep"}, default "drop"
        Whether ties are predicted too. With "drop", probabilities are conditional on a decided answer.
    seed : int, default 0
        Seed of the folds.

    Returns
    -------
    CrossValidation
        Mean and standard error.

    Examples
    --------
    >>> from crowdrank import BradleyTerry
    >>> from crowdrank.simulation import mixed_crowd
    >>> votes = mixed_crowd(kinds={"good": 6}, seed=1).judgments
    >>> cross_validate(BradleyTerry(), votes).mean > -0.693
    True
    """
    require_predictions(model)
    fold = assign_folds(comparisons, folds, by, np.random.default_rng(seed))
    values, weights = [], []
    for n in range(folds):
        test = comparisons.take(np.flatnonzero(fold == n))
        ranking = model.fit(comparisons.take(np.flatnonzero(fold != n)))
        values.append(log_probabilities(model, ranking, test, ties))
        weights.append(test.weights[test.outcome != 0] if ties == "drop" else test.weights)
    value, weight = np.concatenate(values), np.concatenate(weights)
    mean = float(np.average(value, weights=weight))
    variance = np.average((value - mean) ** 2, weights=weight) * np.sum(weight**2) / np.sum(weight) ** 2
    return CrossValidation(mean, float(np.sqrt(variance)), len(value), folds)


def require_predictions(model: Any) -> None:
    """Raise an error for models that cannot predict judgments."""
    if not hasattr(model, "predict"):
        raise SettingError(f"{name_of(model)} gives an order but no probabilities, so it cannot predict judgments.")


@dataclass(frozen=True)
class Fold:
    """Judgments to fit to, and decided answers to predict."""

    train: Judgments
    test: Comparisons


@dataclass
class HeldOutPredictions:
    """Predictions of each model for the held-out answers, in the same order.

    Parameters
    ----------
    weight : array of float
        Weight of each answer.
    annotator : array of int
        Annotator of each answer: answers of one annotator are not independent.
    log_likelihood : dict of str to list of arrays
        By model and fold, for models that predict probabilities.
    agreement : dict of str to list of arrays
        1 where the preferred item has the higher score, 0 where the lower, ½ where scores are equal.
    seconds : dict of str to float
        Time of fits and predictions.
    not_converged : Counter of str
        Number of fits that did not converge.
    """

    weight: FloatArray
    annotator: IntArray
    log_likelihood: dict[str, list[FloatArray]] = field(default_factory=dict)
    agreement: dict[str, list[FloatArray]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    not_converged: Counter[str] = field(default_factory=Counter)

    def drop(self, name: str) -> None:
        for found in (self.log_likelihood, self.agreement):
            found.pop(name, None)


def make_folds(
    judgments: Judgments,
    by: HoldOut,
    folds: int,
    seed: int,
    limit: int | None = None,
    predicted: BoolArray | None = None,
) -> list[Fold]:
    """Split judgments, or whole annotators, into folds.

    Only the first `limit` folds are returned, if it is given. Only the `predicted` judgments are to be predicted, and
    every fit knows some of them.
    """
    units = len(judgments.annotators) if by == "annotator" else len(judgments)
    rows: Any = judgments  # folds_of only counts rows and annotators, which all kinds of judgments have
    count = min(folds, units)
    fold = assign_folds(rows, count, by, np.random.default_rng(seed))
    tested = fold if predicted is None else np.where(predicted, fold, -1)
    parts = [
        Fold(judgments.take(np.flatnonzero(fold != n)), _decided_pairs(judgments.take(np.flatnonzero(tested == n))))
        for n in range(count if limit is None else limit)
        if predicted is None or predicted[fold != n].any()
    ]
    return [part for part in parts if len(part.test) and len(part.train)]


def predict_held_out(
    models: Mapping[str, Any],
    folds: list[Fold],
    left_out: dict[str, str],
    on_fit: Callable[[str], None],
    known: SideInformation | None = None,
) -> HeldOutPredictions:
    """Fit each model without each fold and predict the fold; record the reason for models that fail in `left_out`."""
    weight = np.concatenate([fold.test.weights for fold in folds])
    found = HeldOutPredictions(weight, np.concatenate([_annotator_codes(fold.test) for fold in folds]))
    for fold in folds:
        for name, model in models.items():
            if name not in left_out:
                try:
                    _predict_fold(name, model, fold, found, known)
                except CrowdrankError as error:
                    left_out[name] = str(error)
                    found.drop(name)
            on_fit(name)
    return found


def knows_people(model: Model) -> bool:
    """Whether it makes a difference to a model who is human and who is a language model."""
    return model.accepts_people or model.accepts_side_information


def fit_quietly(
    model: Model, judgments: Judgments, side_information: SideInformation | None = None
) -> tuple[Ranking, bool]:
    """Fit without warnings; return the ranking and whether the solver converged."""
    with muted_warnings():
        ranking = model.fit(convert_for(model, judgments)[0], side_information=side_information)
    return ranking, ranking.convergence.converged


def _predict_fold(name: str, model: Any, fold: Fold, found: HeldOutPredictions, known: SideInformation | None) -> None:
    start = time.perf_counter()
    ranking, converged = fit_quietly(model, fold.train, known if knows_people(model) else None)
    test = fold.test
    if hasattr(model, "predict"):
        with np.errstate(divide="ignore"):
            value = np.maximum(log_probabilities(model, ranking, test), _MIN_LOG_PROBABILITY)
        found.log_likelihood.setdefault(name, []).append(value)
    predicted = np.sign(ranking.scores[test.left] - ranking.scores[test.right])
    found.agreement.setdefault(name, []).append((1.0 + predicted * test.outcome) / 2)
    found.seconds[name] += time.perf_counter() - start
    found.not_converged[name] += not converged


def _decided_pairs(judgments: Judgments) -> Comparisons:
    """Decided comparisons; for ratings and lists, all pairs of items that one of them orders."""
    if isinstance(judgments, Rankings) and judgments.annotator is None:
        # Pairs from one list are not independent, just as the answers of one annotator: each list is a cluster.
        names = np.array([str(n) for n in range(len(judgments))], dtype=object)
        judgments = replace(judgments, annotators=names, annotator=np.arange(len(judgments), dtype=np.int32))
    pairs = judgments if isinstance(judgments, Comparisons) else judgments.to_comparisons()
    return pairs.take(np.flatnonzero(pairs.outcome))


def _annotator_codes(answers: Comparisons) -> IntArray:
    return np.arange(len(answers)) if answers.annotator is None else answers.annotator.astype(np.int64)


@dataclass(frozen=True)
class PairedScore:
    """Score of one model, with paired differences to others on the same answers.

    Parameters
    ----------
    mean : Estimate
        Mean score.
    gain : Estimate
        Difference to the baseline model; positive is better.
    deficit : Estimate
        Difference of the best model to this one.
    """

    mean: Estimate
    gain: Estimate
    deficit: Estimate


def paired_scores(
    values: Mapping[str, FloatArray], weight: FloatArray, annotator: IntArray, baseline: str
) -> dict[str, PairedScore]:
    """Return the scores of all models; gains are nan if the baseline is not among them."""
    if not values:
        return {}
    best = max(values, key=lambda name: float(np.average(values[name], weights=weight)))
    unknown = Estimate(np.nan, np.nan)
    return {
        name: PairedScore(
            clustered_mean(found, weight, annotator),
            clustered_mean(found - values[baseline], weight, annotator) if baseline in values else unknown,
            clustered_mean(values[best] - found, weight, annotator),
        )
        for name, found in values.items()
    }
