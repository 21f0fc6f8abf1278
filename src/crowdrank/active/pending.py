"""What will be believed once the answers that are awaited have come, whatever they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from crowdrank.arrays import IntArray
from crowdrank.engines.compilation import compiled
from crowdrank.online import Beliefs
from crowdrank.online.moments import chance_of, expected_lead, pull, quality_after, shrinkage

Triplet = tuple[int, int, int]
"""Two items, the smaller code first, and an annotator."""


def expecting(beliefs: Beliefs, awaited: Iterable[Triplet]) -> Beliefs:
    """Means stay; variances shrink, and what is known of an annotator grows, as much as they are expected to."""
    mean, variance = beliefs.mean, beliefs.variance.copy()
    truths, lies = beliefs.truths.copy(), beliefs.lies.copy()
    for i, j, k in _waves(awaited):
        a, b, lead = truths[k], lies[k], mean[i] - mean[j]
        truthful = expected_lead(lead, variance[i] + variance[j])
        chance = chance_of(truthful, a, b)
        won, lost = (pull(side, a, b)[1] for side in (lead, -lead))
        for item in (i, j):
            spread = variance[item]
            variance[item] = spread * (chance * shrinkage(spread, won) + (1 - chance) * shrinkage(spread, lost))
        after, after_lie = (sum(quality_after(believed, a, b)) for believed in (truthful, 1 - truthful))
        growth = (chance * after + (1 - chance) * after_lie) / (a + b)
        truths[k], lies[k] = a * growth, b * growth
    return beliefs.changed(
        of_items={**beliefs.of_items, "variance": variance},
        of_annotators={**beliefs.of_annotators, "truths": truths, "lies": lies},
    )


@compiled(chance_of, expected_lead, pull, quality_after, shrinkage)
def expect(awaited, mean, variance, truths, lies):  # type: ignore[no-untyped-def]
    """The same in place, one after the other, compiled: for who asks so often that the compiler is loaded anyway."""
    for row in range(len(awaited)):
        i, j, k = awaited[row]
        a, b, lead = truths[k], lies[k], mean[i] - mean[j]
        truthful = expected_lead(lead, variance[i] + variance[j])
        chance = chance_of(truthful, a, b)
        won, lost = pull(lead, a, b)[1], pull(-lead, a, b)[1]
        for item in (i, j):
            spread = variance[item]
            variance[item] = spread * (chance * shrinkage(spread, won) + (1 - chance) * shrinkage(spread, lost))
        after, after_lie = quality_after(truthful, a, b), quality_after(1 - truthful, a, b)
        growth = (chance * (after[0] + after[1]) + (1 - chance) * (after_lie[0] + after_lie[1])) / (a + b)
        truths[k], lies[k] = a * growth, b * growth


def _waves(awaited: Iterable[Triplet]) -> Iterator[IntArray]:
    """In their order, as many together as have nothing to do with one another: the rows i, j and k of each wave."""
    waves: list[list[Triplet]] = []
    items: dict[int, int] = {}
    people: dict[int, int] = {}
    for i, j, k in awaited:
        n = max(items.get(i, 0), items.get(j, 0), people.get(k, 0))
        if n == len(waves):
            waves.append([])
        waves[n].append((i, j, k))
        items[i] = items[j] = people[k] = n + 1
    for wave in waves:
        yield np.array(wave, np.int64).T
