"""The log posterior of Crowd-BT for few answers of few items and annotators, where calls take longer than arithmetic.

`FewAnswers` evaluates what `objective.Objective` does, to the same bits, with less work per call. Codes are converted
to the platform's index type once, places in the Hessian are computed once, and the Fisher information is computed only
where an indefinite Hessian has to be damped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray, IntArray
from crowdrank.engines.compilation import COMPILE_MIN_ROWS
from crowdrank.engines.local import LocalShards
from crowdrank.inference.curvature import DAMPINGS, solve_positive
from crowdrank.inference.newton import Evaluation
from crowdrank.models.crowd.likelihood import CROWD_BT, MAX_PARAMETER, Answers, sigmoid_pair
from crowdrank.models.crowd.objective import MAX_FACTORED, Curvature, Objective


def with_few_answers(objective: Objective) -> Objective | FewAnswers:
    """The same objective, made for few answers if there are few in the memory of this process."""
    shards, layout = objective.shards, objective.layout
    if objective.formula != CROWD_BT or layout.size > MAX_FACTORED or layout.features:
        return objective
    if not isinstance(shards, LocalShards) or len(shards.shards) > 1 or len(objective.priors.constraints.better):
        return objective
    (answers,) = shards.shards
    return FewAnswers(objective, answers) if answers.rows < COMPILE_MIN_ROWS else objective


@dataclass(frozen=True)
class FewAnswers:
    """Log posterior of Crowd-BT as a function of all parameters.

    Parameters
    ----------
    whole : Objective
        The same log posterior, for any data and any parameters.
    answers : Answers
        The answers.
    """

    whole: Objective
    answers: Answers

    @cached_property
    def _codes(self) -> tuple[IntArray, IntArray, IntArray]:
        """Winner, loser and annotator as indices that NumPy does not have to convert."""
        winner, loser, who = (column.astype(np.intp) for column in self.answers[:3])
        return winner, loser, who

    @cached_property
    def cells(self) -> tuple[IntArray, IntArray, IntArray]:
        """Places in the Hessian of winner and loser, winner and annotator, loser and annotator."""
        (winner, loser, who), layout = self._codes, self.whole.layout
        return winner * layout.items + loser, winner * layout.annotators + who, loser * layout.annotators + who

    @cached_property
    def _unweighted(self) -> bool:
        weight = self.answers.weight
        return bool(weight.strides == (0,) and weight[0] == 1.0)

    def __call__(self, x: FloatArray) -> Evaluation:
        items = self.whole.layout.items
        if not np.max(np.abs(x)) <= MAX_PARAMETER:
            return self.whole(x)
        scores, logits = x[:items], x[items:]
        (winner, loser, who), weight = self._codes, self.answers.weight
        people = len(logits)
        quality, opposite = sigmoid_pair(logits)
        eta, rest = quality[who], opposite[who]
        shrink = np.exp(scores[loser] - scores[winner])
        won = 1.0 / (1.0 + shrink)
        lost = shrink * won
        p = eta * won + rest * lost
        side, lead, unsure, doubt = eta - rest, won - lost, won * lost, eta * rest
        d, g = side * unsure / p, doubt * lead / p  # derivatives of log P
        weighted = (d, g) if self._unweighted else (weight * d, weight * g)
        weighted_d, weighted_g = weighted
        inverse = weight / p
        second = (
            weighted_d * (d + lead),
            weighted_d * g - 2.0 * inverse * doubt * unsure,
            weighted_g * (g + side),
        )
        value = float(weight @ np.log(p))
        of_scores = np.bincount(winner, weighted_d, items) - np.bincount(loser, weighted_d, items)
        of_logits = np.bincount(who, weighted_g, people)
        prior = self.whole.priors.evaluate(scores, logits, np.zeros((people, 0)), CROWD_BT)
        gradient = np.concatenate((of_scores, of_logits)) + prior.gradient

        def fisher() -> FloatArray:
            odds = p / (eta * lost + rest * won)
            by_score = odds * weighted_d * d
            found = np.bincount(winner, by_score, items) + np.bincount(loser, by_score, items)
            return np.concatenate((found, np.bincount(who, odds * weighted_g * g, people)))

        diagonal = (
            np.bincount(winner, second[0], items) + np.bincount(loser, second[0], items),
            np.bincount(who, second[2], people),
        )
        curvature = FewCurvature(self, x, value, prior.curvature, second, diagonal, fisher)
        return Evaluation(value + prior.value, gradient, curvature)

    def hessian_off_diagonal(self, second: tuple[FloatArray, ...]) -> tuple[AnyArray, AnyArray]:
        """The negative Hessian between items, and between items and logits, as full matrices without the diagonal."""
        (pair, of_winner, of_loser), layout = self.cells, self.whole.layout
        items, annotators = layout.items, layout.annotators
        own = np.bincount(pair, second[0], items * items).reshape(items, items)
        across = np.bincount(of_winner, second[1], items * annotators)
        across -= np.bincount(of_loser, second[1], items * annotators)
        return -own - own.T, across.reshape(items, annotators)


@dataclass
class FewCurvature:
    """Negative Hessian of the log posterior at one point.

    Parameters
    ----------
    of : FewAnswers
        The log posterior.
    x : array of float
        The parameters.
    log_likelihood : float
        Log-likelihood of the answers.
    prior : array of float
        Curvature of the priors.
    second : tuple of arrays
        Weighted −∂² log P of each answer by (d,d), (d,g) and (g,g).
    diagonal : (array, array)
        Diagonal of the curvature of the likelihood, by score and by logit.
    fisher : callable
        Computes the diagonal of the Fisher information.
    """

    of: FewAnswers
    x: FloatArray
    log_likelihood: float
    prior: FloatArray
    second: tuple[FloatArray, ...]
    diagonal: tuple[AnyArray, AnyArray]
    fisher: Callable[[], FloatArray]
    _solved: tuple[FloatArray, FloatArray] | None = None

    @cached_property
    def whole(self) -> Curvature:
        """The same curvature, evaluated for any data."""
        found = self.of.whole(self.x).curvature
        assert isinstance(found, Curvature)
        return found

    def solve(self, vector: FloatArray, tolerance: float) -> FloatArray:
        """The exact solution. The last one is remembered: a solver that continues asks for it again."""
        if self._solved is None or self._solved[0] is not vector:
            self._solved = vector, self._solve(vector)
        return self._solved[1]

    def _solve(self, vector: FloatArray) -> FloatArray:
        """Solve for the scores with the annotators eliminated, damped as necessary."""
        items = self.of.whole.layout.items
        own, across = self.of.hessian_off_diagonal(self.second)
        of_scores, of_logits = vector[:items], vector[items:]
        undamped = self.diagonal[0] + self.prior[:items], self.diagonal[1] + self.prior[items:]
        fisher = None
        for damping in DAMPINGS:
            diagonal, small = undamped
            if damping:
                fisher = np.maximum(self.fisher() + self.prior, 1e-8) if fisher is None else fisher
                extra = damping * fisher
                diagonal, small = diagonal + extra[:items], small + extra[items:]
            if not small.min() > 0:
                continue
            through = across / small
            matrix = own - through @ across.T
            matrix.flat[:: items + 1] += diagonal
            scores = solve_positive(matrix, of_scores - through @ of_logits)
            if scores is not None:
                return np.concatenate((scores, (of_logits - scores @ across) / small))
        assert fisher is not None
        return np.asarray(vector / fisher)
