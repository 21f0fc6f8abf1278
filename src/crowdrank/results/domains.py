"""What was concluded about hidden domains of queries, and who is at home in which."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, IntArray, ObjectArray

Estimate = tuple[FloatArray, FloatArray, FloatArray]

EXPERT_FROM = 0.87
"""Quality from which an annotator is an expert of a domain."""
RANDOM_BELOW = 0.65
"""Quality below which an annotator is no better than random there."""
COIN = 0.5
"""Quality of a coin; who may be one is random, and who is surely below it is reversed."""

# Of the quadrature over beliefs about τ: right to four digits even where τ is known to ± 5 only.
_NODES = 64


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Domains:
    """What was learnt of hidden domains: which query is of which, who is expert where, and how hard queries are.

    Estimates come as (estimate, lower, upper end of its interval); the three are the same where no error is known.
    Domains are numbered from 1, in the order of the columns.
    """

    annotators: ObjectArray
    """Empty where the judgments name nobody."""
    queries: ObjectArray
    expertise: Estimate
    """τ, annotators × domains, negative where answers are reversed; in the unit in which the mean difficulty is one."""
    membership: FloatArray
    """The chance that a query is of a domain, queries × domains; rows add to one."""
    difficulty: Estimate
    """δ² of each query; their mean is one."""
    judged: IntArray
    """How many judgments each annotator gave in each domain."""
    level: float = 0.9

    def __len__(self) -> int:
        """How many domains there are."""
        return int(self.membership.shape[1])

    def __repr__(self) -> str:
        return f"<Domains: {len(self):,}, of {len(self.queries):,} queries and {len(self.annotators):,} annotators>"

    @cached_property
    def quality(self) -> Estimate:
        """Φ(τ/√2), annotators × domains: the chance to name the better of two items seen one unit apart."""
        estimate, low, high = self.expertise
        return _quality(estimate), _quality(low), _quality(high)

    @cached_property
    def domain(self) -> IntArray:
        """The likeliest domain of each query."""
        return np.asarray(np.argmax(self.membership, axis=1) + 1)

    @cached_property
    def sizes(self) -> IntArray:
        """How many queries each domain has, each query in its likeliest."""
        return np.bincount(self.domain - 1, minlength=len(self))

    @cached_property
    def verdict(self) -> ObjectArray:
        """A word for each annotator in each domain; unknown where they judged nothing of it."""
        quality, low, high = self.quality
        cases = [self.judged == 0, high < COIN, (quality < RANDOM_BELOW) | (low < COIN), quality >= EXPERT_FROM]
        words = np.select(cases, ["unknown", "reversed", "random", "expert"], default="average")
        return words.astype(object)

    def queries_frame(self) -> pl.DataFrame:
        """Hardest first: the difficulty of each query, its likeliest domain, and the chance that it is that one."""
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
        """A row for each annotator in each domain; domain by domain, the best first."""
        estimate, low, high = self.expertise
        columns = self._pairs() | {
            "expertise": estimate.ravel(),
            "expertise_low": low.ravel(),
            "expertise_high": high.ravel(),
            "quality": self.quality[0].ravel(),
            "verdict": self.verdict.ravel().tolist(),
            "judgments": self.judged.ravel(),
        }
        frame = pl.DataFrame(columns, schema_overrides={"annotator": pl.String, "verdict": pl.String})
        return frame.sort("domain", "expertise", "annotator", descending=[False, True, False])

    def table(self) -> pl.DataFrame:
        """A row an annotator, a column a domain: quality, null where they judged nothing of it."""
        quality = np.where(self.judged > 0, self.quality[0], np.nan)
        columns: dict[str, Any] = {"annotator": self.annotators.tolist()}
        columns |= {f"domain_{n}": quality[:, n - 1] for n in range(1, len(self) + 1)}
        return pl.DataFrame(columns, schema_overrides={"annotator": pl.String}).fill_nan(None)

    def ask(self) -> pl.DataFrame:
        """Whom to ask next about which domain; domain by domain, the best first.

        In bits, of an answer on two items one unit apart: `worth` is what it tells of which is better, `unknown` what
        it tells of the annotator. They are sorted by the sum. Domains without a query are left out.
        """
        chance, certain = self._foretold()
        columns = self._pairs() | {
            "worth": (1.0 - _bits(chance)).ravel(),
            "unknown": np.maximum(_bits(chance) - certain, 0.0).ravel(),
        }
        frame = pl.DataFrame(columns, schema_overrides={"annotator": pl.String})
        frame = frame.filter(pl.col("domain").is_in(np.flatnonzero(self.sizes) + 1))
        best = (-pl.col("worth") - pl.col("unknown")).round(12)  # sums that differ by rounding alone are equal
        return frame.sort("domain", best, "annotator").select("domain", "annotator", "worth", "unknown")

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        tables = {"queries": self.queries_frame(), "annotators": self.annotators_frame(), "ask": self.ask()}
        content: dict[str, Any] = {"count": len(self), "sizes": self.sizes.tolist(), "level": self.level}
        return content | {name: table.fill_nan(None).to_dicts() for name, table in tables.items()}

    def _pairs(self) -> dict[str, Any]:
        """Annotator and domain of each cell, row after row."""
        return {
            "annotator": np.repeat(self.annotators, len(self)).tolist(),
            "domain": np.tile(np.arange(1, len(self) + 1), len(self.annotators)),
        }

    def _foretold(self) -> tuple[FloatArray, FloatArray]:
        """E[p] and the expected bits of p, where p = Φ(τ/√2) and τ is believed to be normal."""
        from scipy.special import ndtri

        middle, low, high = self.expertise
        spread = (high - low) / (2.0 * ndtri(0.5 + 0.5 * self.level))
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        weights = weights / weights.sum()
        chance, certain = np.zeros_like(middle), np.zeros_like(middle)
        for node, weight in zip(nodes, weights, strict=True):
            likely = _quality(middle + node * spread)
            chance += weight * likely
            certain += weight * _bits(likely)
        return chance, certain


def _quality(expertise: FloatArray) -> FloatArray:
    from scipy.special import ndtr

    return np.asarray(ndtr(expertise / np.sqrt(2.0)))


def _bits(chance: FloatArray) -> FloatArray:
    """The entropy of a coin that falls so."""
    from scipy.special import entr

    chance = np.clip(chance, 0.0, 1.0)
    return np.asarray((entr(chance) + entr(1.0 - chance)) / np.log(2.0))
