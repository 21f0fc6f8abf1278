"""How to climb, iterate or sample, and what convergence means."""

from crowdrank.inference.curvature import Curvature, dense, sparse
from crowdrank.inference.newton import Evaluation, OptimizeResult, maximize

__all__ = ["Curvature", "Evaluation", "OptimizeResult", "dense", "maximize", "sparse"]
