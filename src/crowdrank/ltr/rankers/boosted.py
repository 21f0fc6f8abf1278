"""Grown trees as plain arrays: read and walked here, so that ranking new items needs no other library.

Boosted trees: a ranking function that bends, grown by LightGBM on the lists.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from crowdrank.arrays import FloatArray, Int32Array, IntArray
from crowdrank.data.tables import freeze
from crowdrank.errors import DataWarning, FormatError, SettingError
from crowdrank.ltr.rankers.linear import Linear, Ranker, Scorer
from crowdrank.models.lists.plackett_luce_likelihood import Lists, slopes

# Rows walked at once: each takes a cell for every tree.
_CHUNK = 4_096
_DEEPEST = 1_000


@dataclass(frozen=True, eq=False, repr=False)
class Trees:
    """The nodes of all trees. A row goes left where its feature is at most the threshold; a leaf leads to itself."""

    roots: IntArray
    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    value: FloatArray
    """What a leaf adds to the score."""

    def __post_init__(self) -> None:
        freeze(self)

    def __repr__(self) -> str:
        return f"Trees({len(self.roots):,} trees, {len(self.feature):,} nodes)"

    def scores(self, values: FloatArray) -> FloatArray:
        steps = self.depth()
        parts = [self._walk(values[at : at + _CHUNK], steps) for at in range(0, len(values), _CHUNK)]
        return np.concatenate([np.zeros(0), *parts])

    def _walk(self, values: FloatArray, steps: int) -> FloatArray:
        row = np.arange(len(values))[:, None]
        at = np.tile(self.roots, (len(values), 1))
        for _ in range(steps):
            low = values[row, self.feature[at]] <= self.threshold[at]
            at = np.where(low, self.left[at], self.right[at])
        return np.asarray(self.value[at].sum(axis=1))

    def depth(self) -> int:
        """Steps from the root to the farthest leaf; children come after their parents."""
        below = np.zeros(len(self.feature), np.int64)
        for node in range(len(below) - 1, -1, -1):
            if self.left[node] != node:
                below[node] = 1 + max(below[self.left[node]], below[self.right[node]])
        return int(below[self.roots].max(initial=0))

    def state(self) -> dict[str, Any]:
        # a leaf's threshold is infinite, which JSON has no word for; null says the same
        plain = {field.name: getattr(self, field.name).tolist() for field in fields(self)}
        plain["threshold"] = [None if t == np.inf else t for t in plain["threshold"]]
        return {"kind": "trees", **plain}

    @classmethod
    def of_state(cls, state: Mapping[str, Any], width: int) -> Trees:
        """What `state` told, checked: a file may come from anywhere."""
        thresholds = [np.inf if t is None else t for t in state["threshold"]]
        codes = {name: np.array(state[name], np.int64) for name in ("roots", "feature", "left", "right")}
        found = cls(**codes, threshold=np.array(thresholds, np.float64), value=np.array(state["value"], np.float64))
        size = len(found.feature)
        for column in (found.feature, found.threshold, found.left, found.right, found.value):
            _need(column.shape == (size,), "its columns differ in length")
        node, leaf = np.arange(size), found.left == np.arange(size)
        _need(found.roots.ndim == 1 and _within(found.roots, size), "a tree has no root")
        _need(_within(found.feature, width), "a node looks at a feature that is not there")
        _need(bool(np.all(found.right[leaf] == node[leaf])), "a leaf leads elsewhere")
        inner = np.concatenate((found.left[~leaf], found.right[~leaf]))
        _need(_within(inner, size) and bool(np.all(inner > np.tile(node[~leaf], 2))), "a node leads back")
        _need(bool(np.isfinite(found.value).all()) and not np.isnan(found.threshold).any(), "a number is none")
        _need(found.depth() <= _DEEPEST, "a tree is too deep")
        return found


LEVEL = Trees(*(np.zeros(0, kind) for kind in (np.int64, np.int64, float, np.int64, np.int64, float)))
"""No tree at all: every item has the score zero."""


def trees_of(booster: Any) -> Trees:
    """LightGBM's trees."""
    rows: list[tuple[int, float, int, int, float]] = []
    roots = []
    for tree in booster.dump_model()["tree_info"]:
        roots.append(len(rows))
        _add(rows, tree["tree_structure"])
    columns = list(zip(*rows, strict=True)) or [()] * 5
    feature, left, right = (np.array(columns[n], np.int64) for n in (0, 2, 3))
    threshold, value = (np.array(columns[n], np.float64) for n in (1, 4))
    return Trees(np.array(roots, np.int64), feature, threshold, left, right, value)


def _add(rows: list[tuple[int, float, int, int, float]], node: Mapping[str, Any]) -> int:
    """A node and all below it; where it stands."""
    at = len(rows)
    if "split_feature" not in node:
        rows.append((0, np.inf, at, at, float(node["leaf_value"])))
        return at
    rows.append((0, 0.0, 0, 0, 0.0))
    left, right = _add(rows, node["left_child"]), _add(rows, node["right_child"])
    rows[at] = (int(node["split_feature"]), float(node["threshold"]), left, right, 0.0)
    return at


def _within(codes: IntArray, size: int) -> bool:
    return bool(np.all((codes >= 0) & (codes < size)))


def _need(fine: bool, wrong: str) -> None:
    if not fine:
        raise FormatError(f"The trees cannot be used: {wrong}.")


if TYPE_CHECKING:
    from collections.abc import Callable

# Cells of features up to which one thread grows trees.
_ALONE_UP_TO = 2_000_000

Objective = Literal["listwise", "lambdarank"]


@dataclass(frozen=True, kw_only=True)
class Boosted:
    """Trees grown one after the other, each correcting those before it. Needs `pip install 'crowdrank[learning]'`."""

    objective: Objective = "listwise"
    """What trees climb: the likelihood of the lists, or LightGBM's lambdarank on grades made of them."""
    trees: int = 100
    leaves: int = 8
    """Of each tree, at most."""
    learning_rate: float = 0.05
    fewest_items: int = 50
    """In a leaf."""
    ridge: float = 10.0
    """How strongly the values of leaves are drawn towards zero."""
    share: float = 0.5
    """Of the features that each tree may look at."""
    grades: int = 5
    """For lambdarank: how many grades the expected places are put into."""
    teacher: Ranker | None = field(default_factory=Linear)
    """What finds the true lists of a crowd, trees being grown on them once; None for trees in every step."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.objective not in get_args(Objective):
            raise SettingError(f"objective must be one of {', '.join(get_args(Objective))}, got {self.objective!r}.")
        if self.trees < 1 or self.leaves < 2 or self.fewest_items < 1 or not 2 <= self.grades <= 30:
            raise SettingError(
                "trees and fewest_items must be positive, leaves at least 2 and grades between 2 and 30."
            )
        if not 0 < self.learning_rate <= 1 or not 0 < self.share <= 1 or self.ridge < 0:
            raise SettingError("learning_rate and share must lie above 0 and up to 1, and ridge must not be negative.")

    def fit(self, lists: Lists, values: FloatArray, starts: IntArray, before: Scorer | None = None) -> Trees:
        """`before` is not looked at: trees are grown anew."""
        lightgbm = _lightgbm()
        lists, values, starts = listed_only(lists, values, starts)
        if len(values) < 2 * self.fewest_items or not np.ptp(values, axis=0).any():
            return self._level(len(values))
        options: dict[str, Any] = {
            "num_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": self.fewest_items,
            "lambda_l2": self.ridge,
            "feature_fraction": self.share,
            "seed": self.seed,
            "verbose": -1,
            "deterministic": True,
            "feature_pre_filter": False,
            "force_col_wise": True,
            "num_threads": _threads(values.size),
        }
        if self.objective == "listwise":
            options |= {"objective": _climb(lists), "min_sum_hessian_in_leaf": 0.0}
            data = lightgbm.Dataset(values, np.zeros(len(values)))
        else:
            options |= {"objective": "lambdarank", "label_gain": [float(2**g - 1) for g in range(self.grades)]}
            data = lightgbm.Dataset(values, grades_of(lists, starts, self.grades), group=np.diff(starts))
        found = trees_of(lightgbm.train(options, data, num_boost_round=self.trees))
        return found if found.depth() else self._level(len(values))

    def _level(self, items: int) -> Trees:
        warnings.warn(
            f"No tree could be grown from {items:,} items with {self.fewest_items} or more in a leaf: all have the "
            "same score. Give more items, a smaller fewest_items, or use the linear ranker.",
            DataWarning,
            stacklevel=3,
        )
        return LEVEL


def listed_only(lists: Lists, values: FloatArray, starts: IntArray) -> tuple[Lists, FloatArray, IntArray]:
    """Without the queries of which there is no list: trees would take them for queries of equal items."""
    first = lists.item[lists.offsets[:-1]]
    named = np.unique(np.searchsorted(starts, first, side="right") - 1)
    sizes = np.diff(starts)[named]
    if len(named) == len(starts) - 1:
        return lists, values, starts
    fresh = np.append(0, np.cumsum(sizes))
    shift = starts[named] - fresh[:-1]
    query = np.searchsorted(starts[named], lists.item, side="right") - 1
    rows = np.arange(fresh[-1]) + np.repeat(shift, sizes)
    return lists._replace(item=(lists.item - shift[query]).astype(np.int32)), values[rows], fresh


def _climb(lists: Lists) -> Callable[[FloatArray, Any], tuple[FloatArray, FloatArray]]:
    """Slope and curvature of −log P(lists) in the scores, as LightGBM asks for them."""

    def step(scores: FloatArray, _: Any) -> tuple[FloatArray, FloatArray]:
        found = slopes(lists, scores)
        return -found.gradient, np.maximum(found.diagonal, 1e-9)

    return step


def standing(lists: Lists, size: int) -> FloatArray:
    """For each item the share of the others it stands above, mean over the lists; tied ones by half, ½ for unlisted."""
    lengths = np.diff(lists.offsets)
    of_list = np.repeat(np.arange(len(lengths)), lengths)
    fresh = np.append(True, (lists.place[1:] != lists.place[:-1]) | (of_list[1:] != of_list[:-1]))
    begin = np.flatnonzero(fresh)
    tied = np.diff(np.append(begin, lists.rows))
    above = np.repeat(begin, tied) - lists.offsets[of_list] + np.repeat((tied - 1) / 2, tied)
    share = 1 - above / np.maximum(lengths[of_list] - 1, 1)
    weight = lists.weight[of_list]
    total = np.bincount(lists.item, weight, size)
    return np.where(total > 0, np.bincount(lists.item, weight * share, size) / np.maximum(total, 1e-300), 0.5)


def grades_of(lists: Lists, starts: IntArray, grades: int) -> Int32Array:
    """Expected places as few whole grades: of each grade there are twice as many items as of the one above it."""
    from scipy.stats import rankdata

    stands = np.round(standing(lists, int(starts[-1])), 9)
    found = np.zeros(len(stands), np.int32)
    for begin, end in pairwise(starts):
        place = rankdata(-stands[begin:end]) - 1  # tied items share the middle of their places
        edges = np.cumsum(2.0 ** np.arange(grades - 1)) * max((end - begin) / 2.0**grades, 1.0)
        found[begin:end] = np.maximum(grades - 1 - np.searchsorted(edges, place, side="right"), 0)
    return found


def _threads(cells: int) -> int:
    """Threads cost more than they bring where there is little to do; the trees are the same."""
    return 1 if cells < _ALONE_UP_TO else 0


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError as error:
        raise SettingError("The lightgbm ranker needs LightGBM: pip install 'crowdrank[learning]'.") from error
    return lightgbm
