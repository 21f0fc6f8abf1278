"""Coverage: how often the intervals, claims and groups of rankings hold when the truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import Items
from crowdrank.evaluation.metrics import kendall_correlation
from crowdrank.results import Ranking

MAX_PAIRS = 2_000
"""If a query has more pairs than this, a random sample of them is checked."""


class Share(NamedTuple):
    """A share with its standard error.

    Parameters
    ----------
    value : float
        The share; nan if nothing was counted.
    std_error : float
        Standard error over simulations, which count as independent; nan for a single one.
    """

    value: float
    std_error: float


@dataclass(frozen=True)
class Counts:
    """What held in one ranking with a known truth.

    Parameters
    ----------
    items : int
        Number of items.
    scores_held, ranks_held : int
        Number of items whose true score, and true rank, lies in its interval.
    pairs : int
        Number of pairs of items within queries.
    claims, claims_right : float
        Number of pairs whose order is claimed at the level or above, and of those in their true order. Where only some
        of the pairs were checked, both are scaled up to all pairs.
    tables, split : int
        Number of queries, and of those with several tie groups.
    correlation : float
        Kendall correlation with the truth, mean over queries; nan if all true scores are equal.
    """

    items: int
    scores_held: int
    ranks_held: int
    pairs: int
    claims: float
    claims_right: float
    tables: int
    split: int
    correlation: float


def count_held(ranking: Ranking, truth: FloatArray, level: float = 0.95, rank_level: float | None = None) -> Counts:
    """Count which intervals, claims and groups of a ranking hold against the truth.

    Parameters
    ----------
    ranking : Ranking
        A ranking with uncertainty.
    truth : array of float
        True scores, in the order of `ranking.items`. Both are centred within queries.
    level : float, default 0.95
        Level of the score intervals (score ± normal quantile × standard error) and of claims: a pair is claimed if
        `Ranking.probability` of its order is at least this.
    rank_level : float, optional
        Level of the rank intervals; `level` by default.

    Examples
    --------
    >>> from crowdrank import BradleyTerry
    >>> from crowdrank.simulation import crowd_bt
    >>> crowd = crowd_bt(items=10, annotators=5, pairs=45, votes=5, quality=1.0, labels="logistic", scale=1.0)
    >>> truth = (crowd.truth - crowd.truth.mean()) / crowd.truth.std()
    >>> held = count_held(BradleyTerry().fit(crowd.judgments), truth)
    >>> held.items, held.ranks_held, held.pairs, held.split
    (10, 10, 45, 1)
    """
    items, table = ranking.items, ranking.to_polars(rank_level or level)
    truth = items.centre(truth)
    columns = {name: _by_item(ranking, table[name].to_numpy()) for name in ("rank_low", "rank_high", "group")}
    half_width = NormalDist().inv_cdf(0.5 + level / 2) * ranking.uncertainty.std_error
    best, worst = true_ranks(items, truth)
    pairs, claims, right = _count_claims(ranking, truth, level)
    queries = [items.of_query(query) for query in range(len(items.queries))]
    correlations = [
        kendall_correlation(truth[block], ranking.scores[block]) for block in queries if np.ptp(truth[block]) > 0
    ]
    return Counts(
        items=len(items),
        scores_held=int(np.sum(np.abs(items.centre(ranking.scores) - truth) <= half_width)),
        ranks_held=int(np.sum((columns["rank_low"] <= worst) & (columns["rank_high"] >= best))),
        pairs=pairs,
        claims=claims,
        claims_right=right,
        tables=len(queries),
        split=sum(int(columns["group"][block].max() > 1) for block in queries),
        correlation=float(np.mean(correlations)) if correlations else float("nan"),
    )


def _by_item(ranking: Ranking, column: IntArray) -> IntArray:
    """A column of the table, which is sorted by rank, in the order of the items."""
    found = np.empty_like(column)
    found[ranking.order] = column
    return found


def true_ranks(items: Items, truth: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the best and the worst true rank of each item in its query; they differ where true scores are equal."""
    best, worst = np.empty(len(items), np.int64), np.empty(len(items), np.int64)
    for query in range(len(items.queries)):
        block = items.of_query(query)
        ordered = np.sort(-truth[block])
        best[block] = np.searchsorted(ordered, -truth[block], side="left") + 1
        worst[block] = np.searchsorted(ordered, -truth[block], side="right")
    return best, worst


def _count_claims(ranking: Ranking, truth: FloatArray, level: float) -> tuple[int, float, float]:
    """Number of pairs, of claims, and of right claims."""
    rng = np.random.default_rng(0)
    pairs, claims, right = 0, 0.0, 0.0
    for query in range(len(ranking.items.queries)):
        block = ranking.items.of_query(query)
        one, other = np.triu_indices(block.stop - block.start, 1)
        pairs += (count := len(one))
        if count > MAX_PAIRS:
            kept = rng.choice(count, MAX_PAIRS, replace=False)
            one, other = one[kept], other[kept]
        one, other = one + block.start, other + block.start
        above = np.array(
            [
                ranking.uncertainty.probability_above(ranking.scores, int(a), int(b))
                for a, b in zip(one, other, strict=True)
            ]
        )
        weight = count / max(len(one), 1)
        claims += weight * float(np.sum(np.maximum(above, 1 - above) >= level))
        right += weight * float(np.sum(_in_true_order(truth[one] - truth[other], above, level)))
    return pairs, claims, right


def _in_true_order(difference: FloatArray, above: FloatArray, level: float) -> BoolArray:
    return ((above >= level) & (difference > 0)) | ((above <= 1 - level) & (difference < 0))


@dataclass(frozen=True)
class Coverage:
    """What held in several simulations of one kind.

    Parameters
    ----------
    simulations : tuple of Counts
        What held in each.
    """

    simulations: tuple[Counts, ...]

    def __len__(self) -> int:
        return len(self.simulations)

    def _share(self, of: str, among: str) -> Share:
        held, total = self._column(of), self._column(among)
        if not total.sum():
            return Share(float("nan"), float("nan"))
        value = held.sum() / total.sum()
        if len(self) == 1:
            return Share(float(value), float("nan"))
        # Items and pairs of one simulation are dependent, so simulations are what is independent (ratio estimator).
        residual = (held - value * total) / total.mean()
        return Share(float(value), float(np.sqrt(residual.var(ddof=1) / len(self))))

    def _column(self, name: str) -> FloatArray:
        return np.array([getattr(counts, name) for counts in self.simulations], dtype=np.float64)

    @property
    def scores(self) -> Share:
        """Share of score intervals that contain the true score."""
        return self._share("scores_held", "items")

    @property
    def ranks(self) -> Share:
        """Share of rank intervals that contain the true rank."""
        return self._share("ranks_held", "items")

    @property
    def claims_right(self) -> Share:
        """Share of claimed orders that are right; nan if none is claimed."""
        return self._share("claims_right", "claims")

    @property
    def claimed(self) -> Share:
        """Share of pairs whose order is claimed."""
        return self._share("claims", "pairs")

    @property
    def claims(self) -> int:
        """Number of claimed orders in all simulations."""
        return round(float(self._column("claims").sum()))

    @property
    def split(self) -> Share:
        """Share of tables with several tie groups."""
        return self._share("split", "tables")

    @property
    def correlation(self) -> float:
        """Mean Kendall correlation with the truth."""
        found = self._column("correlation")
        return float("nan") if np.isnan(found).all() else float(np.nanmean(found))

    def as_dict(self) -> dict[str, Any]:
        """Return shares with standard errors as plain values for JSON; None where nothing was counted."""
        names = ("scores", "ranks", "claims_right", "claimed", "split")
        found: dict[str, Any] = {"simulations": len(self), "claims": self.claims}
        for name in names:
            share: Share = getattr(self, name)
            found |= {name: finite(share.value), f"{name}_std_error": finite(share.std_error)}
        return found | {"correlation": finite(self.correlation)}


def finite(value: float) -> float | None:
    """JSON has no nan."""
    return float(value) if np.isfinite(value) else None
