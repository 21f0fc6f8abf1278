"""What judges are worth: how many human votes predict human votes as well as the judges' votes do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.models.commensurate.judge_scores import Judge
from crowdrank.models.commensurate.posterior import Prediction, ScaleFit, ScalePosterior
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
        Number of human votes: the median, and the 90 % interval, which begins at 0 unless `is_shown`.
    weights : array of float
        Factor on each judge's scores that predicts the humans' scores.
    is_shown : bool
        Whether the humans' votes show that some weight is not 0.
    """

    judges: tuple[str, ...]
    votes: Interval
    weights: FloatArray
    is_shown: bool

    @property
    def names(self) -> str:
        """The judges in words."""
        return _join(self.judges)

    def number(self, of_what: str = "") -> str:
        """The number of votes in words, such as "about 1,900 (1,200 to 2,600)"."""
        value, low, high = (f"{_rounded(number):,}" for number in self.votes)
        return f"about {value}{of_what} ({low} to {high})"


def describe_worths(together: Worth, alone: Sequence[Worth] = ()) -> list[str]:
    """What judges are worth in sentences, and who answers in reverse.

    Parameters
    ----------
    together : Worth
        The worth of all judges.
    alone : sequence of Worth
        The worth of each judge, if there are several.

    Examples
    --------
    >>> describe_worths(Worth(("gpt",), Interval(1913.0, 1220.0, 2570.0), np.ones(1), True))
    ["gpt's votes count for about 1,900 human votes here (1,200 to 2,600)."]
    """
    several = len(together.judges) > 1
    if not together.is_shown:
        verb = "judge" if several else "judges"
        first = (
            f"The humans' votes do not show that {together.names} {verb} as they do, so the prior has little weight."
        )
        return [first]
    number = together.number(" human votes here")
    shown = [worth for worth in alone if worth.is_shown]
    best = max(shown, key=lambda worth: worth.votes.value, default=together)
    if not several:
        found = [f"{together.names}'s votes count for {number}."]
    elif best.votes.value > together.votes.value:
        found = [
            f"The votes of {together.names} together count for no more human votes here than {best.names}'s alone: "
            f"{best.number()}."
        ]
        shown.remove(best)
    else:
        found = [f"The votes of {together.names} together count for {number}."]
    if shown:
        verbs = ["would count for", *["for"] * (len(shown) - 1)]
        counts = [f"{worth.names}'s {verb} {worth.number()}" for worth, verb in zip(shown, verbs, strict=True)]
        found.append(f"Alone, {_join(counts)}.")
    found += [
        f"The humans' votes do not show that {worth.names} alone judges as they do."
        for worth in alone
        if not worth.is_shown
    ]
    one_by_one = [worth for worth in (alone or [together]) if worth.is_shown]
    return found + [
        f"{worth.names} answers against the humans: the order of its scores was reversed."
        for worth in one_by_one
        if worth.weights[0] < 0
    ]


def _join(parts: Sequence[str]) -> str:
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def judges_worth(posterior: ScalePosterior, said: Prediction, judges: Sequence[Judge], votes: float) -> Worth:
    """How many human votes the judges' votes count for.

    Parameters
    ----------
    posterior : ScalePosterior
        The fit of the humans' votes.
    said : Prediction
        What the judges say.
    judges : sequence of Judge
        The judges.
    votes : float
        Number of human votes.

    Notes
    -----
    With Λ the information of one human vote, predicting human votes by scores with error covariance V costs ½ tr(ΛV)
    nats per vote. Scores from n human votes cost (items − queries) / 2n. Equating the two gives n, for V of the scores
    that the judges predict and for V of scores about which only their spread is known; the difference is the worth.
    """
    worth = np.array([_worth_at(fit, said, votes) for fit in posterior.fits])
    low, median, high = _quantiles(worth, posterior.weights)
    weights, covariance = posterior.weight_moments(said)
    weights, covariance = weights[: len(judges)], covariance[: len(judges), : len(judges)]
    # Wald's statistic; the bound is the 95 % point of χ² within 3 %
    statistic = float(weights @ np.linalg.solve(covariance, weights))
    is_shown = statistic > len(judges) + 2.8 * len(judges) ** 0.5
    spread = np.array([judge.spread for judge in judges])
    names = tuple(judge.name for judge in judges)
    return Worth(names, Interval(median, low if is_shown else 0.0, high), weights / spread, is_shown)


def _worth_at(fit: ScaleFit, said: Prediction, votes: float) -> float:
    per_vote = fit.information / votes
    degrees = len(fit.items) - len(fit.items.queries)
    predicted = fit.weights @ said.rows
    unexplained = float(np.sum(per_vote * said.error(fit.log_scale, fit.weights)))
    explained = float(predicted @ per_vote @ predicted)
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
