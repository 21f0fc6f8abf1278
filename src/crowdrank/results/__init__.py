"""What was concluded: ranking, uncertainty, convergence, settings; saved and loaded."""

from crowdrank.results.annotators import Annotators
from crowdrank.results.bias_effects import Sway, sways
from crowdrank.results.domains import Domains
from crowdrank.results.ranking import OUTRIGHT, Convergence, Ranking
from crowdrank.results.systems import Systems, compare_systems
from crowdrank.results.uncertainty import Uncertainty

__all__ = [
    "OUTRIGHT",
    "Annotators",
    "Convergence",
    "Domains",
    "Ranking",
    "Sway",
    "Systems",
    "Uncertainty",
    "compare_systems",
    "sways",
]
