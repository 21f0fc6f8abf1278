"""Words of the command line, such as --set prior_scale=1, into settings of a model."""

from __future__ import annotations

import types
import typing
from dataclasses import fields
from typing import Any

from crowdrank.errors import SettingError, UnknownNameError


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
