"""How fragile the first place is: the fewest votes or annotators whose removal gives it to another item.

Removing judgment k changes the scores by about −H⁻¹xₖ·wₖgₖ/(1 − hₖ): a Newton step, with H the curvature of the log
posterior, x = e_left − e_right, g the derivative of the judgment's log probability in the margin, and h = w·I·xᵀH⁻¹x
its leverage (Cook & Weisberg 1982). The judgments that widen the lead of the first item most are removed, half of the
number that seems necessary at a time, and the model is fitted again, until another item is first (Broderick, Giordano
& Meager 2023). A bisection over the last step finds the smallest set in this order that is enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import LEFT, TIE, Comparisons, Items, Judgments, SideInformation
from crowdrank.errors import DataError, SettingError, UnknownNameError, muted_warnings
from crowdrank.evaluation.cross_validation import fit_quietly
from crowdrank.evaluation.explanation import MAX_ITEMS, RELIABILITY_ESTIMATE, derivatives
from crowdrank.evaluation.metrics import kendall_correlation
from crowdrank.models import Model, by_name, name_of
from crowdrank.models.selection import convert_for, default_model
from crowdrank.results import Ranking
from crowdrank.results.parts import Tabular

# How a ranking changes without some of the annotators.


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RankChanges(Tabular):
    """Rankings of the same items with and without some annotators.

    Parameters
    ----------
    excluded : tuple of str
        The annotators left out.
    n_judgments : int
        Number of judgments left out.
    before, after : Ranking
        The rankings with and without these annotators.
    still_judged : array of bool
        Whether an item is judged by anyone else; without judgments its new rank means nothing.
    converged : bool
        Whether both fits converged.
    """

    excluded: tuple[str, ...]
    n_judgments: int
    before: Ranking
    after: Ranking
    still_judged: BoolArray
    converged: bool

    def __repr__(self) -> str:
        return (
            f"<RankChanges without {len(self.excluded):,} annotators: "
            f"{self.n_moved:,} of {len(self.still_judged):,} items>"
        )

    @property
    def native(self) -> str:  # type: ignore[override]
        """Data frame library of `frame`."""
        return self.before.native

    @property
    def n_moved(self) -> int:
        """Number of items that change their rank."""
        return int(np.count_nonzero((self.before.rank != self.after.rank) & self.still_judged))

    @property
    def correlation(self) -> float:
        """Kendall's tau-b between the two rankings; the mean over queries in which it is defined."""
        blocks = [self.before.items.of_query(code) for code in range(len(self.before.items.queries))]
        values = [kendall_correlation(self.after.scores[block], self.before.scores[block]) for block in blocks]
        defined = [value for value in values if value == value]
        return float(np.mean(defined)) if defined else np.nan

    def to_polars(self) -> pl.DataFrame:
        """Return one row per item in the order of `before`; `moved` counts ranks, positive for up."""
        order, items = self.before.order, self.before.items
        without = pl.Series(np.where(self.still_judged, self.after.rank, 0)[order]).replace(0, None)
        columns: dict[str, Any] = {"query": items.queries[items.query[order]].tolist()} if items.has_queries else {}
        columns |= {
            "item": items.labels[order].tolist(),
            "rank": self.before.rank[order],
            "rank_without": without,
            "score": self.before.scores[order],
            "score_without": self.after.scores[order],
        }
        return pl.DataFrame(columns).with_columns((pl.col("rank") - pl.col("rank_without")).alias("moved"))


def remove_annotators(
    model: Model,
    judgments: Judgments,
    annotators: Iterable[str],
    *,
    side_information: SideInformation | None = None,
) -> RankChanges:
    """Fit a model with and without some annotators.

    Parameters
    ----------
    model : Model
        The model to fit.
    judgments : Judgments
        Judgments with annotators.
    annotators : iterable of str
        Annotators to leave out.
    side_information : SideInformation, optional
        Given to both fits.

    Returns
    -------
    RankChanges
        Both rankings, and how far each item moves.

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Comparisons
    >>> votes = Comparisons.of(["a", "a", "b"], ["b", "b", "a"], ["a", "b", "b"], annotator=["ann", "bob", "bob"])
    >>> remove_annotators(BradleyTerry(), votes, ["bob"]).frame()["moved"].to_list()
    [-1, 1]
    """
    if judgments.annotator is None:
        raise DataError("Cannot leave out annotators: these judgments do not name them.")
    names = tuple(dict.fromkeys(annotators))
    codes = {str(label): code for code, label in enumerate(judgments.annotators)}
    for name in names:
        if name not in codes:
            raise UnknownNameError("annotator", name, codes)
    removed = np.isin(judgments.annotator, [codes[name] for name in names])
    if removed.all():
        raise DataError("Cannot leave out all annotators: no judgments would remain.")
    rest = judgments.take(np.flatnonzero(~removed))
    (before, converged), (after, converged_without) = (
        fit_quietly(model, judgments, side_information),
        fit_quietly(model, rest, side_information),
    )
    return RankChanges(
        excluded=names,
        n_judgments=int(np.count_nonzero(removed)),
        before=before,
        after=after,
        still_judged=rest.n_judgments_per_item > 0,
        converged=converged and converged_without,
    )


_MAX_CHALLENGERS, _MAX_SEARCHED = 20, 4
"""Number of items preselected by how far they are behind in squared standard errors, and number that is searched."""
_ALSO_SEARCHED = 1.3
_MAX_SHARE = 0.5
"""The search ends when more than this share of the judgments or annotators would have to be removed."""
_MAX_FITS = 60


@dataclass(frozen=True, kw_only=True)
class Fragility:
    """The smallest set of votes or annotators found whose removal changes the first place.

    Parameters
    ----------
    item : str
        The first item.
    successor : str or None
        The item that is first without the set; None if no set was found.
    query : str or None
        Their query.
    model : str
        Name of the model.
    by : {"votes", "annotators"}
        What is removed.
    rows : array of int
        Positions of the removed judgments.
    annotators : tuple of str
        The removed annotators; empty if votes are removed.
    n_judgments : int
        Number of judgments of the query.
    n_annotators : int
        Number of annotators; 0 if they are unknown.
    before, after : float
        Score of the first item minus that of the successor, with all judgments and in the refit without the set.
    fits : int
        Number of fits that the search needed.
    removed : polars.DataFrame
        The removed judgments: winner, loser, how many, and how many of these are ties.
    """

    item: str
    successor: str | None
    query: str | None
    model: str
    by: str
    rows: IntArray
    annotators: tuple[str, ...]
    n_judgments: int
    n_annotators: int
    before: float
    after: float
    fits: int
    removed: pl.DataFrame

    def __repr__(self) -> str:
        return f"<Fragility by {self.by}: {self.sentence()}>"

    @property
    def size(self) -> int:
        """Number of votes, or of annotators, in the set."""
        return len(self.rows) if self.by == "votes" else len(self.annotators)

    def sentence(self) -> str:
        """Return the result in one sentence."""
        if self.successor is None:
            return f"No set of {self.by} was found whose removal takes the first place from {self.item}."
        if self.by == "votes":
            what, total = ("vote" if self.size == 1 else "votes"), self.n_judgments
        else:
            what, total = ("annotator" if self.size == 1 else "annotators"), self.n_annotators
        return (
            f"Without {self.size:,} of {total:,} {what if total == 1 else self.by} ({self.size / total:.1%}), "
            f"{self.successor} would be first instead of {self.item}."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as a dictionary that can be written as JSON."""
        plain = ("item", "successor", "query", "model", "by", "size", "n_judgments", "n_annotators", "fits")
        return {name: getattr(self, name) for name in plain} | {
            "before": self.before,
            "after": None if np.isnan(self.after) else self.after,
            "annotators": list(self.annotators),
            "rows": self.rows.tolist(),
            "removed": self.removed.to_dicts(),
        }


def fragility(
    judgments: Judgments,
    *,
    by: Literal["votes", "annotators"] = "votes",
    query: object | None = None,
    model: str | Model | None = None,
) -> Fragility:
    """Find the fewest votes or annotators whose removal changes the first place.

    Parameters
    ----------
    judgments : Judgments
        The judgments. Ratings and rankings are converted to comparisons.
    by : {"votes", "annotators"}, default "votes"
        Whether single votes are removed, or annotators with all their votes.
    query : str, optional
        The query; may be left out if there is only one.
    model : str or Model, optional
        bradley-terry, crowd-bt or factor-bt; by default that of `crowdrank.rank`, if it is one of these.

    Returns
    -------
    Fragility
        The set, the item that is first without it, and the refit that confirms it. A smaller set may exist: the search
        is guided by influence and does not try all sets.

    Examples
    --------
    >>> votes = Comparisons.of(["a"] * 9 + ["b"] * 9, ["b"] * 9 + ["c"] * 9, ["a"] * 5 + ["b"] * 11 + ["c"] * 2)
    >>> found = fragility(votes, model="bradley-terry")
    >>> found.sentence()
    'Without 1 of 18 votes (5.6%), b would be first instead of a.'
    """
    if by not in ("votes", "annotators"):
        raise SettingError(f"by must be votes or annotators, got {by!r}.")
    if model is None:
        model = default_model(judgments, among=RELIABILITY_ESTIMATE).name
    fitted = by_name(model)() if isinstance(model, str) else model
    if name_of(fitted) not in RELIABILITY_ESTIMATE:
        raise SettingError(f"{name_of(fitted)} cannot be explained: use one of {', '.join(RELIABILITY_ESTIMATE)}.")
    comparisons, _ = convert_for(fitted, judgments)
    assert isinstance(comparisons, Comparisons)
    if query is None and len(comparisons.items.queries) > 1:
        raise SettingError(f"There are {len(comparisons.items.queries):,} queries: name one of them.")
    search = _Search(fitted, comparisons, 0 if query is None else comparisons.items.query_code(query), by)
    return search.result(*search.smallest())


class _Search:
    """The search in one query. A unit is a judgment or an annotator."""

    def __init__(self, model: Model, comparisons: Comparisons, query: int, by: str):
        self.model, self.comparisons, self.by = model, comparisons, by
        self.block, self.query = comparisons.items.of_query(query), query
        self.n_items = self.block.stop - self.block.start
        if self.n_items > MAX_ITEMS:
            raise DataError(f"Explaining needs a query of at most {MAX_ITEMS:,} items, got {self.n_items:,}.")
        if self.n_items < 2:
            raise DataError("The first place needs a query of at least two items.")
        own = (comparisons.left >= self.block.start) & (comparisons.left < self.block.stop)
        self.rows = np.flatnonzero(own)
        if by == "annotators":
            if comparisons.annotator is None:
                raise DataError("by='annotators': these judgments do not name annotators.")
            # Annotators of other queries have no influence, and removing them from this query removes nothing.
            self.unit = np.where(own, comparisons.annotator, -1).astype(np.int64)
            self.n_units = len(comparisons.annotators)
        else:
            self.unit = np.full(len(comparisons), -1, np.int64)
            self.unit[self.rows] = np.arange(len(self.rows))
            self.n_units = len(self.rows)
        self.fits = 0
        self.base = self.fit(np.zeros(self.n_units, bool), None)
        self.first = self.block.start + int(np.argmax(self.base.scores[self.block]))

    def fit(self, removed: BoolArray, init: Ranking | None) -> Ranking:
        self.fits += 1
        rest = self.comparisons.take(np.flatnonzero(~self._gone(removed)))
        with muted_warnings():
            return self.model.fit(rest, init=init if self.model.supports_warm_start else None)

    def _gone(self, removed: BoolArray) -> BoolArray:
        return np.asarray((self.unit >= 0) & removed[self.unit])

    def leader(self, ranking: Ranking) -> int:
        """The first item; the original one if it shares the first place."""
        best = int(np.argmax(ranking.scores[self.block])) + int(self.block.start)
        return best if ranking.scores[best] > ranking.scores[self.first] else self.first

    def influence(self, ranking: Ranking, removed: BoolArray) -> _Influence:
        """What the judgments that are left contribute."""
        rows = self.rows[~self._gone(removed)[self.rows]]
        return _Influence(self, ranking, self.comparisons.take(rows), self.unit[rows])

    def smallest(self) -> tuple[IntArray, Ranking | None]:
        """The smallest set of units found, in the order of removal, and the refit without it."""
        influence = self.influence(self.base, np.zeros(self.n_units, bool))
        expected = {other: influence.units_needed(other)[1] for other in influence.challengers()}
        order = sorted(expected, key=lambda other: (expected[other], -self.base.scores[other]))
        best: tuple[IntArray, Ranking | None] = np.zeros(0, np.int64), None
        limit = max(1, int(_MAX_SHARE * self.n_units))
        for other in order[:_MAX_SEARCHED]:
            if expected[other] > _ALSO_SEARCHED * expected[order[0]] + 2:
                break
            found = self._towards(other, limit, influence)
            if found is not None:
                best, limit = found, len(found[0]) - 1
            if limit < 1:
                break
        return best

    def _towards(self, other: int, limit: int, influence: _Influence) -> tuple[IntArray, Ranking] | None:
        """Remove what keeps `other` behind until the first place changes, but at most `limit` units."""
        removed, order, ranking = np.zeros(self.n_units, bool), np.zeros(0, np.int64), self.base
        budget = self.fits + _MAX_FITS
        while self.leader(ranking) == self.first:
            units, needed = influence.units_needed(other)
            # The last few one by one: the effects of votes change while others are removed.
            take = 1 if needed <= 4 else needed // 2
            fresh = units[: max(1, min(take, limit - len(order)))]
            if not len(fresh) or len(order) >= limit or self.fits > budget:
                return None
            kept, order = len(order), np.append(order, fresh)
            removed[fresh] = True
            if self._gone(removed)[self.rows].all():
                return None
            earlier, ranking = ranking, self.fit(removed, ranking)
            influence = self.influence(ranking, removed)
        return self._shortest(order, kept, earlier, ranking)

    def _shortest(self, order: IntArray, low: int, init: Ranking, ranking: Ranking) -> tuple[IntArray, Ranking]:
        """The shortest beginning of `order` that changes the first place; one of length `low` does not."""
        high = len(order)
        while high - low > 1:
            middle = (low + high) // 2
            removed = np.zeros(self.n_units, bool)
            removed[order[:middle]] = True
            refit = self.fit(removed, init)
            if self.leader(refit) == self.first:
                low = middle
            else:
                high, ranking = middle, refit
        return order[:high], ranking

    def result(self, units: IntArray, refit: Ranking | None) -> Fragility:
        items, removed = self.comparisons.items, np.zeros(self.n_units, bool)
        removed[units] = True
        rows = self.rows[self._gone(removed)[self.rows]]
        successor = None if refit is None else self.leader(refit)
        before, after = (
            float("nan") if successor is None or one is None else float(one.scores[self.first] - one.scores[successor])
            for one in (self.base, refit)
        )
        annotated = self.comparisons.annotator is not None
        names = self.comparisons.annotators[units].tolist() if self.by == "annotators" else []
        return Fragility(
            item=str(items.labels[self.first]),
            successor=None if successor is None else str(items.labels[successor]),
            query=str(items.queries[self.query]) if items.has_queries else None,
            model=name_of(self.model),
            by=self.by,
            rows=rows,
            annotators=tuple(map(str, names)),
            n_judgments=len(self.rows),
            n_annotators=len(np.unique(self.comparisons.annotator[self.rows])) if annotated else 0,  # type: ignore[index]
            before=before,
            after=after,
            fits=self.fits,
            removed=_table(self.comparisons.take(rows), items),
        )


class _Influence:
    """Effects of removing units, from one fit."""

    def __init__(self, search: _Search, ranking: Ranking, asked: Comparisons, unit: IntArray):
        self.search, self.ranking, self.unit = search, ranking, unit
        gradient, information = derivatives(search.model, name_of(search.model), ranking, asked)
        start, size = search.block.start, search.n_items
        self.left, self.right = asked.left.astype(np.int64) - start, asked.right.astype(np.int64) - start
        self.gradient, self.information = asked.weights * gradient, asked.weights * information
        matrix = np.bincount(self.left * size + self.right, self.information, size * size).reshape(size, size)
        matrix = -(matrix + matrix.T)
        scale = float(ranking.parameters.get("prior_scale", search.model.prior_scale))  # type: ignore[attr-defined]
        matrix[np.diag_indices(size)] = 1.0 / scale**2 - matrix.sum(axis=1)
        self.covariance = np.linalg.inv(matrix)
        spread = np.diag(self.covariance)
        self.pair_variance = spread[self.left] + spread[self.right] - 2 * self.covariance[self.left, self.right]

    def challengers(self) -> list[int]:
        """The items that few removals may bring to the first place."""
        first, spread = self.search.first - self.search.block.start, np.diag(self.covariance)
        scores = self.ranking.scores[self.search.block]
        variance = spread + spread[first] - 2 * self.covariance[first]
        behind = (scores[first] - scores) / np.maximum(variance, 1e-12)
        behind[first] = np.inf
        return [
            self.search.block.start + int(n) for n in np.argsort(behind, kind="stable")[:_MAX_CHALLENGERS] if n != first
        ]

    def units_needed(self, other: int) -> tuple[IntArray, int]:
        """Units that widen the lead over `other`, largest effect first, and how many must go by these effects."""
        start, first = self.search.block.start, self.search.first
        lead = float(self.ranking.scores[first] - self.ranking.scores[other])
        effect = self._effects(first - start, other - start)
        units = np.argsort(-effect, kind="stable")
        units = units[effect[units] > 0]
        enough = np.cumsum(effect[units]) > lead
        # If all of them are not enough by this estimate, the next fit will say more.
        return units, int(np.argmax(enough)) + 1 if enough.any() else self.search.n_units

    def _effects(self, a: int, b: int) -> FloatArray:
        """By how much the score of a minus that of b falls without each unit."""
        potential = self.covariance[:, a] - self.covariance[:, b]
        difference = potential[self.left] - potential[self.right]
        if self.search.by == "votes":
            leverage = np.minimum(self.information * self.pair_variance, 0.9)
            effect = np.zeros(self.search.n_units)
            effect[self.unit] = difference * self.gradient / (1 - leverage)
            return effect
        # The share of the information about a − b that an annotator contributes is the leverage of a group.
        total = np.bincount(self.unit, difference * self.gradient, self.search.n_units)
        flow = np.bincount(self.unit, self.information * difference**2, self.search.n_units)
        return np.asarray(total / (1 - np.minimum(flow / max(potential[a] - potential[b], 1e-12), 0.9)))


def _table(removed: Comparisons, items: Items) -> pl.DataFrame:
    """Winner, loser and number of removed judgments, largest number first."""
    won = np.where(removed.outcome == LEFT, removed.left, removed.right)
    lost = np.where(removed.outcome == LEFT, removed.right, removed.left)
    frame = pl.DataFrame(
        {
            "winner": items.labels[won].astype(str).tolist(),
            "loser": items.labels[lost].astype(str).tolist(),
            "tie": (removed.outcome == TIE).tolist(),
        },
        schema={"winner": pl.String, "loser": pl.String, "tie": pl.Boolean},
    )
    counted = frame.group_by("winner", "loser").agg(votes=pl.len(), ties=pl.col("tie").sum())
    return counted.sort(["votes", "winner", "loser"], descending=[True, False, False])
