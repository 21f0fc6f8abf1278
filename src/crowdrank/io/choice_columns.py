"""Rankings whose columns are places: 1st choice, 2nd choice …; and choices of the best (and worst) of a few items."""

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
_CHOSEN = frozenset([*_BEST, "choice", "chosen", "winner", "pick", "picked", "selected", "selection", "preferred"])
_SETS = frozenset(["items", "options", "alternatives", "choices", "shown", "candidates", "choiceset", "set"])
_MOST_NUMBERS = 0.5
_MOST_SHOWN = 0.9
"""Share of the rows whose choice must be one of the items that were shown."""


def read_choices(table: SourceTable) -> SourceTable | None:
    """Return one list per row if columns are places with an item in each cell, or name the chosen of a few items."""
    return _by_place(table) or _best_and_worst(table) or _one_of_several(table)


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
    best, worst = (_column(table, names) for names in (_BEST, _WORST))
    shown = _shown(table) if best and worst else None
    cells = None if shown is None else _labels(table, [best, worst])
    if shown is None or cells is None:
        return None
    lists = []
    for top, bottom, items in zip(*(_chosen(series, shown[1]) for series in cells), shown[1], strict=True):
        rest = [item for item in dict.fromkeys(items) if item not in (top, bottom)]
        lists.append([place for place in ([top], rest, [bottom]) if place] if top and bottom and top != bottom else [])
    note = f"Each row is a list: {best!r} first, {worst!r} last, and the other items of {shown[0]} tied between."
    return with_order(table, free_name(table, "order"), _as_places(lists), note, "")


def _one_of_several(table: SourceTable) -> SourceTable | None:
    """Choices of one among three or more items: the chosen one first, the others tied behind it."""
    best = _column(table, _CHOSEN)
    shown = _shown(table) if best else None
    cells = None if shown is None else _labels(table, [best])
    if shown is None or cells is None:
        return None
    chosen = _chosen(cells[0], shown[1])
    known = [top in items for top, items in zip(chosen, shown[1], strict=True) if top]
    if not known or sum(known) < _MOST_SHOWN * len(known):
        return None
    lists = []
    for top, items in zip(chosen, shown[1], strict=True):
        rest = [item for item in dict.fromkeys(items) if item != top]
        lists.append([[top], rest] if top in items and rest else [])
    note = f"Each row is a choice: {best!r} first, and the other items of {shown[0]} tied behind it."
    return with_order(table, free_name(table, "order"), _as_places(lists), note, "")


def _column(table: SourceTable, names: frozenset[str]) -> str:
    return next((column for column in table.columns if normalize_name(column) in names), "")


def _shown(table: SourceTable) -> tuple[str, list[list[str]]] | None:
    """The items that each row shows, from three or more columns or from one column of lists, and their columns."""
    numbered = rf"(?:{'|'.join(ITEM_WORDS)})(?:\d|[a-h])"
    columns = [column for column in table.columns if re.fullmatch(numbered, normalize_name(column))]
    if len(columns) >= 3:
        cells = _labels(table, columns)
        if cells is None:
            return None
        rows = zip(*(series.to_list() for series in cells), strict=True)
        return list_names(columns), [[item for item in row if item] for row in rows]
    if not (column := _column(table, _SETS)) or (cells := _labels(table, [column])) is None:
        return None
    texts = [text or "" for text in cells[0].to_list()]
    mark = max(";|,/", key=lambda sign: sum(sign in text for text in texts))
    items = [[part.strip() for part in text.split(mark) if part.strip()] for text in texts]
    return (repr(column), items) if sum(len(row) > 2 for row in items) > len(items) / 2 else None


def _chosen(cells: pl.Series, shown: Sequence[Sequence[str]]) -> list[str]:
    """The chosen item of each row; it may be named by its number or letter among the items shown."""
    found = []
    for text, items in zip(cells.to_list(), shown, strict=True):
        place = -1
        if text and text not in items:
            place = int(text) - 1 if text.isdigit() else "abcdefgh".find(text.lower()) if len(text) == 1 else -1
        found.append(items[place] if 0 <= place < len(items) else text or "")
    return found


def _labels(table: SourceTable, columns: Sequence[str]) -> list[pl.Series] | None:
    frame = table.load(columns, None)
    if any(kind.is_nested() or kind == pl.Object for kind in frame.dtypes):
        return None
    return [parse_labels(frame[column], strip_spaces=True) for column in columns]


def _are_numbers(cells: pl.Series) -> bool:
    return bool((cells.str.contains(r"^[+-]?\d+(\.\d+)?$").mean() or 0) > _MOST_NUMBERS)  # type: ignore[operator]


def _as_places(lists: Sequence[Sequence[Sequence[str]]]) -> pl.Series:
    return pl.Series("item", lists, dtype=pl.List(pl.List(pl.String)))
