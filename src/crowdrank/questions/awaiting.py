"""What will be believed once the answers that are awaited have come, whatever they say."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from crowdrank.likelihoods.moments import chance_of, expected_lead, pull, quality_after, shrinkage
from crowdrank.online import Beliefs
from crowdrank.questions.asked import Triplet


def expecting(beliefs: Beliefs, awaited: Iterable[Triplet]) -> Beliefs:
    """Means stay; variances shrink, and what is known of an annotator grows, as much as they are expected to."""
    mean, variance = beliefs.mean, beliefs.variance.copy()
    truths, lies = beliefs.truths.copy(), beliefs.lies.copy()
    for i, j, k in awaited:
        a, b, pair, lead = truths[k], lies[k], [i, j], mean[i] - mean[j]
        truthful = expected_lead(lead, variance[i] + variance[j])
        chance = chance_of(truthful, a, b)
        won, lost = (shrinkage(variance[pair], pull(side, a, b)[1]) for side in (lead, -lead))
        variance[pair] *= chance * won + (1 - chance) * lost
        counts = (sum(quality_after(believed, a, b)) for believed in (truthful, 1 - truthful))
        growth = float(np.dot((chance, 1 - chance), list(counts))) / (a + b)
        truths[k], lies[k] = a * growth, b * growth
    return beliefs.changed(
        of_items={**beliefs.of_items, "variance": variance},
        of_annotators={**beliefs.of_annotators, "truths": truths, "lies": lies},
    )
