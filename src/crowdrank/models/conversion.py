"""Judgments of one kind made into the kind a model reads, and said so."""

from __future__ import annotations

from typing import Any

from crowdrank.data import Comparisons, Judgments, Rankings, Ratings


def kinds_read(model: Any) -> tuple[type, ...]:
    """The kinds of judgment a model (or its class) reads, its own kind first."""
    reads = model.reads
    return reads if isinstance(reads, tuple) else (reads,)


def convert_for(model: Any, judgments: Judgments) -> tuple[Judgments, str]:
    """The judgments as the model reads them, and the rule by which they were made so ("" if none was needed)."""
    kinds = kinds_read(model)
    if isinstance(judgments, kinds):
        return judgments, ""
    if isinstance(judgments, Ratings):
        if Comparisons in kinds:
            return judgments.to_comparisons(), "of two items one annotator graded, the better grade wins"
        return judgments.to_rankings(), "each annotator's items ordered by grade"
    if kinds == (Ratings,):
        rule = "the share of its list an item was put above is its grade"
        return judgments.to_ratings(), rule if isinstance(judgments, Rankings) else "winners are graded 1, losers 0"
    if isinstance(judgments, Rankings):
        return judgments.to_comparisons(), "every two items of a list are a comparison"
    return judgments.to_rankings(), "each annotator's items ordered by wins less losses"
