"""Where scores, gates and pulls lie in one vector of parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """A score an item, then a gate an annotator, then the pulls of each annotator."""

    items: int
    annotators: int
    features: int = 0

    @property
    def size(self) -> int:
        return self.items + self.annotators * (1 + self.features)

    def split(self, x: Vector) -> tuple[Vector, Vector, Vector]:
        scores, gates, pulls = np.split(x, (self.items, self.items + self.annotators))
        return scores, gates, pulls.reshape(self.annotators, self.features)

    def join(self, scores: Vector, gates: Vector, pulls: Vector) -> Vector:
        return np.concatenate((scores, gates, np.ravel(pulls)))
