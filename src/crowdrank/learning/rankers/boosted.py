"""Boosted trees: a ranking function that bends, grown by LightGBM on the lists."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from crowdrank.errors import DataWarning, SettingError
from crowdrank.learning.rankers.contract import Matrix, Ranker, Scorer, Starts, Vector
from crowdrank.learning.rankers.linear import Linear
from crowdrank.learning.rankers.trees import LEVEL, Trees, trees_of
from crowdrank.likelihoods.plackett_luce import Lists, slopes

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

    def fit(self, lists: Lists, values: Matrix, starts: Starts, before: Scorer | None = None) -> Trees:
        """`before` is not looked at: trees are grown anew."""
        lightgbm = _lightgbm()
        lists, values, starts = listed_only(lists, values, starts)
        if len(values) < 2 * self.fewest_items or not np.ptp(values, axis=0).any():
            return self._level(len(values))
        options: dict[str, Any] = {
            "num_leaves": self.leaves, "learning_rate": self.learning_rate, "min_data_in_leaf": self.fewest_items,
            "lambda_l2": self.ridge, "feature_fraction": self.share, "seed": self.seed, "verbose": -1,
            "deterministic": True, "feature_pre_filter": False, "force_col_wise": True,
            "num_threads": _threads(values.size),
        }  # fmt: skip
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
            DataWarning, stacklevel=3,
        )  # fmt: skip
        return LEVEL


def listed_only(lists: Lists, values: Matrix, starts: Starts) -> tuple[Lists, Matrix, Starts]:
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


def _climb(lists: Lists) -> Callable[[Vector, Any], tuple[Vector, Vector]]:
    """Slope and curvature of −log P(lists) in the scores, as LightGBM asks for them."""

    def step(scores: Vector, _: Any) -> tuple[Vector, Vector]:
        found = slopes(lists, scores)
        return -found.gradient, np.maximum(found.diagonal, 1e-9)

    return step


def standing(lists: Lists, size: int) -> Vector:
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


def grades_of(lists: Lists, starts: Starts, grades: int) -> npt.NDArray[np.int32]:
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
