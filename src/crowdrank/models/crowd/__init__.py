"""What models with annotators share: scores, a gate an annotator, pulls of features; priors; a joint climb."""

from crowdrank.models.crowd.encoding import Ties, check_ties, counted
from crowdrank.models.crowd.estimate import Summit, build_crowd_ranking, interval
from crowdrank.models.crowd.fitting import Solver, Start, climb_from
from crowdrank.models.crowd.priors import Priors

__all__ = [
    "Priors",
    "Solver",
    "Start",
    "Summit",
    "Ties",
    "build_crowd_ranking",
    "check_ties",
    "climb_from",
    "counted",
    "interval",
]
