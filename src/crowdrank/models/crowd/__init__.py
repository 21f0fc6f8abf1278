"""Models of pairwise comparisons by annotators of different quality.

`likelihood` has the formulas of Crowd-BT and its relatives; `priors` completes them to the log posterior in
`objective`; `fitting.fit_map` maximises it; `sampler` draws from it.
"""

from crowdrank.models.crowd.encoding import Ties, check_ties, select_judgments
from crowdrank.models.crowd.estimate import MapEstimate, build_crowd_ranking, interval
from crowdrank.models.crowd.fitting import Solver, Start, fit_map
from crowdrank.models.crowd.priors import Priors

__all__ = [
    "MapEstimate",
    "Priors",
    "Solver",
    "Start",
    "Ties",
    "build_crowd_ranking",
    "check_ties",
    "fit_map",
    "interval",
    "select_judgments",
]
