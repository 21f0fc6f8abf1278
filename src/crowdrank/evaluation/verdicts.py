"""What to think of each annotator, by tests against scores they did not help to make."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.errors import DataError, SettingError
from crowdrank.evaluation.annotator_tests import Vector
from crowdrank.evaluation.evidence import Evidence, gather
from crowdrank.evaluation.reasons import reasons
from crowdrank.evaluation.tastes import expect
from crowdrank.judgments import Comparisons
from crowdrank.models import CrowdBT

WORDS = ("reliable", "noisy", "random", "reversed", "one-sided", "hasty", "different taste", "too few to say")

_CROWD_BT = CrowdBT()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Verdicts:
    """A verdict on each annotator, with its reason; chances (p-values) are adjusted for the number of annotators."""

    annotators: npt.NDArray[np.object_]
    verdict: npt.NDArray[np.object_]
    """One of `WORDS`."""
    reason: npt.NDArray[np.object_]
    decided: npt.NDArray[np.int64]
    """Answers that are no ties, on items that others ranked."""
    agreed: npt.NDArray[np.int64]
    """… of which the annotator chose the item that the others' scores put first."""
    quality: Vector
    """η against the others' scores; nan where nothing is known."""
    chances: dict[str, Vector]
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
            "annotator": self.annotators.tolist(), "verdict": self.verdict.tolist(), "reason": self.reason.tolist(),
            "decided": self.decided, "agreed": self.agreed,
        }  # fmt: skip
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

    >>> from crowdrank.simulated import mixed_crowd
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
        annotators=comparisons.annotators, verdict=_decide(evidence), reason=reasons(evidence),
        decided=evidence.decided.astype(np.int64), agreed=evidence.agreed.astype(np.int64),
        quality=evidence.quality, chances=evidence.chances, typical=evidence.typical, level=level,
    )  # fmt: skip


def _decide(evidence: Evidence) -> npt.NDArray[np.object_]:
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
