"""Verdicts on the judges of a jury: the agreement of others proves nothing where judges err together."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdrank.data import Comparisons, EncodedSideInformation
from crowdrank.models.jury.jury import JuryFit, fit_jury

P_VALUES = ("below_typical", "one_sided", "taste", "above_half", "below_half", "hasty")
# A judge that chooses a side in more than three answers of four, whatever is shown, is one-sided.
_ONE_SIDED = 0.5
_MIN_ANSWERS = 10


def find_shared_errors(comparisons: Comparisons, known: EncodedSideInformation) -> JuryFit | None:
    """The fit of the jury model, if the judges err together."""
    found = fit_jury(comparisons, known)
    return found if found.errs_together else None


def judge_jury(comparisons: Comparisons, found: JuryFit, seed: int) -> dict[str, Any]:
    """Columns of the verdicts: a judge is reliable if gold answers put its quality above one half, beyond doubt.

    Without gold nobody is: judges who err together may be consistent, too.

    Parameters
    ----------
    comparisons : Comparisons
        The answers.
    found : JuryFit
        The fit of the jury model to them.
    seed : int
        Seed of the draws behind the intervals.
    """
    assert comparisons.annotator is not None
    judges = len(comparisons.annotators)
    quality, low, high = found.quality(seed)
    difference = found.scores[comparisons.left] - found.scores[comparisons.right]
    decided_rows = comparisons.outcome != 0
    decided = np.bincount(comparisons.annotator, decided_rows, judges)
    agreed = np.bincount(comparisons.annotator, decided_rows & (comparisons.outcome * difference > 0), judges)
    enough, side = decided >= _MIN_ANSWERS, found.cells.side
    checked = enough & found.known.has_gold
    verdict = np.select(
        [enough & (np.abs(side) > _ONE_SIDED), checked & (high < 0.5), checked & (low > 0.5)],
        [np.array(word, dtype=object) for word in ("one-sided", "reversed", "reliable")],
        "too few to say",
    )
    by = "gold answers" if found.known.has_gold else "its consistency with itself"
    reason = np.array(
        [
            f"{_side_clause(lean)}right with probability {mean:.2f} ({least:.2f} to {most:.2f}) by {by}"
            for mean, least, most, lean in zip(quality, low, high, side, strict=True)
        ],
        dtype=object,
    )
    return {"verdict": verdict, "reason": reason, "decided": decided, "agreed": agreed, "quality": quality}


def _side_clause(lean: float) -> str:
    if abs(lean) <= _ONE_SIDED:
        return ""
    return f"chose {'left' if lean > 0 else 'right'} whatever was shown in {abs(lean):.0%} of its answers; "
