"""Null simulation: random answers, asked for by a policy, must not produce an apparent order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crowdrank.active.collection import run_collection
from crowdrank.active.policies import BasePolicy
from crowdrank.active.reliability import fit_quietly
from crowdrank.errors import SettingError
from crowdrank.models import by_name, name_of
from crowdrank.models.base import Model
from crowdrank.models.selection import default_model
from crowdrank.online import OnlineModel, SequentialMCMC
from crowdrank.results import Ranking
from crowdrank.simulation.crowd import Respondents, respondents

LEVEL = 0.95
"""Confidence at which two items count as separated …"""
_Z = 1.96
"""… which is this number of standard deviations of their difference."""


class SeparatedPairs(NamedTuple):
    """Share of all pairs whose order a leaderboard claims to know at 95 %.

    `by_scores` counts pairs whose scores differ by more than 1.96 standard deviations of the difference, `by_draws`
    those whose order is the same in more than 97.5 % of the posterior draws.
    """

    by_scores: float
    by_draws: float


def separated_pairs(ranking: Ranking) -> SeparatedPairs:
    """Return the share of pairs, within queries, that a ranking separates at 95 %.

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Comparisons
    >>> votes = Comparisons.of(["a"] * 20, ["b"] * 20, ["a", "b"] * 10)
    >>> separated_pairs(BradleyTerry().fit(votes))
    SeparatedPairs(by_scores=0.0, by_draws=0.0)
    """
    by_scores = by_draws = pairs = 0
    for query in range(len(ranking.items.queries)):
        block = ranking.items.of_query(query)
        scores, draws = ranking.scores[block], ranking.uncertainty.draws[:, block]
        one, other = np.triu_indices(len(scores), 1)
        covariance = np.atleast_2d(np.cov(draws, rowvar=False))
        variance = covariance[one, one] + covariance[other, other] - 2 * covariance[one, other]
        by_scores += int(np.sum((scores[one] - scores[other]) ** 2 > _Z**2 * np.maximum(variance, 0)))
        tail, pairs = (1 - LEVEL) / 2, pairs + len(one)
        for i in range(len(scores) - 1):
            above = np.mean(draws[:, i, None] > draws[:, i + 1 :], axis=0)
            below = np.mean(draws[:, i, None] < draws[:, i + 1 :], axis=0)
            by_draws += int(np.sum(np.maximum(above, below) > 1 - tail))
    return SeparatedPairs(by_scores / pairs, by_draws / pairs)


@dataclass(frozen=True, kw_only=True)
class NullSimulation:
    """Share of pairs that leaderboards separated although every answer was random.

    Parameters
    ----------
    policy : str
        Name of the policy that chose the questions.
    board : str
        Name of the model that fitted the leaderboards.
    items, annotators, votes : int
        Size of each simulated collection.
    trials : tuple of SeparatedPairs
        Result of each collection.
    """

    policy: str
    board: str
    items: int
    annotators: int
    votes: int
    trials: tuple[SeparatedPairs, ...]

    @property
    def by_scores(self) -> float:
        """Mean share of pairs separated by their scores."""
        return float(np.mean([trial.by_scores for trial in self.trials]))

    @property
    def std_error(self) -> float:
        """Standard error of `by_scores`; nan for a single trial."""
        return _std_error([trial.by_scores for trial in self.trials])

    @property
    def by_draws(self) -> float:
        """Mean share of pairs separated by the posterior draws."""
        return float(np.mean([trial.by_draws for trial in self.trials]))

    @property
    def passed(self) -> bool:
        """Whether at most 5 % of the pairs are separated, counted either way."""
        return max(self.by_scores, self.by_draws) <= 1 - LEVEL

    def lines(self) -> list[str]:
        """Describe the result in sentences."""
        error = "" if len(self.trials) == 1 else f" ± {self.std_error:.1%}"
        verdict = "within the 5 % allowed by chance" if self.passed else "it finds an order where there is none"
        return [
            f"{self.votes:,} random answers about {self.items:,} items by {self.annotators:,} annotators, questions "
            f"chosen by {self.policy}, {len(self.trials)} collections.",
            f"{self.board} separated {self.by_scores:.1%}{error} of the pairs at 95 % ({self.by_draws:.1%} by its "
            f"draws): {verdict}.",
        ]


def simulate_null(
    policy: BasePolicy,
    items: int = 60,
    annotators: int = 20,
    votes: int = 400,
    *,
    model: OnlineModel | None = None,
    board: Model | None = None,
    trials: int = 10,
    seed: int = 0,
) -> NullSimulation:
    """Let a policy question annotators who answer at random, and count the pairs that a leaderboard then separates.

    Parameters
    ----------
    policy : BasePolicy
        The policy to test.
    items, annotators, votes : int, default 60, 20 and 400
        Size of each simulated collection.
    model : OnlineModel, default SequentialMCMC()
        The model whose beliefs the policy uses.
    board : Model, optional
        The model that fits the leaderboard; any model with uncertainty. By default that of `crowdrank.rank`.
    trials : int, default 10
        Number of collections.
    seed : int, default 0
        Seed of the simulation.
    """
    if trials < 1:
        raise SettingError(f"trials must be at least 1, got {trials}.")
    model = SequentialMCMC() if model is None else model
    crowd = random_annotators(items, annotators)
    logs = [run_collection(policy, crowd, votes, model, np.random.default_rng([seed, n])) for n in range(trials)]
    boards = [log.comparisons() for log in logs]
    board = by_name(default_model(boards[0]).name)() if board is None else board
    found = tuple(separated_pairs(fit_quietly(board, votes_of_trial)) for votes_of_trial in boards)
    return NullSimulation(
        policy=policy.name, board=name_of(board), items=items, annotators=annotators, votes=votes, trials=found
    )


def random_annotators(items: int, annotators: int) -> Respondents:
    """Return simulated annotators who answer every question at random."""
    return respondents(items, annotators, quality=0.5)


def _std_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
