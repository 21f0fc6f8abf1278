"""Verdicts in plain sentences that carry their numbers.

What to think of each annotator, by tests against scores they did not help to make.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, IntArray, ObjectArray
from crowdrank.data import Comparisons
from crowdrank.errors import DataError, SettingError
from crowdrank.evaluation.annotator_evidence import Evidence, gather
from crowdrank.evaluation.minority_preferences import expect
from crowdrank.models import CrowdBT


def reasons(evidence: Evidence) -> ObjectArray:
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


WORDS = ("reliable", "noisy", "random", "reversed", "one-sided", "hasty", "different taste", "too few to say")

_CROWD_BT = CrowdBT()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Verdicts:
    """A verdict on each annotator, with its reason; chances (p-values) are adjusted for the number of annotators."""

    annotators: ObjectArray
    verdict: ObjectArray
    """One of `WORDS`."""
    reason: ObjectArray
    decided: IntArray
    """Answers that are no ties, on items that others ranked."""
    agreed: IntArray
    """… of which the annotator chose the item that the others' scores put first."""
    quality: FloatArray
    """η against the others' scores; nan where nothing is known."""
    chances: dict[str, FloatArray]
    """Adjusted p-values by test: above_half, below_half, below_typical, one_sided, hasty, taste. nan where a test could
    not be made."""
    typical: float
    """The quality of a typical annotator."""
    level: float

    def __len__(self) -> int:
        return len(self.annotators)

    def __repr__(self) -> str:
        told = ", ".join(f"{count:,} {word}" for word, count in self.counts.items())
        return f"<Verdicts on {len(self):,} annotators: {told}>"

    @property
    def counts(self) -> dict[str, int]:
        """How many of each verdict, those that were given."""
        found = Counter(self.verdict.tolist())
        return {word: found[word] for word in WORDS if found[word]}

    def frame(self) -> pl.DataFrame:
        """One row an annotator, in the order of their labels."""
        columns: dict[str, Any] = {
            "annotator": self.annotators.tolist(),
            "verdict": self.verdict.tolist(),
            "reason": self.reason.tolist(),
            "decided": self.decided,
            "agreed": self.agreed,
        }
        return pl.DataFrame(columns | {f"p_{name}": chance for name, chance in self.chances.items()}).with_columns(
            pl.col(f"p_{name}").fill_nan(None) for name in self.chances
        )


def verdicts(
    comparisons: Comparisons, *, model: Any = _CROWD_BT, level: float = 0.05, folds: int = 5, seed: int = 0
) -> Verdicts:
    """Test each annotator's decided answers against scores fitted without them (`model`, Crowd-BT unless given).

    A coin tosser's answers are left or right by halves, whatever was shown. So the answers, added up with weights that
    were fixed without them, have a known mean and variance, and large sums are evidence:

    - weighted by what the scores expect: above zero (better than a coin) or below (reversed); the same sum against
      what the typical annotator would reach (noisy, random);
    - weighted equally, beyond what the scores account for: leaning to a side (one-sided), where sides are known;
    - weighted by what a minority's scores expect, beyond what the majority's account for, and once more on the answers
      where the two disagree (different taste);
    - durations by Mann and Whitney's rank-sum test (hasty), where durations are known.

    Each test is adjusted for the number of annotators after Benjamini and Hochberg, and made at `level`. Where several
    verdicts apply, the first holds of: one-sided, hasty, different taste, reversed, random, noisy, reliable, too few to
    say. Every answer counts once, whatever its weight; weights count in the fits.

    >>> from crowdrank.simulation import mixed_crowd
    >>> verdicts(mixed_crowd(kinds={"good": 12, "reversed": 2, "left": 1}, seed=1).judgments)
    <Verdicts on 15 annotators: 12 reliable, 2 reversed, 1 one-sided>
    """
    if comparisons.annotator is None:
        raise DataError("Verdicts need annotators: these judgments do not say who judged.")
    if not 0 < level < 0.5:
        raise SettingError(f"level must lie between 0 and 0.5, got {level}.")
    if folds < 2:
        raise SettingError(f"folds must be at least 2, got {folds}.")
    expected = expect(comparisons, model, folds, np.random.default_rng(seed))
    evidence = gather(comparisons, expected, level)
    return Verdicts(
        annotators=comparisons.annotators,
        verdict=_decide(evidence),
        reason=reasons(evidence),
        decided=evidence.decided.astype(np.int64),
        agreed=evidence.agreed.astype(np.int64),
        quality=evidence.quality,
        chances=evidence.chances,
        typical=evidence.typical,
        level=level,
    )


def _decide(evidence: Evidence) -> ObjectArray:
    """The first that applies."""
    found = {
        "one-sided": evidence.leans,
        "hasty": evidence.hasty,
        "different taste": evidence.sure("taste"),
        "reversed": evidence.sure("below_half"),
        "random": evidence.random,
        "noisy": evidence.noisy,
        "reliable": evidence.reliable,
    }
    return np.select(list(found.values()), [np.array(word, dtype=object) for word in found], WORDS[-1])
