"""Verdicts in plain sentences that carry their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crowdrank.evaluation.evidence import Evidence


def reasons(evidence: Evidence) -> npt.NDArray[np.object_]:
    """A sentence an annotator: what the verdict rests on first, how far they agreed with the others last."""
    clauses = [(evidence.leans, _leaning), (evidence.hasty, _quick), (evidence.sure("taste"), _taste)]
    found = np.empty(len(evidence.decided), dtype=object)
    for who in range(len(found)):
        told = [tell(evidence, who) for applies, tell in clauses if applies[who]]
        found[who] = "; ".join([*told, _agreement(evidence, who)])
    return found


def _leaning(evidence: Evidence, who: int) -> str:
    left, expected, decided = (float(v[who]) for v in (evidence.left, evidence.left_expected, evidence.decided))
    side = "left" if left > expected else "right"
    if side == "right":
        left, expected = decided - left, decided - expected
    chosen = f"chose {side} in {left:,.0f} of {_count(decided)} where {min(max(expected, 0.0), decided):,.0f} were"
    return f"{chosen} expected{_p(evidence, 'one_sided', who)}"


def _quick(evidence: Evidence, who: int) -> str:
    assert evidence.haste is not None
    median, usual = evidence.haste.median[who], evidence.haste.usual
    return f"took {median:.3g} seconds an answer where {usual:.3g} are usual{_p(evidence, 'hasty', who)}"


def _taste(evidence: Evidence, who: int) -> str:
    sided, contested = evidence.taste.sided[who], evidence.taste.contested[who]
    return (
        f"with a minority of one mind in {sided:,.0f} of {contested:,.0f} contested answers{_p(evidence, 'taste', who)}"
    )


def _agreement(evidence: Evidence, who: int) -> str:
    decided, agreed = evidence.decided[who], evidence.agreed[who]
    if len(evidence.decided) < 3:
        return "nobody can vouch: that takes two other annotators at least"
    if not decided:
        return _unheard(int(evidence.answers[who]))
    return f"agreed with others on {agreed:,.0f} of {_count(decided)}: {_meaning(evidence, who)}"


def _meaning(evidence: Evidence, who: int) -> str:
    if evidence.sure("below_half")[who]:
        return f"surely below half{_p(evidence, 'below_half', who)}"
    if evidence.sure("above_half")[who]:
        above = f"surely above half{_p(evidence, 'above_half', who)}"
        if not evidence.noisy[who]:
            return above
        return f"{above}, below the typical{_p(evidence, 'below_typical', who)}"
    nearer = min(("above_half", "below_half"), key=lambda test: float(evidence.chances[test][who]))
    coin, upper = f"may be a coin{_p(evidence, nearer, who)}", evidence.upper[who]
    if not evidence.sure("below_typical")[who]:
        return f"{coin} or typical{_p(evidence, 'below_typical', who)}"
    # the bound is of this annotator alone, p adjusted for all: below a half, the one would contradict the other
    return f"{coin}, at best {upper:.2f}" if upper >= 0.5 else coin


def _unheard(answers: int) -> str:
    if not answers:
        return "gave no decided answer"
    return f"{_count(answers)} that cannot be checked: others judged other items, or contradict each other"


def _count(number: Any) -> str:
    return f"{number:,.0f} answer{'' if number == 1 else 's'}"


def _p(evidence: Evidence, test: str, who: int) -> str:
    chance = float(evidence.chances[test][who])
    return " (p < 0.001)" if chance < 0.001 else f" (p {chance:.2g})"
