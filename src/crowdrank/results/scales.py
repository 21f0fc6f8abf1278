"""Scales on which scores are shown, and links from a difference of scores to the probability of a win."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import log, log10, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.errors import DataError, SettingError, UnknownNameError

if TYPE_CHECKING:
    from crowdrank.results.ranking import Ranking


# Models whose score differences determine the probability of a win, by their link.
_LOGISTIC = (
    "bradley-terry",
    "crowd-bt",
    "bayesian-crowd-bt",
    "factor-bt",
    "variance-bt",
    "plackett-luce",
    "rank-centrality",
)
_PROBIT = ("thurstone",)
MODELS_WITH_LINK = (*_LOGISTIC, *_PROBIT)


def is_probit(ranking: Ranking, purpose: str) -> bool:
    """Whether the link is probit rather than logistic; see `model_is_probit`."""
    return model_is_probit(ranking.model, ranking.settings, purpose)


def model_is_probit(model: str, settings: Mapping[str, Any], purpose: str) -> bool:
    """Whether the link of a model is probit rather than logistic; raises if its scores have no link to a probability.

    `purpose` says what needs one, for the message: "compare systems".
    """
    probit = model in _PROBIT or settings.get("link") == "probit"
    if not probit and model not in _LOGISTIC:
        raise SettingError(
            f"Scores of {model} give an order but not the probability of a win: {purpose} with one of "
            f"{', '.join(MODELS_WITH_LINK)}."
        )
    return probit


def link_of(ranking: Ranking, purpose: str) -> Callable[[FloatArray], FloatArray]:
    """The function from differences of scores to probabilities of a win."""
    return link_function("probit" if is_probit(ranking, purpose) else "logistic")


def link_function(name: str) -> Callable[[FloatArray], FloatArray]:
    """The function of the link "logistic" or "probit"."""
    return _normal_cdf if name == "probit" else _sigmoid


def three_to_one(ranking: Ranking, purpose: str) -> float:
    """The difference of scores at which the better item wins three times in four."""
    return sqrt(2.0) * NormalDist().inv_cdf(0.75) if is_probit(ranking, purpose) else log(3.0)


def _sigmoid(margin: FloatArray) -> FloatArray:
    return np.asarray(0.5 + 0.5 * np.tanh(margin / 2))


def _normal_cdf(margin: FloatArray) -> FloatArray:
    from scipy.special import ndtr

    return np.asarray(ndtr(margin / np.sqrt(2)))


# Scales on which scores are shown: Elo points, JOD, and the probability of beating the average item.
#
# A scale changes what tables show. `Ranking.scores` and the draws stay in the unit of the model.

SCALES = ("elo", "jod", "probability")
ELO_MEAN = 1000.0
"""Elo points of the average item, unless an anchor says otherwise."""
# Elo points at which the better item wins three times in four.
_ELO_UNIT = 400 * log10(3)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """A scale: shown = shift + factor·score, and its probability under a link if there is one.

    Parameters
    ----------
    name : str
        "elo", "jod", "probability", or "score" for the unit of the model.
    factor : float, default 1.0
        Units of the scale per unit of the model's scores.
    shift : float, default 0.0
        Value that is shown for a score of 0.
    link : {"", "logistic", "probit"}, default ""
        Link to the probability of a win against the average item; "" for linear scales.

    Examples
    --------
    >>> Scale(name="elo", factor=173.7, shift=1000.0).show(np.array([0.0, 1.0])).round().tolist()
    [1000.0, 1174.0]
    """

    name: str
    factor: float = 1.0
    shift: float = 0.0
    link: str = ""

    def show(self, scores: FloatArray) -> FloatArray:
        """Return scores of the model on this scale."""
        return link_function(self.link)(scores) if self.link else np.asarray(self.shift + self.factor * scores)

    def show_error(self, scores: FloatArray, std_error: FloatArray) -> FloatArray:
        """Return standard errors on this scale; those of probabilities by the delta method."""
        if not self.link:
            return np.asarray(self.factor * std_error)
        step = 1e-4
        link = link_function(self.link)
        return np.asarray((link(scores + step) - link(scores - step)) / (2 * step) * std_error)


def make_scale(ranking: Ranking, name: str, anchors: Mapping[str, float] | None = None) -> Scale:
    """Return a scale for the scores of a ranking.

    Parameters
    ----------
    ranking : Ranking
        A ranking by a model whose scores determine the probability of a win.
    name : {"elo", "jod", "probability"}
        "elo": 400 points are odds of 10 to 1, and the average item has 1000. "jod": one unit (just-objectionable
        difference) means that the better item wins three times in four, and the average item has 0. "probability":
        the probability of beating the average item.
    anchors : mapping of str to float, optional
        Values of items on the scale. With several, the mean of their differences is zero.

    Returns
    -------
    Scale

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Comparisons
    >>> votes = Comparisons.of(["a", "b", "a"] * 9, ["b", "c", "c"] * 9, ["a", "b", "a"] * 6 + ["b", "c", "a"] * 3)
    >>> ranking = BradleyTerry().fit(votes)
    >>> ranking.on_scale(make_scale(ranking, "elo", {"b": 1200})).table()["score"].round().to_list()[1]
    1200.0
    """
    if name not in SCALES:
        raise UnknownNameError("scale", name, SCALES)
    unit = three_to_one(ranking, "show this scale")
    if name == "probability":
        if anchors:
            raise SettingError("score_scale='probability' has no anchors: use elo or jod.")
        return Scale(name=name, link="probit" if is_probit(ranking, "show this scale") else "logistic")
    scale = Scale(name=name, factor=(_ELO_UNIT if name == "elo" else 1.0) / unit)
    if not anchors:
        return replace(scale, shift=ELO_MEAN if name == "elo" else 0.0)
    return anchored(ranking, scale, anchors)


def anchored(ranking: Ranking, scale: Scale, anchors: Mapping[str, float]) -> Scale:
    """Return the scale moved so that the anchors have the given values, in the mean over anchors."""
    if len(ranking.items.queries) > 1:
        raise DataError("Anchors need one ranking, but these judgments have several queries.")
    for name in anchors:
        ranking.items.index(name)  # raises for an unknown item
    at = np.array([ranking.items.index(name) for name in anchors])
    values = np.array([float(value) for value in anchors.values()])
    return replace(scale, shift=float(np.mean(values - scale.factor * ranking.scores[at])))


def scale_from(content: Mapping[str, Any] | None) -> Scale | None:
    """Return a scale from a saved mapping of its fields."""
    return None if content is None else Scale(**content)
