"""Trained trees as plain arrays, evaluated without LightGBM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data.tables import freeze
from crowdrank.errors import FormatError

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
