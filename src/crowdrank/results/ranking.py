"""The result of a fit: scores and ranks of the items, their uncertainty, and notes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Items, Judgments
from crowdrank.errors import AmbiguousNameError, DataError, SettingError, UnknownNameError
from crowdrank.results.parts import (
    CLOSED_FORM,
    Annotators,
    Convergence,
    LazyParts,
    RankedItem,
    Uncertainty,
    as_native,
)
from crowdrank.results.ranks import tie_groups
from crowdrank.results.scales import Scale

if TYPE_CHECKING:
    from crowdrank.evaluation import Verdicts
    from crowdrank.results.domains import Domains
    from crowdrank.results.drift import Drift

_TOP_IN_REPR = 5

# Annotators whose names a note shows.
_NAMES_IN_NOTE = 5


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Ranking:
    """Scores of items within queries, with their uncertainty and what else the model estimated.

    A ranking behaves like a small mapping from items to rows: ``ranking["Tokyo"]``, ``"Tokyo" in ranking``,
    ``len(ranking)``, and iteration over the items, best first. With queries the keys are pairs: ``ranking["q1",
    "Tokyo"]``. A notebook shows a ranking as a table. Uncertainty, annotators, domains and notes are computed when they
    are first used.

    Parameters
    ----------
    model : str
        Name of the model, for example "crowd-bt".
    settings : mapping
        Settings of the model.
    items : Items
        The items, query after query.
    scores : array of float
        One score per item; larger is better. Scores of different queries cannot be compared.
    judgment_kind : str, default "comparisons"
        What was counted in `n_judgments`: "comparisons", "lists" or "ratings".
    parameters : mapping of str to float, optional
        Other estimates, for example how often annotators answer with a tie.
    item_parameters : mapping of str to array of float, optional
        Other estimates with one value per item, for example how often an item is tied.
    log_likelihood : float, optional
        Log-likelihood (or log posterior) at the estimate.
    convergence : Convergence, default CLOSED_FORM
        Whether the solver converged.
    native : str, default "polars"
        Data frame library of the tables, the one that the judgments came in.
    simultaneous : bool, default False
        Whether rank intervals hold for all items of a query together, unless `table` is told otherwise.
    scale : Scale, optional
        The scale on which tables show the scores; by default the unit of the model.
    provisional : Ranking, optional
        Items with too few judgments for a rank, if `crowdrank.rank` was told to set them apart.
    overall : Ranking, optional
        The ranking over all queries, if the queries are categories of the same items that were pooled.
    drift : Drift, optional
        Scores over time, if `crowdrank.rank` was told to estimate them; `scores` are those of the last period.

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Comparisons
    >>> votes = Comparisons.of(["a", "b", "a"] * 9, ["b", "c", "c"] * 9, ["a", "b", "a"] * 6 + ["b", "c", "a"] * 3)
    >>> ranking = BradleyTerry().fit(votes)
    >>> list(ranking)
    ['a', 'b', 'c']
    >>> ranking["b"].rank
    2
    >>> ranking.probability("a", "c") > 0.9
    True
    """

    model: str
    settings: Mapping[str, Any]
    items: Items
    scores: FloatArray
    judgment_kind: str = "comparisons"
    parameters: Mapping[str, float] = field(default_factory=dict)
    item_parameters: Mapping[str, FloatArray] = field(default_factory=dict)
    log_likelihood: float | None = None
    convergence: Convergence = CLOSED_FORM
    native: str = "polars"
    simultaneous: bool = False
    scale: Scale | None = None
    provisional: Ranking | None = None
    overall: Ranking | None = None
    drift: Drift | None = None
    _lazy: LazyParts

    def with_parts(
        self,
        *,
        uncertainty: Callable[[], Uncertainty] | None = None,
        annotators: Callable[[], Annotators] | None = None,
        domains: Callable[[], Domains] | None = None,
        notes: Callable[[], list[str]] | None = None,
        judgments: Judgments | None = None,
    ) -> Ranking:
        """Return a copy that computes some of its lazy parts by other functions. For authors of models.

        Parameters
        ----------
        uncertainty, annotators, domains, notes : callable, optional
            Functions without arguments that return the part of that name.
        judgments : Judgments, optional
            The judgments behind the ranking.
        """
        given = {
            "uncertainty": uncertainty,
            "annotators": annotators,
            "domains": domains,
            "notes": notes,
            "judgments": judgments,
        }
        changed: dict[str, Any] = {name: part for name, part in given.items() if part is not None}
        return replace(self, _lazy=replace(self._lazy, **changed))

    def on_scale(self, scale: Scale | None) -> Ranking:
        """Return a copy whose tables show the scores on another scale; see `crowdrank.results.make_scale`."""
        return replace(self, scale=scale, overall=self.overall and self.overall.on_scale(scale))

    def without_uncertainty(self) -> Ranking:
        """Return a copy without uncertainty."""
        overall = self.overall and self.overall.without_uncertainty()
        return replace(self, _lazy=replace(self._lazy, uncertainty=None), overall=overall)

    def __repr__(self) -> str:
        first = self.order[self.items.of_query(0)][:_TOP_IN_REPR]
        shown = ", ".join(f"{self.items.labels[n]} {self.shown_scores[n]:.2f}" for n in first)
        queries = f" in {len(self.items.queries):,} queries" if self.items.has_queries else ""
        where = f"{self.items.queries[0]}: " if queries else ""
        more = ", …" if len(self) > len(first) else ""
        return f"<Ranking of {len(self):,} items{queries} by {self.model}: {where}{shown}{more}>"

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows."""
        from crowdrank.results.display import ranking_html

        return ranking_html(self)

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the items, best first; over pairs of query and item if there are queries."""
        labels = [str(label) for label in self.items.labels[self.order]]
        if not self.items.has_queries:
            return iter(labels)
        return zip(map(str, self.items.queries[self.items.query[self.order]]), labels, strict=True)

    def __contains__(self, key: object) -> bool:
        return len(self._positions(key)) > 0

    def __getitem__(self, key: object) -> RankedItem:
        """Return the row of an item, or of a pair of query and item."""
        found = self._positions(key)
        if not len(found):
            raise self._unknown(key)
        if len(found) > 1:
            queries = [str(self.items.queries[self.items.query[n]]) for n in found]
            raise AmbiguousNameError(
                f"{key!r} is an item of {len(queries):,} queries: name the query too, as in "
                f"ranking[{queries[0]!r}, {str(key)!r}]."
            )
        return self._row(int(found[0]))

    def _positions(self, key: object) -> IntArray:
        if isinstance(key, tuple) and len(key) == 2:
            query, item = map(str, key)
            return np.flatnonzero((self.items.labels == item) & (self.items.queries[self.items.query] == query)).astype(
                np.int64
            )
        return np.flatnonzero(self.items.labels == str(key)).astype(np.int64)

    def _unknown(self, key: object) -> UnknownNameError:
        if isinstance(key, tuple) and len(key) == 2:
            query, item = map(str, key)
            if query not in self.items.queries.tolist():
                return UnknownNameError("query", query, self.items.queries)
            return UnknownNameError("item", item, self.items.labels[self.items.of_query(self.items.query_code(query))])
        return UnknownNameError("item", key, dict.fromkeys(self.items.labels))

    def _row(self, n: int) -> RankedItem:
        row = RankedItem(
            rank=int(self.rank[n]),
            item=str(self.items.labels[n]),
            score=float(self.shown_scores[n]),
            query=str(self.items.queries[self.items.query[n]]) if self.items.has_queries else None,
        )
        if not self.has_uncertainty:
            return row
        low, high = self._rank_intervals
        return replace(
            row,
            std_error=float(self.shown_errors[n]),
            rank_low=int(low[n]),
            rank_high=int(high[n]),
            group=int(self.groups[n]),
        )

    @property
    def has_uncertainty(self) -> bool:
        """Whether `uncertainty` is available."""
        return self._lazy.uncertainty is not None

    @property
    def has_annotators(self) -> bool:
        """Whether the model estimated something about the annotators."""
        return self._lazy.annotators is not None

    @property
    def has_domains(self) -> bool:
        """Whether the model estimated domains of queries."""
        return self._lazy.domains is not None

    @cached_property
    def n_judgments(self) -> IntArray:
        """Number of judgments in which each item appears."""
        return self._lazy.n_judgments()

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """Joint draws of the scores and their standard errors."""
        if self._lazy.uncertainty is None:
            raise DataError(f"This ranking by {self.model} was made or saved without uncertainty.")
        return self._lazy.uncertainty()

    @cached_property
    def annotators(self) -> Annotators:
        """Estimates of each annotator."""
        if self._lazy.annotators is None:
            raise DataError(
                f"{self.model} has no estimates of annotators: the model does not estimate them, or the judgments do "
                "not name annotators."
            )
        return replace(self._lazy.annotators(), native=self.native)

    @cached_property
    def domains(self) -> Domains:
        """Domains of queries, with the expertise of each annotator in each domain."""
        if self._lazy.domains is None:
            raise DataError(f"{self.model} has no estimates of domains: fit tpp or trm.")
        return replace(self._lazy.domains(), native=self.native)

    @property
    def judgments(self) -> Judgments:
        """The judgments that the ranking was fitted to."""
        if self._lazy.judgments is None:
            raise DataError("This ranking has no judgments, for example because it was loaded from a file.")
        return self._lazy.judgments

    @cached_property
    def notes(self) -> list[str]:
        """What the reader of the ranking should know about the data and the fit, one sentence each."""
        found = [] if self.convergence.converged else [self.convergence.describe(self.model)]
        found += [] if self._lazy.notes is None else self._lazy.notes()
        if self.has_annotators:
            found += _reversed_note(self.annotators.reversed)
        return list(dict.fromkeys(found))  # a loaded ranking has stored them all

    def verdicts(self, **settings: Any) -> Verdicts:
        """Test each annotator against the answers of the others.

        Parameters
        ----------
        **settings
            Passed to `crowdrank.evaluation.verdicts`: `level`, `folds`, `seed`, `model`.

        Returns
        -------
        Verdicts
            One verdict and its reason per annotator.
        """
        from crowdrank.data import Comparisons
        from crowdrank.evaluation import verdicts

        if not isinstance(self.judgments, Comparisons):
            raise DataError(
                f"Verdicts need comparisons that annotators made one by one, got {type(self.judgments).__name__}."
            )
        return verdicts(self.judgments, **settings)

    @property
    def shown_scores(self) -> FloatArray:
        """The scores on the scale of the tables."""
        return self.scores if self.scale is None else self.scale.show(self.scores)

    @property
    def shown_errors(self) -> FloatArray:
        """The standard errors on the scale of the tables."""
        error = self.uncertainty.std_error
        return error if self.scale is None else self.scale.show_error(self.scores, error)

    @cached_property
    def order(self) -> IntArray:
        """Positions of the items from best to worst, query after query."""
        return np.lexsort((-self.scores, self.items.query))

    @cached_property
    def rank(self) -> IntArray:
        """Rank of each item within its query, 1 for the best; equal scores share the better rank."""
        ordered, query = self.scores[self.order], self.items.query[self.order]
        is_new = np.append(True, (ordered[1:] != ordered[:-1]) | (query[1:] != query[:-1]))
        position = np.arange(len(ordered)) - self.items.starts[query] + 1
        first_of_tie = np.maximum.accumulate(np.where(is_new, np.arange(len(ordered)), 0))
        rank = np.empty(len(ordered), np.int64)
        rank[self.order] = position[first_of_tie]
        return rank

    @cached_property
    def groups(self) -> IntArray:
        """Tie group of each item within its query, 1 for the best.

        The first item of each group is above all items of later groups; all of this is true together with probability
        0.95. The order within a group is uncertain.
        """
        return tie_groups(self.uncertainty.draws, self.items, self.order)

    @cached_property
    def _rank_intervals(self) -> tuple[IntArray, IntArray]:
        return self.rank_intervals()

    def rank_intervals(self, level: float = 0.95, simultaneous: bool | None = None) -> tuple[IntArray, IntArray]:
        """Return the lower and upper ends of the rank intervals, one per item. See `table`."""
        _check_level(level)
        together = self.simultaneous if simultaneous is None else simultaneous
        return self.uncertainty.rank_intervals(self.items, self.rank, level, together)

    def probability(self, a: object, b: object, query: object | None = None) -> float:
        """Return the probability that item `a` truly scores above item `b`.

        Parameters
        ----------
        a, b : str
            Labels of two items.
        query : str, optional
            Their query; may be left out if there is only one.
        """
        return self.uncertainty.probability_above(self.scores, self.items.index(a, query), self.items.index(b, query))

    def table(
        self,
        query: object | None = None,
        level: float = 0.95,
        uncertainty: bool = True,
        simultaneous: bool | None = None,
    ) -> Any:
        """Return one row per item, best first, as the kind of data frame that the judgments came in.

        Parameters
        ----------
        query : str, optional
            Return the items of this query only.
        level : float, default 0.95
            Coverage of the rank intervals.
        uncertainty : bool, default True
            Whether to add std_error, rank_low, rank_high and group.
        simultaneous : bool, optional
            Whether `level` is the probability that all rank intervals of a query hold together, as for a published
            table. Otherwise each interval by itself holds with that probability. Default: as the ranking was made.
        """
        frame = self.to_polars(level, uncertainty, simultaneous)
        if query is not None:
            frame = frame[self.items.of_query(self.items.query_code(query))]  # rows go query by query, as items do
        return as_native(frame, self.native)

    def to_polars(
        self, level: float = 0.95, uncertainty: bool = True, simultaneous: bool | None = None
    ) -> pl.DataFrame:
        """Return the table as a polars data frame. See `table`."""
        return _frame(self, level, uncertainty, simultaneous)

    def to_pandas(self, level: float = 0.95, uncertainty: bool = True, simultaneous: bool | None = None) -> Any:
        """Return the table as a pandas data frame. See `table`."""
        return as_native(self.to_polars(level, uncertainty, simultaneous), "pandas")

    def plot(self, query: object | None = None, *, top: int = 30, level: float = 0.95, uncertainty: bool = True) -> Any:
        """Draw the best items with the intervals of their scores, as an Altair chart.

        Neighbouring tie groups differ in colour. ``.save("ranking.svg")`` writes it. Needs the extra `reports`.

        Parameters
        ----------
        query : str, optional
            Draw this query only; otherwise the first twelve queries, one below the other.
        top : int, default 30
            Number of items per query.
        level, uncertainty : float, default 0.95, and bool, default True
            Coverage of the intervals, and whether to draw them.
        """
        from crowdrank.results.display import plot

        return plot(self, query, top, level, uncertainty)

    def report(self, path: str | PathLike[str], **content: Any) -> None:
        """Write an HTML report: one self-contained page with tables and figures.

        Parameters
        ----------
        path : path
            File to write, .html.
        **content
            Passed to `crowdrank.reports.Findings`: `title`, `level`, `evaluation`, `systems`, …
        """
        from crowdrank.reports import Findings, write_report

        write_report(Findings.of(self, **content), path)

    def save(self, path: str | Path, uncertainty: bool = True) -> None:
        """Write the ranking as JSON.

        Parameters
        ----------
        path : path
            File to write.
        uncertainty : bool, default True
            Whether to store the draws; without them the file is small.
        """
        from crowdrank.results.saving import save

        save(self, path, uncertainty)

    @classmethod
    def load(cls, path: str | Path) -> Ranking:
        """Read a ranking that `save` wrote."""
        from crowdrank.results.saving import load

        return load(path)


def _frame(ranking: Ranking, level: float, uncertainty: bool, simultaneous: bool | None) -> pl.DataFrame:
    """Return one row per item, best first; see `Ranking.table`."""
    _check_level(level)
    order, items = ranking.order, ranking.items
    columns: dict[str, Any] = {}
    if items.has_queries:
        columns["query"] = items.queries[items.query[order]].tolist()
    scores = ranking.shown_scores[order]
    columns |= {"rank": ranking.rank[order], "item": items.labels[order].tolist(), "score": scores}
    if uncertainty and ranking.has_uncertainty:
        low, high = ranking.rank_intervals(level, simultaneous)
        columns |= {
            "std_error": ranking.shown_errors[order],
            "rank_low": low[order],
            "rank_high": high[order],
            "group": ranking.groups[order],
        }
    columns[ranking.judgment_kind] = ranking.n_judgments[order]
    return pl.DataFrame(columns)


def _check_level(level: float) -> None:
    """Raise if the level is not a probability."""
    if not 0 < level < 1:
        raise SettingError(f"level must be between 0 and 1, got {level}.")


def _reversed_note(names: list[str]) -> list[str]:
    """Return a sentence on annotators who answer in reverse, if there are any."""
    if not names:
        return []
    shown = ", ".join(names[:_NAMES_IN_NOTE]) + (", …" if len(names) > _NAMES_IN_NOTE else "")
    who = "1 annotator appears" if len(names) == 1 else f"{len(names):,} annotators appear"
    return [f"{who} to answer in reverse, so their answers count in the opposite direction: {shown}."]
