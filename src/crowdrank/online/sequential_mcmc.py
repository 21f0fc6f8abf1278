"""Crowd-BT's whole posterior, walked on as judgments arrive: slower than an update, and it knows what hangs on what."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array
from crowdrank.data import TIE, Comparisons, Items
from crowdrank.errors import DataError, SettingError
from crowdrank.models import BayesianCrowdBT
from crowdrank.models.crowd.answer_index import QualityBounds, index_answers
from crowdrank.models.crowd.encoding import encode_answers
from crowdrank.models.crowd.likelihood import CROWD_BT
from crowdrank.models.crowd.sampler import Sampler, State
from crowdrank.models.crowd.sampler_kernels import ALPHA_MEDIAN, BETA_MEDIAN, SCALE_MEDIAN
from crowdrank.online.beliefs import Beliefs, Roll
from crowdrank.online.sequential import Answers, Sequential

_NOBODY = np.zeros(0, np.int32)
_COLD = 500
"""Sweeps more that are forgotten where there was no walk before."""


@dataclass(frozen=True, eq=False)
class Draws:
    """Scores and qualities drawn together, one row each; scores have mean zero in each query."""

    scores: FloatArray
    qualities: FloatArray


class Place(NamedTuple):
    """Where a walk stands."""

    scores: FloatArray
    quality: FloatArray
    scale: float
    truths: float
    lies: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Posterior(Beliefs):
    """Beliefs as joint draws; means and variances are the draws'."""

    draws: Draws
    winner: Int32Array
    """All that was said and decided …"""
    loser: Int32Array
    speaker: Int32Array
    waiting: int = 0
    """… of which so many came after the last walk."""
    place: Place | None = None
    """Where that walk stopped."""

    @property
    def unheard(self) -> Int32Array:
        """The pairs that were answered since the last walk, two columns."""
        latest = slice(len(self.winner) - self.waiting, None)
        return np.stack((self.winner[latest], self.loser[latest]), axis=1)


@dataclass(frozen=True, kw_only=True)
class Refits(Sequential):
    """Crowd-BT's posterior, sampled anew after every few judgments, from where the last walk ended.

    Between walks new judgments wait, and new items and annotators are what the prior says. Ties are left out.
    """

    prior_scale: float | Literal["learnt"] = "learnt"
    """Standard deviation of the normal prior on scores."""
    quality_prior: tuple[float, float] | Literal["learnt"] = "learnt"
    """Beta prior on η: truths and lies each annotator is credited with beforehand."""
    every: int = 25
    """How many judgments, coming one at a time, wait for a walk; `fold` always walks."""
    warmup: int = 100
    """Sweeps forgotten after new judgments."""
    keep: int = 200
    """Draws kept."""
    thin: int = 1
    """Sweeps for one draw that is kept."""
    seed: int = 0

    def __post_init__(self) -> None:
        self._model()  # which checks the priors
        if min(self.every, self.keep, self.thin) < 1 or self.warmup < 0:
            raise SettingError("every, keep and thin must be at least 1, and warmup not negative.")

    def fold(self, beliefs: Beliefs, comparisons: Comparisons) -> Posterior:
        told = cast(Posterior, super().fold(beliefs, comparisons))
        return self._walked(told) if told.waiting else told

    def nobody(self) -> Posterior:
        nothing = np.zeros((self.keep, 0))
        return Posterior(
            items=Roll.of(()),
            annotators=Roll.of(()),
            winner=_NOBODY,
            loser=_NOBODY,
            speaker=_NOBODY,
            **_believed(nothing, nothing),
        )

    def after(self, beliefs: Beliefs, items: Roll, annotators: Roll, answers: Answers) -> Posterior:
        if not isinstance(beliefs, Posterior):
            raise DataError("Refits goes on from beliefs of its own: begin with Refits().start().")
        told = self._joined(beliefs, items, annotators)
        decided = answers.outcome != TIE
        left, right, left_won = answers.left[decided], answers.right[decided], answers.outcome[decided] > 0
        told = told.changed(
            winner=np.concatenate((told.winner, np.where(left_won, left, right))),
            loser=np.concatenate((told.loser, np.where(left_won, right, left))),
            speaker=np.concatenate((told.speaker, answers.annotator[decided])),
            judged=told.judged + len(decided),
            left_out=told.left_out + int(np.sum(~decided)),
            waiting=told.waiting + int(np.sum(decided)),
        )
        return self._walked(told) if told.waiting >= self.every else told

    def longer(self, beliefs: Posterior, times: int = 4) -> Posterior:
        """The same judgments, walked on from the same place, drawn anew and so many times as often."""
        return replace(self, keep=times * self.keep, seed=self.seed + 1)._walked(beliefs)

    def _joined(self, beliefs: Posterior, items: Roll, annotators: Roll) -> Posterior:
        """With whoever is new drawn from the prior."""
        new_items, new_people = len(items) - len(beliefs.items), len(annotators) - len(beliefs.annotators)
        if not new_items and not new_people:
            return beliefs
        rng = np.random.default_rng([self.seed, len(items), len(annotators)])
        place = beliefs.place
        scale, truths, lies = self._spreads() if place is None else place[2:]
        scores = np.hstack((beliefs.draws.scores, scale * rng.standard_normal((self.keep, new_items))))
        qualities = np.hstack((beliefs.draws.qualities, rng.beta(truths, lies, (self.keep, new_people))))
        if place is not None:
            place = place._replace(
                scores=np.append(place.scores, scores[-1, len(place.scores) :]),
                quality=np.append(place.quality, qualities[-1, len(place.quality) :]),
            )
        return beliefs.changed(items=items, annotators=annotators, place=place, **_believed(scores, qualities))

    def _walked(self, beliefs: Posterior) -> Posterior:
        """On from where the last walk stopped; the same beliefs and judgments give the same walk."""
        rng = np.random.default_rng([self.seed, len(beliefs.winner)])
        order, place = _by_query(beliefs.items), beliefs.place
        said = _comparisons(beliefs, order)
        if place is None:
            sampler = self._model().sampler(said)
            state, warmup = sampler.init(rng), self.warmup + _COLD
        else:
            sampler = self._resumed(said)
            state, warmup = sampler.at(place.scores[order], place.quality.copy(), *place[2:]), self.warmup
        state = sampler.tune(rng, state, warmup)
        scores, qualities = np.empty((self.keep, len(order))), np.empty((self.keep, len(beliefs.annotators)))
        for draw in range(self.keep):
            state, _ = sampler.sample(rng, state, self.thin)
            scores[draw, order], qualities[draw] = sampler.items.centre(state.scores), state.quality
        if self.quality_prior == "learnt":
            state = _upright(state, scores, qualities)
        ended = np.empty(len(order))
        ended[order] = state.scores
        place = Place(ended, state.quality, state.scale, state.alpha, state.beta)
        return beliefs.changed(waiting=0, place=place, **_believed(scores, qualities))

    def _model(self) -> BayesianCrowdBT:
        return BayesianCrowdBT(prior_scale=self.prior_scale, quality_prior=self.quality_prior)

    def _spreads(self) -> tuple[float, float, float]:
        """What is believed before anything was said: of the scores, and of the truths and lies of annotators."""
        scale = SCALE_MEDIAN if self.prior_scale == "learnt" else self.prior_scale
        return scale, *((ALPHA_MEDIAN, BETA_MEDIAN) if self.quality_prior == "learnt" else self.quality_prior)

    def _resumed(self, said: Comparisons) -> Sampler:
        """No need to look for a place to start from."""
        people = len(said.annotators)
        return Sampler(
            index_answers(encode_answers(said), len(said.items), people, CROWD_BT),
            said.items,
            np.zeros(len(said.items)),
            np.zeros(people),
            QualityBounds(np.zeros(people), np.ones(people), _NOBODY, _NOBODY),
            None if self.prior_scale == "learnt" else self.prior_scale,
            None if self.quality_prior == "learnt" else self.quality_prior,
        )


def _comparisons(beliefs: Posterior, order: Int32Array) -> Comparisons:
    """All that was said, the items query by query, as `Items` stand."""
    code, query = np.argsort(order).astype(np.int32), beliefs.items.query[order]
    labels, people = (np.array(roll.labels, dtype=object) for roll in (beliefs.items, beliefs.annotators))
    return Comparisons(
        items=Items(labels[order], query, np.unique(query).astype(object)),
        left=code[beliefs.winner],
        right=code[beliefs.loser],
        outcome=np.ones(len(beliefs.winner), np.int8),
        annotators=people,
        annotator=beliefs.speaker,
    )


def _by_query(items: Roll) -> Int32Array:
    return np.argsort(items.query, kind="stable").astype(np.int32)


def _upright(state: State, scores: FloatArray, qualities: FloatArray) -> State:
    """Scores and qualities can all be reversed at once: the side is the one on which most annotators tell the truth."""
    turned = np.mean(qualities > 0.5, axis=1) < 0.5
    scores[turned] *= -1
    qualities[turned] = 1 - qualities[turned]
    if not turned[-1]:
        return state
    return state._replace(scores=-state.scores, quality=1 - state.quality, alpha=state.beta, beta=state.alpha)


def _believed(scores: FloatArray, qualities: FloatArray) -> dict[str, Any]:
    """Draws, and what they come to for each item and each annotator."""
    quality, spread = qualities.mean(axis=0), np.maximum(qualities.var(axis=0), 1e-12)
    count = np.maximum(quality * (1 - quality) / spread - 1, 1e-3)
    return {
        "draws": Draws(scores, qualities),
        "of_items": {"mean": scores.mean(axis=0), "variance": np.maximum(scores.var(axis=0), 1e-12)},
        "of_annotators": {"truths": count * quality, "lies": count * (1 - quality)},
    }
