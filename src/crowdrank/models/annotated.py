"""What models with annotators share: scores, a gate an annotator, pulls of features; priors; a joint climb."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdrank.engines import Engine, Held
from crowdrank.judgments import Comparisons, Items
from crowdrank.likelihoods import annotated as likelihood
from crowdrank.likelihoods.annotated import Answers, Slopes, sigmoid
from crowdrank.likelihoods.pairwise import LOGISTIC, PROBIT
from crowdrank.likelihoods.priors import gaussian, virtual_node
from crowdrank.models.conclude import SolverSettings, conclude
from crowdrank.results import Annotators, Convergence, Ranking, Uncertainty
from crowdrank.solvers.curvature import DAMPINGS, Damped
from crowdrank.solvers.draws import Summit as PairSummit
from crowdrank.solvers.draws import draw
from crowdrank.solvers.newton import Found, Point, climb

Vector = npt.NDArray[np.float64]

_LARGEST_FACTORED = 300
_LARGEST_INVERTED = 2_000
_DRAWS = 1000
# The objective is not concave: no parameter moves further than this in one step.
_LONGEST_STEP = 2.0


@dataclass(frozen=True)
class Layout:
    """Where scores, gates and pulls lie in one vector of parameters."""

    items: int
    annotators: int
    features: int = 0

    @property
    def size(self) -> int:
        return self.items + self.annotators * (1 + self.features)

    def split(self, x: Vector) -> tuple[Vector, Vector, Vector]:
        scores, gates, pulls = np.split(x, (self.items, self.items + self.annotators))
        return scores, gates, pulls.reshape(self.annotators, self.features)

    def join(self, scores: Vector, gates: Vector, pulls: Vector) -> Vector:
        return np.concatenate((scores, gates, np.ravel(pulls)))


@dataclass(frozen=True, kw_only=True)
class Priors:
    """What is believed before anyone judged."""

    scale: float | None
    """Of scores, normal around zero."""
    virtual: float = 0.0
    """Virtual wins and losses of each item (Crowd-BT's λ)."""
    quality: tuple[float, float] | None = None
    """Beta counts of the truths and lies of an annotator, for gates that are logits of η."""
    gate: tuple[float, float] | None = None
    """Mean and standard deviation of other gates."""
    pull: float | None = None
    """Standard deviation of pulls."""

    def at(self, scores: Vector, gates: Vector, pulls: Vector, formula: int) -> tuple[float, Vector, Vector]:
        """Log density, gradient and curvature of everything at once."""
        value, slope, bend = 0.0, np.zeros(len(scores)), np.zeros(len(scores))
        for prior in self._of_scores(scores, formula):
            value, slope, bend = value + prior.value, slope + prior.gradient, bend + prior.bend
        gate_value, gate_slope, gate_bend = self._of_gates(gates)
        pull_bend = np.zeros(pulls.size) if self.pull is None else np.full(pulls.size, self.pull**-2.0)
        value += gate_value - 0.5 * float(pull_bend @ pulls.ravel() ** 2)
        slopes = np.concatenate((slope, gate_slope, -pull_bend * pulls.ravel()))
        return value, slopes, np.concatenate((bend, gate_bend, pull_bend))

    def _of_scores(self, scores: Vector, formula: int) -> list[Any]:
        found = []
        if self.scale is not None:
            found.append(gaussian(scores, self.scale))
        if self.virtual:
            found.append(virtual_node(scores, self.virtual, PROBIT if formula == likelihood.PROBIT else LOGISTIC))
        return found

    def _of_gates(self, gates: Vector) -> tuple[float, Vector, Vector]:
        if self.gate is not None:
            mean, scale = self.gate
            return gaussian(gates - mean, scale)
        # Beta's density on the scale of the gate, the logit of η, where the posterior is nearly normal
        truths, lies = (0.0, 0.0) if self.quality is None else self.quality
        honest, lying = sigmoid(gates), sigmoid(-gates)
        value = float(np.sum(truths * np.log(honest) + lies * np.log(lying)))
        return value, truths * lying - lies * honest, (truths + lies) * honest * lying


@dataclass(frozen=True)
class Curvature:
    """The curvature of the answers' likelihood and of the priors at one point."""

    rows: Held
    slopes: Slopes
    prior: Vector
    layout: Layout

    @property
    def diagonal(self) -> Vector:
        """Fisher's, so that it is positive even where the curvature is not."""
        own = self.layout.join(self.slopes.scores_bend, self.slopes.gates_bend, self.slopes.pulls_bend)
        return np.asarray(np.maximum(own + self.prior, 1e-8))

    def solve(self, vector: Vector, tolerance: float) -> Vector:
        small = self.layout.size <= _LARGEST_FACTORED
        return self.damped(small).solve(vector, tolerance)

    def damped(self, factored: bool) -> Damped:
        return Damped(self.product, self.diagonal, self.matrix if factored else None)

    def product(self, vector: Vector) -> Vector:
        return self.layout.join(*self.rows.total(likelihood.product, *self.layout.split(vector))) + self.prior * vector

    def marginal(self) -> tuple[Vector, Vector]:
        """Covariance of the scores, and standard errors of annotators' parameters, each with the others unknown.

        An annotator's parameters touch no other annotator's, so they are eliminated one small block at a time.
        """
        from scipy.sparse import bsr_array

        layout, width = self.layout, 1 + self.layout.features
        own, across, small = self.rows.total(likelihood.blocks, layout.items, layout.annotators, layout.features)
        diagonal, gates, pulls = layout.split(self.diagonal)
        spare = np.column_stack((gates, pulls))
        prior, gate_prior, pull_prior = layout.split(self.prior)
        own.flat[:: layout.items + 1] += prior
        small[:, range(width), range(width)] += np.column_stack((gate_prior, pull_prior))
        for damping in DAMPINGS:
            held = small + damping * spare[:, :, None] * np.eye(width)
            try:
                np.linalg.cholesky(held)
                inverse = np.linalg.inv(held)
                people = np.arange(layout.annotators)
                block = bsr_array((inverse, people, np.append(people, layout.annotators)), shape=(across.shape[1],) * 2)
                through = (across @ block).tocsr()
                rest = own + np.diag(damping * diagonal) - (through @ across.T).toarray()
                np.linalg.cholesky(rest)
                break
            except np.linalg.LinAlgError:
                continue
        covariance = np.linalg.inv(rest)
        from_scores = np.asarray(through.multiply((through.T @ covariance).T).sum(axis=0)).ravel()
        own_part = inverse[:, range(width), range(width)].ravel()
        return covariance, np.sqrt(own_part + from_scores).reshape(layout.annotators, width)

    def matrix(self) -> Vector:
        (matrix,) = self.rows.total(likelihood.matrix, self.layout.items, self.layout.annotators, self.layout.features)
        matrix[np.diag_indices(self.layout.size)] += self.prior
        return np.asarray(matrix)


@dataclass(frozen=True)
class Objective:
    """log P(answers | scores, gates, pulls) + log prior."""

    held: Held
    layout: Layout
    formula: int
    priors: Priors

    def __call__(self, x: Vector) -> Point:
        parts = self.layout.split(x)
        rows, slopes = self.held.keep(likelihood.slopes, *parts, self.formula)
        value, slope, bend = self.priors.at(*parts, self.formula)
        gradient = self.layout.join(slopes.scores, slopes.gates, slopes.pulls) + slope
        return Point(slopes.value + value, gradient, Curvature(rows, slopes, bend, self.layout))


def answers_of(comparisons: Comparisons, features: npt.NDArray[np.float64] | None = None) -> Answers:
    """Rows of winner and loser; a tie becomes two answers of half the weight, one each way.

    Judgments that name no annotators are taken as one annotator's.
    """
    who = np.zeros(len(comparisons), np.int32) if comparisons.annotator is None else comparisons.annotator
    if features is None:
        features = np.zeros((len(comparisons), 0))
    left_won, tied = comparisons.outcome >= 0, np.flatnonzero(comparisons.outcome == 0)
    winner = np.where(left_won, comparisons.left, comparisons.right)
    loser = np.where(left_won, comparisons.right, comparisons.left)
    leaning = np.where(left_won, 1.0, -1.0)[:, None] * features
    if not len(tied):
        return Answers(winner, loser, who, comparisons.weights, leaning)
    weight = np.array(comparisons.weights)
    weight[tied] /= 2
    return Answers(
        np.concatenate((winner, loser[tied])),
        np.concatenate((loser, winner[tied])),
        np.concatenate((who, who[tied])),
        np.concatenate((weight, weight[tied])),
        np.concatenate((leaning, -leaning[tied])),
    )


def first_scores(answers: Answers, items: Items, trust: Vector) -> Vector:
    """Scores as if everyone had met average opponents, each answer counted by how far its annotator is trusted."""
    size, weight = len(items), answers.weight * trust[answers.annotator]
    net = np.bincount(answers.winner, weight, size) - np.bincount(answers.loser, weight, size)
    total = np.bincount(answers.winner, np.abs(weight), size) + np.bincount(answers.loser, np.abs(weight), size)
    return items.centre(np.log((total + net + 1) / (total - net + 1)))


def agreement(answers: Answers, scores: Vector, annotators: int) -> Vector:
    """The logit of how often each annotator sided with the scores, two right and one wrong answer added."""
    margin = np.sign(scores[answers.winner] - scores[answers.loser])
    right = np.bincount(answers.annotator, answers.weight * (margin > 0), annotators) + 2
    wrong = np.bincount(answers.annotator, answers.weight * (margin < 0), annotators) + 1
    return np.log(right / wrong)


@dataclass(frozen=True)
class Summit:
    """The highest point found, and what it says."""

    found: Found
    objective: Objective
    comparisons: Comparisons
    seed: int

    @property
    def curvature(self) -> Curvature:
        assert isinstance(self.found.point.curvature, Curvature)
        return self.found.point.curvature

    @cached_property
    def parts(self) -> tuple[Vector, Vector, Vector]:
        return self.objective.layout.split(self.found.parameters)

    @property
    def _exact(self) -> bool:
        return self.objective.layout.items <= _LARGEST_INVERTED

    @cached_property
    def _marginal(self) -> tuple[Vector, Vector]:
        return self.curvature.marginal()

    def measure(self) -> Uncertainty:
        """Errors of the scores, those of the annotators counted in where the items are not too many."""
        items, centre = self.comparisons.items, self.comparisons.items.centre
        if self._exact:
            covariance, rng = self._marginal[0], np.random.default_rng(self.seed)
            around = centre(rng.standard_normal((_DRAWS, len(items))) @ np.linalg.cholesky(covariance).T)
            error, known = np.sqrt(np.diag(centre(centre(covariance).T))), "scores and annotators together"
        else:
            bends, _ = self.objective.held.keep(likelihood.margins, *self.parts, self.objective.formula)
            prior = self.curvature.prior[: len(items)]
            tied = PairSummit(bends, self.curvature.slopes.scores_bend + prior, prior, items.starts)
            error, around = draw(tied, self.seed)
            known = "scores, given the annotators"
        return Uncertainty(centre(self.parts[0]) + around, error, f"curvature at the optimum, of {known}")

    def of_gates(self, through: Callable[[Vector], Vector]) -> tuple[Vector, Vector, Vector]:
        """The gates and their intervals, carried through a function that rises."""
        return interval(self.parts[1], self.errors_of_annotators[:, 0], through)

    @cached_property
    def errors_of_annotators(self) -> Vector:
        """Of each annotator's gate (first column) and pulls."""
        if self._exact:
            return self._marginal[1]
        layout = self.objective.layout
        _, gates, pulls = layout.split(1.0 / np.sqrt(self.curvature.diagonal))
        return np.column_stack((gates, pulls))


def climb_from(
    model: SolverSettings,
    comparisons: Comparisons,
    formula: int,
    priors: Priors,
    engine: Engine,
    features: npt.NDArray[np.float64] | None = None,
) -> Summit:
    """Climb once from trust in everyone, once from agreement with the crowd, and keep the higher summit."""
    answers = answers_of(comparisons, features)
    layout = Layout(len(comparisons.items), max(1, len(comparisons.annotators)), answers.features.shape[1])
    objective = Objective(engine.hold(answers), layout, formula, priors)
    pulls = np.zeros((layout.annotators, layout.features))
    trusted = first_scores(answers, comparisons.items, np.ones(layout.annotators))
    gates = agreement(answers, trusted, layout.annotators)
    starts = [layout.join(trusted, np.full(layout.annotators, 0.0 if formula == likelihood.SCALED else 1.5), pulls)]
    if formula != likelihood.SCALED:
        weighed = first_scores(answers, comparisons.items, 2 * sigmoid(gates) - 1)
        starts.append(layout.join(weighed, gates, pulls))
    best: Found | None = None
    for start in starts:
        found = climb(objective, start, tolerance=model.tolerance, max_steps=model.max_steps, longest=_LONGEST_STEP)
        # equal summits are one: the first stands, so that rounding never chooses
        if best is None or found.point.value > best.point.value + 1e-7 * abs(best.point.value):
            best = found
    assert best is not None
    return Summit(best, objective, comparisons, model.seed)


def conclude_annotated(model: object, summit: Summit, estimates: Callable[[], Mapping[str, Any]]) -> Ranking:
    """The result, with the annotators where they have names."""
    comparisons, found = summit.comparisons, summit.found
    ranking = conclude(
        model, comparisons, summit.parts[0], log_likelihood=summit.curvature.slopes.value,
        convergence=Convergence(found.converged, found.steps, found.distance), measure=summit.measure,
    )  # fmt: skip
    if comparisons.annotator is None:
        return ranking
    judged = np.bincount(comparisons.annotator, minlength=len(comparisons.annotators))
    return replace(
        ranking,
        survey=lambda: Annotators(labels=comparisons.annotators, judged=judged, estimates=estimates()),
    )


def interval(centre: Vector, error: Vector, through: Callable[[Vector], Vector]) -> tuple[Vector, Vector, Vector]:
    """An estimate and its 95 % interval, carried through a function that rises."""
    return through(centre), through(centre - 1.96 * error), through(centre + 1.96 * error)
