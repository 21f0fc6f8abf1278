"""One question: two items, who is asked, and how likely it was to be chosen."""

from __future__ import annotations

from dataclasses import dataclass

from crowdrank.judgments import Comparison


@dataclass(frozen=True, kw_only=True)
class Question:
    """Two items as they are to be shown, and to whom."""

    left: str
    right: str
    annotator: str
    query: str = ""
    probability: float
    """With which this pair was chosen for this annotator, whichever side each item is shown on."""
    policy: str
    """What chose it; "random" for the share that is drawn at random."""

    def answered(self, winner: str) -> Comparison:
        """The judgment that it becomes: `winner` is one of the two, or "tie"."""
        return Comparison(self.left, self.right, winner, self.annotator, self.query)
