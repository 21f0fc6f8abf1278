"""What a ranking function is, and how one is trained."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crowdrank.likelihoods.plackett_luce import Lists

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
Starts = npt.NDArray[np.int64]


class Scorer(Protocol):
    """A trained ranking function: a score for every row of features, larger is better within a query."""

    def scores(self, values: Matrix) -> Vector: ...

    def state(self) -> dict[str, Any]:
        """All of it as plain numbers, texts and lists, for saving; `kind` says what it is."""
        ...


class Ranker(Protocol):
    """How a ranking function is trained."""

    def fit(self, lists: Lists, values: Matrix, starts: Starts, before: Scorer | None = None) -> Scorer:
        """From lists, best first, over rows of `values`; a query's rows begin at its entry of `starts`.

        Items tied on the last place of a list were left unordered: a top-k list names all items of its query. Weights
        say how much each list counts. `before` is where to start from, if it is a function of this kind.
        """
        ...
