"""Text of options, such as `--column winner=first`, as Python values."""

from __future__ import annotations

from collections.abc import Sequence

from crowdrank.errors import SettingError

Words = Sequence[str] | None


def parse_pairs(pairs: Words, option: str, example: str) -> list[tuple[str, str]]:
    """Split each `name=value` of a repeatable option."""
    parsed = []
    for pair in pairs or []:
        name, sign, value = (part.strip() for part in pair.partition("="))
        if not sign or not name:
            raise SettingError(f"{option} takes name=value, such as {option} {example}; got {pair!r}.")
        parsed.append((name, value))
    return parsed


def parse_columns(pairs: Words, query: str | None = None, option: str = "--column") -> dict[str, str | None]:
    """`--column role=column` and `--query column` as one mapping; an empty column means that there is none."""
    roles = {role: column or None for role, column in parse_pairs(pairs, option, "annotator=who")}
    return roles if query is None else {**roles, "query": query or None}


def parse_set(pairs: Words) -> dict[str, str]:
    """`--set name=value`; the text becomes a value when the model is known."""
    return dict(parse_pairs(pairs, "--set", "prior_scale=1"))


def parse_names(text: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def parse_quality(pairs: Words) -> dict[str, float | tuple[float, float]]:
    """`--annotator-quality ann=0.95`, or a range `ann=0.6..0.9`."""
    option = "--annotator-quality"
    quality: dict[str, float | tuple[float, float]] = {}
    for name, text in parse_pairs(pairs, option, "ann=0.95"):
        low, dots, high = text.partition("..")
        try:
            value = (float(low), float(high)) if dots else float(text)
        except ValueError as error:
            raise SettingError(f"{option} takes a number or a range, such as ann=0.6..0.9; got {text!r}.") from error
        if quality.setdefault(name, value) != value:
            raise SettingError(f"{option} gives {name} twice, with different values: {quality[name]} and {value}.")
    return quality


def parse_order(pairs: Words) -> list[tuple[str, str]]:
    """`--annotator-order 'ann>bob'`, the better annotator first."""
    option = "--annotator-order"
    order = []
    for text in pairs or []:
        better, sign, worse = (part.strip() for part in text.partition(">"))
        if not (better and sign and worse):
            raise SettingError(f"{option} takes two annotators, such as {option} 'ann>bob'; got {text!r}.")
        order.append((better, worse))
    return order
