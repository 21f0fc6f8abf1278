"""Words of the command line, such as --set prior_scale=1, into settings of a model.

What crowdrank rank is told of lists that leave items out.

What crowdrank rank is told of the measure whose expected value is to be largest.

What crowdrank rank is told of hidden domains, and what it draws of them.

Which model crowdrank rank takes: the one named, the usual one, or with --model auto the one that suits.
"""

from __future__ import annotations

import types
import typing
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli.progress import counting
from crowdrank.errors import DataError, SettingError, UnknownNameError


def parse_columns(pairs: list[str] | None, query: str | None) -> dict[str, str | None]:
    """--map role=column, and --query column, as one mapping; an empty column means there is none."""
    roles = {role: column or None for role, column in split_pairs(pairs, "--map", "annotator=who")}
    if query is not None:
        roles["query"] = query or None
    return roles


def parse_settings(model: type[Any], pairs: list[str] | None, seed: int | None) -> dict[str, Any]:
    """--set name=value, read by the type of the model's field."""
    kinds = typing.get_type_hints(model)
    known = [field.name for field in fields(model)]
    chosen: dict[str, Any] = {}
    for name, text in split_pairs(pairs, "--set", "prior_scale=1"):
        if name not in known:
            raise UnknownNameError("setting", name, known)
        chosen[name] = _value(name, text, kinds[name])
    if seed is not None:
        if "seed" not in known:
            raise SettingError(f"{model.__name__} draws nothing at random: leave --seed out.")
        chosen["seed"] = seed
    return chosen


def split_pairs(pairs: list[str] | None, option: str, example: str) -> list[tuple[str, str]]:
    found = []
    for pair in pairs or []:
        name, sign, value = pair.partition("=")
        if not sign or not name.strip():
            raise SettingError(f"{option} takes name=value, such as {option} {example}; got {pair!r}.")
        found.append((name.strip(), value.strip()))
    return found


def _value(name: str, text: str, kind: Any) -> Any:
    options = typing.get_args(kind) if typing.get_origin(kind) in (types.UnionType, typing.Union) else (kind,)
    if type(None) in options and text.lower() == "none":
        return None
    for option in options:
        if option is bool and text.lower() in ("true", "false", "yes", "no"):
            return text.lower() in ("true", "yes")
        if option is str or (typing.get_origin(option) is typing.Literal and _fits(text, option, options)):
            return text
        if typing.get_origin(option) is tuple and text not in _words(options):
            member = typing.get_args(option)[0]
            return tuple(_value(name, part.strip(), member) for part in text.split(","))
        if option in (int, float):
            try:
                return option(text)
            except ValueError:
                continue
    raise SettingError(f"{name} cannot be {text!r}.")


def _words(options: Any) -> list[str]:
    """The words a setting may be, beside what else it may be."""
    return [w for o in options if typing.get_origin(o) is typing.Literal for w in typing.get_args(o)]


def _fits(text: str, option: Any, options: Any) -> bool:
    """A word where only words will do is left to the model to refuse; beside numbers it must be one of them."""
    return len(options) == 1 or text in typing.get_args(option)


if TYPE_CHECKING:
    from crowdrank.data import Judgments

Missing = Annotated[
    str | None,
    typer.Option("--missing", help="What a list that leaves an item out says of it: unknown (nothing), or worse."),
]


def made_whole(judgments: Judgments, missing: str | None) -> tuple[Judgments, str]:
    """The lists with what they leave out at their ends, if it is to count as worse; and the rule ("" if none)."""
    from crowdrank.data import Rankings

    if missing is None:
        return judgments, ""
    if missing not in ("unknown", "worse"):
        raise SettingError(f"--missing must be unknown or worse, got {missing!r}.")
    if not isinstance(judgments, Rankings):
        kind = type(judgments).__name__.lower()
        raise DataError(f"--missing is about items that lists leave out, but these judgments are {kind}.")
    if missing == "unknown":
        return judgments, ""
    return judgments.with_missing_last(), "items that a list leaves out count as worse than those it names"


MeasureOption = list[str] | None
MeasureName = Annotated[
    str | None, typer.Option("--measure", help="Whose expected value is to be largest: ndcg or rbp (crowd-agg).")
]


def with_measure(model: str, settings: MeasureOption, measure: str | None) -> MeasureOption:
    """The settings of --set, and --measure as one more; refused for models that maximise none."""
    from crowdrank import models

    if measure is None:
        return settings
    able = [name for name, kind in models.REGISTRY.items() if "measure" in kind.__dataclass_fields__]
    if model not in able:
        raise SettingError(f"--measure needs a model that maximises one ({', '.join(able)}), got {model}.")
    if measure not in ("ndcg", "rbp"):
        raise SettingError(f"--measure must be ndcg or rbp, got {measure!r}.")
    return [*(settings or []), f"measure={measure}"]


if TYPE_CHECKING:
    from crowdrank.data import Judgments

DomainsOption = list[str] | None
DomainCount = Annotated[
    str | None, typer.Option("--domains", help="How many hidden domains the queries have: auto, or a number (tpp).")
]
HeatMap = Annotated[
    Path | None, typer.Option("--heat-map", help="Draw who is good in which domain: .html .svg .png (tpp).")
]


def with_domains(
    model: str, judgments: Judgments, settings: DomainsOption, domains: str | None, heat_map: Path | None
) -> DomainsOption:
    """The settings of --set, and --domains as one more; what model or judgments have no use for is refused."""
    from crowdrank import models

    able = [name for name, kind in models.REGISTRY.items() if "domains" in kind.__dataclass_fields__]
    for option, value in (("--domains", domains), ("--heat-map", heat_map)):
        if value is not None and model not in able:
            raise SettingError(f"{option} needs a model that learns domains ({', '.join(able)}), got {model}.")
    if heat_map is not None and judgments.annotator is None:
        raise DataError("--heat-map shows annotators, but the judgments name none: --map annotator=COLUMN says who.")
    if domains is None:
        return settings
    if domains != "auto" and not domains.isdecimal():
        raise SettingError(f"--domains must be auto or a whole number, got {domains!r}.")
    return [*(settings or []), f"domains={domains}"]


if TYPE_CHECKING:
    from crowdrank.cli.item_options import AboutItems
    from crowdrank.data import Judgments

AUTO = "auto"


def named(
    model: str | None, judgments: Judgments, about: AboutItems, features: tuple[str, ...], seed: int | None
) -> tuple[str, str]:
    """The name of the model, and why it was taken ("" unless it was chosen by comparing)."""
    from crowdrank.models.conversion import default_model

    usual = default_model(judgments, chances=about.system is not None)
    if model != AUTO:
        return model or usual, ""
    from crowdrank.errors import DataError
    from crowdrank.evaluation import compare_models

    known = _with_features(judgments, about, features)
    try:
        with counting("Comparing models") as tell:
            found = compare_models(
                known, features=features or None, quick=True, seed=seed or 0, on_progress=tell
            ).recommendation
    except DataError as error:
        return usual, f"{usual} is the usual model; no others were compared: {error}"
    return found.model, found.why


def _with_features(judgments: Judgments, about: AboutItems, features: tuple[str, ...]) -> Judgments:
    """Only those that were asked for: other columns were read for other ends."""
    from crowdrank.data import Comparisons

    if not isinstance(judgments, Comparisons):
        return judgments
    return about.add_to(judgments) if features else replace(judgments, features={})
