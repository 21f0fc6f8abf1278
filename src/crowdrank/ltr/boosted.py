"""Boosted trees: a non-linear ranking function, trained by LightGBM on the lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data.tables import freeze
from crowdrank.errors import DataWarning, FormatError, SettingError, issue_warning
from crowdrank.ltr.linear import Linear, Ranker, Scorer
from crowdrank.models.lists.plackett_luce_likelihood import RankedLists, log_likelihood

# Trained trees as plain arrays, evaluated without LightGBM.

# Rows evaluated at once: each needs a cell per tree.
_CHUNK_ROWS = 4_096
_MAX_DEPTH = 1_000


@dataclass(frozen=True, eq=False, repr=False)
class TreeEnsemble:
    """The nodes of all trees, as arrays. A leaf is its own left and right child.

    Parameters
    ----------
    roots : array
        Root node of each tree.
    feature, threshold : array
        Per node: a row goes left if this feature is at most the threshold.
    left, right : array
        Children of each node; the node itself for a leaf.
    value : array
        The value that a leaf adds to the score.
    """

    roots: IntArray
    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    value: FloatArray

    def __post_init__(self) -> None:
        freeze(self)

    def __repr__(self) -> str:
        return f"TreeEnsemble({len(self.roots):,} trees, {len(self.feature):,} nodes)"

    def scores(self, features: FloatArray) -> FloatArray:
        steps, rows = self.depth(), len(features)
        parts = [self._evaluate(features[at : at + _CHUNK_ROWS], steps) for at in range(0, rows, _CHUNK_ROWS)]
        return np.concatenate([np.zeros(0), *parts])

    def _evaluate(self, features: FloatArray, steps: int) -> FloatArray:
        row = np.arange(len(features))[:, None]
        node = np.tile(self.roots, (len(features), 1))
        for _ in range(steps):
            goes_left = features[row, self.feature[node]] <= self.threshold[node]
            node = np.where(goes_left, self.left[node], self.right[node])
        return np.asarray(self.value[node].sum(axis=1))

    def depth(self) -> int:
        """Length of the longest path from a root to a leaf (children come after their parents)."""
        height = np.zeros(len(self.feature), np.int64)
        for node in range(len(height) - 1, -1, -1):
            if self.left[node] != node:
                height[node] = 1 + max(height[self.left[node]], height[self.right[node]])
        return int(height[self.roots].max(initial=0))

    def state(self) -> dict[str, Any]:
        # The threshold of a leaf is infinite, which JSON cannot express: write null.
        plain = {field.name: getattr(self, field.name).tolist() for field in fields(self)}
        plain["threshold"] = [None if t == np.inf else t for t in plain["threshold"]]
        return {"kind": "trees", **plain}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], width: int) -> TreeEnsemble:
        """Rebuild from `state`, checking everything: a file may come from anywhere."""
        thresholds = [np.inf if t is None else t for t in state["threshold"]]
        codes = {name: np.array(state[name], np.int64) for name in ("roots", "feature", "left", "right")}
        trees = cls(**codes, threshold=np.array(thresholds, np.float64), value=np.array(state["value"], np.float64))
        size = len(trees.feature)
        for column in (trees.feature, trees.threshold, trees.left, trees.right, trees.value):
            _check(column.shape == (size,), "the columns differ in length")
        node, leaf = np.arange(size), trees.left == np.arange(size)
        _check(trees.roots.ndim == 1 and _within(trees.roots, size), "a root is not a node")
        _check(_within(trees.feature, width), "a node uses an unknown feature")
        _check(bool(np.all(trees.right[leaf] == node[leaf])), "a leaf has a child")
        inner = np.concatenate((trees.left[~leaf], trees.right[~leaf]))
        _check(_within(inner, size) and bool(np.all(inner > np.tile(node[~leaf], 2))), "a child precedes its parent")
        finite = bool(np.isfinite(trees.value).all()) and not np.isnan(trees.threshold).any()
        _check(finite, "a value is not a finite number")
        _check(trees.depth() <= _MAX_DEPTH, f"a tree is deeper than {_MAX_DEPTH}")
        return trees


# Every item has the score zero.
EMPTY_ENSEMBLE = TreeEnsemble(*(np.zeros(0, kind) for kind in (np.int64, np.int64, float, np.int64, np.int64, float)))


def ensemble_of_booster(booster: Any) -> TreeEnsemble:
    """The trees of a LightGBM booster."""
    rows: list[tuple[int, float, int, int, float]] = []
    roots = []
    for tree in booster.dump_model()["tree_info"]:
        roots.append(len(rows))
        _append_subtree(rows, tree["tree_structure"])
    columns = list(zip(*rows, strict=True)) or [()] * 5
    feature, left, right = (np.array(columns[n], np.int64) for n in (0, 2, 3))
    threshold, value = (np.array(columns[n], np.float64) for n in (1, 4))
    return TreeEnsemble(np.array(roots, np.int64), feature, threshold, left, right, value)


def _append_subtree(rows: list[tuple[int, float, int, int, float]], node: Mapping[str, Any]) -> int:
    """Append a node and its descendants; return its row."""
    at = len(rows)
    if "split_feature" not in node:
        rows.append((0, np.inf, at, at, float(node["leaf_value"])))
        return at
    rows.append((0, 0.0, 0, 0, 0.0))
    left, right = _append_subtree(rows, node["left_child"]), _append_subtree(rows, node["right_child"])
    rows[at] = (int(node["split_feature"]), float(node["threshold"]), left, right, 0.0)
    return at


def _within(codes: IntArray, size: int) -> bool:
    return bool(np.all((codes >= 0) & (codes < size)))


def _check(valid: bool, problem: str) -> None:
    if not valid:
        raise FormatError(f"Invalid trees: {problem}.")


# Feature cells below which one thread is faster than several.
_ONE_THREAD_UP_TO = 2_000_000

Objective = Literal["listwise", "lambdarank"]


@dataclass(frozen=True, kw_only=True)
class Boosted:
    """Gradient-boosted trees, trained by LightGBM. Needs `pip install 'crowdrank[learning]'`.

    Parameters
    ----------
    objective : {"listwise", "lambdarank"}, default "listwise"
        Maximise the Plackett-Luce likelihood of the lists, or use LightGBM's lambdarank on grades derived from them.
    trees : int, default 100
        Number of trees.
    max_leaves : int, default 8
        Maximum number of leaves per tree.
    learning_rate : float, default 0.05
        Factor applied to each tree's contribution.
    min_leaf_items : int, default 50
        Minimum number of items per leaf.
    ridge : float, default 10.0
        L2 penalty on the values of leaves.
    feature_fraction : float, default 0.5
        Fraction of the features that each tree may use.
    grades : int, default 5
        For lambdarank: number of grades that expected positions are converted to.
    em_ranker : Ranker or None, default Linear()
        Ranker used inside EM to infer the true lists, on which the trees are then trained once. None trains trees in
        every EM iteration.
    seed : int, default 0
        Seed of LightGBM.

    Examples
    --------
    >>> Boosted(trees=200).learning_rate
    0.05
    """

    objective: Objective = "listwise"
    trees: int = 100
    max_leaves: int = 8
    learning_rate: float = 0.05
    min_leaf_items: int = 50
    ridge: float = 10.0
    feature_fraction: float = 0.5
    grades: int = 5
    em_ranker: Ranker | None = field(default_factory=Linear)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.objective not in get_args(Objective):
            raise SettingError(f"objective must be one of {', '.join(get_args(Objective))}, got {self.objective!r}.")
        for name, least in (("trees", 1), ("max_leaves", 2), ("min_leaf_items", 1)):
            if getattr(self, name) < least:
                raise SettingError(f"{name} must be at least {least}, got {getattr(self, name)}.")
        if not 2 <= self.grades <= 30:
            raise SettingError(f"grades must lie between 2 and 30, got {self.grades}.")
        for name in ("learning_rate", "feature_fraction"):
            if not 0 < getattr(self, name) <= 1:
                raise SettingError(f"{name} must be above 0 and at most 1, got {getattr(self, name)}.")
        if not self.ridge >= 0:
            raise SettingError(f"ridge must be zero or more, got {self.ridge}.")

    def fit(
        self, lists: RankedLists, features: FloatArray, starts: IntArray, init: Scorer | None = None
    ) -> TreeEnsemble:
        """Train on lists of items, see `Ranker.fit`; `init` is ignored, trees are always trained from scratch."""
        lightgbm = _lightgbm()
        lists, features, starts = drop_unlisted_queries(lists, features, starts)
        if len(features) < 2 * self.min_leaf_items or not np.ptp(features, axis=0).any():
            return self._empty(len(features))
        options: dict[str, Any] = {
            "num_leaves": self.max_leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": self.min_leaf_items,
            "lambda_l2": self.ridge,
            "feature_fraction": self.feature_fraction,
            "seed": self.seed,
            "verbose": -1,
            "deterministic": True,
            "feature_pre_filter": False,
            "force_col_wise": True,
            "num_threads": _threads(features.size),
        }
        if self.objective == "listwise":
            options |= {"objective": _listwise_objective(lists), "min_sum_hessian_in_leaf": 0.0}
            data = lightgbm.Dataset(features, np.zeros(len(features)))
        else:
            options |= {"objective": "lambdarank", "label_gain": [float(2**g - 1) for g in range(self.grades)]}
            labels = grades_from_lists(lists, starts, self.grades)
            data = lightgbm.Dataset(features, labels, group=np.diff(starts))
        trees = ensemble_of_booster(lightgbm.train(options, data, num_boost_round=self.trees))
        return trees if trees.depth() else self._empty(len(features))

    def _empty(self, items: int) -> TreeEnsemble:
        issue_warning(
            f"No tree could be grown from {items:,} items with at least {self.min_leaf_items} per leaf, so all items "
            "have the same score. Add items, lower min_leaf_items, or use the linear ranker.",
            DataWarning,
            stacklevel=3,
        )
        return EMPTY_ENSEMBLE


def drop_unlisted_queries(
    lists: RankedLists, features: FloatArray, starts: IntArray
) -> tuple[RankedLists, FloatArray, IntArray]:
    """Drop queries without a list: LightGBM would treat them as queries of equally good items."""
    first = lists.item[lists.offsets[:-1]]
    listed = np.unique(np.searchsorted(starts, first, side="right") - 1)
    sizes = np.diff(starts)[listed]
    if len(listed) == len(starts) - 1:
        return lists, features, starts
    new_starts = np.append(0, np.cumsum(sizes))
    shift = starts[listed] - new_starts[:-1]
    query = np.searchsorted(starts[listed], lists.item, side="right") - 1
    rows = np.arange(new_starts[-1]) + np.repeat(shift, sizes)
    return lists._replace(item=(lists.item - shift[query]).astype(np.int32)), features[rows], new_starts


def _listwise_objective(lists: RankedLists) -> Callable[[FloatArray, Any], tuple[FloatArray, FloatArray]]:
    """Gradient and Hessian diagonal of −log P(lists) in the scores, as LightGBM expects them."""

    def derivatives(scores: FloatArray, _: Any) -> tuple[FloatArray, FloatArray]:
        likelihood = log_likelihood(lists, scores)
        return -likelihood.gradient, np.maximum(likelihood.hessian_diag, 1e-9)

    return derivatives


def fraction_below(lists: RankedLists, size: int) -> FloatArray:
    """Mean fraction of the other items that are ranked below each item; ties count half, ½ for unlisted items."""
    lengths = np.diff(lists.offsets)
    list_of_row = np.repeat(np.arange(len(lengths)), lengths)
    is_new = np.append(True, (lists.place[1:] != lists.place[:-1]) | (list_of_row[1:] != list_of_row[:-1]))
    begin = np.flatnonzero(is_new)
    tied = np.diff(np.append(begin, lists.rows))
    above = np.repeat(begin, tied) - lists.offsets[list_of_row] + np.repeat((tied - 1) / 2, tied)
    below = 1 - above / np.maximum(lengths[list_of_row] - 1, 1)
    weight = lists.weight[list_of_row]
    total = np.bincount(lists.item, weight, size)
    return np.where(total > 0, np.bincount(lists.item, weight * below, size) / np.maximum(total, 1e-300), 0.5)


def grades_from_lists(lists: RankedLists, starts: IntArray, grades: int) -> Int32Array:
    """Integer grades from expected positions: each grade has twice as many items as the one above it."""
    from scipy.stats import rankdata

    below = np.round(fraction_below(lists, int(starts[-1])), 9)
    labels = np.zeros(len(below), np.int32)
    for begin, end in pairwise(starts):
        position = rankdata(-below[begin:end]) - 1  # tied items share the mean of their positions
        edges = np.cumsum(2.0 ** np.arange(grades - 1)) * max((end - begin) / 2.0**grades, 1.0)
        labels[begin:end] = np.maximum(grades - 1 - np.searchsorted(edges, position, side="right"), 0)
    return labels


def _threads(cells: int) -> int:
    """One thread for small data, where threads cost more than they save; the trees are the same."""
    return 1 if cells < _ONE_THREAD_UP_TO else 0


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError as error:
        raise SettingError("The lightgbm ranker needs LightGBM: pip install 'crowdrank[learning]'.") from error
    return lightgbm
