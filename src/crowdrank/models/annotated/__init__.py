"""What models with annotators share: scores, a gate an annotator, pulls of features; priors; a joint climb."""

from crowdrank.models.annotated.answers import Ties, check_ties, counted
from crowdrank.models.annotated.climbing import Solver, Start, climb_from
from crowdrank.models.annotated.priors import Priors
from crowdrank.models.annotated.summit import Summit, conclude_annotated, interval

__all__ = [
    "Priors",
    "Solver",
    "Start",
    "Summit",
    "Ties",
    "check_ties",
    "climb_from",
    "conclude_annotated",
    "counted",
    "interval",
]
