"""Draws of Thurstonian preferences, read: in units that mean something, domains called the same in all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Items
from crowdrank.models.base import with_annotators
from crowdrank.models.thurstonian.layout import Sights
from crowdrank.results import Domains, Ranking

if TYPE_CHECKING:
    from crowdrank.models.thurstonian.gibbs import State
    from crowdrank.models.thurstonian.sampler import Sampler

Estimate = tuple[FloatArray, FloatArray, FloatArray]


LEVEL = 0.9


def read(sampler: Sampler, state: State) -> FloatArray:
    """Scores in units of their spread; difficulty of mean one, τ to match; domains; the spread in units of difficulty.

    How far scores are spread beside how far sights err is what the judgments know least of: in units of their own
    spread scores do not hang on it.
    """
    upright = sampler.upright(state)
    scores, mean = sampler.items.centre(upright.scores), upright.difficulty.mean()
    spread = max(float(np.sqrt(np.mean(scores**2))), 1e-12)
    tau = upright.expertise.ravel() * np.sqrt(mean)
    parts = scores / spread, upright.difficulty / mean, tau, upright.domain, [spread / np.sqrt(mean)]
    return np.concatenate(parts)


@dataclass(frozen=True)
class Reading:
    """What was drawn, one row a draw."""

    scores: FloatArray
    difficulty: FloatArray
    expertise: FloatArray
    """Draws × annotators × domains."""
    domain: IntArray
    """Draws × queries."""
    spread: FloatArray

    @classmethod
    def of(cls, draws: FloatArray, items: Items, annotators: int, domains: int) -> Reading:
        queries = len(items.queries)
        cuts = np.cumsum([len(items), queries, annotators * domains, queries])
        scores, difficulty, tau, domain, spread = np.split(draws, cuts, axis=1)
        table = tau.reshape(len(draws), annotators, domains)
        return cls(scores, difficulty, table, np.rint(domain).astype(np.int64), spread[:, 0]).named_alike()

    def named_alike(self) -> Reading:
        """Domains called the same in all draws: as in the first, then as in most."""
        found = self
        for _ in range(2):
            usual = np.argmax(found.membership, axis=1) if found is not self else self.domain[0]
            found = found._named_as(usual)
        return found

    def _named_as(self, usual: IntArray) -> Reading:
        from scipy.optimize import linear_sum_assignment

        domains = self.expertise.shape[2]
        expertise, domain = self.expertise.copy(), self.domain.copy()
        for row, drawn in enumerate(self.domain):
            shared = np.bincount(drawn * domains + usual, minlength=domains**2).reshape(domains, domains)
            _, name = linear_sum_assignment(-shared)
            expertise[row][:, name] = self.expertise[row]
            domain[row] = name[drawn]
        return Reading(self.scores, self.difficulty, expertise, domain, self.spread)

    @property
    def membership(self) -> FloatArray:
        """The chance that each query is of each domain; queries × domains."""
        domains = np.arange(self.expertise.shape[2])
        return np.stack([np.mean(self.domain == domain, axis=0) for domain in domains], axis=1)

    def quality(self, given: IntArray) -> FloatArray:
        """The chance that each annotator names the better of two items seen one unit apart, over what they judged.

        Of annotators without judgments: over all queries.
        """
        from scipy.special import ndtr

        weight = (given + 1e-9) / (given + 1e-9).sum(axis=0)
        return np.stack(
            [
                np.sum(weight.T * ndtr(table / np.sqrt(2))[:, domain], axis=1)
                for table, domain in zip(self.expertise, self.domain, strict=True)
            ]
        )


def given_in(sights: Sights, people: int) -> IntArray:
    """How many judgments each annotator gave in each query; queries × annotators."""
    each = np.diff(sights.judgment_starts)
    cell = np.repeat(np.arange(len(each)), each) * people + sights.annotator
    return np.bincount(cell, minlength=len(each) * people).reshape(len(each), people)


def with_domains(
    ranking: Ranking,
    comparisons: Comparisons,
    expertise: Estimate,
    difficulty: Estimate,
    membership: FloatArray,
    given: IntArray,
    quality: Estimate | None = None,
) -> Ranking:
    """The ranking and what was learnt of domains, and of annotators, where they have names."""
    from scipy.special import ndtr

    people = slice(None) if comparisons.annotator is not None else slice(0)
    middle, low, high = (part[people] for part in expertise)
    likeliest = np.argmax(membership, axis=1)[:, None] == np.arange(membership.shape[1])
    judged = (given.T @ likeliest).astype(np.int64)[people]
    domains = Domains(
        annotators=comparisons.annotators,
        queries=comparisons.items.queries,
        expertise=(middle, low, high),
        membership=membership,
        difficulty=difficulty,
        n_judgments=judged,
        level=LEVEL,
    )
    if quality is None:
        weight = (judged + 1e-9) / (judged + 1e-9).sum(axis=1, keepdims=True)
        overall = np.sum(weight * ndtr(middle / np.sqrt(2)), axis=1)
        quality = overall, overall, overall
    told = quality
    return with_annotators(ranking.with_parts(domains=lambda: domains), comparisons, lambda: {"quality": told})


def interval(draws: FloatArray, level: float) -> Estimate:
    """Mean and interval over draws."""
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2), axis=0)
    return draws.mean(axis=0), low, high
