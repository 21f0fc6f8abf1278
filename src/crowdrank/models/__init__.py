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
from crowdrank.models.crowd_bt import CrowdBT
from crowdrank.models.elo import Elo
from crowdrank.models.factor_bt import FactorBT
from crowdrank.models.greedy_order import GreedyOrder
from crowdrank.models.linear_bias import LinearBias
from crowdrank.models.majority_bt import MajorityBT
from crowdrank.models.median_rank import MedianRank
from crowdrank.models.pairwise_hits import PairwiseHITS
from crowdrank.models.plackett_luce import PlackettLuce
from crowdrank.models.rank_centrality import RankCentrality
from crowdrank.models.thurstone import Thurstone
from crowdrank.models.variance_bt import VarianceBT
from crowdrank.models.win_rate import WinRate

REGISTRY: dict[str, type[Any]] = {
    "bradley-terry": BradleyTerry,
    "thurstone": Thurstone,
    "crowd-bt": CrowdBT,
    "bayesian-crowd-bt": BayesianCrowdBT,
    "factor-bt": FactorBT,
    "variance-bt": VarianceBT,
    "majority-bt": MajorityBT,
    "pairwise-hits": PairwiseHITS,
    "linear-bias": LinearBias,
    "plackett-luce": PlackettLuce,
    "rank-centrality": RankCentrality,
    "elo": Elo,
    "win-rate": WinRate,
    "borda": Borda,
    "median-rank": MedianRank,
    "copeland": Copeland,
    "condorcet-fuse": CondorcetFuse,
    "greedy-order": GreedyOrder,
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
    "REGISTRY",
    "BayesianCrowdBT",
    "Borda",
    "BradleyTerry",
    "CondorcetFuse",
    "Copeland",
    "CrowdBT",
    "Elo",
    "FactorBT",
    "GreedyOrder",
    "LinearBias",
    "MajorityBT",
    "MedianRank",
    "Model",
    "PairwiseHITS",
    "PlackettLuce",
    "RankCentrality",
    "Thurstone",
    "VarianceBT",
    "WinRate",
    "by_name",
    "name_of",
    "with_bootstrap",
]
