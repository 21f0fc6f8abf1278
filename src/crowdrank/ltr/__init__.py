"""Learning to rank from crowds: ranking functions from features and annotators' lists, with side information."""

from typing import TYPE_CHECKING, Any

from crowdrank.ltr.boosted import Boosted
from crowdrank.ltr.crowd_ranker import CrowdRanker
from crowdrank.ltr.features import Features
from crowdrank.ltr.linear import Linear
from crowdrank.ltr.methods import METHODS
from crowdrank.ltr.ranking_function import RankingFunction, Validation

if TYPE_CHECKING:
    from crowdrank.ltr.sklearn_ranker import SklearnRanker

__all__ = ["METHODS", "Boosted", "CrowdRanker", "Features", "Linear", "RankingFunction", "SklearnRanker", "Validation"]


def __getattr__(name: str) -> Any:
    if name == "SklearnRanker":  # scikit-learn is optional, and takes a second to import
        from crowdrank.ltr.sklearn_ranker import SklearnRanker

        return SklearnRanker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
