"""Latent domains of queries, and the expertise of annotators in each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, IntArray, ObjectArray
from crowdrank.results.parts import as_native

Estimate = tuple[FloatArray, FloatArray, FloatArray]
"""An estimate with the lower and upper ends of its interval."""

EXPERT_QUALITY = 0.87
"""Annotators of at least this quality are experts of a domain."""
RANDOM_QUALITY = 0.65
"""Annotators below this quality are no better than random in a domain."""
CHANCE_QUALITY = 0.5
"""Quality of random answers: intervals that contain it mean "random", intervals below it "reversed"."""

# Nodes of the Gauss–Hermite quadrature over τ: four digits even where the standard error of τ is 5.
_NODES = 64


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Domains:
    """Estimated domains of queries: memberships, expertise of annotators, difficulty of queries.

    Estimates are tuples of the estimate and the lower and upper ends of its interval; the three are equal where no
    error is known. Domains are numbered from 1, in the order of the columns.

    Parameters
    ----------
    annotators : array of str
        Labels of the annotators; empty if the judgments do not name them.
    queries : array of str
        Labels of the queries.
    expertise : tuple of arrays, annotators × domains
        τ, negative where answers are reversed, in the unit in which the mean difficulty is one.
    membership : array, queries × domains
        Probability that a query belongs to a domain; every row sums to one.
    difficulty : tuple of arrays
        δ² of each query; their mean is one.
    n_judgments : array of int, annotators × domains
        Number of judgments of each annotator in each domain.
    level : float, default 0.9
        Coverage of the intervals.
    native : str, default "polars"
        Data frame library of the tables.
    """

    annotators: ObjectArray
    queries: ObjectArray
    expertise: Estimate
    membership: FloatArray
    difficulty: Estimate
    n_judgments: IntArray
    level: float = 0.9
    native: str = "polars"

    def __len__(self) -> int:
        """Return the number of domains."""
        return int(self.membership.shape[1])

    def __repr__(self) -> str:
        return f"<Domains: {len(self):,}, of {len(self.queries):,} queries and {len(self.annotators):,} annotators>"

    @cached_property
    def quality(self) -> Estimate:
        """Φ(τ/√2), annotators × domains: the probability to choose the better of two items one unit apart."""
        estimate, low, high = self.expertise
        return _quality(estimate), _quality(low), _quality(high)

    @cached_property
    def domain(self) -> IntArray:
        """Most probable domain of each query."""
        return np.asarray(np.argmax(self.membership, axis=1) + 1)

    @cached_property
    def sizes(self) -> IntArray:
        """Number of queries per domain, each query counted in its most probable domain."""
        return np.bincount(self.domain - 1, minlength=len(self))

    @cached_property
    def verdict(self) -> ObjectArray:
        """Verdict per annotator and domain: expert, average, random, reversed, or unknown without judgments."""
        quality, low, high = self.quality
        cases = [
            self.n_judgments == 0,
            high < CHANCE_QUALITY,
            (quality < RANDOM_QUALITY) | (low < CHANCE_QUALITY),
            quality >= EXPERT_QUALITY,
        ]
        words = np.select(cases, ["unknown", "reversed", "random", "expert"], default="average")
        return words.astype(object)

    def queries_frame(self) -> Any:
        """Return one row per query, hardest first: difficulty, most probable domain and its probability."""
        return as_native(self.queries_to_polars(), self.native)

    def queries_to_polars(self) -> pl.DataFrame:
        """Return `queries_frame` as a polars data frame."""
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

    def annotators_frame(self) -> Any:
        """Return one row per annotator and domain, domain by domain, best first."""
        return as_native(self.annotators_to_polars(), self.native)

    def annotators_to_polars(self) -> pl.DataFrame:
        """Return `annotators_frame` as a polars data frame."""
        estimate, low, high = self.expertise
        columns = self._cells() | {
            "expertise": estimate.ravel(),
            "expertise_low": low.ravel(),
            "expertise_high": high.ravel(),
            "quality": self.quality[0].ravel(),
            "verdict": self.verdict.ravel().tolist(),
            "judgments": self.n_judgments.ravel(),
        }
        frame = pl.DataFrame(columns, schema_overrides={"annotator": pl.String, "verdict": pl.String})
        return frame.sort("domain", "expertise", "annotator", descending=[False, True, False])

    def table(self) -> Any:
        """Return the quality of each annotator (rows) in each domain (columns); null without judgments."""
        return as_native(self.to_polars(), self.native)

    def to_polars(self) -> pl.DataFrame:
        """Return `table` as a polars data frame."""
        quality = np.where(self.n_judgments > 0, self.quality[0], np.nan)
        columns: dict[str, Any] = {"annotator": self.annotators.tolist()}
        columns |= {f"domain_{n}": quality[:, n - 1] for n in range(1, len(self) + 1)}
        return pl.DataFrame(columns, schema_overrides={"annotator": pl.String}).fill_nan(None)

    def ask(self) -> Any:
        """Return whom to ask next about which domain, domain by domain, best first.

        Both columns are expected information of one answer on two items one unit apart, in bits: `item_information` on
        which item is better, `annotator_information` on the expertise of the annotator. Rows are sorted by their sum.
        Domains without queries are left out.
        """
        return as_native(self.ask_to_polars(), self.native)

    def ask_to_polars(self) -> pl.DataFrame:
        """Return `ask` as a polars data frame."""
        probability, conditional_entropy = self._predictive()
        columns = self._cells() | {
            "item_information": (1.0 - _entropy(probability)).ravel(),
            "annotator_information": np.maximum(_entropy(probability) - conditional_entropy, 0.0).ravel(),
        }
        frame = pl.DataFrame(columns, schema_overrides={"annotator": pl.String})
        frame = frame.filter(pl.col("domain").is_in(np.flatnonzero(self.sizes) + 1))
        # Rounded: sums that differ only in the last bits count as equal and are sorted by name.
        best_first = (-pl.col("item_information") - pl.col("annotator_information")).round(12)
        columns_in_order = ("domain", "annotator", "item_information", "annotator_information")
        return frame.sort("domain", best_first, "annotator").select(columns_in_order)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        tables = {
            "queries": self.queries_to_polars(),
            "annotators": self.annotators_to_polars(),
            "ask": self.ask_to_polars(),
        }
        content: dict[str, Any] = {"count": len(self), "sizes": self.sizes.tolist(), "level": self.level}
        return content | {name: table.fill_nan(None).to_dicts() for name, table in tables.items()}

    def _cells(self) -> dict[str, Any]:
        """Annotator and domain of each cell, row after row."""
        return {
            "annotator": np.repeat(self.annotators, len(self)).tolist(),
            "domain": np.tile(np.arange(1, len(self) + 1), len(self.annotators)),
        }

    def _predictive(self) -> tuple[FloatArray, FloatArray]:
        """E[p] and E[H(p)] with p = Φ(τ/√2) and a normal posterior of τ."""
        from scipy.special import ndtri

        mean, low, high = self.expertise
        spread = (high - low) / (2.0 * ndtri(0.5 + 0.5 * self.level))
        nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
        weights = weights / weights.sum()
        probability, conditional_entropy = np.zeros_like(mean), np.zeros_like(mean)
        for node, weight in zip(nodes, weights, strict=True):
            given_tau = _quality(mean + node * spread)
            probability += weight * given_tau
            conditional_entropy += weight * _entropy(given_tau)
        return probability, conditional_entropy


def _quality(expertise: FloatArray) -> FloatArray:
    from scipy.special import ndtr

    return np.asarray(ndtr(expertise / np.sqrt(2.0)))


def _entropy(probability: FloatArray) -> FloatArray:
    """Entropy of a Bernoulli variable, in bits."""
    from scipy.special import entr

    probability = np.clip(probability, 0.0, 1.0)
    return np.asarray((entr(probability) + entr(1.0 - probability)) / np.log(2.0))
