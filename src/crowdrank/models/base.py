"""From what a solver found to a result: named, centred, with its uncertainty and the health of the data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, DataDiagnostics, Judgments, Rankings, Ratings
from crowdrank.data.conversions import rankings_to_links, ratings_to_links
from crowdrank.engines import Engine, here
from crowdrank.errors import DataError, DataWarning, DisconnectedError, SeparationError, SettingError
from crowdrank.results import OUTRIGHT, Annotators, Convergence, Ranking, Uncertainty

Kind = TypeVar("Kind", Comparisons, Rankings, Ratings)

_COUNTED_IN = {Comparisons: "comparisons", Rankings: "lists", Ratings: "ratings"}


class Model(Protocol):
    """A frozen set of settings that turns judgments into a ranking."""

    @property
    def reads(self) -> type | tuple[type, ...]: ...

    def fit(self, judgments: Judgments, engine: Engine = here) -> Ranking: ...


class BaseModel:
    """Capabilities of a model. A model sets those that differ from these defaults."""

    reads: ClassVar[type | tuple[type, ...]]
    """The kinds of judgments that `fit` accepts, the model's own kind first."""
    models_annotators: ClassVar[bool] = False
    """Whether it estimates something about each annotator."""
    accepts_side_information: ClassVar[bool] = False
    """Whether it uses gold pairs and known qualities of annotators."""
    supports_warm_start: ClassVar[bool] = False
    """Whether its solver can start from the scores of an earlier ranking."""
    distributable: ClassVar[bool] = False
    """Whether its work is spread over the shards of an engine."""
    samples: ClassVar[bool] = False
    """Whether it samples a posterior instead of maximising it."""
    drops_ties: ClassVar[bool] = False
    """Whether it ignores ties, whatever its settings."""
    shares_scores: ClassVar[bool] = False
    """Whether the scores of one query depend on the others."""
    order_only: ClassVar[bool] = False
    """Whether its scores are positions in an order."""
    order_dependent: ClassVar[bool] = False
    """Whether the answer depends on the order of the judgments."""


class SolverSettings(Protocol):
    """The settings of a model that climbs: when to stop, and the seed of its draws."""

    @property
    def tolerance(self) -> float: ...
    @property
    def max_steps(self) -> int: ...
    @property
    def seed(self) -> int: ...


def settings_of(model: Any) -> dict[str, Any]:
    return {entry.name: getattr(model, entry.name) for entry in fields(model)}


def need(kind: type[Kind], judgments: Judgments, model: Any) -> Kind:
    """The judgments, if they are of the kind this model reads."""
    if not isinstance(judgments, kind):
        wanted, got = kind.__name__, type(judgments).__name__
        raise DataError(
            f"{type(model).__name__} reads {wanted}, got {got}: convert them with .to_{wanted.lower()}() first."
        )
    if not len(judgments):
        raise DataError("There are no judgments.")
    return judgments


def conclude(
    model: Any,
    judgments: Judgments,
    scores: FloatArray,
    *,
    measure: Callable[[], Uncertainty],
    parameters: Mapping[str, float] | None = None,
    log_likelihood: float | None = None,
    convergence: Convergence = OUTRIGHT,
    centred: bool = True,
) -> Ranking:
    """The frozen result; warns if the solver stopped short."""
    from crowdrank.models import name_of

    name = name_of(model)
    convergence.warn(name)
    items = judgments.items
    scores = items.centre(scores) if centred else np.array(scores)
    scores.flags.writeable = False
    return Ranking(
        model=name,
        settings=settings_of(model),
        items=items,
        scores=scores,
        tally=lambda: judgments.n_judgments_per_item,
        counted_in=_COUNTED_IN[type(judgments)],
        parameters=parameters or {},
        log_likelihood=log_likelihood,
        convergence=convergence,
        native=judgments.frame_backend,
        measure=measure,
        observe=lambda: health_of(judgments).notes() + _left_out(model, judgments),
    )


def _left_out(model: Any, judgments: Judgments) -> list[str]:
    """Ties that a model dropped are worth a word: they were answers, too."""
    if not isinstance(judgments, Comparisons) or not 0 < judgments.ties < len(judgments):
        return []
    if model.drops_ties:
        return [f"{judgments.ties:,} ties left out: this model reads decided judgments only."]
    if getattr(model, "ties", None) == "drop":
        return [f"{judgments.ties:,} ties left out: --set ties=half counts them."]
    return []


def with_annotators(ranking: Ranking, judgments: Judgments, estimates: Callable[[], Mapping[str, Any]]) -> Ranking:
    """The ranking and what was learnt of the annotators, where they have names."""
    who = judgments.annotator
    if who is None:
        return ranking

    def survey() -> Annotators:
        if isinstance(judgments, Comparisons):
            judged = judgments.n_judgments_per_annotator
        else:
            judged = np.bincount(who, minlength=len(judgments.annotators))
        return Annotators(labels=judgments.annotators, judged=judged, estimates=estimates())

    return replace(ranking, survey=survey)


def check_solver(model: SolverSettings) -> None:
    """Refuse a solver without a step or an end."""
    if not model.tolerance > 0 or model.max_steps < 1:
        raise SettingError("tolerance must be positive and max_steps at least 1.")


def health_of(judgments: Judgments) -> DataDiagnostics:
    if isinstance(judgments, Ratings):
        return DataDiagnostics(ratings_to_links(judgments), from_ratings=True)
    return DataDiagnostics(rankings_to_links(judgments) if isinstance(judgments, Rankings) else judgments)


def check_connected(health: DataDiagnostics, has_prior: bool) -> None:
    """Islands and separation are errors without a prior; with one, islands are worth a warning."""
    if has_prior:
        if health.disconnected_components:
            warnings.warn(health.describe_components(), DataWarning, stacklevel=4)
    elif not health.strongly_connected:
        if health.disconnected_components:
            raise DisconnectedError(f"{health.describe_components()} Set prior_scale to rank them all the same.")
        raise SeparationError(
            f"{health.names(health.separated)}: never both won and lost within the rest, so no finite score fits. "
            f"Set prior_scale, or leave them out."
        )
