"""What an answer is expected to teach (Chen et al. 2013, eq. 10).

Annotator k, of quality ηₖ ~ Beta(α, β), compares i with j, believed to be sᵢ ~ N(μᵢ, u) and sⱼ ~ N(μⱼ, v):

C·[KL(i | i wins) + KL(j | i wins) + γ·KL(k | i wins)] + (1 − C)·[… | j wins]

KL of an item of variance u = ½[x − ln(1 + x) + u·pull²],   x = max(u·bend, κ − 1)
KL of the annotator = h(α, α′) + h(β, β′) − h(α + β, α′ + β′),   h(x, y) = lnΓ(x) − lnΓ(y) − (x − y)ψ(y)

with the beliefs after each answer as in `moments`. It depends on |μᵢ − μⱼ| and on u and v in either order, and is the
same when α and β change places.

Elementwise, so that one text serves arrays and compiled loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdrank.inference.special import log_gamma_bregman, x_minus_log1p
from crowdrank.online.moments import LEAST_SHRINKAGE, chance_of, expected_lead, pull


def items_gain(lead: Any, variance: Any, other: Any, truthful: Any, truths: Any, lies: Any) -> Any:
    """Expected of both items; `lead` is μᵢ − μⱼ, `truthful` the C₁ of the pair."""
    won, lost = items_changes(lead, variance, other, truths, lies)
    chance = chance_of(truthful, truths, lies)
    return chance * won + (1.0 - chance) * lost


def items_changes(lead: Any, variance: Any, other: Any, truths: Any, lies: Any) -> tuple[Any, Any]:
    """KL of both items' beliefs, after either answer, from those before."""
    up, bent_up = pull(lead, truths, lies)
    down, bent_down = pull(-lead, truths, lies)
    won = item_change(variance, up, bent_up) + item_change(other, up, bent_up)
    return won, item_change(variance, down, bent_down) + item_change(other, down, bent_down)


def item_change(variance: Any, pulled: Any, bend: Any) -> Any:
    """KL of one item's belief after an answer from that before."""
    return 0.5 * (x_minus_log1p(np.maximum(variance * bend, LEAST_SHRINKAGE - 1.0)) + variance * pulled * pulled)


def quality_gain(truthful: Any, truths: Any, lies: Any) -> Any:
    """Expected of the annotator's quality."""
    chance = chance_of(truthful, truths, lies)
    return chance * quality_change(truthful, truths, lies) + (1.0 - chance) * quality_change(
        1.0 - truthful, truths, lies
    )


def quality_change(truthful: Any, truths: Any, lies: Any) -> Any:
    """KL of the belief in a quality after an answer from that before."""
    more_truths, more_lies = quality_step(truthful, truths, lies)
    a, b = truths + more_truths, lies + more_lies
    return log_gamma_bregman(truths, a) + log_gamma_bregman(lies, b) - log_gamma_bregman(truths + lies, a + b)


def quality_step(truthful: Any, truths: Any, lies: Any) -> tuple[Any, Any]:
    """α′ − α and β′ − β of `moments.quality_after`, without the digits that the subtraction would lose."""
    total = truths + lies
    share = truths * truthful / (truths * truthful + lies * (1.0 - truthful))
    mixed = share * (1.0 - share)
    a, b = truths + share, lies + (1.0 - share)
    shrunk = (total + 2.0) * mixed / (a * b + (total + 1.0) * mixed)
    return share - a * shrunk, (1.0 - share) - b * shrunk


def expected_gain(lead: Any, variance: Any, other: Any, truths: Any, lies: Any, exploration: Any) -> Any:
    """Eq. 10; `exploration` is γ."""
    truthful = expected_lead(lead, variance + other)
    return items_gain(lead, variance, other, truthful, truths, lies) + exploration * quality_gain(
        truthful, truths, lies
    )


FORMULAS = (
    x_minus_log1p,
    log_gamma_bregman,
    pull,
    chance_of,
    expected_lead,
    items_gain,
    items_changes,
    item_change,
    quality_gain,
    quality_change,
    quality_step,
    expected_gain,
)
"""What a compiled loop calls."""
