"""Which model is the default and why, converting judgments to what a model reads, and building a model by name."""

from __future__ import annotations

import types
import typing
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from crowdrank.data import AnnotatorDetails, Comparisons, Judgments, Rankings, Ratings
from crowdrank.data.side_information import NO_SIDE_INFORMATION
from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.models.base import Model
from crowdrank.models.camps import Camps, find_camps
from crowdrank.models.jury.factors import MAX_ITEMS, make_cells


@dataclass(frozen=True)
class ModelChoice:
    """The name of a model, and why it was chosen.

    Parameters
    ----------
    name : str
        Name in the registry, such as "crowd-bt".
    reason : str
        One sentence; empty where the user named the model.
    compared : bool, default False
        Whether models were compared on the judgments to choose it (`model="auto"`).
    notes : tuple of str, default ()
        What the reader of the ranking should know before anything else.
    """

    name: str
    reason: str = ""
    compared: bool = False
    notes: tuple[str, ...] = ()


def default_model(
    judgments: Judgments,
    *,
    win_probabilities: bool = False,
    among: Container[str] | None = None,
    people: Mapping[str, AnnotatorDetails] | None = None,
    gold: bool = False,
) -> ModelChoice:
    """Choose the model for judgments when the user names none.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        The judgments to rank.
    win_probabilities : bool, default False
        Require scores that say how often one item beats another, as comparing systems does.
    among : container of str, optional
        Names of the models that can be used. If the default is none of them, the choice is crowd-bt or bradley-terry,
        whichever of the two can be used, or jury for humans and language models who err together.
    people : mapping from annotator to AnnotatorDetails, optional
        Which annotators are human and which are language models.
    gold : bool, default False
        Whether gold pairs are given.

    Returns
    -------
    ModelChoice
        commensurate-bt if humans and language models compared items and there is no gold, so that the ranking is that
        of the humans; jury for judges who saw both orders, for language models, and for judges who err together if
        there is gold. Else a model that estimates the quality of annotators if there are several, a simpler one
        otherwise or if the crowd has two camps with different preferences and there is no gold.

    Examples
    --------
    >>> from crowdrank import Comparisons
    >>> default_model(Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"])).name
    'bradley-terry'
    """
    choice = None if gold else _default_for_humans_and_models(judgments, people or {})
    if choice is None and not win_probabilities:
        choice = _default_for_juries(judgments, people, gold)
    if choice is None:
        choice = _default_model(judgments, win_probabilities, gold)
    if among is None or choice.name in among:
        return choice
    if choice.name == "commensurate-bt" and "jury" in among and shared_error_notes(judgments, people):
        return ModelChoice("jury", "Humans and language models judged, and they share errors.")
    several = judgments.annotator is not None and len(judgments.annotators) > 1
    preferred = ("crowd-bt", "bradley-terry") if several else ("bradley-terry", "crowd-bt")
    name = next(name for name in preferred if name in among)
    return ModelChoice(name, f"{choice.name}, the default for these judgments, cannot be used here.")


def _default_model(judgments: Judgments, win_probabilities: bool, gold: bool) -> ModelChoice:
    if isinstance(judgments, Rankings):
        return _default_for_lists(judgments, win_probabilities)
    if (camps := camps_of(judgments)) is not None:
        larger, smaller = camps.sizes
        if gold:
            reason = f"The annotators fall into two camps of {larger:,} and {smaller:,}, and there are gold pairs."
            return ModelChoice("crowd-bt", reason, notes=camp_notes(camps, "crowd-bt"))
        reason = f"The annotators fall into two camps of {larger:,} and {smaller:,}, so all of them count alike."
        return ModelChoice("bradley-terry", reason, notes=camp_notes(camps, "bradley-terry"))
    if judgments.annotator is not None and len(judgments.annotators) > 1:
        reason = "The judgments name several annotators, so the quality of each is estimated."
        rated = isinstance(judgments, Ratings) and not win_probabilities
        return ModelChoice("graded-response" if rated else "crowd-bt", reason)
    reason = "The judgments do not name several annotators, so all count alike."
    rated = isinstance(judgments, Ratings) and not win_probabilities
    return ModelChoice("mean-rating" if rated else "bradley-terry", reason)


def _default_for_humans_and_models(judgments: Judgments, people: Mapping[str, AnnotatorDetails]) -> ModelChoice | None:
    """commensurate-bt if some annotators are human and some are language models; None otherwise."""
    if not people or judgments.annotator is None or not isinstance(judgments, Comparisons):
        return None
    from crowdrank.models.commensurate.commensurate_bt import MAX_ITEMS
    from crowdrank.models.commensurate.judge_scores import count_kinds

    names = [str(name) for name in judgments.annotators]
    named = {code: people[name] for code, name in enumerate(names) if name in people}
    humans, models = count_kinds(named, len(names))
    if not humans or not models or len(judgments.items) > MAX_ITEMS:
        return None
    reason = (
        f"Humans ({humans:,}) and language models ({models:,}) judged, so the ranking is that of the humans and the "
        "models' votes are a prior."
    )
    return ModelChoice("commensurate-bt", reason)


def _default_for_juries(
    judgments: Judgments, people: Mapping[str, AnnotatorDetails] | None, gold: bool
) -> ModelChoice | None:

    reason = why_jury(judgments, people, gold)
    return ModelChoice("jury", reason) if reason else None


# Juries: both orders were shown, or the judges are language models or err together.

_MIN_JUDGES, _MAX_ROWS_OF_JURIES = 3, 500_000
# Share of the pairs of judges that must have been shown in both orders, equally often.
_BALANCED = 0.8


def why_jury(judgments: Judgments, people: Mapping[str, AnnotatorDetails] | None = None, gold: bool = False) -> str:
    """Why these judgments need the jury model; empty if they do not.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        The judgments.
    people : mapping from annotator to AnnotatorDetails, optional
        Kinds of annotators. Humans and language models together are not a jury without gold: commensurate-bt ranks
        by the humans.
    gold : bool, default False
        Whether gold pairs are given. Then judges who err together are a jury, whatever they are, and whether they
        compare, grade or list items.

    Examples
    --------
    >>> both = Comparisons.of(["a", "b"] * 3, ["b", "a"] * 3, ["a"] * 6, annotator=["x", "x", "y", "y", "z", "z"])
    >>> why_jury(both)
    "Every judge saw the pairs in both orders, so a judge's consistency shows how reliable it is."
    """
    if judgments.annotator is None or not isinstance(judgments, Comparisons):
        pairs = as_comparisons(judgments) if gold else None
        return "" if pairs is None else _why_gold_decides(pairs)
    if not _may_be_jury(judgments):
        return ""
    kinds = _kinds(judgments, people)
    if {"human", "llm"} <= kinds:
        return _why_gold_decides(judgments) if gold else ""
    if judgments.positions_known and _share_balanced(judgments) >= _BALANCED:
        return "Every judge saw the pairs in both orders, so a judge's consistency shows how reliable it is."
    if "llm" in kinds:
        return "The judges are language models, which tend to share errors."
    return _why_gold_decides(judgments) if gold else ""


def may_share_errors(
    judgments: Judgments, people: Mapping[str, AnnotatorDetails] | None = None, gold: bool = False
) -> bool:
    """Whether to check if these judges err together: those of a jury, and humans and language models together."""
    if judgments.annotator is None or not isinstance(judgments, Comparisons) or not _may_be_jury(judgments):
        return bool(why_jury(judgments, people, gold))
    return {"human", "llm"} <= _kinds(judgments, people) or bool(why_jury(judgments, people, gold))


def _may_be_jury(comparisons: Comparisons) -> bool:
    """Whether there are enough judges, and not too many rows or items for the model."""
    if len(comparisons.annotators) < _MIN_JUDGES or len(comparisons) > _MAX_ROWS_OF_JURIES:
        return False
    return int(np.diff(comparisons.items.starts).max()) <= MAX_ITEMS


def _kinds(judgments: Judgments, people: Mapping[str, AnnotatorDetails] | None) -> set[str | None]:
    """The kinds of the annotators, as far as they are known."""
    return {people[name].kind for name in map(str, judgments.annotators) if name in people} if people else set()


def as_comparisons(judgments: Judgments) -> Comparisons | None:
    """Grades or lists of annotators as the comparisons of a jury; None if they are too many, or of nobody."""
    if judgments.annotator is None or len(judgments.annotators) < _MIN_JUDGES:
        return None
    sizes = np.diff(judgments.items.starts)
    if int(sizes.max()) > MAX_ITEMS or len(judgments) * int(sizes.max()) > _MAX_ROWS_OF_JURIES:
        return None
    if isinstance(judgments, Ratings):
        return judgments.to_comparisons(ties="keep")
    return judgments.to_comparisons(ties="above_last") if isinstance(judgments, Rankings) else judgments


def _why_gold_decides(comparisons: Comparisons) -> str:
    decides = "The judges share errors, so the gold pairs decide which of them to believe."
    return decides if _shared_errors(comparisons) else ""


def _share_balanced(comparisons: Comparisons) -> float:
    # A quick look first: most judgments are of one order only, and cells need sorting.
    if not 0.4 < float(np.mean(comparisons.left < comparisons.right)) < 0.6:
        return 0.0
    # A pair seen in both orders is at least two judgments, so with enough of them many judgments are repeated.
    if _share_repeated(comparisons) < 1.0 - 1.0 / (1.0 + _BALANCED):
        return 0.0
    return float(np.mean(make_cells(comparisons).balanced))


def _share_repeated(comparisons: Comparisons) -> float:
    """Share of the judgments that are the second or a later one of their annotator about their pair."""
    assert comparisons.annotator is not None  # checked by the caller
    first = np.minimum(comparisons.left, comparisons.right).astype(np.int64)
    second = np.maximum(comparisons.left, comparisons.right)
    pair = first * len(comparisons.items) + second
    cell = pair * len(comparisons.annotators) + comparisons.annotator
    return 1.0 - len(np.unique(cell)) / max(len(comparisons), 1)


def shared_error_notes(judgments: Judgments, people: Mapping[str, AnnotatorDetails] | None = None) -> list[str]:
    """A warning if these are judgments of a jury, or of humans and language models, whose judges err together."""
    if not isinstance(judgments, Comparisons) or not may_share_errors(judgments, people):
        return []
    warning = _shared_errors(judgments)
    return [warning] if warning else []


def _shared_errors(comparisons: Comparisons) -> str:
    """A warning if the judges err together; empty if they do not."""
    from crowdrank.models.jury.jury import fit_jury

    found = fit_jury(comparisons, NO_SIDE_INFORMATION)
    return found.warning if found.errs_together else ""


# Rows (items of lists) up to which the quality of annotators is estimated by default.
_MAX_ROWS_OF_LISTS = 500_000


def _default_for_lists(lists: Rankings, win_probabilities: bool) -> ModelChoice:
    if win_probabilities or lists.annotator is None or len(lists.annotators) < 2:
        unnamed = "The lists do not name several annotators, so all count alike."
        reason = "Its scores say how often one item beats another." if win_probabilities else unnamed
        return ModelChoice("plackett-luce", reason)
    from crowdrank.models.lists.crowd_plackett_luce import MAX_ITEMS

    if len(lists.item) > _MAX_ROWS_OF_LISTS or int(np.diff(lists.items.starts).max()) > MAX_ITEMS:
        return ModelChoice(
            "plackett-luce", "There are too many lists, or items in a query, to estimate the quality of each annotator."
        )
    return ModelChoice("crowd-plackett-luce", "The lists name several annotators, so the quality of each is estimated.")


def camps_of(judgments: Judgments) -> Camps | None:
    """The two camps of a crowd; None for crowds without camps, and for judgments that are not comparisons."""
    return find_camps(judgments) if isinstance(judgments, Comparisons) and judgments.annotator is not None else None


def camp_notes(camps: Camps, model: str) -> tuple[str, ...]:
    """What the reader of a ranking by `model` should know about a crowd with two camps."""
    from crowdrank.models import REGISTRY

    if model in REGISTRY and REGISTRY[model].models_annotators:
        last = f"{model} takes the smaller camp for careless or reversed annotators: use bradley-terry."
    else:
        last = f"{model} counts everyone alike. To see the ranking of the larger camp, leave the smaller one out."
    return (*camps.describe(), last)


def notes_for(
    judgments: Judgments, model: str, people: Mapping[str, AnnotatorDetails] | None = None
) -> tuple[str, ...]:
    """Notes on a ranking by a model that the user named: judges who err together, or two camps of annotators."""
    if model == "commensurate-bt" and {"human", "llm"} <= _kinds(judgments, people):
        return ()  # the humans' votes decide how far the others are believed
    if may_share_errors(judgments, people):
        better = "jury" if why_jury(judgments, people) else "commensurate-bt"
        notes = [] if model == "jury" else shared_error_notes(judgments, people)
        return (*notes, f"{model} assumes that judges are independent: use {better}.") if notes else ()
    return () if (camps := camps_of(judgments)) is None else camp_notes(camps, model)


def kinds_read(model: Model | type[Model]) -> tuple[type, ...]:
    """The kinds of judgments that a model (or its class) reads, its own kind first."""
    reads = model.reads
    return reads if isinstance(reads, tuple) else (reads,)


def convert_for(model: Model | type[Model], judgments: Judgments) -> tuple[Judgments, str]:
    """Convert judgments to a kind that a model reads.

    Parameters
    ----------
    model : Model or type of Model
        The model, or its class.
    judgments : Comparisons, Ratings or Rankings
        Any kind of judgments.

    Returns
    -------
    judgments : Comparisons, Ratings or Rankings
        The judgments, converted if necessary.
    rule : str
        How they were converted; empty if they were not.

    Examples
    --------
    >>> from crowdrank import BradleyTerry, Rankings
    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]]])
    >>> convert_for(BradleyTerry(), lists)
    (Comparisons(3 judgments, 3 items), 'every two items of a list are a comparison')
    """
    kinds = kinds_read(model)
    if isinstance(judgments, kinds):
        return judgments, ""
    if isinstance(judgments, Ratings):
        if Comparisons in kinds:
            rule = "of two items that one annotator graded, the better grade wins and equal grades tie"
            return judgments.to_comparisons(ties="keep"), rule
        return judgments.to_rankings(), "each annotator's items ordered by grade"
    if kinds == (Ratings,):
        rule = "the grade of an item is the share of its list below it"
        return judgments.to_ratings(), rule if isinstance(judgments, Rankings) else "winners are graded 1, losers 0"
    if isinstance(judgments, Rankings):
        return judgments.to_comparisons(ties="above_last"), "every two items of a list are a comparison"
    return judgments.to_rankings(), "each annotator's items ordered by wins minus losses"


def models_that(capability: str) -> list[str]:
    """Names of the models with a capability of `Model`, such as "distributable"."""
    from crowdrank.models import REGISTRY

    return [name for name, model in REGISTRY.items() if getattr(model, capability)]


def has_setting(model: type[Any], name: str) -> bool:
    """Whether a model has a setting of this name."""
    return name in model.__dataclass_fields__


def models_with(setting: str) -> list[str]:
    """Names of the models that have this setting."""
    from crowdrank.models import REGISTRY

    return [name for name, model in REGISTRY.items() if has_setting(model, setting)]


def parse_settings(model: type[Any], settings: Mapping[str, Any], seed: int | None = None) -> dict[str, Any]:
    """Check the names of settings and convert text to the type of each setting.

    Parameters
    ----------
    model : type
        A frozen dataclass: a model, a policy or another set of settings.
    settings : mapping
        Values by name. Text is converted to the declared type ("1" to 1.0, "none" to None, "2,1" to a tuple);
        other values are kept.
    seed : int, optional
        The seed, for a model that has one.

    Returns
    -------
    dict
        Keyword arguments for `model`.

    Examples
    --------
    >>> from crowdrank import CrowdBT
    >>> parse_settings(CrowdBT, {"prior_scale": "2", "ties": "half"})
    {'prior_scale': 2.0, 'ties': 'half'}
    """
    types_of = typing.get_type_hints(model)
    known = [field.name for field in fields(model)]
    parsed: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in known:
            raise UnknownNameError("setting", name, known)
        parsed[name] = _parse(name, value, types_of[name]) if isinstance(value, str) else value
    if seed is not None:
        if "seed" not in known:
            raise SettingError(f"{model.__name__} uses no random numbers: omit the seed.")
        parsed["seed"] = seed
    return parsed


def _parse(name: str, text: str, declared: Any) -> Any:
    union = typing.get_origin(declared) in (types.UnionType, typing.Union)
    options = typing.get_args(declared) if union else (declared,)
    if type(None) in options and text.lower() == "none":
        return None
    for option in options:
        origin = typing.get_origin(option)
        if option is bool and text.lower() in ("true", "false", "yes", "no"):
            return text.lower() in ("true", "yes")
        # Where only words are allowed, the model itself refuses an unknown one and lists those it knows.
        if option is str or (origin is typing.Literal and (not union or text in typing.get_args(option))):
            return text
        if origin is tuple and text not in _words(options):
            member = typing.get_args(option)[0]
            return tuple(_parse(name, part.strip(), member) for part in text.split(","))
        if option in (int, float):
            try:
                return option(text)
            except ValueError:
                continue
    raise SettingError(f"{name} cannot be {text!r}{_expected(options)}.")


def _words(options: Iterable[Any]) -> list[str]:
    """The literal values among the types of a setting."""
    return [
        word for option in options if typing.get_origin(option) is typing.Literal for word in typing.get_args(option)
    ]


def _expected(options: Iterable[Any]) -> str:
    """What a setting accepts, for a message; empty where the types say nothing useful."""
    names = {int: "an integer", float: "a number", bool: "true or false", type(None): "none"}
    accepted = [names[option] for option in options if option in names] + _words(options)
    return f"; expected {' or '.join(accepted)}" if accepted else ""
