"""How to climb, iterate or sample, and what convergence means."""

from crowdrank.solvers.curvature import Curvature, dense, sparse
from crowdrank.solvers.newton import Found, Point, climb

__all__ = ["Curvature", "Found", "Point", "climb", "dense", "sparse"]
