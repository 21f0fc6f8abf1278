"""Rankings you can trust from many unreliable judgments: comparisons, ratings and ordered lists.

Names are imported on first use, so that ``import crowdrank`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PACKAGES = (
    "active",
    "data",
    "datasets",
    "engines",
    "errors",
    "evaluation",
    "io",
    "judging",
    "ltr",
    "models",
    "online",
    "reports",
    "results",
    "simulation",
)
_NAMES = {
    "crowdrank.data": ("AnnotatorDetails", "Comparison", "Comparisons", "Rankings", "Ratings", "SideInformation"),
    "crowdrank.evaluation": ("Gold", "audit_judges", "cross_validate", "evaluate", "verdicts"),
    "crowdrank.io": ("read", "read_annotators", "read_gold", "read_items", "read_with_report", "scan"),
    "crowdrank.judging": ("judge",),
    "crowdrank.models": (
        "MPM",
        "TPP",
        "TRM",
        "BayesianCrowdBT",
        "Borda",
        "BradleyTerry",
        "CommensurateBT",
        "CondorcetFuse",
        "Copeland",
        "CrowdAgg",
        "CrowdBT",
        "CrowdPlackettLuce",
        "DawidSkene",
        "EMElo",
        "Elo",
        "FactorBT",
        "Footrule",
        "GradedResponse",
        "GreedyOrder",
        "Jury",
        "LinearBias",
        "MajorityBT",
        "Mallows",
        "MarkovChain",
        "MeanRating",
        "MedianRank",
        "PairwiseHITS",
        "PlackettLuce",
        "RankCentrality",
        "ReciprocalRankFusion",
        "Thurstone",
        "VarianceBT",
        "WinRate",
        "ZRating",
    ),
    "crowdrank.pipeline": ("check", "rank"),
    "crowdrank.results": ("Ranking", "compare_systems", "bias_effects"),
}
_HOME = {name: package for package, names in _NAMES.items() for name in names}

__all__ = sorted([*_PACKAGES, *_HOME])

if TYPE_CHECKING:
    from crowdrank import active as active
    from crowdrank import data as data
    from crowdrank import datasets as datasets
    from crowdrank import engines as engines
    from crowdrank import errors as errors
    from crowdrank import evaluation as evaluation
    from crowdrank import io as io
    from crowdrank import judging as judging
    from crowdrank import ltr as ltr
    from crowdrank import models as models
    from crowdrank import online as online
    from crowdrank import reports as reports
    from crowdrank import results as results
    from crowdrank import simulation as simulation
    from crowdrank.data import AnnotatorDetails as AnnotatorDetails
    from crowdrank.data import Comparison as Comparison
    from crowdrank.data import Comparisons as Comparisons
    from crowdrank.data import Rankings as Rankings
    from crowdrank.data import Ratings as Ratings
    from crowdrank.data import SideInformation as SideInformation
    from crowdrank.evaluation import Gold as Gold
    from crowdrank.evaluation import audit_judges as audit_judges
    from crowdrank.evaluation import cross_validate as cross_validate
    from crowdrank.evaluation import evaluate as evaluate
    from crowdrank.evaluation import verdicts as verdicts
    from crowdrank.io import read as read
    from crowdrank.io import read_annotators as read_annotators
    from crowdrank.io import read_gold as read_gold
    from crowdrank.io import read_items as read_items
    from crowdrank.io import read_with_report as read_with_report
    from crowdrank.io import scan as scan
    from crowdrank.judging import judge as judge
    from crowdrank.models import MPM as MPM
    from crowdrank.models import TPP as TPP
    from crowdrank.models import TRM as TRM
    from crowdrank.models import BayesianCrowdBT as BayesianCrowdBT
    from crowdrank.models import Borda as Borda
    from crowdrank.models import BradleyTerry as BradleyTerry
    from crowdrank.models import CommensurateBT as CommensurateBT
    from crowdrank.models import CondorcetFuse as CondorcetFuse
    from crowdrank.models import Copeland as Copeland
    from crowdrank.models import CrowdAgg as CrowdAgg
    from crowdrank.models import CrowdBT as CrowdBT
    from crowdrank.models import CrowdPlackettLuce as CrowdPlackettLuce
    from crowdrank.models import DawidSkene as DawidSkene
    from crowdrank.models import Elo as Elo
    from crowdrank.models import EMElo as EMElo
    from crowdrank.models import FactorBT as FactorBT
    from crowdrank.models import Footrule as Footrule
    from crowdrank.models import GradedResponse as GradedResponse
    from crowdrank.models import GreedyOrder as GreedyOrder
    from crowdrank.models import Jury as Jury
    from crowdrank.models import LinearBias as LinearBias
    from crowdrank.models import MajorityBT as MajorityBT
    from crowdrank.models import Mallows as Mallows
    from crowdrank.models import MarkovChain as MarkovChain
    from crowdrank.models import MeanRating as MeanRating
    from crowdrank.models import MedianRank as MedianRank
    from crowdrank.models import PairwiseHITS as PairwiseHITS
    from crowdrank.models import PlackettLuce as PlackettLuce
    from crowdrank.models import RankCentrality as RankCentrality
    from crowdrank.models import ReciprocalRankFusion as ReciprocalRankFusion
    from crowdrank.models import Thurstone as Thurstone
    from crowdrank.models import VarianceBT as VarianceBT
    from crowdrank.models import WinRate as WinRate
    from crowdrank.models import ZRating as ZRating
    from crowdrank.pipeline import check as check
    from crowdrank.pipeline import rank as rank
    from crowdrank.results import Ranking as Ranking
    from crowdrank.results import bias_effects as bias_effects
    from crowdrank.results import compare_systems as compare_systems


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"crowdrank.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'crowdrank' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
