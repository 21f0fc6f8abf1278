"""MCMC sampler of Crowd-BT's posterior: scores, qualities and, if they are learnt, their priors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Items
from crowdrank.models.crowd import sampler_kernels
from crowdrank.models.crowd.encoding import AnswerIndex
from crowdrank.models.crowd.likelihood import sigmoid
from crowdrank.models.crowd.priors import QualityBounds, QualityConstraints

# Step of the log scale in an HMC trajectory, in its standard deviations given the scores.
_SCALE_STEP = 0.7
# Number of sweeps that the Fisher information counts for when variances are estimated.
_INFORMATION_WEIGHT = 10


class State(NamedTuple):
    """State of a chain.

    Parameters
    ----------
    scores, quality : arrays of float
        The parameters.
    scale : float
        Standard deviation of the normal prior on scores.
    alpha, beta : float
        Counts of the Beta prior on qualities.
    p_truthful, p_answer : arrays of float
        Probability of every answer from a truthful annotator, and from the annotator who gave it.
    mass : array of float
        Diagonal of the mass matrix: precision of each score, of the log scale and of each quality logit.
    step_size : float
        Step size of HMC steps.
    """

    scores: FloatArray
    quality: FloatArray
    scale: float
    alpha: float
    beta: float
    p_truthful: FloatArray
    p_answer: FloatArray
    mass: FloatArray
    step_size: float


class Info(NamedTuple):
    """Mean acceptance probability of HMC steps."""

    acceptance_rate: float


@dataclass(frozen=True)
class Sampler:
    """MCMC for Crowd-BT.

    Parameters
    ----------
    index : AnswerIndex
        The answers.
    items : Items
        The items.
    start_scores, start_logits : arrays of float
        Chains start at random near these scores and quality logits.
    bounds : QualityBounds
        Constraints on qualities.
    scale : float or None
        Standard deviation of the normal prior on scores; None to learn it.
    quality : (float, float) or None
        Beta prior on qualities; None to learn it.
    """

    index: AnswerIndex
    items: Items
    start_scores: FloatArray
    start_logits: FloatArray
    bounds: QualityBounds
    scale: float | None
    quality: tuple[float, float] | None

    def init(self, rng: np.random.Generator) -> State:
        """A random state near the starting values."""
        scores = self.start_scores + rng.normal(scale=0.5, size=len(self.start_scores))
        quality = sigmoid(self.start_logits + rng.normal(scale=0.5, size=len(self.start_logits)))
        return self.at(scores, project_to_bounds(quality, self.bounds), *self.hyperparameters)

    @property
    def hyperparameters(self) -> tuple[float, float, float]:
        """Scale, α and β: as given, or the medians of their priors."""
        return self.scale or sampler_kernels.SCALE_MEDIAN, *(
            (sampler_kernels.ALPHA_MEDIAN, sampler_kernels.BETA_MEDIAN) if self.quality is None else self.quality
        )

    def at(self, scores: FloatArray, quality: FloatArray, scale: float, alpha: float, beta: float) -> State:
        """The state with these parameters, not yet tuned."""
        p_truthful, p_answer = sampler_kernels.answer_probabilities(self.index, scores, quality)
        mass = sampler_kernels.expected_information(self.index, scores, quality, scale)
        # HMC's optimal step size scales with dimension^(-1/4)
        return State(scores, quality, scale, alpha, beta, p_truthful, p_answer, mass, len(scores) ** -0.25)

    def tune(self, rng: np.random.Generator, state: State, steps: int) -> State:
        """Run `steps` warm-up sweeps that adapt step size and mass matrix."""
        state, _ = self.sample(rng, state, steps // 4, tune=True)
        seen: list[FloatArray] = []
        for _ in range(steps // 4):
            state, _ = self.sample(rng, state, 1)
            logits = np.log(state.quality) - np.log1p(-state.quality)
            seen.append(np.concatenate((self.items.centre(state.scores), [np.log(state.scale)], logits)))
        if seen:
            state = state._replace(mass=self._precision(np.array(seen), state))
        return self.sample(rng, state, steps - 2 * (steps // 4), tune=True)[0]

    def _precision(self, seen: FloatArray, state: State) -> FloatArray:
        """Inverse variances of the sweeps seen, shrunk towards the inverse Fisher information."""
        information, items = (
            sampler_kernels.expected_information(self.index, state.scores, state.quality, state.scale),
            len(state.scores),
        )
        total = len(seen) + _INFORMATION_WEIGHT
        variance = (len(seen) * seen.var(axis=0) + _INFORMATION_WEIGHT / information) / total
        # The log scale is narrow given the scores: its steps are as long as the step size allows.
        variance[items] = max(1.0, (_SCALE_STEP / state.step_size) ** 2) / information[items]
        variance[items + 1 :] = np.minimum(1.0, variance[items + 1 :])
        return np.asarray(1.0 / variance)

    def sample(self, rng: np.random.Generator, state: State, steps: int, tune: bool = False) -> tuple[State, Info]:
        """Run `steps` sweeps; with `tune`, adapt the step size."""
        scores, quality, hyper = state.scores.copy(), state.quality.copy(), np.array(state[2:5], np.float64)
        p_truthful, p_answer = state.p_truthful.copy(), state.p_answer.copy()
        learn = self.scale is None, self.quality is None
        step_size = np.array([state.step_size])
        accepted = sampler_kernels.sweep(
            rng,
            self.index,
            self.items.starts,
            self.bounds,
            learn,
            scores,
            quality,
            hyper,
            p_truthful,
            p_answer,
            state.mass,
            step_size,
            steps,
            tune,
        )
        scale, alpha, beta = hyper.tolist()
        after = State(scores, quality, scale, alpha, beta, p_truthful, p_answer, state.mass, float(step_size[0]))
        return after, Info(accepted / max(1, steps))


def quality_bounds(constraints: QualityConstraints, annotators: int) -> QualityBounds:
    """Side information about annotators as bounds of their η."""
    low, high = np.zeros(annotators), np.ones(annotators)
    low[constraints.low_of], high[constraints.high_of] = sigmoid(constraints.low), sigmoid(constraints.high)
    low[constraints.known] = high[constraints.known] = sigmoid(constraints.value)
    return QualityBounds(low, high, constraints.better, constraints.worse)


def project_to_bounds(quality: FloatArray, bounds: QualityBounds) -> FloatArray:
    """The nearest qualities within their bounds, the better one of each pair slightly above the other."""
    width = bounds.high - bounds.low
    found = np.clip(quality, bounds.low + 1e-3 * width, bounds.high - 1e-3 * width)
    for _ in range(len(bounds.better)):
        for a, b in zip(bounds.better, bounds.worse, strict=True):
            if found[a] <= found[b]:
                found[a], found[b] = max(found[a], found[b]) + 1e-6, min(found[a], found[b])
    return np.asarray(np.clip(found, np.maximum(bounds.low, 1e-12), np.minimum(bounds.high, 1 - 1e-13)))
