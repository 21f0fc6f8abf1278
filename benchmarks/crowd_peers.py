"""Simulated answers of unreliable annotators; adapters for crowdrank, the same objective in NumPy, and crowd-kit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from peers import OURS, Contender
from scipy.special import expit, log_expit

import crowdrank as cr
from crowdrank.data import Comparisons, Items

JOINT = cr.CrowdBT(estimation="joint", prior_scale=3.0, quality_prior=(3.0, 0.5), ties="drop")
_HELD_OUT = 0.1
_REPETITIONS = 5
Scores = np.ndarray[Any, np.dtype[np.float64]]
Drawn = tuple[Comparisons, Comparisons]


def draw(items: int, annotators: int, rows: int, seed: int = 0) -> Drawn:
    """Scores from N(0,1), qualities from Beta(5,1), logistic answers; those to learn from, and those held out."""
    rng = np.random.default_rng(seed)
    scores, quality = rng.normal(size=items), rng.beta(5, 1, size=annotators)
    total = int(rows * (1 + _HELD_OUT))
    left = rng.integers(items, size=total).astype(np.int32)
    right = ((left + rng.integers(1, items, size=total)) % items).astype(np.int32)
    who = rng.integers(annotators, size=total).astype(np.int32)
    truth = rng.random(total) < expit(scores[left] - scores[right])
    outcome = np.where(truth == (rng.random(total) < quality[who]), 1, -1).astype(np.int8)
    votes = Comparisons(
        items=Items.of([f"item {n:05d}" for n in range(items)]),
        left=left,
        right=right,
        outcome=outcome,
        annotators=np.array([f"annotator {n:05d}" for n in range(annotators)], dtype=object),
        annotator=who,
    )
    return votes.take(slice(0, rows)), votes.take(slice(rows, total))


def winners(votes: Comparisons) -> tuple[Any, Any, Any]:
    won = np.where(votes.outcome > 0, votes.left, votes.right)
    return won, np.where(votes.outcome > 0, votes.right, votes.left), votes.annotator


class NumPy:
    """The same objective written in NumPy, maximised by SciPy's L-BFGS."""

    def __init__(self, votes: Comparisons):
        self.won, self.lost, self.who = winners(votes)
        self.items, self.people = len(votes.items), len(votes.annotators)

    def objective(self, x: Scores) -> tuple[float, Scores]:
        model = JOINT
        scores, gates = x[: self.items], x[self.items :]
        truths, lies = model.quality_prior
        margin, eta = scores[self.won] - scores[self.lost], expit(gates)
        p, e = expit(margin), eta[self.who]
        chance = e * p + (1 - e) * (1 - p)
        by_margin = (2 * e - 1) * p * (1 - p) / chance
        by_gate = e * (1 - e) * (2 * p - 1) / chance
        slope = np.bincount(self.won, by_margin, self.items) - np.bincount(self.lost, by_margin, self.items)
        value = np.log(chance).sum() - 0.5 * scores @ scores / model.prior_scale**2
        value += np.sum(truths * log_expit(gates) + lies * log_expit(-gates))
        of_gates = np.bincount(self.who, by_gate, self.people) + truths * (1 - eta) - lies * eta
        return -value, -np.concatenate((slope - scores / model.prior_scale**2, of_gates))

    def fit(self, ftol: float) -> Scores:
        from scipy.optimize import minimize

        start = np.concatenate((np.zeros(self.items), np.full(self.people, 1.5)))
        options = {"ftol": ftol, "gtol": 0.0, "maxiter": 2_000, "maxfun": 4_000}
        return np.asarray(minimize(self.objective, start, jac=True, method="L-BFGS-B", options=options).x)


def chance_of(scores: Scores, quality: Scores, bias: Scores | None = None) -> Callable[[Comparisons], Scores]:
    """Of an answer, by Crowd-BT; with a bias, by the noisy Bradley-Terry that draws the careless to the left."""

    def chance(votes: Comparisons) -> Scores:
        won, lost, who = winners(votes)
        p = expit(scores[won] - scores[lost])
        q = quality[who]
        if bias is None:
            return np.asarray(q * p + (1 - q) * (1 - p))
        side = np.where(votes.outcome > 0, bias[who], 1 - bias[who])
        return np.asarray(q * p + (1 - q) * side)

    return chance


class OfCrowds(Contender):
    """What it learns is one column: scores, the logits of qualities and, with `has_bias`, those of biases."""

    warm = ((100, 100, 4_000),)
    has_bias = False

    def chance(self, column: Scores, items: int, annotators: int) -> Callable[[Comparisons], Scores]:
        scores, quality, bias = np.split(column, [items, items + annotators])
        return chance_of(scores, expit(quality), expit(bias) if self.has_bias else None)


class Crowdrank(OfCrowds):
    family, way, module = OURS, "CrowdBT", "crowdrank"
    settings = (1e-4,)  # the default
    warm = ((100, 100, 4_000), (2_000, 2_000, 600_000))  # few rows, and more than one shard

    def load(self, votes: Drawn) -> Any:
        return votes[0]

    def fresh(self, native: Any) -> Any:
        return replace(native, items=replace(native.items))

    def fit(self, built: Any, setting: float) -> Any:
        return replace(JOINT, tolerance=setting).fit(built)

    def scores(self, found: Any, items: int) -> Any:
        quality = found.annotators["quality"]
        return np.concatenate((found.scores, np.log(quality) - np.log1p(-quality)))

    def aside(self, native: Any) -> dict[str, float]:
        """How many passes a fit makes over the answers, how long one takes that computes value and gradient, and how
        many of these the fit is worth by the processor's time, which others on the machine change less."""
        numbers: list[int] = []
        begun = time.process_time()
        JOINT.fit(self.fresh(native), engine=cr.engines.ProgressEngine(cr.engines.LOCAL, numbers.append))
        used = time.process_time() - begun
        seconds, processor = gradient_times(native)
        return {"passes": float(len(numbers)), "gradient_seconds": seconds, "processor_gradients": used / processor}


def gradient_times(votes: Comparisons) -> tuple[float, float]:
    """One pass for value, gradient and curvature, by the engine that fits: wall and processor, the best of several."""
    from crowdrank.models.crowd import likelihood

    won, lost, who = winners(votes)
    answers = likelihood.Answers(won, lost, who, np.broadcast_to(1.0, len(won)), np.zeros((len(won), 0)))
    held, rng = cr.engines.LOCAL.load(answers), np.random.default_rng(1)
    scores, gates = rng.normal(size=len(votes.items)), rng.normal(2.0, 1.0, size=len(votes.annotators))
    none = np.zeros((len(gates), 0))
    wall = processor = float("inf")
    for _ in range(_REPETITIONS):
        begun, used = time.perf_counter(), time.process_time()
        held.map_and_sum(likelihood.evaluate, scores, gates, none, likelihood.CROWD_BT)
        wall, processor = min(wall, time.perf_counter() - begun), min(processor, time.process_time() - used)
    return wall, processor


class WithNumPy(OfCrowds):
    family, way, module = "numpy", "L-BFGS", "scipy"
    settings = (1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13)

    def load(self, votes: Drawn) -> Any:
        return NumPy(votes[0])

    def fit(self, built: Any, setting: float) -> Any:
        return built.fit(setting)


class CrowdKit(OfCrowds):
    """As it comes: its model is factorBT's, with a bias towards one side."""

    family, way, module = "crowd-kit", "NoisyBradleyTerry", "crowdkit"
    settings = (1e-5,)
    warm = ((20, 20, 400),)
    has_bias = True

    def load(self, votes: Drawn) -> Any:
        import pandas as pd

        table = votes[0].to_frame().rename({"annotator": "worker", "winner": "label"})
        return pd.DataFrame(table.to_dict(as_series=False)), votes[0].items.labels, votes[0].annotators

    def fit(self, built: Any, setting: float) -> Any:
        from crowdkit.aggregation import NoisyBradleyTerry

        frame, items, annotators = built
        return NoisyBradleyTerry(tol=setting).fit(frame), items, annotators

    def scores(self, found: Any, items: int) -> Any:
        model, labels, annotators = found
        columns = (model.scores_.reindex(labels), model.skills_.reindex(annotators), model.biases_.reindex(annotators))
        shares = np.clip(np.concatenate([column.to_numpy() for column in columns]), 1e-12, 1 - 1e-12)
        return np.log(shares) - np.log1p(-shares)


CONTENDERS: tuple[OfCrowds, ...] = (Crowdrank(), WithNumPy(), CrowdKit())
