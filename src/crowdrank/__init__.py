"""Trusted rankings from many unreliable judgments."""

from typing import TYPE_CHECKING, Any

from crowdrank import engines, errors, evaluation, files, judgments, models, online, questions, results, simulated
from crowdrank.evaluation import Gold, evaluate, held_out, verdicts
from crowdrank.files import read, read_annotators, read_gold, read_items, read_with_report, scan
from crowdrank.judgments import Better, Between, Comparison, Comparisons, Known, Rankings, Ratings
from crowdrank.models import (
    MPM,
    TPP,
    TRM,
    BayesianCrowdBT,
    Borda,
    BradleyTerry,
    CondorcetFuse,
    Copeland,
    CrowdAgg,
    CrowdBT,
    DawidSkene,
    Elo,
    EMElo,
    FactorBT,
    Footrule,
    GradedResponse,
    GreedyOrder,
    LinearBias,
    MajorityBT,
    Mallows,
    MarkovChain,
    MeanRating,
    MedianRank,
    PairwiseHITS,
    PlackettLuce,
    RankCentrality,
    ReciprocalRankFusion,
    Thurstone,
    VarianceBT,
    WinRate,
    ZRating,
)
from crowdrank.results import Ranking, compare_systems, sways

if TYPE_CHECKING:
    from crowdrank import learning
else:

    def __getattr__(name: str) -> Any:
        """`crowdrank.learning` is loaded when first asked for."""
        if name != "learning":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return import_module("crowdrank.learning")


__version__ = "0.1.0"

__all__ = [
    "MPM",
    "TPP",
    "TRM",
    "BayesianCrowdBT",
    "Better",
    "Between",
    "Borda",
    "BradleyTerry",
    "Comparison",
    "Comparisons",
    "CondorcetFuse",
    "Copeland",
    "CrowdAgg",
    "CrowdBT",
    "DawidSkene",
    "EMElo",
    "Elo",
    "FactorBT",
    "Footrule",
    "Gold",
    "GradedResponse",
    "GreedyOrder",
    "Known",
    "LinearBias",
    "MajorityBT",
    "Mallows",
    "MarkovChain",
    "MeanRating",
    "MedianRank",
    "PairwiseHITS",
    "PlackettLuce",
    "RankCentrality",
    "Ranking",
    "Rankings",
    "Ratings",
    "ReciprocalRankFusion",
    "Thurstone",
    "VarianceBT",
    "WinRate",
    "ZRating",
    "compare_systems",
    "engines",
    "errors",
    "evaluate",
    "evaluation",
    "files",
    "held_out",
    "judgments",
    "learning",
    "models",
    "online",
    "questions",
    "read",
    "read_annotators",
    "read_gold",
    "read_items",
    "read_with_report",
    "results",
    "scan",
    "simulated",
    "sways",
    "verdicts",
]
