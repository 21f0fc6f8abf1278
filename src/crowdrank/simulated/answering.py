"""Annotators who answer when they are asked: a crowd with a known truth, question by question."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from crowdrank.simulated.distributions import draw
from crowdrank.simulated.draws import (
    above_zero,
    at_least,
    logistic,
    numbered,
    one_of,
    standardised,
    streams,
    true_scores,
)

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Respondents:
    """Who can be asked, about what, and how they answer."""

    items: tuple[str, ...]
    annotators: tuple[str, ...]
    truth: Numbers
    """The true score of each item, on the scale on which answers are given."""
    quality: Numbers
    labels: Literal["order", "logistic"]

    def winner(self, left: str, right: str, annotator: str, rng: np.random.Generator) -> str:
        """What this annotator says now; asked again, they may say the opposite."""
        place, who = self._places
        lead = self.truth[place[left]] - self.truth[place[right]]
        chance = float(lead > 0) + 0.5 * float(lead == 0) if self.labels == "order" else float(logistic(lead))
        honest = self.quality[who[annotator]]
        return left if rng.random() < honest * chance + (1 - honest) * (1 - chance) else right

    @cached_property
    def _places(self) -> tuple[dict[str, int], dict[str, int]]:
        item, person = ({name: n for n, name in enumerate(names)} for names in (self.items, self.annotators))
        return item, person


def respondents(
    items: int = 100,
    annotators: int = 100,
    quality: str | float = "beta(2,1)",
    labels: Literal["order", "logistic"] = "order",
    scale: float = 2.0,
    scores: Literal["even", "normal"] = "even",
    seed: int = 0,
) -> Respondents:
    """A crowd as `crowd_bt` draws it, to be asked: with labels "order" an annotator names the truly better item with
    probability `quality`; with "logistic" what is better is itself a draw, on scores of standard deviation `scale`.
    Scores are evenly spaced, or normal. A `scale` of zero makes all items equal, and every answer a coin toss.

    >>> crowd = respondents(items=3, annotators=2, quality=1.0)
    >>> crowd.winner("item1", "item2", "annotator1", np.random.default_rng(0)) in ("item1", "item2")
    True
    """
    at_least(2, items=items)
    at_least(1, annotators=annotators)
    one_of("labels", labels, ("order", "logistic"))
    one_of("scores", scores, ("even", "normal"))
    if scale:
        above_zero(scale=scale)
    for_truth, for_quality = streams(seed, 2)
    drawn = true_scores(for_truth, items) if scores == "even" else for_truth.standard_normal(items)
    honesty = draw(quality, "quality", for_quality, annotators, 0, 1)
    truth = scale * (standardised(drawn) if scores == "even" else drawn)
    names = tuple(numbered("item", items).tolist()), tuple(numbered("annotator", annotators).tolist())
    return Respondents(*names, truth, honesty, labels)
