"""commensurate-bt: the humans' scores, with the votes of language models as a prior whose weight is learnt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import AnnotatorDetails, Comparisons, Judgments
from crowdrank.data.features import POSITION, feature_columns, typical_size
from crowdrank.engines.local import limit_blas_threads
from crowdrank.errors import ConvergenceWarning, DataError, SettingError, muted_warnings
from crowdrank.models.base import (
    FitOptions,
    IterativeModel,
    build_ranking,
    check_connected,
    diagnose,
    model_settings,
    require_kind,
)
from crowdrank.models.commensurate.judge_scores import (
    HumanVoteEquivalent,
    Judge,
    Sources,
    describe_equivalents,
    find_sources,
    fit_judge,
    human_vote_equivalent,
    log_prior_of_discrepancy,
    own_items,
    predict,
)
from crowdrank.models.commensurate.posterior import Prediction, ScalePosterior, Solver, Votes, item_means
from crowdrank.models.pairwise.bradley_terry import BradleyTerry
from crowdrank.models.pairwise.likelihood import DAVIDSON, LOGISTIC, outcome_probabilities
from crowdrank.models.pairwise.paired import check_ties
from crowdrank.results import Convergence, Ranking, Uncertainty

MAX_ITEMS = 1_000
"""The covariance of all scores is held as a matrix, so there cannot be more items than this."""
# Up to this many items, the worth of each judge alone is computed too.
_MAX_ITEMS_ALONE = 200
_DRAWS = 1000
SELF_PREFERENCE, FEATURE_OF_ITEMS = "self_preference", "feature"


@dataclass(frozen=True, kw_only=True)
class CommensurateBT(IterativeModel):
    """Ranking by humans, with the votes of language models as a prior whose weight is learnt from the humans' votes.

    Parameters
    ----------
    discrepancy : float or "auto", default "auto"
        Standard deviation τ of the humans' scores around what the judges predict. "auto" learns it.
    ties : {"davidson", "half", "drop"}, default "davidson"
        Model ties with a parameter of their own (Davidson 1970), for the humans and for each judge, count half a win
        for each side, or drop them.
    side_effects : bool, default True
        Whether to estimate each judge's preference for the left side, and remove it from the judge's scores.
    self_preference : bool, default True
        Whether to estimate by how much judges overrate the items of their own family, by the names of items such as
        gpt-4, and remove it.
    features : tuple of str, default ()
        Features of comparisons, such as length, that may bias the judges. Their effect is removed from the judges'
        scores, and put back as far as the humans' votes show it.
    tolerance : float, default 1e-4
        Newton's method stops when the distance to the optimum is at most this many standard errors.
    max_steps : int, default 100
        Maximum number of Newton steps.
    seed : int, default 0
        Seed of the draws behind rank intervals.

    Notes
    -----
    The humans' scores are s = Σₖ aₖ sₖ + δ with δᵢ ~ N(0, τ²dᵢ), where dᵢ is 1 for an item that the judges judged as
    often as most, and larger for one they judged seldom. The scores sₖ of judge k have the posterior that the judge's
    own votes give, so a judge with few votes is an uncertain one. The weights aₖ have normal priors, wide for the sum
    and narrower for what sets one judge apart. They are learnt from the humans' votes, and so is τ, which is
    integrated out. A judge who tosses coins gets no weight, and one who answers in reverse a negative one.
    Biases are further terms of the sum: an indicator of the items of a judge's own family, and the mean of each
    feature by item. Humans count alike, as in bradley-terry. `SideInformation.people` says who is what; annotators of
    unknown kind count as one more judge, and without any judge the model is bradley-terry.

    References
    ----------
    Hobbs et al. 2011; Ibrahim & Chen 2000.

    Examples
    --------
    >>> from crowdrank import AnnotatorDetails, SideInformation
    >>> people = {"ann": AnnotatorDetails(kind="human"), "gpt": AnnotatorDetails(kind="llm")}
    >>> votes = Comparisons.of(
    ...     ["a", "a", "b"] * 8, ["b", "c", "c"] * 8, ["a", "a", "b"] * 8, annotator=["ann"] * 6 + ["gpt"] * 18
    ... )
    >>> list(CommensurateBT().fit(votes, side_information=SideInformation(people=people)))
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Comparisons
    shares_scores: ClassVar[bool] = True
    accepts_people: ClassVar[bool] = True

    discrepancy: float | Literal["auto"] = "auto"
    ties: Literal["davidson", "half", "drop"] = "davidson"
    side_effects: bool = True
    self_preference: bool = True
    features: tuple[str, ...] = ()
    max_steps: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_ties(self.ties, ("davidson", "half", "drop"))
        if self.discrepancy != "auto" and (isinstance(self.discrepancy, str) or not 0 < self.discrepancy < np.inf):
            raise SettingError(f'discrepancy must be positive or "auto", got {self.discrepancy!r}.')

    def with_estimated_settings(self, ranking: Ranking) -> CommensurateBT:
        return replace(self, discrepancy=ranking.parameters.get("discrepancy", self.discrepancy))

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Probabilities that a human answers left, tie and right for each comparison, as columns."""
        margin = ranking.scores[comparisons.left] - ranking.scores[comparisons.right]
        tie = ranking.parameters.get("tie")
        return outcome_probabilities(margin, 0.0 if tie is None else tie, LOGISTIC if tie is None else DAVIDSON)

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        sources = find_sources(comparisons, options.side_information.people)
        if not sources.judges:
            return self._fit_humans(comparisons)
        if not sources.human.any():
            raise DataError(
                "Only language models judged, and the ranking of commensurate-bt is that of humans.",
                remedy="Name the annotators of kind human, or rank the judges' votes with crowd-bt.",
            )
        if len(comparisons.items) > MAX_ITEMS:
            raise DataError(
                f"commensurate-bt ranks at most {MAX_ITEMS:,} items, got {len(comparisons.items):,}. "
                "Use bradley-terry on the humans' votes."
            )
        check_connected(diagnose(comparisons), has_prior=True)
        with limit_blas_threads(len(comparisons.items)):
            return self._fit_with_judges(comparisons, sources)

    def _fit_humans(self, comparisons: Comparisons, notes: Sequence[str] = ()) -> Ranking:
        humans = BradleyTerry(ties=self.ties, tolerance=self.tolerance, max_steps=self.max_steps, seed=self.seed)
        with muted_warnings(ConvergenceWarning):  # it would name bradley-terry
            fitted = humans.fit(comparisons)
        fitted.convergence.warn("commensurate-bt")
        fitted = replace(fitted, model="commensurate-bt", settings=model_settings(self))
        return _with_notes(fitted, notes) if notes else fitted

    def _fit_with_judges(self, comparisons: Comparisons, sources: Sources) -> Ranking:
        items = comparisons.items
        humans = Votes.of(comparisons, sources.human, self.ties, side=False)
        if not humans.total:
            raise DataError('Every vote of a human is a tie: with ties="drop" nothing is left.')
        judges = self._fit_judges(comparisons, sources)
        opening = _opening_notes(humans, judges, sources)
        if not judges:
            return self._fit_humans(comparisons.take(sources.human), opening)

        def fit(among: Sequence[Judge]) -> tuple[ScalePosterior, Prediction, HumanVoteEquivalent]:
            said = predict(among, self._regressors(comparisons, among, sources))
            solver = Solver(
                tolerance=self.tolerance,
                max_steps=self.max_steps,
                log_prior=partial(log_prior_of_discrepancy, judges=among),
                scale=None if self.discrepancy == "auto" else self.discrepancy,
            )
            posterior = solver.fit(humans, items, said)
            return posterior, said, human_vote_equivalent(posterior, said, among, humans.total)

        posterior, said, together = fit(judges)
        alone = len(judges) > 1 and len(items) <= _MAX_ITEMS_ALONE
        worths = [together, *(fit([judge])[-1] for judge in judges if alone)]
        biases = _bias_parameters(posterior, said)
        return self._ranking(comparisons, humans, posterior, judges, worths, biases, opening)

    def _fit_judges(self, comparisons: Comparisons, sources: Sources) -> list[Judge]:
        """The judges whose votes order the items."""
        found = []
        for name, rows in sources.judges.items():
            votes = Votes.of(comparisons, rows, self.ties, self.side_effects, self.features)
            if votes.total:
                found.append(fit_judge(name, votes, comparisons.items, self.tolerance, self.max_steps))
        return [judge for judge in found if judge.has_scores]

    def _regressors(self, comparisons: Comparisons, judges: Sequence[Judge], sources: Sources) -> dict[str, FloatArray]:
        """What biases the judges: the items of their own family, and the mean of each feature by item."""
        items, found = comparisons.items, {}
        if self.self_preference:
            for judge in judges:
                own = own_items(judge.name, sources.details.get(judge.name, AnnotatorDetails()), items)
                if own is not None:
                    found[f"{SELF_PREFERENCE}[{own[0]}]"] = items.centre(own[1])
        left, right = comparisons.left.astype(np.int64), comparisons.right.astype(np.int64)
        for name, column in feature_columns(comparisons, self.features).items():
            values = items.centre(item_means(left, right, column, len(items)))
            if (size := float(np.std(values))) > 1e-6 * typical_size(column, comparisons.weights):
                found[f"{FEATURE_OF_ITEMS}[{name}]"] = values / size
        return found

    def _ranking(
        self,
        comparisons: Comparisons,
        humans: Votes,
        posterior: ScalePosterior,
        judges: Sequence[Judge],
        worths: Sequence[HumanVoteEquivalent],
        biases: Mapping[str, float],
        opening: Sequence[str],
    ) -> Ranking:
        x, mixture, slowest = posterior.parameters, posterior.mixture, posterior.slowest
        parameters = {"tie": humans.tie(x)} if humans.has_tie else {}
        parameters |= {"discrepancy": posterior.scale, "human_votes": humans.total}
        for worth in worths:
            name = worth.judges[0] if len(worth.judges) == 1 else "judges"
            ends = zip(("worth", "worth_low", "worth_high"), worth.votes, strict=True)
            parameters |= {f"{key}[{name}]": value for key, value in ends}
        for judge, weight in zip(judges, worths[0].weights, strict=True):
            parameters |= {f"weight[{judge.name}]": float(weight), **_effect_parameters(judge)}
        parameters |= biases

        def measure() -> Uncertainty:
            method = "Laplace approximation, averaged over the discrepancy"
            return Uncertainty(mixture.draw(_DRAWS, self.seed), mixture.std_error, method, sampled=True)

        ranking = build_ranking(
            self,
            comparisons,
            mixture.mean,
            parameters=parameters,
            log_likelihood=humans.log_likelihood(x),
            convergence=Convergence(slowest.converged, slowest.steps, slowest.distance),
            measure=measure,
        )
        return _with_notes(ranking, [*opening, *describe_equivalents(worths[0], worths[1:])])


def _effect_parameters(judge: Judge) -> dict[str, float]:
    """A judge's preference for the left side and for features, with standard errors."""
    found = {f"side[{judge.name}]": 0.0}
    for name, (effect, error) in judge.effects.items():
        key, of_what = ("side", judge.name) if name == POSITION else ("bias", f"{judge.name}, {name}")
        found |= {f"{key}[{of_what}]": effect, f"{key}_error[{of_what}]": error}
    return found


def _bias_parameters(posterior: ScalePosterior, said: Prediction) -> dict[str, float]:
    """By how much the judges' prediction overrates the items of a family; what the humans see in features."""
    means, covariance = posterior.weight_moments(said)
    found: dict[str, float] = {}
    for n, name in enumerate(said.regressors, start=len(said.scores)):
        sign = -1.0 if name.startswith(SELF_PREFERENCE) else 1.0
        error = name.replace("[", "_error[", 1)
        found |= {name: sign * float(means[n]), error: float(covariance[n, n] ** 0.5)}
    return found


def _with_notes(ranking: Ranking, first: Sequence[str]) -> Ranking:
    """The ranking with notes before those on the data."""
    on_data = ranking._lazy.notes
    return ranking.with_parts(notes=lambda: [*first, *(on_data() if on_data else [])])


def _opening_notes(humans: Votes, judges: Sequence[Judge], sources: Sources) -> list[str]:
    votes = f"{humans.total:,.0f} {'vote' if humans.total == 1 else 'votes'}"
    left_out = [name for name in sources.judges if name not in {judge.name for judge in judges}]
    return [
        f"The ranking is that of the humans ({votes}); the votes of language models are a prior.",
        *(f"{name}'s votes order the items no better than coin tosses, so they were left out." for name in left_out),
    ]
