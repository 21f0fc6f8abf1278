"""The null check: coin tosses, asked for by a policy, must not become an order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crowdrank.active.collection import Collection, Log
from crowdrank.active.policies import Chooser
from crowdrank.active.reliability import fitted
from crowdrank.errors import SettingError
from crowdrank.models import BayesianCrowdBT, name_of
from crowdrank.online import OnlineModel, Refits
from crowdrank.results import Ranking
from crowdrank.simulation.crowd import Respondents, respondents

LEVEL = 0.95
"""How sure a board is of an order that it claims …"""
_DEVIATIONS = 1.96
"""… which is so many standard deviations of the difference."""


class Claims(NamedTuple):
    """The share of all pairs whose order a board is sure of."""

    separated: float
    """Whose scores differ by more than 1.96 standard deviations of their difference."""
    sure: float
    """Whose order is the same in more than 97.5 % of the draws."""


def claims(ranking: Ranking) -> Claims:
    """What a board claims to know, over all pairs within queries."""
    apart = sure = pairs = 0
    for query in range(len(ranking.items.queries)):
        block = ranking.items.of_query(query)
        scores, draws = ranking.scores[block], ranking.uncertainty.draws[:, block]
        one, other = np.triu_indices(len(scores), 1)
        covariance = np.atleast_2d(np.cov(draws, rowvar=False))
        variance = covariance[one, one] + covariance[other, other] - 2 * covariance[one, other]
        apart += int(np.sum((scores[one] - scores[other]) ** 2 > _DEVIATIONS**2 * np.maximum(variance, 0)))
        tail, pairs = (1 - LEVEL) / 2, pairs + len(one)
        for i in range(len(scores) - 1):
            above = np.mean(draws[:, i, None] > draws[:, i + 1 :], axis=0)
            below = np.mean(draws[:, i, None] < draws[:, i + 1 :], axis=0)
            sure += int(np.sum(np.maximum(above, below) > 1 - tail))
    return Claims(apart / pairs, sure / pairs)


@dataclass(frozen=True, kw_only=True)
class NullCheck:
    """What a board claimed to know of coin tosses, collection by collection."""

    policy: str
    board: str
    items: int
    annotators: int
    votes: int
    trials: tuple[Claims, ...]

    @property
    def separated(self) -> float:
        """The share of pairs told apart, on average."""
        return float(np.mean([trial.separated for trial in self.trials]))

    @property
    def std_error(self) -> float:
        """Of that average; nan for a single trial."""
        return _std_error([trial.separated for trial in self.trials])

    @property
    def sure(self) -> float:
        """The same by the draws: the share of pairs of one order in more than 97.5 % of them."""
        return float(np.mean([trial.sure for trial in self.trials]))

    @property
    def passed(self) -> bool:
        """Whether no more pairs are told apart than the level allows, counted either way."""
        return max(self.separated, self.sure) <= 1 - LEVEL

    def lines(self) -> list[str]:
        """In plain words."""
        error = "" if len(self.trials) == 1 else f" ± {self.std_error:.1%}"
        verdict = "it keeps to the 5 % that chance allows" if self.passed else "it sees an order where there is none"
        return [
            f"{self.votes:,} coin tosses on {self.items:,} items by {self.annotators:,} annotators, chosen by "
            f"{self.policy}, in {len(self.trials)} collections.",
            f"{self.board} told {self.separated:.1%}{error} of the pairs apart at 95 % ({self.sure:.1%} by its draws): "
            f"{verdict}.",
        ]


def null_check(
    policy: Chooser,
    items: int = 60,
    annotators: int = 20,
    votes: int = 400,
    *,
    model: OnlineModel | None = None,
    board: Any = None,
    trials: int = 10,
    seed: int = 0,
) -> NullCheck:
    """Lets a policy ask annotators who toss coins, steered by `model`, and counts what `board` then claims to know.

    The model is Refits and the board BayesianCrowdBT unless told; any model with uncertainty can be the board.
    """
    if trials < 1:
        raise SettingError(f"trials must be at least 1, got {trials}.")
    model, board = Refits() if model is None else model, BayesianCrowdBT() if board is None else board
    crowd = coin_tossers(items, annotators)
    found = [
        claims(fitted(board, played(policy, crowd, votes, model, np.random.default_rng([seed, n])).comparisons()))
        for n in range(trials)
    ]
    return NullCheck(
        policy=policy.name, board=name_of(board), items=items, annotators=annotators, votes=votes, trials=tuple(found)
    )


def coin_tossers(items: int, annotators: int) -> Respondents:
    """Annotators who answer whatever they are asked by tossing a coin."""
    return respondents(items, annotators, quality=0.5)


def played(policy: Chooser, crowd: Respondents, votes: int, model: OnlineModel, rng: np.random.Generator) -> Log:
    """A collection from its beginning to its end."""
    log = Log()
    beliefs = model.start(crowd.items, crowd.annotators)
    for step in Collection(policy=policy, model=model).run(crowd, beliefs, votes, rng):
        log = step.log
    return log


def _std_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
