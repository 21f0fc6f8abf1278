"""Grown trees as plain arrays: read and walked here, so that ranking new items needs no other library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdrank.errors import FormatError
from crowdrank.judgments.numbers import freeze
from crowdrank.learning.rankers.contract import Matrix, Vector

Codes = npt.NDArray[np.int64]

# Rows walked at once: each takes a cell for every tree.
_CHUNK = 4_096
_DEEPEST = 1_000


@dataclass(frozen=True, eq=False, repr=False)
class Trees:
    """The nodes of all trees. A row goes left where its feature is at most the threshold; a leaf leads to itself."""

    roots: Codes
    feature: Codes
    threshold: Vector
    left: Codes
    right: Codes
    value: Vector
    """What a leaf adds to the score."""

    def __post_init__(self) -> None:
        freeze(self)

    def __repr__(self) -> str:
        return f"Trees({len(self.roots):,} trees, {len(self.feature):,} nodes)"

    def scores(self, values: Matrix) -> Vector:
        steps = self.depth()
        parts = [self._walk(values[at : at + _CHUNK], steps) for at in range(0, len(values), _CHUNK)]
        return np.concatenate([np.zeros(0), *parts])

    def _walk(self, values: Matrix, steps: int) -> Vector:
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


def _within(codes: Codes, size: int) -> bool:
    return bool(np.all((codes >= 0) & (codes < size)))


def _need(fine: bool, wrong: str) -> None:
    if not fine:
        raise FormatError(f"The trees cannot be used: {wrong}.")
