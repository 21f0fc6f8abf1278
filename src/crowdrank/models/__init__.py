"""One file per aggregation model, and the one list of them that everything else reads."""

from __future__ import annotations

from typing import Any

from crowdrank.errors import UnknownNameError
from crowdrank.models.bayesian_crowd_bt import BayesianCrowdBT
from crowdrank.models.bootstrap import with_bootstrap
from crowdrank.models.borda import Borda
from crowdrank.models.bradley_terry import BradleyTerry
from crowdrank.models.conclude import Model
from crowdrank.models.condorcet_fuse import CondorcetFuse
from crowdrank.models.copeland import Copeland
from crowdrank.models.crowd_agg import CrowdAgg
from crowdrank.models.crowd_bt import CrowdBT
from crowdrank.models.dawid_skene import DawidSkene
from crowdrank.models.elo import Elo
from crowdrank.models.em_elo import EMElo
from crowdrank.models.factor_bt import FactorBT
from crowdrank.models.footrule import Footrule
from crowdrank.models.graded_response import GradedResponse
from crowdrank.models.greedy_order import GreedyOrder
from crowdrank.models.linear_bias import LinearBias
from crowdrank.models.majority_bt import MajorityBT
from crowdrank.models.mallows import Mallows
from crowdrank.models.markov_chain import MarkovChain
from crowdrank.models.mean_rating import MeanRating
from crowdrank.models.median_rank import MedianRank
from crowdrank.models.mpm import MPM
from crowdrank.models.pairwise_hits import PairwiseHITS
from crowdrank.models.plackett_luce import PlackettLuce
from crowdrank.models.rank_centrality import RankCentrality
from crowdrank.models.rrf import ReciprocalRankFusion
from crowdrank.models.thurstone import Thurstone
from crowdrank.models.tpp import TPP
from crowdrank.models.trm import TRM
from crowdrank.models.variance_bt import VarianceBT
from crowdrank.models.win_rate import WinRate
from crowdrank.models.z_rating import ZRating

REGISTRY: dict[str, type[Any]] = {
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


def by_name(name: str) -> type[Any]:
    """The model class that goes by this name."""
    if name not in REGISTRY:
        raise UnknownNameError("model", name, REGISTRY)
    return REGISTRY[name]


def name_of(model: Any) -> str:
    """What a model is called in the registry; its class name if it is not there."""
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
    "DawidSkene",
    "EMElo",
    "Elo",
    "FactorBT",
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
