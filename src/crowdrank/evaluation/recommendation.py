"""Which model to take, in one sentence that says why: the simplest that is not surely behind the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.data.features import POSITION
from crowdrank.evaluation.candidates import Contenders, rung
from crowdrank.evaluation.cross_validation import Estimate, estimate
from crowdrank.models import by_name

if TYPE_CHECKING:
    from crowdrank.evaluation.model_comparison import Entrant

_WORTHWHILE = {"chance": 0.001, "agreement": 0.005}
"""A lead below this matters to nobody, however sure it is: in nats, and as a share of pairs."""
_MANY_TIES = 0.05

_BECAUSE = {
    "thurstone": "the noise is nearer to normal than to logistic",
    "elo": "later answers count more",
    "variance-bt": "annotators differ in how sharply they see differences",
    "mpm": "annotators differ in how closely they keep to the scores",
    "bayesian-crowd-bt": "annotators differ and little is known of each",
    "tpp": "annotators know some domains and not others",
    "z-rating": "annotators use the scale differently",
    "graded-response": "annotators differ in how strict, bold and careful they are",
    "dawid-skene": "annotators confuse grades, each in a way of their own",
    "borda": "counting does as well as a model",
}


_DOES = {
    "chance": "explains answers held out better than {plain}",
    "agreement": "agrees with more of the pairs held out than {plain}",
}


@dataclass(frozen=True)
class Recommendation:
    """The model to take."""

    model: str
    why: str
    """One sentence, in plain words."""
    notes: list[str]
    """What to mind about it."""


def recommend(
    judgments: Judgments,
    entered: Contenders,
    entrants: Sequence[Entrant],
    values: Mapping[str, FloatArray],
    weight: FloatArray,
    who: IntArray,
    yardstick: str,
) -> Recommendation:
    """`values` are what each model that can be gone by reached on every answer held out."""

    def ahead(a: str, b: str) -> Estimate:
        return estimate(values[a] - values[b], weight, who)

    best = max(values, key=lambda name: float(np.average(values[name], weights=weight)))
    chosen = next(name for name in sorted(values, key=rung) if not _beaten(ahead(best, name), yardstick))
    rivals = sorted((n for n in values if n != chosen), key=lambda n: -float(np.average(values[n], weights=weight)))
    unit = "nats each" if yardstick == "chance" else "of them"
    if chosen == entered.plain:
        why = _nothing_gained(chosen, rivals, ahead(rivals[0], chosen), judgments, unit)
    else:
        does, lead = _DOES[yardstick].format(plain=entered.plain), _pm(ahead(chosen, entered.plain))
        why = f"Take {chosen}: {_because(chosen, entered)}, and it {does}, by {lead} {unit}."
    notes = _of_strangers(entrants, chosen, entered.plain) + _of_ties(judgments)
    notes += _of_gold(entrants, chosen, entered.plain)
    if chosen not in (best, entered.plain):
        notes.insert(0, _of_rival(chosen, best, ahead(best, chosen), unit))
    return Recommendation(chosen, why, notes)


def _beaten(lead: Estimate, yardstick: str) -> bool:
    return lead.surely_positive and lead.value > _WORTHWHILE[yardstick]


def _nothing_gained(plain: str, rivals: list[str], lead: Estimate, judgments: Judgments, unit: str) -> str:
    known = judgments.annotator is not None and len(judgments.annotators) > 1
    what = "nothing is surely gained by weighing annotators" if known else "there is no telling annotators apart"
    if known and not any(_weighs(name) for name in rivals):
        what = "nothing is surely gained by another"
    if lead.value <= 0:
        return f"Take {plain}, the plain model: {what}, and no other foretells better what was held out."
    return f"Take {plain}, the plain model: {what}; {rivals[0]} is ahead by {_pm(lead)} {unit}, {_means(lead)}."


def _means(lead: Estimate) -> str:
    return "too little to matter" if lead.surely_positive else "which may be chance"


def _weighs(name: str) -> bool:
    return bool(by_name(name).models_annotators)


def _because(name: str, entered: Contenders) -> str:
    if name in _BECAUSE:
        return _BECAUSE[name]
    features = getattr(entered.models[name], "features", None)
    if features is not None:
        named = ["the side of the screen" if f == POSITION else f for f in features]
        return f"some annotators answer by {' and '.join(filter(None, (', '.join(named[:-1]), named[-1])))}"
    return "annotators differ" if _weighs(name) else "its order fits better"


def _of_rival(chosen: str, best: str, lead: Estimate, unit: str) -> str:
    return f"{best} is ahead of it by {_pm(lead)} {unit}, {_means(lead)}: the simpler one does."


def _of_strangers(entrants: Sequence[Entrant], chosen: str, plain: str) -> list[str]:
    """Knowing annotators does not help with new ones, and may do harm."""
    found = next(e for e in entrants if e.model == chosen)
    mark = (found.chance or found.agreement).get("annotator")
    if mark is None or chosen == plain or not -mark.gain.value > 2 * mark.gain.std_error:
        return []
    loss = _pm(Estimate(-mark.gain.value, mark.gain.std_error))
    return [f"Of annotators it has never seen it foretells answers worse than {plain}, by {loss}."]


def _of_ties(judgments: Judgments) -> list[str]:
    if not isinstance(judgments, Comparisons) or judgments.ties < _MANY_TIES * len(judgments):
        return []
    share = judgments.ties / len(judgments)
    return [f"{share:.0%} of the judgments are ties; only decided answers were compared on."]


def _of_gold(entrants: Sequence[Entrant], chosen: str, plain: str) -> list[str]:
    graded = [e for e in entrants if e.grade is not None]
    found = next((e for e in graded if e.model == chosen), None)
    if found is None or found.grade is None:
        return []
    most = max(graded, key=lambda e: e.grade.accuracy if e.grade is not None else -np.inf)
    said = f"Against gold {chosen} puts {found.grade.accuracy:.1%} of the pairs in the right order"
    if most.grade is None or most.grade.accuracy <= found.grade.accuracy:
        return [f"{said}, as many as any."]
    gain = most.accuracy_gain
    sure = f", surely more than {plain}" if gain is not None and chosen == plain and gain.surely_positive else ""
    return [f"{said}; the most, {most.grade.accuracy:.1%}, has {most.model}{sure}."]


def _pm(found: Estimate) -> str:
    return f"{found.value:.3f} ± {found.std_error:.3f}"
