"""Converting judgments to the kind that a model reads."""

from __future__ import annotations

from crowdrank.data import Comparisons, Judgments, Rankings, Ratings
from crowdrank.models.base import Model


def kinds_read(model: Model | type[Model]) -> tuple[type, ...]:
    """The kinds of judgments that a model (or its class) reads, its own kind first."""
    reads = model.reads
    return reads if isinstance(reads, tuple) else (reads,)


def convert_for(model: Model | type[Model], judgments: Judgments) -> tuple[Judgments, str]:
    """Convert judgments to a kind that a model reads.

    Parameters
    ----------
    model : Model or type of Model
        The model, or its class.
    judgments : Comparisons, Ratings or Rankings
        Any kind of judgments.

    Returns
    -------
    judgments : Comparisons, Ratings or Rankings
        The judgments, converted if necessary.
    rule : str
        How they were converted; empty if they were not.

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Rankings
    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]]])
    >>> convert_for(BradleyTerry(), lists)
    (Comparisons(3 judgments, 3 items), 'every two items of a list are a comparison')
    """
    kinds = kinds_read(model)
    if isinstance(judgments, kinds):
        return judgments, ""
    if isinstance(judgments, Ratings):
        if Comparisons in kinds:
            return judgments.to_comparisons(), "of two items that one annotator graded, the better grade wins"
        return judgments.to_rankings(), "each annotator's items ordered by grade"
    if kinds == (Ratings,):
        rule = "the grade of an item is the share of its list below it"
        return judgments.to_ratings(), rule if isinstance(judgments, Rankings) else "winners are graded 1, losers 0"
    if isinstance(judgments, Rankings):
        return judgments.to_comparisons(), "every two items of a list are a comparison"
    return judgments.to_rankings(), "each annotator's items ordered by wins minus losses"
