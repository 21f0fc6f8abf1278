"""Several leaderboards in one run: a category of votes each, or a criterion each, and the overall of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from crowdrank.arrays import IntArray
from crowdrank.data import Comparisons, Items, Judgments
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.models import Model
from crowdrank.models.selection import ModelChoice, has_setting, models_with
from crowdrank.results import LazyParts, Ranking, Uncertainty

if TYPE_CHECKING:
    from crowdrank.pipeline.sources import RankOptions

_DEFAULT = "bradley-terry"


def check_combinable(options: RankOptions, uncertainty: str, compares_models: bool, names_query: bool) -> None:
    """Raise for options that do not go with several leaderboards."""
    if options.weights and not options.criteria:
        raise SettingError("weights= belong to criteria: pass criteria=.")
    if not options.board_column and not options.criteria:
        return
    what = "by=" if options.by else "criteria="
    if options.by and options.criteria:
        raise SettingError("by= and criteria= cannot be combined: each makes several leaderboards.")
    if names_query:
        raise SettingError(f"{what} ranks the same items several times, so query= cannot be used as well.")
    if options.link_to is not None or options.system is not None:
        other = "link_to=" if options.link_to is not None else "system="
        raise SettingError(f"{what} cannot be combined with {other}.")
    if not options.by:
        return
    if options.control or options.cluster is not None:
        raise SettingError(f"by= cannot be combined with {'control=True' if options.control else 'cluster='}.")
    if uncertainty == "bootstrap":
        raise SettingError("by= has errors by the model only: leave uncertainty='bootstrap' out.")
    if compares_models:
        raise SettingError("by= needs bradley-terry or thurstone; model='auto' compares others too.")


def default_for_categories(judgments: Judgments) -> ModelChoice:
    """The model of leaderboards by category where the user names none."""
    several = judgments.annotator is not None and len(judgments.annotators) > 1
    alike = " The quality of annotators is not modelled: all count alike." if several else ""
    return ModelChoice(_DEFAULT, f"Categories are drawn towards the overall as far as they are alike.{alike}")


def pooling_settings(model: type[Model], name: str) -> dict[str, Any]:
    """Partial pooling as a setting of the model; raises if it cannot pool categories."""
    if has_setting(model, "pooling"):
        return {"pooling": "partial"}
    able = " or ".join(models_with("pooling"))
    raise SettingError(f"{name} does not pool categories: by= needs {able}, in which all annotators count alike.")


def as_boards(judgments: Judgments, column: str) -> Judgments:
    """Judgments in memory with the values of a column as queries; "query" are the queries that they have."""
    if column == "query" and judgments.items.has_queries:
        return judgments
    if not isinstance(judgments, Comparisons) or column not in judgments.features:
        raise DataError(f"These judgments have no column {column!r} to rank by.")
    if judgments.items.has_queries:
        raise DataError(f"Rank by {column!r} judgments without queries: these have some.")
    names, board = np.unique(np.asarray(judgments.features[column]).astype(str), return_inverse=True)
    size = len(judgments.items)
    sides = [board.astype(np.int64).ravel() * size + side for side in (judgments.left, judgments.right)]
    used, code = np.unique(np.concatenate(sides), return_inverse=True)
    left, right = np.split(code.astype(np.int32).ravel(), 2)
    items = Items(judgments.items.labels[used % size], (used // size).astype(np.int32), names.astype(object))
    return replace(judgments, items=items, left=left, right=right, storage=None)


def check_boards(judgments: Judgments, options: RankOptions) -> None:
    """Raise if there is a single category or criterion, or a weight is not that of a criterion."""
    names = [str(name) for name in judgments.items.queries]
    if len(names) < 2:
        what = f"by={options.by!r}" if options.by else f"criteria={list(options.criteria)!r}"
        found = f"only {names[0]!r}" if judgments.items.has_queries else "none"
        raise DataError(f"{what} needs at least two different values, and there is {found}.")
    for name in options.weights:
        if name not in names:
            raise UnknownNameError("criterion", name, names)


def join_criteria(columns: tuple[str, ...], read: Callable[[str], Comparisons]) -> Comparisons:
    """The comparisons by several columns of winners, each a criterion; a criterion is named like its column."""
    frames, backend, known = [], "polars", True
    for column in columns:
        votes = read(column)
        backend, known = votes.frame_backend, known and votes.positions_known
        frame: Any = replace(votes, frame_backend="polars").to_frame()
        frames.append(frame.with_columns(pl.lit(column).alias("query")))
    joined = pl.concat(frames, how="diagonal")
    optional = {name: joined[name] for name in ("annotator", "weight") if name in joined.columns}
    return Comparisons.of(
        joined["left"],
        joined["right"],
        joined["winner"],
        query=joined["query"],
        positions_known=known,
        frame_backend=backend,
        **optional,
    )


def with_weighted_overall(ranking: Ranking, weights: Mapping[str, float]) -> Ranking:
    """Return a ranking by criteria (its queries) with an overall: the weighted mean of the scores of each item.

    Parameters
    ----------
    ranking : Ranking
        A ranking with one query per criterion.
    weights : mapping of str to float
        Weights of criteria; one that is not named has the weight 1.

    Notes
    -----
    Items that some criterion with a weight does not have are left out of the overall.
    """
    queries = [str(name) for name in ranking.items.queries]
    share = np.array([float(weights.get(name, 1.0)) for name in queries])
    if not share.any():
        raise SettingError("weights= must not be 0 for all criteria.")
    share = share / share.sum()
    place = {(int(q), str(label)): n for n, (q, label) in enumerate(zip(*_columns(ranking), strict=True))}
    counted = np.flatnonzero(share > 0)
    labels = sorted({str(label) for label in ranking.items.labels})
    kept = [label for label in labels if all((int(q), label) in place for q in counted)]
    if len(kept) < 2:
        raise DataError("Fewer than two items were judged by every criterion that has a weight.")
    at = np.array([[place[int(q), label] for label in kept] for q in counted])
    own = share[counted]

    def combine(values: Any) -> Any:
        mean = np.einsum("c,...ci->...i", own, values[..., at])
        return mean - mean.mean(axis=-1, keepdims=True)

    def measure() -> Uncertainty:
        whole = ranking.uncertainty
        draws = combine(whole.draws)
        return replace(whole, draws=draws, std_error=np.std(draws, axis=0))

    def count() -> IntArray:
        return np.asarray(ranking.n_judgments[at].sum(axis=0))

    left_out = len(labels) - len(kept)
    sentence = f"The overall leaves out {left_out:,} of {len(labels):,} items, which some criterion does not have."
    overall = replace(
        ranking,
        items=Items.of(kept),
        scores=combine(ranking.scores),
        parameters={f"weight_of_{name}": float(value) for name, value in zip(queries, share, strict=True)},
        item_parameters={},
        log_likelihood=None,
        _lazy=LazyParts(
            n_judgments=count,
            uncertainty=measure if ranking.has_uncertainty else None,
            notes=lambda: [sentence] if left_out else [],
        ),
    )
    return replace(ranking, overall=overall)


def _columns(ranking: Ranking) -> tuple[list[int], list[str]]:
    return ranking.items.query.tolist(), ranking.items.labels.tolist()
