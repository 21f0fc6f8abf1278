"""Biases of judges: side, features such as length, and preference for the items of their own family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray, Int32Array
from crowdrank.data import AnnotatorDetails, Comparisons, Items
from crowdrank.data.annotator_names import model_family
from crowdrank.data.features import POSITION
from crowdrank.models.commensurate.judge_scores import (
    effects_of,
    fit_judge,
    log_prior_of_discrepancy,
    own_items,
    predict,
)
from crowdrank.models.commensurate.posterior import Solver
from crowdrank.models.commensurate.vote_likelihood import Votes

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
