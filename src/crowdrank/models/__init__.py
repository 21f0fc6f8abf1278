"""The models, and the registry that the command line, the tests and the documentation read."""

from __future__ import annotations

from crowdrank.errors import UnknownNameError
from crowdrank.models.base import FitOptions, Model
from crowdrank.models.bootstrap import with_bootstrap
from crowdrank.models.crowd.bayesian_crowd_bt import BayesianCrowdBT
from crowdrank.models.crowd.crowd_bt import CrowdBT
from crowdrank.models.crowd.em_elo import EMElo
from crowdrank.models.crowd.factor_bt import FactorBT
from crowdrank.models.crowd.linear_bias import LinearBias
from crowdrank.models.crowd.majority_bt import MajorityBT
from crowdrank.models.crowd.mpm import MPM
from crowdrank.models.crowd.pairwise_hits import PairwiseHITS
from crowdrank.models.crowd.variance_bt import VarianceBT
from crowdrank.models.crowd_agg.crowd_agg import CrowdAgg
from crowdrank.models.lists.crowd_plackett_luce import CrowdPlackettLuce
from crowdrank.models.lists.mallows import Mallows
from crowdrank.models.lists.markov_chain import MarkovChain
from crowdrank.models.lists.plackett_luce import PlackettLuce
from crowdrank.models.lists.positional import Footrule, MedianRank, ReciprocalRankFusion
from crowdrank.models.pairwise.bradley_terry import BradleyTerry
from crowdrank.models.pairwise.elo import Elo
from crowdrank.models.pairwise.rank_centrality import RankCentrality
from crowdrank.models.pairwise.thurstone import Thurstone
from crowdrank.models.ratings.dawid_skene import DawidSkene
from crowdrank.models.ratings.graded_response import GradedResponse
from crowdrank.models.ratings.mean_ratings import MeanRating, ZRating
from crowdrank.models.thurstonian.tpp import TPP
from crowdrank.models.thurstonian.trm import TRM
from crowdrank.models.voting import Borda, CondorcetFuse, Copeland, GreedyOrder, WinRate

REGISTRY: dict[str, type[Model]] = {
    "bradley-terry": BradleyTerry,
    "thurstone": Thurstone,
    "crowd-bt": CrowdBT,
    "bayesian-crowd-bt": BayesianCrowdBT,
    "factor-bt": FactorBT,
    "tpp": TPP,
    "variance-bt": VarianceBT,
    "mpm": MPM,
    "majority-bt": MajorityBT,
    "pairwise-hits": PairwiseHITS,
    "crowd-agg": CrowdAgg,
    "linear-bias": LinearBias,
    "plackett-luce": PlackettLuce,
    "crowd-plackett-luce": CrowdPlackettLuce,
    "trm": TRM,
    "mallows": Mallows,
    "rank-centrality": RankCentrality,
    "elo": Elo,
    "em-elo": EMElo,
    "win-rate": WinRate,
    "borda": Borda,
    "median-rank": MedianRank,
    "footrule": Footrule,
    "rrf": ReciprocalRankFusion,
    "markov-chain": MarkovChain,
    "copeland": Copeland,
    "condorcet-fuse": CondorcetFuse,
    "greedy-order": GreedyOrder,
    "graded-response": GradedResponse,
    "dawid-skene": DawidSkene,
    "z-rating": ZRating,
    "mean-rating": MeanRating,
}


def by_name(name: str) -> type[Model]:
    """The class of a model by its name in the registry; a misspelt name suggests the nearest one."""
    if name not in REGISTRY:
        raise UnknownNameError("model", name, REGISTRY)
    return REGISTRY[name]


def name_of(model: Model) -> str:
    """The name of a model in the registry; its class name if it is not registered."""
    return next((name for name, kind in REGISTRY.items() if kind is type(model)), type(model).__name__)


__all__ = [
    "MPM",
    "REGISTRY",
    "TPP",
    "TRM",
    "BayesianCrowdBT",
    "Borda",
    "BradleyTerry",
    "CondorcetFuse",
    "Copeland",
    "CrowdAgg",
    "CrowdBT",
    "CrowdPlackettLuce",
    "DawidSkene",
    "EMElo",
    "Elo",
    "FactorBT",
    "FitOptions",
    "Footrule",
    "GradedResponse",
    "GreedyOrder",
    "LinearBias",
    "MajorityBT",
    "Mallows",
    "MarkovChain",
    "MeanRating",
    "MedianRank",
    "Model",
    "PairwiseHITS",
    "PlackettLuce",
    "RankCentrality",
    "ReciprocalRankFusion",
    "Thurstone",
    "VarianceBT",
    "WinRate",
    "ZRating",
    "by_name",
    "name_of",
    "with_bootstrap",
]
