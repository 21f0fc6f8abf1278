"""Trusted rankings from many unreliable judgments."""

from crowdrank import engines, errors, evaluation, files, judgments, models, results, simulated
from crowdrank.evaluation import Gold, evaluate, held_out, verdicts
from crowdrank.files import read, read_gold, read_items, read_with_report
from crowdrank.judgments import Comparisons, Rankings, Ratings
from crowdrank.models import (
    BayesianCrowdBT,
    Borda,
    BradleyTerry,
    CondorcetFuse,
    Copeland,
    CrowdBT,
    Elo,
    FactorBT,
    GreedyOrder,
    LinearBias,
    MajorityBT,
    MedianRank,
    PairwiseHITS,
    PlackettLuce,
    RankCentrality,
    Thurstone,
    VarianceBT,
    WinRate,
)
from crowdrank.results import Ranking, compare_systems, sways

__version__ = "0.1.0"

__all__ = [
    "BayesianCrowdBT",
    "Borda",
    "BradleyTerry",
    "Comparisons",
    "CondorcetFuse",
    "Copeland",
    "CrowdBT",
    "Elo",
    "FactorBT",
    "Gold",
    "GreedyOrder",
    "LinearBias",
    "MajorityBT",
    "MedianRank",
    "PairwiseHITS",
    "PlackettLuce",
    "RankCentrality",
    "Ranking",
    "Rankings",
    "Ratings",
    "Thurstone",
    "VarianceBT",
    "WinRate",
    "compare_systems",
    "engines",
    "errors",
    "evaluate",
    "evaluation",
    "files",
    "held_out",
    "judgments",
    "models",
    "read",
    "read_gold",
    "read_items",
    "read_with_report",
    "results",
    "simulated",
    "sways",
    "verdicts",
]
