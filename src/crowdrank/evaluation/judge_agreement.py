"""Agreement of judges: answers per pair, kappa, Krippendorff's alpha, shared errors and the effective number of judges.

An answer about a pair is 1, 0 (a tie, or both orders answered differently) or −1. Which of the two items counts as the
first is arbitrary, so chance agreement is computed with both sides equally frequent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray, FloatArray, Int32Array, IntArray
from crowdrank.data import AnnotatorDetails, Comparisons, Items
from crowdrank.data.features import POSITION
from crowdrank.data.side_information import model_family
from crowdrank.errors import DataError
from crowdrank.models.commensurate.judge_scores import (
    effects_of,
    fit_judge,
    log_prior_of_discrepancy,
    own_items,
    predict,
)
from crowdrank.models.commensurate.posterior import Solver, Votes

_MAX_CELLS = 100_000_000
_DRAWS, _DRAWS_AT_ONCE = 400, 20


@dataclass(frozen=True, eq=False)
class PairAnswers:
    """One answer per judge and pair.

    Parameters
    ----------
    first, second : array of int
        Item codes of each pair; an answer of 1 means that the first is better.
    answer : array of float, shape (judges, pairs)
        Mean of a judge's votes on a pair, −1 to 1; NaN if there is none.
    n_votes : array of int
        Number of votes of each judge.
    both_orders, flipped : array of int
        Pairs that a judge decided in both orders, and those of them decided for one side rather than one item.
    decided, decided_left : array of int
        Decided votes of each judge, and those for the item on the left.
    """

    first: IntArray
    second: IntArray
    answer: FloatArray
    n_votes: IntArray
    both_orders: IntArray
    flipped: IntArray
    decided: IntArray
    decided_left: IntArray

    @property
    def sign(self) -> FloatArray:
        """The decision about each pair: 1, 0 or −1; NaN without an answer."""
        return np.sign(self.answer)


def pair_answers(votes: Comparisons) -> PairAnswers:
    """Collect the votes of each judge on each pair, whatever the order in which the pair was shown."""
    annotator = votes.annotator
    if annotator is None:
        raise DataError("An audit of judges needs annotators, and these votes name none.")
    n_items, n_judges = len(votes.items), len(votes.annotators)
    low, high = np.minimum(votes.left, votes.right), np.maximum(votes.left, votes.right)
    keys, unit = np.unique(low.astype(np.int64) * n_items + high, return_inverse=True)
    if n_judges * keys.size > _MAX_CELLS:
        raise DataError(f"{n_judges:,} annotators and {keys.size:,} pairs are too many for an audit of judges.")
    cell = annotator.astype(np.int64) * keys.size + unit
    outcome = votes.outcome.astype(np.float64)
    toward_first = np.where(votes.left < votes.right, outcome, -outcome)

    def by_cell(values: FloatArray) -> FloatArray:
        found: FloatArray = np.bincount(cell, values, n_judges * keys.size).astype(np.float64)
        return found.reshape(n_judges, keys.size)

    count = by_cell(np.ones(cell.size))
    with np.errstate(invalid="ignore"):
        answer = by_cell(toward_first) / count
    # What a judge decided when the first item was on the left, and when it was on the right.
    swapped = votes.left > votes.right
    one, other = np.sign(by_cell(toward_first * ~swapped)), np.sign(by_cell(toward_first * swapped))
    both = (one != 0) & (other != 0)

    def by_judge(mask: BoolArray) -> IntArray:
        return np.bincount(annotator[mask], minlength=n_judges)

    return PairAnswers(
        first=keys // n_items,
        second=keys % n_items,
        answer=answer,
        n_votes=by_judge(np.ones(cell.size, bool)),
        both_orders=both.sum(axis=1),
        flipped=(both & (one != other)).sum(axis=1),
        decided=by_judge(outcome != 0),
        decided_left=by_judge(outcome > 0),
    )


def resampled_weights(n_units: int, seed: int) -> Iterator[FloatArray]:
    """Yield weights of units, some resamples at a time: how often each unit is in a bootstrap resample."""
    rng = np.random.default_rng(seed)
    even = np.full(n_units, 1 / max(n_units, 1))
    for _ in range(_DRAWS // _DRAWS_AT_ONCE):
        yield rng.multinomial(n_units, even, _DRAWS_AT_ONCE).astype(np.float64)


def kappa(sign: FloatArray, reference: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Return Cohen's kappa of each judge with a reference.

    Parameters
    ----------
    sign : array, shape (judges, pairs)
        Decisions: 1, 0, −1, NaN.
    reference : array, shape (pairs,) or (judges, pairs)
        The decisions to agree with; NaN where there is none.
    weight : array, shape (draws, pairs), optional
        Weights of the pairs.

    Returns
    -------
    array, shape (judges,) or (draws, judges)
        Kappa; NaN for a judge without pairs in common with the reference.

    Notes
    -----
    κ = (p − c) / (1 − c), where p is the share of equal decisions and c = ½(1 − s)(1 − t) + st is their expected share
    by chance, for shares s and t of ties.

    Examples
    --------
    >>> kappa(np.array([[1.0, -1, 1, 1], [1.0, -1, 1, -1]]), np.array([1.0, -1, 1, -1]))
    array([0.5, 1. ])
    """
    known = np.isfinite(sign) & np.isfinite(reference)
    weight_of = np.ones((1, sign.shape[1])) if weight is None else weight

    def share(mask: BoolArray) -> FloatArray:
        found: FloatArray = weight_of @ (mask & known).T / count
        return found

    with np.errstate(invalid="ignore", divide="ignore"):
        count = weight_of @ known.T.astype(np.float64)
        ties, reference_ties = share(sign == 0), share(np.broadcast_to(reference == 0, sign.shape))
        chance = 0.5 * (1 - ties) * (1 - reference_ties) + ties * reference_ties
        found = (share(sign == reference) - chance) / (1 - chance)
    return np.asarray(found[0] if weight is None else found)


def error_correlations(answer: FloatArray, reference: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return how strongly the errors of every two judges go together, and on how many pairs that rests.

    The error of a judge on a pair is 0 (right), ½ (a tie) or 1. Its correlation is taken over the pairs that both
    judges answered; NaN where one of them has no variance there.
    """
    error = np.where(np.isfinite(answer), (1 - answer * reference) / 2, np.nan)
    known = np.isfinite(error)
    filled, mask = np.where(known, error, 0.0), known.astype(np.float64)
    shared = mask @ mask.T
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = (filled @ mask.T) / shared  # of the row's judge, over the pairs that both answered
        covariance = (filled @ filled.T) / shared - mean * mean.T
        variance = np.maximum((filled**2 @ mask.T) / shared - mean**2, 0.0)
        scale = np.sqrt(variance * variance.T)
        found = np.where(scale > 1e-12, covariance / scale, np.nan)
    return np.clip(found, -1, 1), shared.astype(np.int64)


def effective_number(correlation: FloatArray, n_shared: IntArray) -> float:
    """Return the number of judges with independent errors that these judges amount to.

    Parameters
    ----------
    correlation : array, shape (judges, judges)
        Correlations of errors; NaN (unknown) counts as 0.
    n_shared : array, shape (judges, judges)
        Number of pairs behind each correlation.

    Returns
    -------
    float
        Between 1 and the number of judges.

    Notes
    -----
    The participation ratio of the eigenvalues of the correlation matrix, (Σλ)² / Σλ² = J² / Σ r². The squares of
    correlations of few pairs are too large by about (1 − r²) / (n − 1), which is subtracted.

    Examples
    --------
    >>> effective_number(np.eye(4), np.full((4, 4), 100))
    4.0
    >>> effective_number(np.ones((4, 4)), np.full((4, 4), 100))
    1.0
    """
    n_judges = len(correlation)
    off = ~np.eye(n_judges, dtype=bool) & np.isfinite(correlation)
    squares = np.where(off, correlation, 0.0) ** 2
    noise = np.where(off, (1 - squares) / np.maximum(n_shared - 1, 1), 0.0)
    return float(n_judges**2 / (n_judges + max(float((squares - noise).sum()), 0.0)))


# Biases of judges: side, features such as length, and preference for the items of their own family.

LEFT_SIDE, OWN_FAMILY = "left side", "own family"
_MAX_ITEMS, _MIN_VOTES = 300, 20
_TOLERANCE, _MAX_STEPS = 1e-4, 100
# Prior standard deviation of the preference for the own family: wide, because the effect is to be measured.
_BIAS_SCALE = 1.0


def judge_biases(
    votes: Comparisons,
    people: Mapping[str, AnnotatorDetails],
    *,
    features: Sequence[str] = (),
    level: float = 0.95,
) -> pl.DataFrame:
    """Estimate what influences each judge besides the items: the side, features, and its own family.

    Parameters
    ----------
    votes : Comparisons
        Votes that name annotators. Items of one label in several queries are taken for one system.
    people : mapping of str to AnnotatorDetails
        Kinds and families of annotators.
    features : sequence of str, default ()
        Features of the comparisons, such as length.
    level : float, default 0.95
        Coverage of the intervals.

    Returns
    -------
    polars.DataFrame
        One row per judge and bias: annotator, bias, effect, low and high, as log odds: for the left side; per unit of a
        feature; and for items of the judge's own family. Judges with fewer than 20 votes are left out. The frame is
        empty for more than 300 systems.

    Notes
    -----
    The judge's votes follow Bradley-Terry with effects of the side and of features. The judge's scores are those of a
    reference on another scale, plus the preference for its own family, plus a discrepancy of each item that is
    integrated out, as in commensurate-bt. The reference are the humans, or else the other judges of other families.

    Examples
    --------
    >>> left, right = ["a", "b"] * 50, ["b", "a"] * 50
    >>> votes = Comparisons.of(left, right, left[:90] + right[90:], annotator=["x"] * 100)
    >>> found = judge_biases(votes, {})
    >>> found["annotator", "bias"].rows(), found["low"].item() > 1
    ([('x', 'left side')], True)
    """
    from scipy.special import ndtri

    systems = _without_queries(votes)
    z, found = float(ndtri((1 + level) / 2)), []
    for name, rows, reference in _judges(systems, people) if len(systems.items) <= _MAX_ITEMS else ():
        given = Votes.of(systems, rows, "davidson", True, features)
        for bias, (effect, error) in _effects(name, given, systems, reference, people).items():
            found.append((name, bias, effect, effect - z * error, effect + z * error))
    schema: dict[str, Any] = {"annotator": pl.String, "bias": pl.String}
    return pl.DataFrame(found, {**schema, **dict.fromkeys(("effect", "low", "high"), pl.Float64)}, orient="row")


def _without_queries(votes: Comparisons) -> Comparisons:
    """The votes with one item per label."""
    if len(votes.items.queries) == 1:
        return votes
    labels, inverse = np.unique(votes.items.labels.astype(str), return_inverse=True)
    code: Int32Array = inverse.astype(np.int32)
    left, right = code[votes.left], code[votes.right]
    pooled = replace(votes, items=Items.of(labels.tolist()), left=left, right=right)
    return pooled.take(left != right)


def _judges(votes: Comparisons, people: Mapping[str, AnnotatorDetails]) -> list[tuple[str, BoolArray, BoolArray]]:
    """Each judge to audit, with its rows and those of its reference."""
    who = votes.annotator
    assert who is not None
    names = [str(name) for name in votes.annotators]
    details = [people.get(name, AnnotatorDetails()) for name in names]
    human = np.array([known.kind == "human" for known in details])
    families = [known.family or model_family(name) for name, known in zip(names, details, strict=True)]
    n_votes = np.bincount(who, minlength=len(names))
    found = []
    for code, name in enumerate(names):
        if n_votes[code] < _MIN_VOTES or (human[code] and not human.all()):
            continue
        others = np.array([family is None or family != families[code] for family in families])
        others[code] = False
        reference = human if human.any() and not human.all() else others
        found.append((name, who == code, reference[who]))
    return found


def _effects(
    name: str,
    given: Votes,
    votes: Comparisons,
    reference: BoolArray,
    people: Mapping[str, AnnotatorDetails],
) -> dict[str, tuple[float, float]]:
    """Effects with standard errors, by bias."""
    items = votes.items
    own = own_items(name, people.get(name, AnnotatorDetails()), items)
    trusted = Votes.of(votes, reference, "davidson", False)
    if own is None or not trusted.total:
        return _renamed(fit_judge(name, given, items, _TOLERANCE, _MAX_STEPS).effects)
    judge = fit_judge("reference", trusted, items, _TOLERANCE, _MAX_STEPS)
    said = replace(predict([judge], {OWN_FAMILY: items.centre(own[1])}), bias_scale=_BIAS_SCALE)
    log_prior = partial(log_prior_of_discrepancy, judges=[judge])
    posterior = Solver(tolerance=_TOLERANCE, max_steps=_MAX_STEPS, log_prior=log_prior).fit(given, items, said)
    means, covariance = posterior.weight_moments(said)
    own_family = {OWN_FAMILY: (float(means[-1]), float(covariance[-1, -1] ** 0.5))}
    return _renamed(effects_of(posterior, given)) | own_family


def _renamed(effects: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    return {LEFT_SIDE if bias == POSITION else bias: effect for bias, effect in effects.items()}
