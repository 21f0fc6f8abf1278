"""One file per aggregation model, and the one list of them that everything else reads."""

from __future__ import annotations

from typing import Any

from crowdrank.errors import UnknownNameError
from crowdrank.models.bradley_terry import BradleyTerry
from crowdrank.models.conclude import Model
from crowdrank.models.thurstone import Thurstone

REGISTRY: dict[str, type[Any]] = {
    "bradley-terry": BradleyTerry,
    "thurstone": Thurstone,
}


def by_name(name: str) -> type[Any]:
    """The model class that goes by this name."""
    if name not in REGISTRY:
        raise UnknownNameError("model", name, REGISTRY)
    return REGISTRY[name]


def name_of(model: Any) -> str:
    """What a model is called in the registry; its class name if it is not there."""
    return next((name for name, kind in REGISTRY.items() if kind is type(model)), type(model).__name__)


__all__ = ["REGISTRY", "BradleyTerry", "Model", "Thurstone", "by_name", "name_of"]
