"""Rankings whose columns are places: 1st choice, 2nd choice …, or the best and the worst of a few items."""

from __future__ import annotations

import re
from collections.abc import Sequence

import polars as pl

from crowdrank.io.rows import parse_labels
from crowdrank.io.source_table import SourceTable
from crowdrank.io.synonyms import ITEM_WORDS, normalize_name
from crowdrank.io.wide_tables import free_name, list_names, with_order

_ORDINALS = {word: n for n, word in enumerate("first second third fourth fifth sixth seventh eighth".split(), 1)}  # noqa: SIM905
_PLACE = re.compile(
    r"(?:(?:rank|choice|preference|pref|place|vote|option|pick)(\d+)|(\d+)(?:st|nd|rd|th)?"
    r"(?:choice|preference|pref|place|pick|rank)|(first|second|third|fourth|fifth|sixth|seventh|eighth)"
    r"(?:choice|preference|place|pick))"
)
_BEST = frozenset(["best", "bestitem", "most", "mostitem", "bestchoice", "mostpreferred"])
_WORST = frozenset(["worst", "worstitem", "least", "leastitem", "worstchoice", "leastpreferred"])
_MOST_NUMBERS = 0.5


def read_choices(table: SourceTable) -> SourceTable | None:
    """Return one list per row if the columns are places with the name of an item in each cell, or best and worst."""
    return _by_place(table) or _best_and_worst(table)


def _by_place(table: SourceTable) -> SourceTable | None:
    places: dict[int, str] = {}
    for column in table.columns:
        if (found := _PLACE.fullmatch(normalize_name(column))) is not None:
            number = _ORDINALS[found[3]] if found[3] else int(found[1] or found[2])
            if places.setdefault(number, column) != column:
                return None
    if len(places) < 2 or sorted(places) != list(range(1, len(places) + 1)):
        return None
    columns = [places[n] for n in sorted(places)]
    cells = _labels(table, columns)
    if cells is None or any(_are_numbers(series) for series in cells):
        return None
    lists = [[[item] for item in row if item] for row in zip(*(series.to_list() for series in cells), strict=True)]
    note = f"Each row is a list, best first: {list_names(columns)}."
    return with_order(table, free_name(table, "order"), _as_places(lists), note, "")


def _best_and_worst(table: SourceTable) -> SourceTable | None:
    by_name = {normalize_name(column): column for column in table.columns}
    best, worst = (next((by_name[name] for name in names if name in by_name), "") for names in (_BEST, _WORST))
    shown = [by_name[name] for name in by_name if re.fullmatch(rf"(?:{'|'.join(ITEM_WORDS)})\d", name)]
    if not best or not worst or len(shown) < 3:
        return None
    cells = _labels(table, [best, worst, *shown])
    if cells is None:
        return None
    lists = []
    for top, bottom, *items in zip(*(series.to_list() for series in cells), strict=True):
        rest = [item for item in dict.fromkeys(items) if item and item not in (top, bottom)]
        lists.append([place for place in ([top], rest, [bottom]) if place] if top and bottom and top != bottom else [])
    note = (
        f"Each row is a list: {best!r} first, {worst!r} last, and the other items of {list_names(shown)} tied between."
    )
    return with_order(table, free_name(table, "order"), _as_places(lists), note, "")


def _labels(table: SourceTable, columns: Sequence[str]) -> list[pl.Series] | None:
    frame = table.load(columns, None)
    if any(kind.is_nested() or kind == pl.Object for kind in frame.dtypes):
        return None
    return [parse_labels(frame[column], strip_spaces=True) for column in columns]


def _are_numbers(cells: pl.Series) -> bool:
    return bool((cells.str.contains(r"^[+-]?\d+(\.\d+)?$").mean() or 0) > _MOST_NUMBERS)  # type: ignore[operator]


def _as_places(lists: Sequence[Sequence[Sequence[str]]]) -> pl.Series:
    return pl.Series("item", lists, dtype=pl.List(pl.List(pl.String)))
