"""Links from a difference of scores to the probability of a win."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.errors import SettingError

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
