"""Hidden domains of queries, and the expertise of annotators in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, IntArray, ObjectArray

Estimate = tuple[FloatArray, FloatArray, FloatArray]

EXPERT_QUALITY = 0.87
"""Smallest quality of an expert in a domain."""
RANDOM_QUALITY = 0.65
"""Annotators of lower quality count as random in a domain."""
CHANCE_QUALITY = 0.5
"""Quality of random answers. An interval that includes it means random, an interval below it means reversed."""

# Gauss–Hermite nodes for expectations over τ: right to four digits even for a standard deviation of 5.
_QUADRATURE_NODES = 64


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Domains:
    """Hidden domains: the domain and difficulty of each query, and the expertise of annotators in each domain.

    Estimates are tuples (estimate, lower end, upper end of the interval). The three are equal if no uncertainty is
    known. Domains are numbered from 1, in the order of the columns.

    Parameters
    ----------
    annotators : array of labels
        Empty if the judgments name no annotators.
    queries : array of labels
    expertise : tuple of three arrays of annotators × domains
        τ, in the unit in which the mean difficulty is one; negative if answers are reversed.
    membership : array of queries × domains
        Probability of each domain; rows add up to one.
    difficulty : tuple of three arrays per query
        δ², with mean one.
    n_judgments : integer array of annotators × domains
        Number of judgments, each query counted in its most probable domain.
    level : float, default 0.9
        Probability of the intervals.

    Examples
    --------
    >>> import crowdrank as cr
    >>> lists = cr.Rankings.of_lists([[["a"], ["b"]], [["b"], ["a"]], [["c"], ["d"]]], query=["x", "x", "y"])
    >>> cr.TRM(chains=2).fit(lists).domains
    <Domains: 1, of 2 queries and 0 annotators>
    """

    annotators: ObjectArray
    queries: ObjectArray
    expertise: Estimate
    membership: FloatArray
    difficulty: Estimate
    n_judgments: IntArray
    level: float = 0.9

    def __len__(self) -> int:
        """Number of domains."""
        return int(self.membership.shape[1])

    def __repr__(self) -> str:
        return f"<Domains: {len(self):,}, of {len(self.queries):,} queries and {len(self.annotators):,} annotators>"

    @cached_property
    def quality(self) -> Estimate:
        """Φ(τ/√2), annotators × domains: probability of naming the better of two items perceived one unit apart."""
        estimate, low, high = self.expertise
        return _quality(estimate), _quality(low), _quality(high)

    @cached_property
    def domain(self) -> IntArray:
        """The most probable domain of each query, from 1."""
        return np.asarray(np.argmax(self.membership, axis=1) + 1)

    @cached_property
    def sizes(self) -> IntArray:
        """Number of queries per domain, each query in its most probable one."""
        return np.bincount(self.domain - 1, minlength=len(self))

    @cached_property
    def verdict(self) -> ObjectArray:
        """A word per annotator and domain: expert, average, random, reversed, or unknown without judgments there."""
        quality, low, high = self.quality
        cases = [
            self.n_judgments == 0,
            high < CHANCE_QUALITY,
            (quality < RANDOM_QUALITY) | (low < CHANCE_QUALITY),
            quality >= EXPERT_QUALITY,
        ]
        words = np.select(cases, ["unknown", "reversed", "random", "expert"], default="average")
        return words.astype(object)

    def queries_frame(self) -> pl.DataFrame:
        """One row per query, hardest first.

        Returns
        -------
        polars.DataFrame
            Columns query, difficulty with its interval, domain (the most probable one) and its probability.
        """
        estimate, low, high = self.difficulty
        columns = {
            "query": self.queries.tolist(),
            "difficulty": estimate,
            "difficulty_low": low,
            "difficulty_high": high,
            "domain": self.domain,
            "probability": self.membership.max(axis=1),
        }
        return pl.DataFrame(columns).sort("difficulty", "query", descending=[True, False])

    def annotators_frame(self) -> pl.DataFrame:
        """One row per annotator and domain, sorted by domain and descending expertise.

        Returns
        -------
        polars.DataFrame
            Columns annotator, domain, expertise with its interval, quality, verdict and judgments.
        """
        estimate, low, high = self.expertise
        columns = self._pairs() | {
            "expertise": estimate.ravel(),
            "expertise_low": low.ravel(),
            "expertise_high": high.ravel(),
            "quality": self.quality[0].ravel(),
            "verdict": self.verdict.ravel().tolist(),
            "judgments": self.n_judgments.ravel(),
        }
        frame = pl.DataFrame(columns, schema_overrides={"annotator": pl.String, "verdict": pl.String})
        return frame.sort("domain", "expertise", "annotator", descending=[False, True, False])

    def table(self) -> pl.DataFrame:
        """Quality with one row per annotator and one column per domain; null if they judged nothing there."""
        quality = np.where(self.n_judgments > 0, self.quality[0], np.nan)
        columns: dict[str, Any] = {"annotator": self.annotators.tolist()}
        columns |= {f"domain_{n}": quality[:, n - 1] for n in range(1, len(self) + 1)}
        return pl.DataFrame(columns, schema_overrides={"annotator": pl.String}).fill_nan(None)

    def ask(self) -> pl.DataFrame:
        """Whom to ask next about which domain: one row per domain and annotator, the most informative annotators first.

        Returns
        -------
        polars.DataFrame
            Columns domain, annotator, `item_information` and `annotator_information`: the expected information, in
            bits, of an answer on two items one unit apart, about which item is better and about the annotator. Rows are
            sorted by their sum. Domains without a query are left out.
        """
        probability, expected_entropy = self._expected_answer()
        columns = self._pairs() | {
            "item_information": (1.0 - _entropy(probability)).ravel(),
            "annotator_information": np.maximum(_entropy(probability) - expected_entropy, 0.0).ravel(),
        }
        frame = pl.DataFrame(columns, schema_overrides={"annotator": pl.String})
        frame = frame.filter(pl.col("domain").is_in(np.flatnonzero(self.sizes) + 1))
        # Rounded, so that sums that differ only in the last bits are equal.
        best = (-pl.col("item_information") - pl.col("annotator_information")).round(12)
        return frame.sort("domain", best, "annotator").select(
            "domain", "annotator", "item_information", "annotator_information"
        )

    def as_dict(self) -> dict[str, Any]:
        """All tables as plain values, for JSON."""
        tables = {"queries": self.queries_frame(), "annotators": self.annotators_frame(), "ask": self.ask()}
        content: dict[str, Any] = {"count": len(self), "sizes": self.sizes.tolist(), "level": self.level}
        return content | {name: table.fill_nan(None).to_dicts() for name, table in tables.items()}

    def _pairs(self) -> dict[str, Any]:
        """Annotator and domain of each cell, row by row."""
        return {
            "annotator": np.repeat(self.annotators, len(self)).tolist(),
            "domain": np.tile(np.arange(1, len(self) + 1), len(self.annotators)),
        }

    def _expected_answer(self) -> tuple[FloatArray, FloatArray]:
        """E[p] and E[H(p)] for p = Φ(τ/√2) and normal τ, by Gauss–Hermite quadrature."""
        from scipy.special import ndtri

        mean, low, high = self.expertise
        std = (high - low) / (2.0 * ndtri(0.5 + 0.5 * self.level))
        nodes, weights = np.polynomial.hermite_e.hermegauss(_QUADRATURE_NODES)
        weights = weights / weights.sum()
        probability, expected_entropy = np.zeros_like(mean), np.zeros_like(mean)
        for node, weight in zip(nodes, weights, strict=True):
            quality = _quality(mean + node * std)
            probability += weight * quality
            expected_entropy += weight * _entropy(quality)
        return probability, expected_entropy


def _quality(expertise: FloatArray) -> FloatArray:
    from scipy.special import ndtr

    return np.asarray(ndtr(expertise / np.sqrt(2.0)))


def _entropy(probability: FloatArray) -> FloatArray:
    """Entropy of a binary answer, in bits."""
    from scipy.special import entr

    probability = np.clip(probability, 0.0, 1.0)
    return np.asarray((entr(probability) + entr(1.0 - probability)) / np.log(2.0))
