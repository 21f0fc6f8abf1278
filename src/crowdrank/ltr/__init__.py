"""Learning to rank from crowds: ranking functions from features and annotators' lists, with side information."""

from crowdrank.ltr.crowd_ranker import CrowdRanker
from crowdrank.ltr.features import Features
from crowdrank.ltr.methods import METHODS
from crowdrank.ltr.rankers.boosted import Boosted
from crowdrank.ltr.rankers.linear import Linear
from crowdrank.ltr.ranking_function import RankingFunction, Validation

__all__ = ["METHODS", "Boosted", "CrowdRanker", "Features", "Linear", "RankingFunction", "Validation"]
