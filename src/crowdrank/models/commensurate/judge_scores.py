"""Who is human and who is a judge, and the scores that each judge's votes give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import AnnotatorDetails, Comparisons, Items
from crowdrank.data.side_information import model_family
from crowdrank.models.commensurate.posterior import Prediction, ScaleFit, ScalePosterior, Solver, Votes
from crowdrank.results import Interval

MOST_JUDGES = 10
"""With more judges than this, those of one family are pooled, and then those with the fewest votes."""
UNKNOWN, OTHERS = "annotators of unknown kind", "other judges"
# Prior on the spread of a judge's scores. It leans to small values: one who tosses coins has no scores at all.
_SPREAD_SCALE, _SPREAD_POWER, _LOWEST_SPREAD = 3.0, 0.2, -13
_LEAST_KNOWN = 0.25
# Largest variance of an item's score, in units of the median, that counts for the discrepancy.
_LARGEST_RATIO = 4.0
# Prior on log τ, normal on each side of the mode: the mode of τ for a judge whose scores have a standard deviation of 1
# or more, the largest mode, and the standard deviations below and above, where some judges are far from the humans.
# The less a judge tells items apart, the larger a share of what it sees is bias.
_TYPICAL_DISCREPANCY, _LARGEST_DISCREPANCY, _LOG_DISCREPANCY_SPREADS = 0.22, 0.6, (0.5, 0.7)


@dataclass(frozen=True, eq=False)
class Sources:
    """The rows of the humans, and those of each judge.

    Parameters
    ----------
    human : array of bool
        Rows of the humans.
    judges : mapping of str to array of bool
        Rows of each judge, by name.
    details : mapping of str to AnnotatorDetails
        What is known about the judges.
    """

    human: BoolArray
    judges: Mapping[str, BoolArray]
    details: Mapping[str, AnnotatorDetails] = field(default_factory=dict)


def count_kinds(people: Mapping[int, AnnotatorDetails], annotators: int) -> tuple[int, int]:
    """How many annotators are human, and how many are language models.

    If only language models are named, all others are human.
    """
    kinds = [details.kind for details in people.values()]
    models = kinds.count("llm")
    humans = kinds.count("human") or (annotators - models if models else 0)
    return humans, models


def find_sources(comparisons: Comparisons, people: Mapping[int, AnnotatorDetails]) -> Sources:
    """Split the rows by kind of annotator. Annotators of unknown kind are one more judge, which is the safe side."""
    who = comparisons.annotator
    if who is None or not any(details.kind == "llm" for details in people.values()):
        return Sources(np.ones(len(comparisons), bool), {})
    names_humans = any(details.kind == "human" for details in people.values())
    source = np.full(len(comparisons.annotators), UNKNOWN if names_humans else "", object)
    families = {}
    for code, details in people.items():
        if details.kind == "human":
            source[code] = ""
        elif details.kind == "llm":
            source[code] = str(comparisons.annotators[code])
            families[source[code]] = details.family or source[code]
    judges = {str(name): (source == name)[who] for name in dict.fromkeys(source) if name}
    judges = {name: rows for name, rows in judges.items() if rows.any()}
    if len(judges) > MOST_JUDGES:
        judges = _pool(judges, {name: families.get(name, name) for name in judges})
    if len(judges) > MOST_JUDGES:
        largest = sorted(judges, key=lambda name: -int(judges[name].sum()))[: MOST_JUDGES - 1]
        judges = _pool(judges, {name: name if name in largest else OTHERS for name in judges})
    named = {str(comparisons.annotators[code]): details for code, details in people.items()}
    return Sources((source == "")[who], judges, named)


def _pool(judges: Mapping[str, BoolArray], group: Mapping[str, str]) -> dict[str, BoolArray]:
    pooled: dict[str, BoolArray] = {}
    for name, rows in judges.items():
        pooled[group[name]] = pooled[group[name]] | rows if group[name] in pooled else rows
    return pooled


def _log_prior_of_spread(log_scale: float) -> float:
    return _SPREAD_POWER * log_scale - float(np.log1p(np.exp(2 * log_scale) / _SPREAD_SCALE**2))


@dataclass(frozen=True, eq=False)
class Judge:
    """The scores that a judge's votes give, in units of their own spread.

    Parameters
    ----------
    name : str
        Label of the annotator, or of the pooled annotators.
    votes : float
        Number of votes, weighted.
    spread : float
        Standard deviation of the scores, on the scale of log odds.
    scores : array of float
        Posterior mean of the scores, divided by the spread.
    covariance : array of float
        Their posterior covariance, in the same unit. It is the identity for a judge who says nothing.
    effects : mapping of str to (float, float)
        What else favours an item in the judge's eyes, with standard errors: the left side (`position`) and features, as
        log odds per unit.
    """

    name: str
    votes: float
    spread: float
    scores: FloatArray
    covariance: FloatArray
    effects: Mapping[str, tuple[float, float]]

    @property
    def has_scores(self) -> bool:
        """Whether the votes order the items at all, unlike coin tosses: how much of the spread is known."""
        return float(np.mean(self.scores**2)) > _LEAST_KNOWN


def fit_judge(name: str, votes: Votes, items: Items, tolerance: float, max_steps: int) -> Judge:
    """Fit Bradley-Terry with effects of sides and features to the votes of one judge."""
    solver = Solver(tolerance=tolerance, max_steps=max_steps, log_prior=_log_prior_of_spread, lowest=_LOWEST_SPREAD)
    posterior = solver.fit(votes, items, Prediction.none(items))
    mean, covariance = posterior.mixture.mean, posterior.covariance
    spread = float(np.sqrt(np.mean(mean**2 + np.diag(covariance))))
    return Judge(name, votes.total, spread, mean / spread, covariance / spread**2, effects_of(posterior, votes))


def effects_of(posterior: ScalePosterior, votes: Votes) -> dict[str, tuple[float, float]]:
    """The effects of sides and features with their standard errors, per unit."""
    first = votes.size + votes.has_tie
    found = zip(posterior.parameters[first:], posterior.effect_errors[votes.has_tie :], strict=True)
    return {
        name: (float(effect) / unit, float(error) / unit)
        for (name, unit), (effect, error) in zip(votes.effects.items(), found, strict=True)
    }


def predict(judges: Sequence[Judge], regressors: Mapping[str, FloatArray] | None = None) -> Prediction:
    """What the judges say about the humans' scores.

    Judges differ from humans on kinds of questions as well as on items. That evens out over many votes, so half of the
    variance of the discrepancy is taken to shrink with the judges' votes on an item, as the variance of the judges' own
    scores does.
    """
    variances = [np.diag(judge.covariance) / np.median(np.diag(judge.covariance)) for judge in judges]
    shape = np.asarray(0.5 + 0.5 * np.minimum(np.mean(variances, axis=0), _LARGEST_RATIO))
    scores = np.array([judge.scores for judge in judges])
    return Prediction(scores, [judge.covariance for judge in judges], shape, regressors or {})


def log_prior_of_discrepancy(log_scale: float, judges: Sequence[Judge]) -> float:
    """Log prior density of log τ for these judges."""
    largest = max(judge.spread for judge in judges)
    typical = float(np.clip(_TYPICAL_DISCREPANCY * largest ** (-1 / 3), _TYPICAL_DISCREPANCY, _LARGEST_DISCREPANCY))
    above = log_scale - float(np.log(typical))
    return -0.5 * (above / _LOG_DISCREPANCY_SPREADS[above > 0]) ** 2


def own_items(name: str, details: AnnotatorDetails, items: Items) -> tuple[str, FloatArray] | None:
    """The family of a judge, and which items are of it; None if none or all are.

    Items are of a family if their names are those of its models, as gpt-4 is of the family gpt.
    """
    families = {details.family, model_family(name)} - {None}
    of_items = [model_family(str(label)) for label in items.labels]
    own = np.array([family in families for family in of_items], np.float64)
    if not 0 < own.sum() < len(own):
        return None
    return of_items[int(np.argmax(own))] or name, own


# What judges are worth: how many human votes predict human votes as well as the judges' votes do.

_LEVEL = 0.9


@dataclass(frozen=True)
class HumanVoteEquivalent:
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


def describe_equivalents(together: HumanVoteEquivalent, alone: Sequence[HumanVoteEquivalent] = ()) -> list[str]:
    """What judges are worth in sentences, and who answers in reverse.

    Parameters
    ----------
    together : HumanVoteEquivalent
        The worth of all judges.
    alone : sequence of HumanVoteEquivalent
        The worth of each judge, if there are several.

    Examples
    --------
    >>> describe_equivalents(HumanVoteEquivalent(("gpt",), Interval(1913.0, 1220.0, 2570.0), np.ones(1), True))
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
    # weights of several judges together may be negative where each of them agrees with the humans
    one_by_one = [worth for worth in (alone or [together]) if worth.is_shown and len(worth.judges) == 1]
    return found + [
        f"{worth.names} answers against the humans: the order of its scores was reversed."
        for worth in one_by_one
        if worth.weights[0] < 0
    ]


def _join(parts: Sequence[str]) -> str:
    *others, last = parts
    return f"{', '.join(others)} and {last}" if others else last


def human_vote_equivalent(
    posterior: ScalePosterior, said: Prediction, judges: Sequence[Judge], votes: float
) -> HumanVoteEquivalent:
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
    worth = np.array([_equivalent_at(fit, said, votes) for fit in posterior.fits])
    low, median, high = _quantiles(worth, posterior.weights)
    weights, covariance = posterior.weight_moments(said)
    weights, covariance = weights[: len(judges)], covariance[: len(judges), : len(judges)]
    # Wald's statistic; the bound is the 95 % point of χ² within 3 %
    statistic = float(weights @ np.linalg.solve(covariance, weights))
    is_shown = statistic > len(judges) + 2.8 * len(judges) ** 0.5
    spread = np.array([judge.spread for judge in judges])
    names = tuple(judge.name for judge in judges)
    return HumanVoteEquivalent(names, Interval(median, low if is_shown else 0.0, high), weights / spread, is_shown)


def _equivalent_at(fit: ScaleFit, said: Prediction, votes: float) -> float:
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
