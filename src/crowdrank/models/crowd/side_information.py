"""Side information about single annotators, on the scale of the gate.

known      the gate is normal around its value, with a spread that leaves no choice
range      a wall on each side: log σ((gate − low)/width) + log σ((high − gate)/width)
order      a sharp judge compared the two: log σ((better − worse)/width)

No answer pulls a gate by more than its weight, or little more: spreads and widths shrink with the answers of an
annotator, so that however many there are, what is known stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import EncodedSideInformation
from crowdrank.errors import SettingError
from crowdrank.models.crowd.likelihood import SCALED, sigmoid

# How far a gate may stray from what is known of it, in logits.
_STRAY = 0.01
# Answers that any annotator is taken to have beside their own: what a prior may pull.
_SPARE = 10.0
# The gate of one who never errs: η = 1 to within 1e-13.
PERFECT = 30.0


class Bonds(NamedTuple):
    """Curvature between pairs of gates: `bend` times [[1, −1], [−1, 1]]; the diagonal is counted elsewhere."""

    first: IntArray
    second: IntArray
    bend: FloatArray


class HintPoint(NamedTuple):
    value: float
    slope: FloatArray
    bend: FloatArray
    bonds: Bonds


@dataclass(frozen=True)
class Hints:
    """What is known of the gates, as arrays."""

    known: IntArray
    value: FloatArray
    low_of: IntArray
    low: FloatArray
    high_of: IntArray
    high: FloatArray
    better: IntArray
    worse: IntArray
    push: FloatArray
    """How hard the answers may push each gate: a wall leans back twice as hard."""

    def __bool__(self) -> bool:
        return bool(len(self.known) + len(self.low_of) + len(self.better))

    def held(self, gates: FloatArray) -> FloatArray:
        """The gates moved to what is known of each; whose is above whose is left to the climb."""
        gates = gates.copy()
        gates[self.low_of] = np.maximum(gates[self.low_of], self.low)
        gates[self.high_of] = np.minimum(gates[self.high_of], self.high)
        gates[self.known] = self.value
        return gates

    def at(self, gates: FloatArray) -> HintPoint:
        slope, bend, total = np.zeros_like(gates), np.zeros_like(gates), 0.0
        away, stiff = gates[self.known] - self.value, self.push[self.known] / _STRAY
        total -= 0.5 * float(stiff @ away**2)
        np.add.at(slope, self.known, -stiff * away)
        np.add.at(bend, self.known, stiff)
        for codes, distance, sign in (
            (self.low_of, gates[self.low_of] - self.low, 1.0),
            (self.high_of, self.high - gates[self.high_of], -1.0),
        ):
            value, push, curve = _wall(distance, self.push[codes])
            total += value
            np.add.at(slope, codes, sign * push)
            np.add.at(bend, codes, curve)
        value, push, curve = _wall(
            gates[self.better] - gates[self.worse], self.push[self.better] + self.push[self.worse]
        )
        np.add.at(slope, self.better, push)
        np.add.at(slope, self.worse, -push)
        for codes in (self.better, self.worse):
            np.add.at(bend, codes, curve)
        return HintPoint(total + value, slope, bend, Bonds(self.better, self.worse, curve))


def _wall(distance: FloatArray, push: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """log σ(distance/width), its slope and its curvature; a push is met before the wall."""
    steep = 2.0 * push
    u = distance * steep
    inside, outside = sigmoid(u), sigmoid(-u)
    value = -float(np.sum(np.logaddexp(0.0, -u)))
    return value, outside * steep, inside * outside * steep**2


_NONE, _NOWHERE = np.zeros(0, np.int64), np.zeros(0)
NO_HINTS = Hints(_NONE, _NOWHERE, _NONE, _NOWHERE, _NONE, _NOWHERE, _NONE, _NONE, _NOWHERE)


def hints_of(known: EncodedSideInformation, formula: int, gold_judge: int | None, weight: FloatArray) -> Hints:
    """Side information on the scale of this formula's gates; the judge of the gold pairs, if any, never errs.

    `weight` is that of each annotator's answers.
    """
    if not known.has_annotators and gold_judge is None:
        return NO_HINTS
    to_gate = _log if formula == SCALED else _logit
    fixed = {code: to_gate(value) for code, value in known.quality.items()}
    if gold_judge is not None:
        fixed[gold_judge] = 0.0 if formula == SCALED else PERFECT
    low = {code: to_gate(least) for code, (least, _) in known.between.items()}
    high = {code: to_gate(most) for code, (_, most) in known.between.items()}
    better, worse = np.array(known.better, np.int64).reshape(-1, 2).T
    push = weight + _SPARE
    tied = np.union1d(better, worse)
    push[tied] = push[tied].sum()  # one of a chain feels the push of all
    return Hints(*_arrays(fixed), *_arrays(low), *_arrays(high), better, worse, push)


def _arrays(values: dict[int, float]) -> tuple[IntArray, FloatArray]:
    return np.array(list(values), np.int64), np.array(list(values.values()), np.float64)


def _logit(quality: float) -> float:
    if not 0 <= quality <= 1:
        raise SettingError(f"The quality of an annotator must lie between 0 and 1, got {quality}.")
    with np.errstate(divide="ignore"):
        return float(np.clip(np.log(quality) - np.log1p(-quality), -PERFECT, PERFECT))


def _log(sharpness: float) -> float:
    if not 0 < sharpness < np.inf:
        raise SettingError(f"The sharpness of an annotator must be positive, got {sharpness}.")
    return float(np.log(sharpness))
