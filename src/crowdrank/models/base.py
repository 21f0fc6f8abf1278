"""The base class of models, and what turns their estimates into a `Ranking`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import (
    Comparisons,
    DataDiagnostics,
    EncodedSideInformation,
    Items,
    Judgments,
    Rankings,
    Ratings,
    SideInformation,
)
from crowdrank.data.conversions import rankings_to_links, ratings_to_links
from crowdrank.data.side_information import NO_SIDE_INFORMATION
from crowdrank.engines import LOCAL, Engine
from crowdrank.errors import DataError, DataWarning, DisconnectedError, SeparationError, SettingError, issue_warning
from crowdrank.results import CLOSED_FORM, Annotators, Convergence, Ranking, Uncertainty
from crowdrank.results.parts import LazyParts

Kind = TypeVar("Kind", Comparisons, Rankings, Ratings)

AUTO = "auto"
_COUNTED_IN = {Comparisons: "comparisons", Rankings: "lists", Ratings: "ratings"}


def is_auto(value: object) -> bool:
    """Whether a setting is to be learnt from the data."""
    return isinstance(value, str) and value == AUTO


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What `Model.fit` was given besides the judgments, encoded for them.

    Parameters
    ----------
    engine : Engine
        Where sums over shards run.
    init : array of float or None
        Starting scores, one per item, NaN for items without one.
    side_information : EncodedSideInformation
        Gold pairs and constraints on the quality of annotators.
    """

    engine: Engine = LOCAL
    init: FloatArray | None = None
    side_information: EncodedSideInformation = NO_SIDE_INFORMATION


@dataclass(frozen=True, kw_only=True)
class Model(ABC):
    """Base class of all models: a frozen dataclass of settings that turns judgments into a `Ranking`.

    A model has no fitted state. A subclass implements `_fit` and declares the capabilities that differ from the
    defaults below.
    """

    reads: ClassVar[type | tuple[type, ...]]
    """The kinds of judgments that `fit` accepts, the model's own kind first."""
    models_annotators: ClassVar[bool] = False
    """Whether it estimates something about each annotator."""
    accepts_side_information: ClassVar[bool] = False
    """Whether it uses gold pairs and known qualities of annotators."""
    accepts_people: ClassVar[bool] = False
    """Whether it uses `SideInformation.people`: who is human and who is a language model."""
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

    def fit(
        self,
        judgments: Judgments,
        *,
        engine: Engine = LOCAL,
        init: Ranking | None = None,
        side_information: SideInformation | None = None,
    ) -> Ranking:
        """Rank the items of these judgments.

        Parameters
        ----------
        judgments : Comparisons, Ratings or Rankings
            The kinds that this model reads are in its `reads`. `crowdrank.read` makes them from files and data frames.
        engine : Engine, optional
            Where sums over the judgments run: in this process (default), out of core, or on a Dask cluster.
        init : Ranking, optional
            An earlier ranking whose scores are the starting values of the solver. The optimum does not depend on it.
        side_information : SideInformation, optional
            Gold pairs, and what is known about the quality of annotators.

        Returns
        -------
        Ranking
            Scores with their uncertainty, and what was learnt about the annotators. The model itself is unchanged.
        """
        _require_readable(self, judgments)
        if init is not None and not self.supports_warm_start:
            raise SettingError(f"{_name(self)} has no starting values, so it cannot use init. Leave init out.")
        only_people = self.accepts_people and side_information is not None and side_information.has_only_people
        if side_information is not None and not self.accepts_side_information and not only_people:
            usable = _names_of_models_where(lambda model: model.accepts_side_information)
            raise SettingError(f"{_name(self)} cannot use side information. Models that do: {usable}.")
        if engine is not LOCAL and not self.distributable:
            usable = _names_of_models_where(lambda model: model.distributable)
            raise SettingError(f"{_name(self)} computes in this process only. Models that use an engine: {usable}.")
        options = FitOptions(
            engine=engine,
            init=None if init is None else aligned_scores(init, judgments.items),
            side_information=_encoded(side_information, judgments),
        )
        return self._fit(judgments, options)

    def with_estimated_settings(self, ranking: Ranking) -> Model:
        """The model for refits to resampled judgments: slow "auto" settings have the values that a fit has found."""
        return self

    @abstractmethod
    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        """Fit to judgments of a kind that the model reads."""


def _require_readable(model: Model, judgments: Judgments) -> None:
    """Refuse what is not a non-empty table of a kind that the model reads."""
    kinds = model.reads if isinstance(model.reads, tuple) else (model.reads,)
    for kind in kinds:
        if isinstance(judgments, kind):
            require_kind(kind, judgments, model)
            return
    require_kind(kinds[0], judgments, model)


def _name(model: Model) -> str:
    from crowdrank.models import name_of

    return name_of(model)


def _names_of_models_where(condition: Callable[[type[Model]], bool]) -> str:
    from crowdrank.models import REGISTRY

    return ", ".join(name for name, model in REGISTRY.items() if condition(model))


def _encoded(side_information: SideInformation | None, judgments: Judgments) -> EncodedSideInformation:
    if side_information is None or not isinstance(judgments, Comparisons):
        return NO_SIDE_INFORMATION
    return side_information.encode(judgments)


def aligned_scores(ranking: Ranking, items: Items) -> FloatArray:
    """The scores of a ranking in the order of `items`; NaN for items it does not have."""

    def names(of: Items) -> list[tuple[str, str]]:
        return [(str(of.queries[q]), str(label)) for q, label in zip(of.query, of.labels, strict=True)]

    known = dict(zip(names(ranking.items), ranking.scores.tolist(), strict=True))
    found = np.array([known.get(name, np.nan) for name in names(items)])
    if np.isnan(found).all():
        raise DataError("No item of the ranking passed as init appears in these judgments.")
    return found


@dataclass(frozen=True, kw_only=True)
class IterativeModel(Model):
    """A model with an iterative solver: when it stops, and the seed of its draws."""

    tolerance: float = 1e-4
    max_steps: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        check_solver(self)


class SolverSettings(Protocol):
    """The settings that a solver reads."""

    @property
    def tolerance(self) -> float: ...
    @property
    def max_steps(self) -> int: ...


def model_settings(model: Model) -> dict[str, Any]:
    return {name: getattr(model, name) for name in _setting_names(type(model))}


@cache
def _setting_names(kind: type[Model]) -> tuple[str, ...]:
    return tuple(entry.name for entry in fields(kind))


def require_kind(kind: type[Kind], judgments: object, model: Model) -> Kind:
    """The judgments, if they are a non-empty table of this kind; else an error that says how to get one."""
    if isinstance(judgments, kind):
        if not len(judgments):
            raise DataError("There are no judgments.")
        return judgments
    wanted, got = kind.__name__, type(judgments).__name__
    if isinstance(judgments, Comparisons | Rankings | Ratings):
        remedy = f"convert them with .to_{wanted.lower()}() first"
    else:
        remedy = "read files, data frames and dictionaries of columns with crowdrank.read(...) first"
    raise DataError(f"{type(model).__name__} reads {wanted}, got {got}: {remedy}.")


def build_ranking(
    model: Model,
    judgments: Judgments,
    scores: FloatArray,
    *,
    measure: Callable[[], Uncertainty],
    parameters: Mapping[str, float] | None = None,
    item_parameters: Mapping[str, FloatArray] | None = None,
    log_likelihood: float | None = None,
    convergence: Convergence = CLOSED_FORM,
    centred: bool = True,
) -> Ranking:
    """The result of a fit. Warns if the solver did not converge.

    `measure` computes the uncertainty when it is first used. Scores are centred in each query if `centred`.
    """
    from crowdrank.models import name_of

    name = name_of(model)
    convergence.warn(name)
    items = judgments.items
    scores = items.centre(scores) if centred else np.array(scores)
    scores.flags.writeable = False
    return Ranking(
        model=name,
        settings=model_settings(model),
        items=items,
        scores=scores,
        judgment_kind=_COUNTED_IN[type(judgments)],
        parameters=parameters or {},
        item_parameters=item_parameters or {},
        log_likelihood=log_likelihood,
        convergence=convergence,
        native=judgments.frame_backend,
        _lazy=LazyParts(
            n_judgments=lambda: judgments.n_judgments_per_item,
            uncertainty=measure,
            notes=lambda: diagnose(judgments).notes() + _note_on_ties(model, judgments),
            judgments=judgments,
        ),
    )


def _note_on_ties(model: Model, judgments: Judgments) -> list[str]:
    """Notes if the model dropped ties, or took answers that both items are bad for ties."""
    if not isinstance(judgments, Comparisons):
        return []
    name, notes = _name(model), []
    if n := judgments.n_both_bad:
        says, them = ("answer says", "it as a tie") if n == 1 else ("answers say", "them as ties")
        notes.append(f"{n:,} {says} that both are bad; {name} counts {them}.")
    if not 0 < judgments.ties < len(judgments):
        return notes
    if model.drops_ties:
        notes.append(f"{judgments.ties:,} ties were dropped: {name} uses decided judgments only.")
    elif model_settings(model).get("ties") == "drop":
        notes.append(
            f"{judgments.ties:,} ties were dropped. Set ties='half' to count each as half a win for both items."
        )
    return notes


def with_annotators(ranking: Ranking, judgments: Judgments, estimates: Callable[[], Mapping[str, Any]]) -> Ranking:
    """The ranking with estimates of the annotators, if the judgments name them."""
    who = judgments.annotator
    if who is None:
        return ranking

    def build_annotators() -> Annotators:
        if isinstance(judgments, Comparisons):
            counts = judgments.n_judgments_per_annotator
        else:
            counts = np.bincount(who, minlength=len(judgments.annotators))
        answers = None
        if isinstance(judgments, Rankings):
            answers = np.bincount(who, np.diff(judgments.offsets) - 1, len(judgments.annotators)).astype(np.int64)
        return Annotators(labels=judgments.annotators, n_judgments=counts, n_answers=answers, estimates=estimates())

    return ranking.with_parts(annotators=build_annotators)


def check_solver(model: SolverSettings) -> None:
    """Refuse a tolerance that is not positive, or no steps at all."""
    if not model.tolerance > 0 or model.max_steps < 1:
        raise SettingError("tolerance must be positive and max_steps at least 1.")


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Refuse a setting that is not one of the allowed words."""
    if value not in allowed:
        raise SettingError(f"{name} must be {', '.join(allowed[:-1])} or {allowed[-1]}, got {value!r}.")


def diagnose(judgments: Judgments) -> DataDiagnostics:
    """Connectivity and separation of the judgments."""
    if isinstance(judgments, Ratings):
        return DataDiagnostics(ratings_to_links(judgments), from_ratings=True)
    return DataDiagnostics(rankings_to_links(judgments) if isinstance(judgments, Rankings) else judgments)


def check_connected(diagnostics: DataDiagnostics, has_prior: bool) -> None:
    """Disconnected components and separation are errors without a prior; with one, the former give a warning."""
    if has_prior:
        if diagnostics.disconnected_components:
            issue_warning(diagnostics.describe_components(), DataWarning, stacklevel=4)
    elif not diagnostics.strongly_connected:
        if diagnostics.disconnected_components:
            raise DisconnectedError(f"{diagnostics.describe_components()} Set prior_scale to rank them together.")
        raise SeparationError(
            f"{diagnostics.describe_separation()}, so no finite score fits. Set prior_scale, or remove them."
        )
