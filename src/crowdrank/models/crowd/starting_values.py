"""Starting values for the solvers of the Crowd-BT family, whose objective has several local optima."""

from __future__ import annotations

from typing import Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, agreed_pairs
from crowdrank.errors import SettingError
from crowdrank.models.base import FitOptions
from crowdrank.models.crowd.answer_counts import (
    agreement_logits,
    gold_accuracy,
    initial_scores,
    sampled_log_likelihoods,
)
from crowdrank.models.crowd.coordinate_ascent import alternate_once
from crowdrank.models.crowd.likelihood import VARIANCE_BT, sigmoid
from crowdrank.models.crowd.objective import Objective
from crowdrank.models.crowd.quality_constraints import PERFECT_LOGIT

Start = Literal["several", "one", "gold"]
Solver = Literal["joint", "alternating", "conjugate-gradients"]

# A larger logit has so small a gradient that a joint solver would take it for converged.
_MAX_START_LOGIT = 4.0
# From this many answers on only one start is used: the one with the highest likelihood on a sample of answers.
_MANY_ROWS, _SAMPLE_ROWS = 400_000, 5_000
# Factors of scores and logits that are tried on that sample.
_FACTORS = tuple((wider, surer) for wider in (1.0, 1.5, 2.0, 3.0) for surer in (1.0, 1.6, 2.5))


class StartingValues:
    """Vectors of parameters from which a solver may start.

    Parameters
    ----------
    comparisons : Comparisons
        The judgments.
    objective : Objective
        What is to be maximised.
    options : FitOptions
        Starting scores and side information given to `fit`.
    rows : int
        Number of answers.
    tolerance : float
        Tolerance of the solver.
    """

    def __init__(
        self, comparisons: Comparisons, objective: Objective, options: FitOptions, rows: int, tolerance: float
    ):
        self.comparisons, self.objective, self.rows, self.tolerance = comparisons, objective, rows, tolerance
        self.init, self.known = options.init, options.side_information

    def candidates(self, start: Start, solver: Solver) -> list[FloatArray]:
        """The starts of a strategy: "several"; or everyone trusted ("one") or by their gold accuracy ("gold")."""
        if start == "several":
            return self._several()
        logits = np.full(self.objective.layout.annotators, PERFECT_LOGIT)
        if start == "gold":
            logits[: max(1, len(self.comparisons.annotators))] = self._gold_logits()
        first = self._joined(np.zeros(self.objective.layout.items), logits)
        if solver == "alternating":
            return [first]
        layout = self.objective.layout
        scores, logits, feature_weights = layout.split(alternate_once(self.objective, first, self.tolerance))
        return [layout.join(scores, np.clip(logits, -_MAX_START_LOGIT, _MAX_START_LOGIT), feature_weights)]

    def _several(self) -> list[FloatArray]:
        """Everyone trusted equally; trusted by agreement with the crowd; trusted by agreement with the gold pairs.

        After an earlier fit: its scores, with everyone trusted by agreement with them.
        """
        people, items, shards = self.objective.layout.annotators, self.comparisons.items, self.objective.shards
        earlier, no_logits = self.init, self.objective.formula == VARIANCE_BT
        scores = initial_scores(shards, items) if earlier is None else np.nan_to_num(earlier)
        if no_logits or earlier is not None:
            logits = np.zeros(people) if no_logits else agreement_logits(shards, scores, people)
            return [self._joined(scores, logits)]
        starts = [
            self._joined(scores, np.full(people, 1.5)),
            self._trusting(agreement_logits(shards, scores, people)),
        ]
        if self.known.has_gold:
            logits = np.full(people, 1.5)
            logits[: max(1, len(self.comparisons.annotators))] = np.clip(self._gold_logits(), -1.5, 1.5)
            starts.append(self._trusting(logits))
        return starts if self.rows < _MANY_ROWS else [self._most_promising(starts)]

    def _trusting(self, logits: FloatArray) -> FloatArray:
        """Scores from answers weighted by 2η − 1."""
        scores = initial_scores(self.objective.shards, self.comparisons.items, 2 * sigmoid(logits) - 1)
        return self._joined(scores, logits)

    def _most_promising(self, starts: list[FloatArray]) -> FloatArray:
        """The start with the highest likelihood on a sample, with its scores and logits multiplied by the best factors.

        Shares of wins are closer to ½ than the scores imply, because of noise and of opponents of all strengths.
        """
        parts = [self.objective.layout.split(start) for start in starts]
        points = [(wider * scores, surer * logits) for scores, logits, _ in parts for wider, surer in _FACTORS]
        every = max(1, self.rows // _SAMPLE_ROWS)
        shards, formula = self.objective.shards, self.objective.formula
        (log_likelihoods,) = shards.sum(sampled_log_likelihoods, points, formula, every)
        return self._joined(*points[int(np.argmax(log_likelihoods))])

    def _joined(self, scores: FloatArray, logits: FloatArray) -> FloatArray:
        layout, constraints = self.objective.layout, self.objective.priors.constraints
        return layout.join(scores, constraints.project(logits), np.zeros((layout.annotators, layout.features)))

    def _gold_logits(self) -> FloatArray:
        better, worse = self.known.gold_better, self.known.gold_worse
        if not len(better):
            better, worse = agreed_pairs(self.comparisons)
        if not len(better):
            raise SettingError(
                'start="gold" needs gold pairs, or pairs that more than 10 annotators answered, 90 % of them alike. '
                "Pass side_information=SideInformation(gold=…) to fit."
            )
        share = gold_accuracy(self.comparisons, better, worse)
        with np.errstate(divide="ignore"):
            return np.asarray(np.clip(np.log(share) - np.log1p(-share), -PERFECT_LOGIT, PERFECT_LOGIT))
