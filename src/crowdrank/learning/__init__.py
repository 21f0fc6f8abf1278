"""Ranking functions from crowd lists: ListMLE, learning to rank from crowds, side information."""

from crowdrank.learning.crowd_ranker import CrowdRanker
from crowdrank.learning.features import Features
from crowdrank.learning.function import RankingFunction, Validation
from crowdrank.learning.methods import METHODS
from crowdrank.learning.rankers.boosted import Boosted
from crowdrank.learning.rankers.linear import Linear

__all__ = ["METHODS", "Boosted", "CrowdRanker", "Features", "Linear", "RankingFunction", "Validation"]
