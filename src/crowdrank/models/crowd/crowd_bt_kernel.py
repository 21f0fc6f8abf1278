"""A faster compiled pass for Crowd-BT over many answers (`likelihood.evaluate` for the formula `crowd_bt`).

With a = eˢ of the winner and b = eˢ of the loser, P = η·a/(a+b) + (1−η)·b/(a+b) (Chen et al. 2013). The exponentials
are taken once per item and once per annotator, and one logarithm serves sixteen answers.
"""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.engines.compilation import compiled

# With scores and logits up to this size, neither e^40 nor a product of sixteen probabilities overflows or underflows.
MAX_PARAMETER = 40.0
_FACTORS = 16


def evaluate(
    winner: AnyArray,
    loser: AnyArray,
    annotator: AnyArray,
    weight: AnyArray,
    scores: AnyArray,
    logits: AnyArray,
    second: AnyArray,
) -> tuple[float, AnyArray, AnyArray]:
    """Value; then gradient, Fisher diagonal and curvature diagonal by score and by logit. Fills `second`."""
    # what a row reads and writes for an item or an annotator lies side by side in memory
    items = np.stack((np.exp(scores), *np.zeros((3, len(scores)))), axis=1)
    honest = 1.0 / (1.0 + np.exp(-logits))
    lying = 1.0 / (1.0 + np.exp(logits))
    people = np.stack((honest, lying, *np.zeros((3, len(logits)))), axis=1)
    value = _evaluate_loop(winner, loser, annotator, weight, items, people, second, _FACTORS)
    return value, np.ascontiguousarray(items[:, 1:].T), np.ascontiguousarray(people[:, 2:].T)


@compiled()
def _evaluate_loop(winner, loser, annotator, weight, items, people, second, factors):  # type: ignore[no-untyped-def]
    value, product = 0.0, 1.0
    for row in range(len(winner)):
        w = weight[row]
        better, worse, person = items[winner[row]], items[loser[row]], people[annotator[row]]
        honest, lying = person[0], person[1]
        inverse = 1.0 / (better[0] + worse[0])
        won, lost = better[0] * inverse, worse[0] * inverse
        side, doubt, unsure, lead = honest - lying, honest * lying, won * lost, won - lost
        p = honest * won + lying * lost
        inverse_p = 1.0 / p
        # log P₁ + … + log P₁₆ = log(P₁ ⋯ P₁₆): one logarithm for sixteen answers of weight 1
        if w == 1.0:
            product *= p
        else:
            value += w * np.log(p)
        if row % factors == factors - 1:
            value += np.log(product)
            product = 1.0
        d = side * unsure
        by_margin, by_logit = d * inverse_p, doubt * lead * inverse_p
        gradient = w * by_margin
        better[1] += gradient
        worse[1] -= gradient
        person[2] += w * by_logit
        curvature = w * (by_margin * by_margin + d * lead * inverse_p)
        logit_curvature = w * (by_logit * by_logit + side * by_logit)
        second[0, row] = curvature
        second[1, row] = w * (by_margin * by_logit - 2.0 * doubt * unsure * inverse_p)
        second[2, row] = logit_curvature
        # Fisher information: the opposite answer has the remaining probability
        fisher = w * p / (honest * lost + lying * won)
        by_score = fisher * by_margin * by_margin
        better[2] += by_score
        worse[2] += by_score
        better[3] += curvature
        worse[3] += curvature
        person[3] += fisher * by_logit * by_logit
        person[4] += logit_curvature
    return value + np.log(product)
