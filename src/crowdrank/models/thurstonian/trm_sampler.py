"""The sampler of TRM: starting values, sweeps, and iterations of the published Monte Carlo EM."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.data import Items
from crowdrank.models.thurstonian import trm_kernels
from crowdrank.models.thurstonian.trm_kernels import Lists, Prior, State

# Sweeps of one E-step that are discarded, and that are kept.
_E_STEP_WARMUP = 5
_E_STEP_SWEEPS = 20


class Info(NamedTuple):
    acceptance_rate: float


@dataclass(frozen=True)
class Sampler:
    """Sampler of the posterior of TRM, for `crowdrank.inference.mcmc`, and its EM.

    Parameters
    ----------
    lists : Lists
    items : Items
    prior : Prior
    """

    lists: Lists
    items: Items
    prior: Prior = field(default_factory=Prior)

    @cached_property
    def majority_scores(self) -> FloatArray:
        """Mean share of other items below an item minus the share above it, shrunk towards zero."""
        lists = self.lists
        rows = np.diff(lists.position_starts[lists.list_starts])
        ends = np.repeat(lists.position_starts[lists.list_starts[1:]], rows)
        begins = np.repeat(lists.position_starts[lists.list_starts[:-1]], rows)
        below = ends - lists.position_starts[lists.position + 1]
        above = lists.position_starts[lists.position] - begins
        won = np.bincount(lists.item, (below - above) / np.maximum(ends - begins - 1, 1), len(self.items))
        return np.asarray(won / (np.diff(lists.row_starts) + 1.0))

    @cached_property
    def has_lists(self) -> BoolArray:
        """Which queries have a list. Only these determine the unit of scores."""
        return np.asarray(np.diff(self.lists.query_starts) > 0)

    def init(self, rng: np.random.Generator) -> State:
        """Scores around the majority, and perceived utilities in the order of their lists."""
        scores = 2.0 * self.majority_scores + rng.normal(scale=0.3, size=len(self.items))
        lists = self.lists
        perceived = scores[lists.item] + rng.normal(size=len(lists.item))
        row_list = np.searchsorted(lists.list_starts, lists.position, side="right")
        perceived = perceived[np.lexsort((-perceived, row_list))]
        return State(scores, perceived, np.ones(len(self.items.queries)), np.full(1, 4.0))

    def run(self, rng: np.random.Generator, state: State, sweeps: int) -> tuple[State, Info]:
        """Run a number of sweeps from a state, which stays as it is. No move is ever rejected."""
        new = State._make(part.copy() for part in state)
        trm_kernels.run(rng, self.lists, self.prior, new, sweeps)
        return new, Info(1.0)

    def em_step(self, rng: np.random.Generator, state: State) -> State:
        """One iteration of the published EM: eq. 27 for perceived utilities, 18 for scores, 19 for difficulty.

        Scores stay in units of the noise. `normalize` applies the unit and zero of eq. 16 and 17.
        """
        lists, items = self.lists, self.items
        new = State._make(part.copy() for part in state)
        mean, square = trm_kernels.expected_utilities(rng, lists, new, _E_STEP_WARMUP, _E_STEP_SWEEPS)
        count = np.diff(lists.row_starts)
        scores = np.bincount(lists.item, mean, len(items)) / np.maximum(count, 1)
        residual = np.bincount(lists.item, square, len(items)) - count * scores**2
        listed, total, rows, noise = (
            np.bincount(items.query, column, len(items.queries)) for column in (count > 0, scores, count, residual)
        )
        # An item without a list gets the mean of its query.
        scores = np.where(count > 0, scores, (total / np.maximum(listed, 1))[items.query])
        noise = np.where(self.has_lists, noise / np.maximum(rows, 1), 1.0)
        root = np.sqrt(noise)[items.query]
        return State(scores / root, new.perceived / root[lists.item], state.difficulty * noise, state.score_variance)

    def normalize(self, state: State) -> tuple[FloatArray, FloatArray]:
        """Centred scores and difficulty in the published unit: δ² has mean one."""
        difficulty = state.difficulty / state.difficulty[self.has_lists].mean()
        return self.items.centre(state.scores * np.sqrt(difficulty[self.items.query])), difficulty
