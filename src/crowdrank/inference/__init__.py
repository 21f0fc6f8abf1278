"""How to climb, iterate or sample, and what convergence means."""

from crowdrank.inference.curvature import Curvature, dense, sparse
from crowdrank.inference.newton import Found, Point, climb

__all__ = ["Curvature", "Found", "Point", "climb", "dense", "sparse"]
