"""Self-check: simulate answers on the design of given comparisons, refit, and count what holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import LEFT, RIGHT, TIE, Comparisons
from crowdrank.errors import CrowdrankError, DataError, SettingError
from crowdrank.evaluation.cross_validation import fit_quietly
from crowdrank.evaluation.interval_coverage import Counts, Coverage, Share, count_held, finite
from crowdrank.evaluation.verdicts import Verdicts, verdicts
from crowdrank.models import BradleyTerry, name_of
from crowdrank.models.base import Model
from crowdrank.results import Annotators, Ranking

Progress = Callable[[int, int], None]
"""Called after each simulation with the number done and their total."""

MAX_SIMULATIONS, MIN_SIMULATIONS, ANSWER_BUDGET = 100, 20, 200_000
"""Default number of simulations: as many as simulate this number of answers, within these bounds."""
MAX_VERDICT_ANSWERS = 5_000
"""Verdicts are not simulated for more answers than this."""
_SIMULATIONS_PER_VERDICTS = 10
"""Verdicts need several refits each, so they are computed in one of this number of simulations."""
_INNOCENT = ("reliable", "too few to say")
_NORMAL_95 = 1.96
# A share this far below its level, beyond simulation error, is called too low.
_TOLERANCE = 0.03


@dataclass(frozen=True)
class Accusations:
    """Verdicts on simulated annotators.

    Parameters
    ----------
    simulations : int
        Number of simulations with verdicts.
    annotators : int
        Number of annotators in all of them.
    wrong : int
        Number of those who were accused of what they did not do.
    """

    simulations: int
    annotators: int
    wrong: int


@dataclass(frozen=True, kw_only=True)
class Check:
    """How often intervals, claims, groups and verdicts hold on simulated answers to the same questions.

    Parameters
    ----------
    model : str
        Name of the model that was checked.
    generator : str
        Name of the model that the answers were simulated from: the same one, unless it has no probabilities.
    answers, items, annotators : int
        Size of the design.
    level : float
        Level of the intervals and claims.
    fitted : Coverage
        Simulations from the fitted model, each with one posterior draw of the scores as truth.
    coin_tosses : Coverage
        Simulations in which every answer was random: all items are equal.
    fitted_accusations, coin_accusations : Accusations or None
        Verdicts in these simulations; None if they were skipped or the model does not estimate annotators.
    skipped : str
        Why verdicts were skipped; empty if they were not, or do not apply.
    failed : int
        Number of simulations that the model could not be fitted to.
    """

    model: str
    generator: str
    answers: int
    items: int
    annotators: int
    level: float
    fitted: Coverage
    coin_tosses: Coverage
    fitted_accusations: Accusations | None
    coin_accusations: Accusations | None
    skipped: str
    failed: int

    def __repr__(self) -> str:
        return f"<Check of {self.model} on {self.answers:,} answers: {len(self.fitted)} simulations of each kind>"

    @property
    def has_scores(self) -> bool:
        """Whether the scores have the unit of the simulated truth, so that their intervals can be checked."""
        return self.generator == self.model

    @property
    def overconfident(self) -> list[str]:
        """What holds less often than it says, beyond simulation error: "score intervals", "rank intervals" …"""
        shares = {"rank intervals": self.fitted.ranks, "claimed orders": self.fitted.claims_right}
        if self.has_scores:
            shares = {"score intervals": self.fitted.scores, **shares}
        found = [name for name, share in shares.items() if _clearly_below(share, self.level - _TOLERANCE)]
        # By definition at most 1 − level of tables may show an order where there is none.
        if _clearly_below(_complement(self.coin_tosses.split), self.level - _TOLERANCE):
            found.append("tie groups")
        return found

    def lines(self) -> list[str]:
        """Describe the result in sentences."""
        level, fitted = f"{self.level:.0%}".replace("%", " %"), self.fitted
        held = [f"the {level} intervals of scores held {_percent(fitted.scores)} of the time"] * self.has_scores
        held.append(f"{'those' if held else f'the {level} intervals'} of ranks {_percent(fitted.ranks)}")
        found = [f"For data like yours, {' and '.join(held)}{'' if self.has_scores else ' of the time'}."]
        found.append(self._claims_line(level))
        coin = self.coin_tosses
        found.append(
            f"Coin tosses on this design {_times_split(coin)}, with {_per_table(coin):.1f} claimed orders per table."
        )
        found += self._accusation_lines()
        if self.failed:
            found.append(f"{self.model} could not be fitted to {self.failed} simulations, which do not count.")
        if self.overconfident:
            found.append(f"Overconfident for data like yours: {', '.join(self.overconfident)}. Read them with caution.")
        return found

    def _claims_line(self, level: str) -> str:
        fitted = self.fitted
        if not fitted.claims:
            return f"No order of two items was claimed at {level}: there are too few answers to tell items apart."
        return (
            f"Of the orders of two items claimed at {level}, {_percent(fitted.claims_right)} were right "
            f"({_per_table(fitted):.1f} claims per table)."
        )

    def _accusation_lines(self) -> list[str]:
        if self.fitted_accusations is None or self.coin_accusations is None:
            return [self.skipped] if self.skipped else []
        fitted, coin = self.fitted_accusations, self.coin_accusations
        return [
            f"Verdicts accused {fitted.wrong:,} of {fitted.annotators:,} simulated annotators wrongly, and "
            f"{coin.wrong:,} of {coin.annotators:,} among coin tosses."
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""

        def accusations(found: Accusations | None) -> dict[str, int] | None:
            return None if found is None else dict(vars(found))

        fitted = self.fitted.as_dict()
        if not self.has_scores:
            fitted |= {"scores": None, "scores_std_error": None}
        return {
            "model": self.model,
            "generator": self.generator,
            "answers": self.answers,
            "items": self.items,
            "annotators": self.annotators,
            "level": self.level,
            "fitted": fitted | {"accusations": accusations(self.fitted_accusations)},
            "coin_tosses": {
                "simulations": len(self.coin_tosses),
                "claims": self.coin_tosses.claims,
                "claimed": finite(self.coin_tosses.claimed.value),
                "split": finite(self.coin_tosses.split.value),
                "split_std_error": finite(self.coin_tosses.split.std_error),
                "accusations": accusations(self.coin_accusations),
            },
            "failed": self.failed,
            "overconfident": self.overconfident,
            "conclusions": self.lines(),
        }


def default_simulations(answers: int) -> int:
    """Return the number of simulations for a design of this size: 100, and fewer above 2,000 answers."""
    return int(np.clip(ANSWER_BUDGET // max(answers, 1), MIN_SIMULATIONS, MAX_SIMULATIONS))


def check_design(
    model: Model,
    comparisons: Comparisons,
    ranking: Ranking,
    *,
    simulations: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> Check:
    """Simulate answers to the same questions by the same annotators, refit, and count what holds.

    Parameters
    ----------
    model : Model
        The model to check.
    comparisons : Comparisons
        The judgments: items, pairs and annotators of the simulations.
    ranking : Ranking
        The fit of the model to them, with uncertainty.
    simulations : int, optional
        Number of simulations of each kind; by default 100, fewer above 2,000 answers.
    level : float, default 0.95
        Level of the intervals and claims.
    seed : int, default 0
        Seed of the simulations.
    on_progress : callable, optional
        Called after each simulation with the number done and their total.

    Notes
    -----
    Each simulation of the first kind takes one posterior draw of the scores as truth, draws the quality of each
    annotator from its estimate, and draws answers with the probabilities of the model. In those of the second kind,
    every decided answer is a coin toss. The share of ties is kept. A model without probabilities is checked on answers
    from bradley-terry. The check takes the model as true: it shows whether its uncertainty can be trusted with this
    number of answers, not whether the model fits.
    """
    count = default_simulations(len(comparisons)) if simulations is None else simulations
    if count < 1:
        raise SettingError(f"simulations must be at least 1, got {count}.")
    if not 0.5 < level < 1:
        raise SettingError(f"level must be between 0.5 and 1, got {level}.")
    design = replace(comparisons, duration=None, storage=None)
    generator = Generator.of(model, design, ranking)
    judged = _can_judge(model, design)
    skipped = _why_no_verdicts(design, count) if judged else ""
    run = _Run(model, level, count // _SIMULATIONS_PER_VERDICTS if judged and not skipped else 0)
    fitted, coin = run.check_all(generator, count, seed, on_progress)
    if not fitted or not coin:
        raise DataError(f"{name_of(model)} could not be fitted to any simulation on this design.")
    return Check(
        model=name_of(model),
        generator=name_of(generator.model),
        answers=len(design),
        items=len(design.items),
        annotators=len(design.annotators),
        level=level,
        fitted=Coverage(tuple(checked.counts for checked in fitted)),
        coin_tosses=Coverage(tuple(checked.counts for checked in coin)),
        fitted_accusations=_sum_accusations(fitted),
        coin_accusations=_sum_accusations(coin),
        skipped=skipped,
        failed=2 * count - len(fitted) - len(coin),
    )


@dataclass(frozen=True)
class Simulated:
    """Simulated answers with their truth; `quality` is None where the model has none."""

    comparisons: Comparisons
    truth: FloatArray
    quality: FloatArray | None


@dataclass(frozen=True)
class Generator:
    """A fitted model that answers the questions of a design anew.

    Parameters
    ----------
    model : Model
        A model with `predict`.
    ranking : Ranking
        Its fit.
    design : Comparisons
        The questions, and who answered them.
    """

    model: Any
    ranking: Ranking
    design: Comparisons

    @classmethod
    def of(cls, model: Model, design: Comparisons, ranking: Ranking) -> Generator:
        """The model itself, or bradley-terry for a model without probabilities."""
        if hasattr(model, "predict"):
            return cls(model, ranking, design)
        plain = BradleyTerry()
        return cls(plain, fit_quietly(plain, design)[0], design)

    def simulate(self, rng: np.random.Generator) -> Simulated:
        """Draw true scores and qualities from their posterior, and answers by the model."""
        draws = self.ranking.uncertainty.draws
        truth = np.array(draws[rng.integers(len(draws))])
        world, quality = replace(self.ranking, scores=truth), None
        if self.ranking.has_annotators and "quality" in self.ranking.annotators.estimates:
            quality = draw_quality(self.ranking.annotators, rng)
            people = _with_quality(self.ranking.annotators, quality)
            world = world.with_parts(annotators=lambda: people)
        left, tie, right = np.asarray(self.model.predict(world, self.design), dtype=np.float64).T
        # Models without ties answer the questions that were decided; the ties stay where they are.
        tied = rng.random(len(left)) < tie if tie.any() else self.design.outcome == TIE
        return Simulated(self._answered(rng.random(len(left)) < left / (left + right), tied), truth, quality)

    def toss(self, rng: np.random.Generator) -> Simulated:
        """Answer at random, with as many ties as there were, on random questions."""
        tied = rng.permutation(self.design.outcome == TIE)
        answered = self._answered(rng.random(len(tied)) < 0.5, tied)
        return Simulated(answered, np.zeros(len(self.design.items)), np.full(len(self.design.annotators), 0.5))

    def _answered(self, left_won: BoolArray, tied: BoolArray) -> Comparisons:
        outcome = np.where(tied, TIE, np.where(left_won, LEFT, RIGHT)).astype(np.int8)
        return replace(self.design, outcome=outcome)


def draw_quality(annotators: Annotators, rng: np.random.Generator) -> FloatArray:
    """Draw the quality of each annotator from a Beta distribution with the mean and spread of its estimate."""
    mean, low, high = annotators.estimates["quality"]
    mean = np.clip(mean, 1e-4, 1 - 1e-4)
    largest = mean * (1 - mean)
    variance = np.clip(((high - low) / (2 * _NORMAL_95)) ** 2, 1e-6 * largest, 0.95 * largest)
    count = largest / variance - 1
    return np.asarray(rng.beta(mean * count, (1 - mean) * count))


def _with_quality(annotators: Annotators, quality: FloatArray) -> Annotators:
    return replace(annotators, estimates={**annotators.estimates, "quality": (quality, quality, quality)})


@dataclass(frozen=True)
class _Checked:
    counts: Counts
    accused: tuple[int, int] | None
    """Annotators, and those accused wrongly."""


@dataclass(frozen=True)
class _Run:
    model: Model
    level: float
    verdict_simulations: int

    def check_all(
        self, generator: Generator, count: int, seed: int, on_progress: Progress | None
    ) -> tuple[list[_Checked], list[_Checked]]:
        """Simulate and check `count` times: from the fitted model, and coin tosses."""
        found: tuple[list[_Checked], list[_Checked]] = ([], [])
        for n in range(count):
            rng = np.random.default_rng([seed, n])
            for kind, simulated in enumerate((generator.simulate(rng), generator.toss(rng))):
                checked = self.check(simulated, with_verdicts=n < self.verdict_simulations)
                found[kind].extend([] if checked is None else [checked])
                if on_progress is not None:
                    on_progress(2 * n + kind + 1, 2 * count)
        return found

    def check(self, simulated: Simulated, with_verdicts: bool) -> _Checked | None:
        """Refit and count; None if the model cannot be fitted to these answers."""
        try:
            ranking, _ = fit_quietly(self.model, simulated.comparisons)
            counts = count_held(ranking, simulated.truth, self.level)
            if not with_verdicts or simulated.quality is None:
                return _Checked(counts, None)
            found = verdicts(simulated.comparisons, model=self.model)
        except CrowdrankError:
            return None
        wrong = wrongly_accused(found, simulated.quality)
        return _Checked(counts, (len(wrong), int(wrong.sum())))


def wrongly_accused(found: Verdicts, quality: FloatArray) -> BoolArray:
    """Return who is accused of what they did not do.

    Simulated annotators have no preference for a side and no taste of their own. "Reversed" is right below a quality of
    one half. "Random" and "noisy" are right for the worse half of the annotators, and for those near one half.
    """
    verdict = found.verdict
    accused = ~np.isin(verdict, _INNOCENT)
    weak = (quality < np.median(quality)) | (np.abs(quality - 0.5) < 0.1)
    right = ((verdict == "reversed") & (quality < 0.5)) | (np.isin(verdict, ("random", "noisy")) & weak)
    return np.asarray(accused & ~right)


def _can_judge(model: Model, design: Comparisons) -> bool:
    """Whether verdicts apply: the model estimates annotators, and there are others to compare each with."""
    return model.models_annotators and design.annotator is not None and len(design.annotators) >= 3


def _why_no_verdicts(design: Comparisons, count: int) -> str:
    """Why verdicts are not simulated although they apply; empty if they are."""
    if len(design) > MAX_VERDICT_ANSWERS:
        return f"Verdicts on annotators were not simulated: there are more than {MAX_VERDICT_ANSWERS:,} answers."
    if count < _SIMULATIONS_PER_VERDICTS:
        return f"Verdicts on annotators were not simulated: that needs {_SIMULATIONS_PER_VERDICTS} simulations."
    return ""


def _sum_accusations(found: list[_Checked]) -> Accusations | None:
    counted = [checked.accused for checked in found if checked.accused is not None]
    if not counted:
        return None
    return Accusations(len(counted), *(sum(column) for column in zip(*counted, strict=True)))


def _clearly_below(share: Share, level: float) -> bool:
    return bool(share.value + 2 * np.nan_to_num(share.std_error) < level)


def _complement(share: Share) -> Share:
    return Share(1 - share.value, share.std_error)


def _percent(share: Share) -> str:
    error = share.std_error
    return f"{100 * share.value:.0f} %" + (f" (±{_NORMAL_95 * 100 * error:.0f})" if error == error else "")


def _per_table(coverage: Coverage) -> float:
    tables = sum(counts.tables for counts in coverage.simulations)
    return coverage.claims / tables


def _times_split(coverage: Coverage) -> str:
    tables = sum(counts.tables for counts in coverage.simulations)
    split = sum(counts.split for counts in coverage.simulations)
    what = "tables" if tables > len(coverage) else "simulations"
    if not split:
        return f"never split the table into groups in {tables:,} {what}"
    return f"split the table into groups in {split:,} of {tables:,} {what}"
