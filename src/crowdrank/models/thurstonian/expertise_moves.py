"""Moves of τ, an annotator's expertise in a domain, given what they saw: all of them at once, as none knows another.

One factor for much at once: a step of Newton's on its logarithm, with its noise, taken or not (Qi & Minka 2002).

Of each judgment's margin one part is fixed and one is multiplied by the factor.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from crowdrank.inference.special import ROOT_HALF, hazard_by_table, log_cdf_by_table


def _expertise_curvature(
    sights: Any, beliefs: Any, state: Any, expertise: Any, likely: Any, slope: Any, bent: Any
) -> None:
    """The log posterior of every τ where it might be, its slope, and how it is bent."""
    for k in range(len(expertise)):
        for m in range(expertise.shape[1]):
            gap, precision = expertise[k, m] - beliefs.expertise[k, m], beliefs.expertise_spread[k, m] ** -2
            likely[k, m], slope[k, m], bent[k, m] = -0.5 * precision * gap * gap, -precision * gap, precision
    for query in range(len(state.domain)):
        m = state.domain[query]
        for row in range(sights.judgment_starts[query], sights.judgment_starts[query + 1]):
            k = sights.annotator[row]
            apart = ROOT_HALF * (state.seen[sights.winner[row]] - state.seen[sights.loser[row]])
            x = apart * expertise[k, m]
            hazard = hazard_by_table(x)
            likely[k, m] += log_cdf_by_table(x)
            slope[k, m] += hazard * apart
            bent[k, m] += max(0.0, hazard * (hazard + x)) * apart * apart


def draw_expertise(rng: Any, sights: Any, beliefs: Any, state: Any, bench: Any) -> None:
    """By a step of Newton's and its noise; at times by a blind one, for where Newton overshoots."""
    here, there, fresh = bench[:3], bench[3:6], bench[6]
    _expertise_curvature(sights, beliefs, state, state.expertise, here[0], here[1], here[2])
    blind = rng.random() < 0.2
    for k in range(len(fresh)):
        for m in range(fresh.shape[1]):
            noise = rng.standard_normal()
            if blind:
                step = noise * beliefs.expertise_spread[k, m] * math.exp(3.0 * rng.random() - 3.0)
            else:
                step = here[1, k, m] / here[2, k, m] + noise / math.sqrt(here[2, k, m])
            fresh[k, m] = state.expertise[k, m] + step
    _expertise_curvature(sights, beliefs, state, fresh, there[0], there[1], there[2])
    for k in range(len(fresh)):
        for m in range(fresh.shape[1]):
            gain = there[0, k, m] - here[0, k, m]
            if not blind:
                step = fresh[k, m] - state.expertise[k, m]
                ahead, back = step - here[1, k, m] / here[2, k, m], -step - there[1, k, m] / there[2, k, m]
                gain += 0.5 * (math.log(there[2, k, m] / here[2, k, m]) + here[2, k, m] * ahead**2)
                gain -= 0.5 * there[2, k, m] * back**2
            if math.log(rng.random()) < gain:
                state.expertise[k, m] = fresh[k, m]


def trade_expertise(rng: Any, sights: Any, beliefs: Any, state: Any, bench: Any) -> None:
    """τ against blur: times a factor, with the blurs of what was seen divided by it.

    Contradictions are explained by either; given the blurs alone τ would have to go where they say.
    """
    factor, gain = bench[0], bench[1]
    people, domains = factor.shape
    for k in range(people):
        for m in range(domains):
            factor[k, m] = math.exp(rng.standard_normal() * math.exp(3.0 * rng.random() - 3.0))
            tau, middle = state.expertise[k, m], beliefs.expertise[k, m]
            gaps = (tau - middle) ** 2 - (factor[k, m] * tau - middle) ** 2
            gain[k, m] = 0.5 * gaps * beliefs.expertise_spread[k, m] ** -2 + math.log(factor[k, m])
    for query in range(len(state.domain)):
        m = state.domain[query]
        for item in range(sights.item_starts[query], sights.item_starts[query + 1]):
            for sight in range(sights.sight_starts[item], sights.sight_starts[item + 1]):
                by = factor[sights.annotator_of_sight[sight], m]
                squares = (state.seen[sight] - state.scores[item]) ** 2 / state.difficulty[query]
                gain[sights.annotator_of_sight[sight], m] += 0.5 * squares * (1.0 - by**-2) - math.log(by)
        for row in range(sights.judgment_starts[query], sights.judgment_starts[query + 1]):
            k, one, other = sights.annotator[row], sights.winner[row], sights.loser[row]
            steep, apart = ROOT_HALF * state.expertise[k, m], state.seen[one] - state.seen[other]
            truly = state.scores[sights.item[one]] - state.scores[sights.item[other]]
            # τ' (truly + blur / factor) = τ (factor · truly + blur)
            gain[k, m] += log_cdf_by_table(steep * (apart + (factor[k, m] - 1.0) * truly))
            gain[k, m] -= log_cdf_by_table(steep * apart)
    for k in range(people):
        for m in range(domains):
            if math.log(rng.random()) < gain[k, m]:
                state.expertise[k, m] *= factor[k, m]
            else:
                factor[k, m] = 1.0
    for query in range(len(state.domain)):
        for item in range(sights.item_starts[query], sights.item_starts[query + 1]):
            for sight in range(sights.sight_starts[item], sights.sight_starts[item + 1]):
                by = factor[sights.annotator_of_sight[sight], state.domain[query]]
                state.seen[sight] = state.scores[item] + (state.seen[sight] - state.scores[item]) / by


EXPERTISE = (hazard_by_table, log_cdf_by_table, _expertise_curvature, draw_expertise, trade_expertise)


class Powers(NamedTuple):
    """What is believed of a factor f beforehand: a log density by log f, as a sum of its powers and its logarithm."""

    square: float
    plain: float
    log: float
    inverse_square: float
    """Of f⁻², which is taken away."""


def _scale_curvature(fixed: Any, moved: Any, prior: Any, log_factor: Any) -> Any:
    """The log posterior of log f, its slope, and how it is bent, as far as that is down."""
    factor = math.exp(log_factor)
    likely, slope, bent = 0.0, 0.0, 0.0
    for row in range(len(moved)):
        part = factor * moved[row]
        x = fixed[row] + part
        hazard = hazard_by_table(x)
        likely += log_cdf_by_table(x)
        slope += hazard * part
        bent += max(0.0, hazard * (hazard + x)) * part * part
    square, plain, inverse = prior.square * factor**2, prior.plain * factor, prior.inverse_square / factor**2
    likely += square + plain + prior.log * log_factor - inverse
    slope += 2.0 * square + plain + prior.log + 2.0 * inverse
    bent += max(0.0, -4.0 * square - plain) + 4.0 * inverse
    return likely, slope, bent + 1e-3


def stretch(rng: Any, fixed: Any, moved: Any, prior: Any) -> Any:
    """The factor: 1 where the step was not taken."""
    here, slope, bent = _scale_curvature(fixed, moved, prior, 0.0)
    step = slope / bent + rng.standard_normal() / math.sqrt(bent)
    if not abs(step) < 3.0:
        return 1.0
    there, back_slope, back_bent = _scale_curvature(fixed, moved, prior, step)
    gain = there - here + 0.5 * math.log(back_bent / bent)
    gain += 0.5 * bent * (step - slope / bent) ** 2 - 0.5 * back_bent * (step + back_slope / back_bent) ** 2
    return math.exp(step) if math.log(rng.random()) < gain else 1.0


STRETCHING = (hazard_by_table, log_cdf_by_table, _scale_curvature, stretch)
