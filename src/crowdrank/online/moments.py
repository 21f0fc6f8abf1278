"""What one answer does to independent beliefs (Chen et al. 2013, §4.1): sᵢ ~ N(μᵢ, σᵢ²), ηₖ ~ Beta(α, β).

Annotator k says that i beats j. With d = μᵢ − μⱼ, p = 1/(1 + e⁻ᵈ) and q = αp/(αp + β(1 − p)):

μᵢ ← μᵢ + σᵢ²(q − p),   μⱼ ← μⱼ − σⱼ²(q − p)                     (12, 13)
σ² ← σ²·max(1 + σ²(q(1 − q) − p(1 − p)), κ)   of both               (14, 15)
C₁ = E[1/(1 + e⁻⁽ˢⁱ⁻ˢʲ⁾)],   C = (αC₁ + β(1 − C₁))/(α + β)        (16)

and α, β from the mean and variance of η after the answer (17, 18). Eq. 19 takes C₁ from a Taylor series, which leaves
[0, 1] when σᵢ² + σⱼ² is large; MacKay's scaling, C₁ ≈ 1/(1 + exp(−d/√(1 + π(σᵢ² + σⱼ²)/8))), never does.

Elementwise, so that one text serves arrays and compiled loops. `exact_pull` and `fold` are of single numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crowdrank.engines.compilation import compiled

LEAST_SHRINKAGE = 1e-4
"""κ: what is left of a variance at least."""


def pull(lead: Any, truths: Any, lies: Any) -> tuple[Any, Any]:
    """q − p and q(1 − q) − p(1 − p): where the answer pulls the scores, and what it does to their variances."""
    p = 1.0 / (1.0 + np.exp(np.minimum(-lead, 700.0)))
    unsure = p * (1.0 - p)
    honest = truths * p + lies * (1.0 - p)
    return (truths - lies) * unsure / honest, unsure * (truths * lies / (honest * honest) - 1.0)


def shrinkage(variance: Any, bend: Any) -> Any:
    """What is left of a variance, as a share."""
    return np.maximum(1.0 + variance * bend, LEAST_SHRINKAGE)


def expected_lead(lead: Any, variance: Any) -> Any:
    """C₁, the chance that a truthful annotator prefers i; `variance` is σᵢ² + σⱼ²."""
    return 1.0 / (1.0 + np.exp(np.minimum(-lead / np.sqrt(1.0 + 0.125 * np.pi * variance), 700.0)))


def expected_lead_taylor(lead: Any, variance: Any) -> Any:
    """C₁ as printed (19); outside [0, 1] for large variances."""
    p = 1.0 / (1.0 + np.exp(np.minimum(-lead, 700.0)))
    return p + 0.5 * variance * p * (1.0 - p) * (1.0 - 2.0 * p)


def chance_of(truthful: Any, truths: Any, lies: Any) -> Any:
    """C (16): that the annotator gives the answer which a truthful one gives with chance `truthful`."""
    return (truths * truthful + lies * (1.0 - truthful)) / (truths + lies)


def quality_after(truthful: Any, truths: Any, lies: Any) -> tuple[Any, Any]:
    """α and β after the answer (17, 18).

    η is then a mixture of Beta(α + 1, β), with the share w = αC₁/(αC₁ + β(1 − C₁)), and Beta(α, β + 1).
    """
    total = truths + lies
    share = truths * truthful / (truths * truthful + lies * (1.0 - truthful))
    mean = (truths + share) / (total + 1.0)
    # α + β = E η(1 − η) / Var η, written without the difference of two near numbers that Var η is
    doubt = truths * lies + share * lies + (1.0 - share) * truths
    count = (total + 1.0) * doubt / (doubt + (total + 2.0) * share * (1.0 - share))
    return count * mean, count * (1.0 - mean)


def exact_pull(lead: float, variance: float, truths: float, lies: float) -> tuple[float, float, float]:
    """As `pull`, and C₁, with no approximation but numerical integration; `variance` is σᵢ² + σⱼ².

    The answer depends on d = sᵢ − sⱼ ~ N(lead, variance) alone, with likelihood ∝ f(d) = β + (α − β)·F(d), F logistic.
    By Stein's lemma the moments of d, and so those of both scores, follow from E f′/E f and E f″/E f.
    """
    # the trapezoid rule: errors of exp(−2π²/step) by F's poles at ±iπ, and exp(−2π²·variance/step²) by the normal
    deviation = math.sqrt(variance)
    step = min(0.6, 0.7 * deviation)
    reach = int(9.0 * deviation / step)
    total = truthful = slope = bend = 0.0
    for n in range(-reach, reach + 1):
        weight = math.exp(-0.5 * (n * step) ** 2 / variance)
        margin = lead + n * step
        e = math.exp(-abs(margin))
        unsure = e / ((1.0 + e) * (1.0 + e))
        p = (1.0 if margin > 0 else e) / (1.0 + e)
        total += weight
        truthful += weight * p
        slope += weight * unsure
        bend += weight * unsure * (1.0 - 2.0 * p)
    side = (truths - lies) / (lies * total + (truths - lies) * truthful)
    return side * slope, side * bend - (side * slope) ** 2, truthful / total


@compiled(pull, shrinkage, expected_lead, expected_lead_taylor, quality_after, exact_pull)
def fold(  # type: ignore[no-untyped-def]
    left, right, outcome, annotator, weight, mean, variance, truths, lies, exact, taylor, ties
):
    """Row by row, in place; an answer of weight w is taken in w times, what is left of it in part.

    Ties count as half an answer each way where `ties`, else they are left out. Returns how often (19) left [0, 1].
    """
    outside = 0
    for row in range(len(left)):
        i, j, k = left[row], right[row], annotator[row]
        rest = weight[row] if ties or outcome[row] != 0 else 0.0
        while rest > 0.0:
            part = min(rest, 1.0)
            rest -= part
            lead, both = mean[i] - mean[j], variance[i] + variance[j]
            shift = more_truths = more_lies = 0.0
            kept_i = kept_j = 1.0
            for side in (1, -1):
                share = part * 0.5 * (1.0 + side * outcome[row])
                if share == 0.0:
                    continue
                if exact:
                    pulled, bend, truthful = exact_pull(side * lead, both, truths[k], lies[k])
                else:
                    pulled, bend = pull(side * lead, truths[k], lies[k])
                    truthful = expected_lead(side * lead, both)
                    if taylor:
                        printed = expected_lead_taylor(side * lead, both)
                        if 0.0 < printed < 1.0:
                            truthful = printed
                        else:
                            outside += 1
                told, lied = quality_after(truthful, truths[k], lies[k])
                shift += share * side * pulled
                kept_i += share * (shrinkage(variance[i], bend) - 1.0)
                kept_j += share * (shrinkage(variance[j], bend) - 1.0)
                more_truths += share * (told - truths[k])
                more_lies += share * (lied - lies[k])
            mean[i] += variance[i] * shift
            mean[j] -= variance[j] * shift
            variance[i] *= kept_i
            variance[j] *= kept_j
            truths[k] += more_truths
            lies[k] += more_lies
    return outside
