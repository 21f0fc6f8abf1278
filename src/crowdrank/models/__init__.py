"""The models, and the registry that the command line, the tests and the documentation read.

A model is imported when it is first used, because one ranking needs one model.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crowdrank.errors import UnknownNameError
from crowdrank.models.base import FitOptions, Model

if TYPE_CHECKING:
    from crowdrank.models.bootstrap import with_bootstrap
    from crowdrank.models.commensurate.commensurate_bt import CommensurateBT
    from crowdrank.models.crowd.bayesian_crowd_bt import BayesianCrowdBT
    from crowdrank.models.crowd.crowd_agg import CrowdAgg
    from crowdrank.models.crowd.crowd_bt import CrowdBT
    from crowdrank.models.crowd.em_elo import EMElo
    from crowdrank.models.crowd.factor_bt import FactorBT
    from crowdrank.models.crowd.linear_bias import LinearBias
    from crowdrank.models.crowd.majority_bt import MajorityBT
    from crowdrank.models.crowd.mpm import MPM
    from crowdrank.models.crowd.pairwise_hits import PairwiseHITS
    from crowdrank.models.crowd.variance_bt import VarianceBT
    from crowdrank.models.jury.jury import Jury
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

# Name of a model, its module in this package, and its class.
_MODELS = (
    ("bradley-terry", "pairwise.bradley_terry", "BradleyTerry"),
    ("thurstone", "pairwise.thurstone", "Thurstone"),
    ("crowd-bt", "crowd.crowd_bt", "CrowdBT"),
    ("commensurate-bt", "commensurate.commensurate_bt", "CommensurateBT"),
    ("bayesian-crowd-bt", "crowd.bayesian_crowd_bt", "BayesianCrowdBT"),
    ("factor-bt", "crowd.factor_bt", "FactorBT"),
    ("jury", "jury.jury", "Jury"),
    ("tpp", "thurstonian.tpp", "TPP"),
    ("variance-bt", "crowd.variance_bt", "VarianceBT"),
    ("mpm", "crowd.mpm", "MPM"),
    ("majority-bt", "crowd.majority_bt", "MajorityBT"),
    ("pairwise-hits", "crowd.pairwise_hits", "PairwiseHITS"),
    ("crowd-agg", "crowd.crowd_agg", "CrowdAgg"),
    ("linear-bias", "crowd.linear_bias", "LinearBias"),
    ("plackett-luce", "lists.plackett_luce", "PlackettLuce"),
    ("crowd-plackett-luce", "lists.crowd_plackett_luce", "CrowdPlackettLuce"),
    ("trm", "thurstonian.trm", "TRM"),
    ("mallows", "lists.mallows", "Mallows"),
    ("rank-centrality", "pairwise.rank_centrality", "RankCentrality"),
    ("elo", "pairwise.elo", "Elo"),
    ("em-elo", "crowd.em_elo", "EMElo"),
    ("win-rate", "voting", "WinRate"),
    ("borda", "voting", "Borda"),
    ("median-rank", "lists.positional", "MedianRank"),
    ("footrule", "lists.positional", "Footrule"),
    ("rrf", "lists.positional", "ReciprocalRankFusion"),
    ("markov-chain", "lists.markov_chain", "MarkovChain"),
    ("copeland", "voting", "Copeland"),
    ("condorcet-fuse", "voting", "CondorcetFuse"),
    ("greedy-order", "voting", "GreedyOrder"),
    ("graded-response", "ratings.graded_response", "GradedResponse"),
    ("dawid-skene", "ratings.dawid_skene", "DawidSkene"),
    ("z-rating", "ratings.mean_ratings", "ZRating"),
    ("mean-rating", "ratings.mean_ratings", "MeanRating"),
)
_HOME = {cls: f"crowdrank.models.{module}" for _, module, cls in _MODELS}
# Other names of models in the field; they are suggested, not accepted, so that a name means one model.
_OTHER_NAMES = {
    "bt": "bradley-terry",
    "btl": "bradley-terry",
    "power-prior": "commensurate-bt",
    "commensurate-prior": "commensurate-bt",
    "bradley-terry-luce": "bradley-terry",
    "davidson": "bradley-terry",
    "rao-kupper": "bradley-terry",
    "thurstone-mosteller": "thurstone",
    "case-v": "thurstone",
    "probit": "thurstone",
    "crowdbt": "crowd-bt",
    "pl": "plackett-luce",
    "luce": "plackett-luce",
    "cpl": "crowd-plackett-luce",
    "kemeny": "mallows",
    "grm": "graded-response",
    "irt": "graded-response",
    "ds": "dawid-skene",
    "mean": "mean-rating",
    "mos": "mean-rating",
    "zscore": "z-rating",
    "z-score": "z-rating",
    "rc": "rank-centrality",
    "spectral": "rank-centrality",
    "pagerank": "markov-chain",
    "mc4": "markov-chain",
    "hits": "pairwise-hits",
    "majority": "majority-bt",
    "majority-vote": "majority-bt",
    "condorcet": "condorcet-fuse",
    "median": "median-rank",
    "reciprocal-rank-fusion": "rrf",
}


class _Registry(MutableMapping[str, type[Model]]):
    """Models by name, in the order of the documentation. A model is imported when it is looked up."""

    def __init__(self) -> None:
        self._found: dict[str, type[Model] | tuple[str, str]] = {name: (_HOME[cls], cls) for name, _, cls in _MODELS}

    def __getitem__(self, name: str) -> type[Model]:
        found = self._found[name]
        if isinstance(found, tuple):
            module, cls = found
            found = self._found[name] = getattr(import_module(module), cls)
        return found

    def __setitem__(self, name: str, model: type[Model]) -> None:
        self._found[name] = model

    def __delitem__(self, name: str) -> None:
        del self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, name: object) -> bool:
        return name in self._found


REGISTRY: MutableMapping[str, type[Model]] = _Registry()


def by_name(name: str) -> type[Model]:
    """The class of a model by its name in the registry; another name of the field or a misspelt one is suggested."""
    if name not in REGISTRY:
        words = "-".join(name.lower().replace("_", " ").replace("-", " ").split())
        raise UnknownNameError("model", name, REGISTRY, meant=_OTHER_NAMES.get(words, words))
    return REGISTRY[name]


def name_of(model: Model) -> str:
    """The name of a model in the registry; its class name if it is not registered."""
    known = {cls: name for name, _, cls in _MODELS}
    name = known.get(type(model).__name__)
    if name is not None and REGISTRY.get(name) is type(model):
        return name
    return next((name for name, kind in REGISTRY.items() if kind is type(model)), type(model).__name__)


def __getattr__(name: str) -> Any:
    """Import the class of a model, or the bootstrap, when it is first used."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name == "with_bootstrap":
        from crowdrank.models.bootstrap import with_bootstrap

        return with_bootstrap
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "MPM",
    "REGISTRY",
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
    "FitOptions",
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


def __dir__() -> list[str]:
    return list(__all__)
