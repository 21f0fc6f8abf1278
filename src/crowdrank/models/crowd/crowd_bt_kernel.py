"""Chen et al. 2013 over many answers: P = η·a/(a+b) + (1−η)·b/(a+b), a = eˢ of the winner and b of the loser.

The pass of `annotated.slopes` for the formula `reliable`, with eˢ taken once an item and η once an annotator, and one
logarithm for sixteen answers.
"""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import AnyArray
from crowdrank.engines.compilation import compiled

# e^40, and sixteen chances of an answer given by someone of η = e^-40, stay well inside what a double holds.
FARTHEST = 40.0
_FACTORS = 16


def plain_slopes(
    winner: AnyArray,
    loser: AnyArray,
    annotator: AnyArray,
    weight: AnyArray,
    scores: AnyArray,
    gates: AnyArray,
    bends: AnyArray,
) -> tuple[float, AnyArray, AnyArray]:
    """Value; by score and by gate: slopes, Fisher's diagonal, the curvature's own. Fills each row's curvature."""
    # what a row reads and writes of an item, or of an annotator, lies side by side
    items = np.stack((np.exp(scores), *np.zeros((3, len(scores)))), axis=1)
    honest = 1.0 / (1.0 + np.exp(-gates))
    lying = 1.0 / (1.0 + np.exp(gates))
    people = np.stack((honest, lying, *np.zeros((3, len(gates)))), axis=1)
    value = _plain_loop(winner, loser, annotator, weight, items, people, bends, _FACTORS)
    return value, np.ascontiguousarray(items[:, 1:].T), np.ascontiguousarray(people[:, 2:].T)


@compiled()
def _plain_loop(winner, loser, annotator, weight, items, people, bends, factors):  # type: ignore[no-untyped-def]
    value, together = 0.0, 1.0
    for row in range(len(winner)):
        w = weight[row]
        better, worse, person = items[winner[row]], items[loser[row]], people[annotator[row]]
        honest, lying = person[0], person[1]
        inverse = 1.0 / (better[0] + worse[0])
        won, lost = better[0] * inverse, worse[0] * inverse
        side, doubt, unsure, lead = honest - lying, honest * lying, won * lost, won - lost
        chance = honest * won + lying * lost
        share = 1.0 / chance
        if w == 1.0:
            together *= chance
        else:
            value += w * np.log(chance)
        if row % factors == factors - 1:
            value += np.log(together)
            together = 1.0
        d = side * unsure
        by_margin, by_gate = d * share, doubt * lead * share
        slope = w * by_margin
        better[1] += slope
        worse[1] -= slope
        person[2] += w * by_gate
        own, gate_own = w * (by_margin * by_margin + d * lead * share), w * (by_gate * by_gate + side * by_gate)
        bends[0, row] = own
        bends[1, row] = w * (by_margin * by_gate - 2.0 * doubt * unsure * share)
        bends[2, row] = gate_own
        # Fisher's: the other answer has the chance that is left
        fisher = w * chance / (honest * lost + lying * won)
        bend = fisher * by_margin * by_margin
        better[2] += bend
        worse[2] += bend
        better[3] += own
        worse[3] += own
        person[3] += fisher * by_gate * by_gate
        person[4] += gate_own
    return value + np.log(together)
