"""Numerics: maximisation, linear systems, Laplace approximation, Markov chain Monte Carlo, special functions."""

from crowdrank.inference.curvature import Curvature, dense, sparse
from crowdrank.inference.newton import Evaluation, OptimizeResult, maximize

__all__ = ["Curvature", "Evaluation", "OptimizeResult", "dense", "maximize", "sparse"]
