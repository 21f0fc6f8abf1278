"""The sign of the scores: where annotators can be reversed, an order and its reverse fit the answers equally well.

Negating all scores and replacing every η by 1 − η leaves the likelihood unchanged. The majority of annotators decides.
"""

from __future__ import annotations

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, EncodedSideInformation
from crowdrank.models.crowd.answer_counts import agreement_counts
from crowdrank.models.crowd.objective import Objective

# Sums of votes smaller than this are a draw: rounding must not reverse an order.
EVEN = 1e-9


def is_reversed(agreed: FloatArray, judged: FloatArray) -> bool:
    """Whether the majority of annotators contradicts the order, so that its sign should be flipped.

    `agreed` is the weight of each annotator's answers that agree with the order, `judged` the weight of all of them.
    Every annotator has one vote, however many answers they gave: a few annotators who always answer in reverse must not
    outvote many who are right more often than not.
    """
    return float(np.sum(annotator_votes(agreed, judged))) < -EVEN


def annotator_votes(agreed: FloatArray, judged: FloatArray) -> FloatArray:
    """1 for annotators who agree with the order, −1 for those who contradict it, in between if that is uncertain.

    A vote is full from posterior odds of three to one on (uniform prior on the share that agrees). Without that cap a
    few certain annotators would outvote many; by the sign alone, those who guess would count fully.
    """
    from scipy.special import betainc

    against = betainc(agreed + 1.0, judged - agreed + 1.0, 0.5)
    return np.asarray(np.clip(2.0 * (1.0 - 2.0 * against), -1.0, 1.0))


def flipped_if_better(
    objective: Objective, x: FloatArray, comparisons: Comparisons, known: EncodedSideInformation
) -> FloatArray | None:
    """The parameters with the opposite sign if that is the right one, None if `x` already has it.

    Gold pairs decide first, then what is known about annotators, else the majority of annotators. The priors alone
    would let a few who are certainly reversed outweigh many who are right more often than not.
    """
    layout = objective.layout
    scores, logits, feature_weights = layout.split(x)
    people = max(1, len(comparisons.annotators))
    # the annotator of the gold pairs stays as it is
    flipped = layout.join(-scores, np.append(-logits[:people], logits[people:]), feature_weights)
    if len(known.gold_better):
        agreed = np.sign(scores[known.gold_better] - scores[known.gold_worse]).sum()
        return flipped if agreed < 0 else None
    if known.has_annotators:
        before, after = (objective.priors.evaluate(*layout.split(at), objective.formula).value for at in (x, flipped))
        return flipped if after > before + 1e-6 else None
    net, total = objective.shards.sum(agreement_counts, scores, layout.annotators)
    return flipped if is_reversed((total + net)[:people] / 2, total[:people]) else None
