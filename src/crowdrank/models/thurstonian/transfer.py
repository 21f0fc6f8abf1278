"""What a fit has learnt of annotators and domains, as beliefs for judgments on new queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import FloatArray, ObjectArray
from crowdrank.errors import DataError
from crowdrank.models.thurstonian.gibbs import Beliefs
from crowdrank.results import Ranking

# As many scores as the spread of new ones is believed to be known from, at most: new queries may differ.
_SCORES = 50.0


@dataclass(frozen=True)
class Known:
    """Normal beliefs about τ, and what is to be expected of queries."""

    annotators: ObjectArray
    expertise: FloatArray
    """Annotators × domains."""
    expertise_spread: FloatArray
    shares: FloatArray
    """How many queries were of each domain, and one."""
    variance: float
    """Of scores, in units of difficulty."""

    def beliefs(self, annotators: ObjectArray) -> Beliefs:
        """For these annotators; one who is new is believed to be like anyone."""
        anyone = Beliefs()
        table = (max(1, len(annotators)), len(self.shares))
        middle, spread = np.full(table, anyone.expertise), np.full(table, anyone.expertise_spread)
        place = {str(label): row for row, label in enumerate(self.annotators)}
        for row, label in enumerate(annotators):
            if str(label) in place:
                middle[row], spread[row] = self.expertise[place[str(label)]], self.expertise_spread[place[str(label)]]
        half = 0.5 * _SCORES
        return Beliefs(middle, spread, self.shares, scale_shape=half, scale_rate=half * self.variance)


def known_of(ranking: Ranking) -> Known:
    """From the intervals of a fit."""
    from scipy.special import ndtri

    if not ranking.has_domains or "spread" not in ranking.parameters:
        raise DataError(f"{ranking.model} learnt nothing of domains: fit tpp, and update what it gave.")
    domains = ranking.domains
    middle, low, high = domains.expertise
    spread = (high - low) / (2.0 * ndtri(0.5 + 0.5 * domains.level))
    if not np.all(spread > 0):
        raise DataError("These estimates come without intervals: fit tpp with inference=posterior.")
    return Known(
        domains.annotators, middle, spread, domains.membership.sum(axis=0) + 1.0, ranking.parameters["spread"] ** 2
    )
