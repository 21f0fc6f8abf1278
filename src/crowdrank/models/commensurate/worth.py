"""What judges are worth: how many human votes predict human votes as well as the judges' votes do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.models.commensurate.judges import Judge, discrepancy_shape
from crowdrank.models.commensurate.posterior import ScaleFit, ScalePosterior
from crowdrank.results import Interval

_LEVEL = 0.9


@dataclass(frozen=True)
class Worth:
    """What judges are worth.

    Parameters
    ----------
    judges : tuple of str
        Names of the judges.
    votes : Interval
        Number of human votes: the median, and the 90 % interval.
    weights : array of float
        Factor on each judge's scores that predicts the humans' scores.
    """

    judges: tuple[str, ...]
    votes: Interval
    weights: FloatArray

    def describe(self) -> str:
        """A sentence such as "gpt-4's votes count for about 1,900 human votes here (1,200 to 2,600)."."""
        value, low, high = (f"{_rounded(number):,}" for number in self.votes)
        if len(self.judges) == 1:
            whose = f"{self.judges[0]}'s votes count"
        else:
            whose = f"The votes of {', '.join(self.judges[:-1])} and {self.judges[-1]} together count"
        return f"{whose} for about {value} human votes here ({low} to {high})."


def judges_worth(posterior: ScalePosterior, judges: Sequence[Judge], votes: float) -> Worth:
    """How many human votes the judges' votes count for.

    Parameters
    ----------
    posterior : ScalePosterior
        The fit of the humans' votes.
    judges : sequence of Judge
        The judges behind the kernels of the fit.
    votes : float
        Number of human votes.

    Notes
    -----
    With Λ the information of one human vote, predicting human votes by scores with error covariance V costs ½ tr(ΛV)
    nats per vote. Scores from n human votes cost (items − queries) / 2n. Equating the two gives n, for V of the scores
    that the judges predict and for V of scores about which only their spread is known; the difference is the worth.
    """
    worth = np.array([_worth_at(fit, judges, votes) for fit in posterior.fits])
    low, median, high = _quantiles(worth, posterior.weights)
    names = tuple(judge.name for judge in judges)
    return Worth(names, Interval(median, low, high), _judge_weights(posterior, judges))


def _judge_weights(posterior: ScalePosterior, judges: Sequence[Judge]) -> FloatArray:
    """Posterior mean of the factor on each judge's scores, both in log odds."""
    found = np.zeros(len(judges))
    for weight, fit in zip(posterior.weights, posterior.fits, strict=True):
        shrunk = fit.precision @ fit.scores
        variances = np.exp(fit.log_variances)
        found += weight * np.array(
            [v * float(judge.scores @ shrunk) / judge.spread for v, judge in zip(variances, judges, strict=True)]
        )
    return found


def _worth_at(fit: ScaleFit, judges: Sequence[Judge], votes: float) -> float:
    per_vote = fit.information / votes
    degrees = len(fit.items) - len(fit.items.queries)
    unexplained = np.exp(2 * fit.log_scale) * float(np.diag(per_vote) @ discrepancy_shape(judges))
    explained = 0.0
    for log_variance, judge in zip(fit.log_variances, judges, strict=True):
        unexplained += np.exp(log_variance) * float(np.sum(per_vote * judge.covariance))
        explained += np.exp(log_variance) * float(judge.scores @ per_vote @ judge.scores)
    return degrees / unexplained - degrees / (unexplained + explained)


def _quantiles(values: FloatArray, weights: FloatArray) -> list[float]:
    """Lower end of the 90 % interval, median and upper end, interpolated between the few values."""
    order = np.argsort(values)
    middle = np.cumsum(weights[order]) - 0.5 * weights[order]
    return [float(q) for q in np.interp([(1 - _LEVEL) / 2, 0.5, (1 + _LEVEL) / 2], middle, values[order])]


def _rounded(number: float) -> int:
    """Two significant digits."""
    if number < 10:
        return round(number)
    digits = int(np.floor(np.log10(number))) - 1
    return int(round(number / 10**digits) * 10**digits)
