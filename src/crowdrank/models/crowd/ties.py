"""Fit the distribution of ties of Crowd-BT with annotators integrated out, at given scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.inference.newton import maximize_within
from crowdrank.models.crowd.marginal_likelihood import tie_counts
from crowdrank.models.crowd.marginal_objective import MarginalObjective
from crowdrank.models.crowd.quality_priors import TieDistribution, grid_log_evidence

# Normal prior on the log of the spread of log ν among annotators.
_LOG_SPREAD_PRIOR = (-0.7, 0.7)
_BOUNDS = ((-4.0, 4.0), (-3.0, 1.5))
# Factors by which the slope may change in one round, and its range above 0.
_SLOPE_FACTORS, _SLOPE_RANGE = (0.7, 1.0, 1.0 / 0.7), (0.05, 1.5)
_MAX_ROUNDS, _EFFECT_STEPS = 5, 3
# Spread of the item effects at first, and the least one.
_FIRST_EFFECT_SPREAD, _LEAST_EFFECT_SPREAD = 0.5, 0.01


def fit_ties(objective: MarginalObjective, scores: FloatArray) -> TieDistribution:
    """The distribution of ties that fits best at these scores, found from that of the objective."""
    for _ in range(_MAX_ROUNDS):
        before = objective.hyper.tie.slope
        objective = _with_ties(objective, _fit_effects(objective, scores))
        objective = _with_ties(objective, _fit_distribution(objective, scores))
        if objective.hyper.tie.slope == before:
            break
    return objective.hyper.tie


def _with_ties(objective: MarginalObjective, tie: TieDistribution) -> MarginalObjective:
    return objective.at(replace(objective.hyper, tie=tie))


def _fit_effects(objective: MarginalObjective, scores: FloatArray) -> TieDistribution:
    """Item effects by a few steps of Newton's method on the diagonal; the variance of their prior by EM."""
    tie = objective.hyper.tie
    variance = float(np.mean(tie.effect**2)) or _FIRST_EFFECT_SPREAD**2
    for _ in range(_EFFECT_STEPS):
        posterior = objective.posterior(objective.tables(scores)).tie
        excess, information = objective.shards.sum(tie_counts, scores, objective.points, posterior)
        # an effect and those of the items it meets move together, which doubles the information along that direction
        step = (excess - tie.effect / variance) / (2.0 * information + 1.0 / variance)
        tie = tie._replace(effect=tie.effect + step)
        spread = tie.effect**2 + 1.0 / (information + 1.0 / variance)
        variance = max(float(np.mean(spread)), _LEAST_EFFECT_SPREAD**2)
        objective = _with_ties(objective, tie)
    return tie


def _fit_distribution(objective: MarginalObjective, scores: FloatArray) -> TieDistribution:
    """The slope, and the normal distribution of log ν among annotators."""
    grids, tie = objective.grids, objective.hyper.tie
    best, highest = tie, -np.inf
    for slope in sorted({0.0, *np.clip(tie.slope * np.array(_SLOPE_FACTORS), *_SLOPE_RANGE).tolist()}):
        table = _with_ties(objective, tie._replace(slope=slope)).tables(scores).tie

        def value(x: FloatArray, table: FloatArray = table) -> float:
            log_weights = grids.log_tie_weights(tie._replace(mean=float(x[0]), scale=float(np.exp(x[1]))))
            away = (float(x[1]) - _LOG_SPREAD_PRIOR[0]) / _LOG_SPREAD_PRIOR[1]
            return grid_log_evidence(table, log_weights) - 0.5 * away**2

        found = maximize_within(value, np.array([tie.mean, np.log(tie.scale)]), [0, 1], _BOUNDS)
        if value(found) > highest:
            best = tie._replace(mean=float(found[0]), scale=float(np.exp(found[1])), slope=slope)
            highest = value(found)
    return best
