"""When judgments are those of a jury: both orders were shown, or the judges are language models or err together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crowdrank.data import Comparisons, Judgments, Rankings, Ratings
from crowdrank.data.side_information import NO_SIDE_INFORMATION, AnnotatorDetails
from crowdrank.models.jury.factors import MAX_ITEMS, make_cells

_MIN_JUDGES, _MAX_ROWS = 3, 500_000
# Share of the pairs of judges that must have been shown in both orders, equally often.
_BALANCED = 0.8


def why_jury(judgments: Judgments, people: Mapping[str, AnnotatorDetails] | None = None, gold: bool = False) -> str:
    """Why these judgments need the jury model; empty if they do not.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        The judgments.
    people : mapping from annotator to AnnotatorDetails, optional
        Kinds of annotators.
    gold : bool, default False
        Whether gold pairs are given. Then judges who err together are a jury, whatever they are, and whether they
        compare, grade or list items.

    Examples
    --------
    >>> both = Comparisons.of(["a", "b"] * 3, ["b", "a"] * 3, ["a"] * 6, annotator=["x", "x", "y", "y", "z", "z"])
    >>> why_jury(both)
    'Every judge saw the pairs in both orders, so its consistency shows how far to believe it.'
    """
    if judgments.annotator is None or not isinstance(judgments, Comparisons):
        pairs = as_comparisons(judgments) if gold else None
        return "" if pairs is None else _why_gold_decides(pairs)
    if len(judgments.annotators) < _MIN_JUDGES or len(judgments) > _MAX_ROWS:
        return ""
    if int(np.diff(judgments.items.starts).max()) > MAX_ITEMS:
        return ""
    kinds = {people[name].kind for name in map(str, judgments.annotators) if name in people} if people else set()
    if "human" in kinds and "llm" in kinds:
        return ""  # people are the target then, and the models' answers a prior
    if judgments.positions_known and _share_balanced(judgments) >= _BALANCED:
        return "Every judge saw the pairs in both orders, so its consistency shows how far to believe it."
    if "llm" in kinds:
        return "The judges are language models, which tend to share errors."
    return _why_gold_decides(judgments) if gold else ""


def as_comparisons(judgments: Judgments) -> Comparisons | None:
    """Grades or lists of annotators as the comparisons of a jury; None if they are too many, or of nobody."""
    if judgments.annotator is None or len(judgments.annotators) < _MIN_JUDGES:
        return None
    sizes = np.diff(judgments.items.starts)
    if int(sizes.max()) > MAX_ITEMS or len(judgments) * int(sizes.max()) > _MAX_ROWS:
        return None
    if isinstance(judgments, Ratings):
        return judgments.to_comparisons(ties="keep")
    return judgments.to_comparisons(ties="above_last") if isinstance(judgments, Rankings) else judgments


def _why_gold_decides(comparisons: Comparisons) -> str:
    decides = "The judges share errors, so the gold pairs decide whom to believe."
    return decides if _shared_errors(comparisons) else ""


def _share_balanced(comparisons: Comparisons) -> float:
    # A quick look first: most judgments are of one order only, and cells need sorting.
    if not 0.4 < float(np.mean(comparisons.left < comparisons.right)) < 0.6:
        return 0.0
    # A pair seen in both orders is at least two judgments, so with enough of them many judgments are repeated.
    if _share_repeated(comparisons) < 1.0 - 1.0 / (1.0 + _BALANCED):
        return 0.0
    return float(np.mean(make_cells(comparisons).balanced))


def _share_repeated(comparisons: Comparisons) -> float:
    """Share of the judgments that are the second or a later one of their annotator about their pair."""
    assert comparisons.annotator is not None  # checked by the caller
    first = np.minimum(comparisons.left, comparisons.right).astype(np.int64)
    second = np.maximum(comparisons.left, comparisons.right)
    pair = first * len(comparisons.items) + second
    cell = pair * len(comparisons.annotators) + comparisons.annotator
    return 1.0 - len(np.unique(cell)) / max(len(comparisons), 1)


def shared_error_notes(judgments: Judgments) -> list[str]:
    """A warning if these are judgments of a jury whose judges err together."""
    if not isinstance(judgments, Comparisons) or not why_jury(judgments):
        return []
    warning = _shared_errors(judgments)
    return [warning] if warning else []


def _shared_errors(comparisons: Comparisons) -> str:
    """A warning if the judges err together; empty if they do not."""
    from crowdrank.models.jury.jury import fit_jury

    found = fit_jury(comparisons, NO_SIDE_INFORMATION)
    return found.warning if found.errs_together else ""
