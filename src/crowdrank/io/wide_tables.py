"""Tables with several judgments per row, changed to one judgment (or one list) per row.

Numbered systems with numbered ranks become lists, columns of several annotators become one row per answer, and a grid
(voters in rows, items in columns) becomes ratings or lists.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray, FloatArray
from crowdrank.errors import CrowdrankError, FormatError
from crowdrank.io.builders import is_outcome_word, is_scale_of_words
from crowdrank.io.column_roles import (
    ANNOTATOR_WORDS,
    GRID_ANNOTATORS,
    ITEM_WORDS,
    NOT_ITEMS,
    SYNONYMS,
    TEXT_WORDS,
    RoleMatcher,
    find_column,
    normalize_name,
    split_codes,
)
from crowdrank.io.rows import missing_numbers, parse_labels, parse_numbers
from crowdrank.io.source_table import RowLocation, SourceTable, table_from_frame, with_columns_computed

Columns = Mapping[str, str | None]
# Roles that may be spread over several columns: grades or ranks of several items, answers of several annotators.
_SPREAD_ROLES = ("grade", "rank", "winner")
_MIN_LISTED = 3
_NUMBERED = re.compile(r"(\D*)(\d+)(\D*)")
_BRACKETED = re.compile(r"(.*)\[(.+)\]\s*")
_LEADING_NUMBER = r"^\s*([+-]?\d+(?:\.\d+)?)(?:st|nd|rd|th|\b|$)"
_SEVERAL_ANSWERS = re.compile(r"\s*[+-]?\d(\s*[,;]\s*[+-]?\d)+\s*")
# Shares of rows that must be orders 1, 2, 3 … and of cells that must be numbers.
_MOST_ROWS, _MOST_CELLS = 0.8, 0.9
_MAX_GRADE, _MAX_FORM_GRADE, _MAX_PLAYERS = 100.0, 10.0, 500
# The last rows of a table of grades may sum it up.
_TOTALS = frozenset(
    [
        "total",
        "totals",
        "grandtotal",
        "sum",
        "average",
        "avg",
        "mean",
        "median",
        "sd",
        "std",
        "stdev",
        "count",
        "min",
        "max",
    ]
)
_MAX_TOTALS = 4
# Columns of a form in which people write what they like.
_REMARKS = frozenset(
    ["comment", "comments", "remark", "remarks", "feedback", "note", "notes", "suggestions", "anythingelse", "why"]
)
_RANK_LISTS = frozenset(["rank", "ranks", "ranking", "rankings", "place", "places", "position", "positions"])


def spread_roles(table: SourceTable, columns: Columns | None) -> tuple[SourceTable, Columns]:
    """Apply what the caller says of roles that are spread over several columns, or over several answers of a cell."""
    given = dict(columns or {})
    for role in _SPREAD_ROLES:
        text = given.get(role)
        if not text or text in table.columns:
            continue
        pattern = split_codes(text)[0]
        if (group := _columns_of_pattern(table, pattern)) is not None:
            del given[role]
            readers: dict[str, Callable[[SourceTable, Sequence[str], Mapping[str, str]], SourceTable]] = {
                "grade": _grades,
                "rank": _ranks,
                "winner": _answers,
            }
            if role == "grade" and (item := given.get("item")):  # items in rows, so annotators are in columns
                spread = _grades_of_items(table, group, find_column(table, item))
            else:
                spread = readers[role](table, group, {c: c for c in group})
            made = {r: column for r, column in spread.roles.items() if table.roles.get(r) != column}
            if codes := text[len(pattern) :]:
                made[role] += codes
            return spread, {**made, **given}
    if winner := given.get("winner"):
        name = split_codes(winner)[0]
        if (found := _find_plain(table, name)) and (split := _split_answers(table, found)) is not None:
            given["winner"] = "answer" + winner[len(name) :]
            return split, given
    return table, given


def read_lists(table: SourceTable) -> SourceTable | None:
    """Return one list per row if the columns are numbered items and their ranks or scores: system1Id, system1rank."""
    numbered: dict[tuple[str, str], dict[int, str]] = {}
    for column in table.columns:
        if (found := _NUMBERED.fullmatch(normalize_name(column))) is not None:
            numbered.setdefault((found[1], found[3]), {})[int(found[2])] = column
    items = [
        group for end in ("name", "", "id") for word in ITEM_WORDS if len(group := numbered.get((word, end), {})) >= 3
    ]
    for value in ("rank", "score"):
        for (start, end), group in numbered.items():
            named = (start in ITEM_WORDS and end == value) or (start == value and not end)
            chosen = next((item for item in items if item.keys() == group.keys()), None)
            if named and chosen is not None:
                numbers = sorted(group)
                return _lists(table, [chosen[n] for n in numbers], [group[n] for n in numbers], value)
    return None


def read_ranked_lists(table: SourceTable) -> SourceTable | None:
    """Return one list per row if a column holds lists of items, and another one their ranks: [x, y] and [2, 1]."""
    types = table.load(table.columns, 1).schema if table.columns else {}
    lists = [column for column, kind in types.items() if kind == pl.List(pl.String)]
    ranks = [
        column
        for column, kind in types.items()
        if isinstance(kind, pl.List) and kind.inner.is_numeric() and normalize_name(column) in _RANK_LISTS
    ]
    if len(lists) != 1 or len(ranks) != 1 or not table.rows:
        return None
    items, places = (table.load([column], None)[column] for column in (lists[0], ranks[0]))
    count = int(items.list.len().fill_null(0).to_numpy().max())
    if count < 2 or not (items.list.len() == places.list.len()).fill_null(True).all():
        return None
    labels = [items.list.get(n, null_on_oob=True).str.strip_chars() for n in range(count)]
    values = np.column_stack(
        [places.list.get(n, null_on_oob=True).cast(pl.Float64).fill_null(np.nan).to_numpy() for n in range(count)]
    )
    note = f"Each row is a list of {lists[0]!r} by {ranks[0]!r}: smaller is better, negative is not ranked."
    made = _places(table, labels, values, largest_first=False)
    return with_order(table, free_name(table, "order"), made, note, "")


def read_listed_objects(table: SourceTable, kind: str | None) -> SourceTable | None:
    """Return one row per object if a column holds lists of items with their ranks or grades, as in JSON."""
    for column, found in (table.load(table.columns, 1).schema if table.columns else {}).items():
        if not isinstance(found, pl.List) or not isinstance(found.inner, pl.Struct):
            continue
        fields = {normalize_name(field.name): field.name for field in found.inner.fields if not field.dtype.is_nested()}
        item = _first_named(fields, (*SYNONYMS["item"], tuple(sorted(TEXT_WORDS))))
        rank = _first_named(fields, SYNONYMS["rank"]) if kind in (None, "rankings") else ""
        grade = _first_named(fields, (*SYNONYMS["grade"], ("overallscore",))) if kind in (None, "ratings") else ""
        if item and (rank or grade) and item not in (rank, grade):
            return _exploded(table, column, item, {"rank": rank} if rank else {"grade": grade})
    return None


def _first_named(fields: Mapping[str, str], tiers: Sequence[Sequence[str]]) -> str:
    return next((fields[name] for tier in tiers for name in tier if name in fields), "")


def _exploded(table: SourceTable, column: str, item: str, value: Mapping[str, str]) -> SourceTable:
    """Return one row per object of a column of lists; an empty list is a row without an item."""
    lists = table.load([column], None)[column]
    lengths = lists.list.len().fill_null(0).to_numpy()
    row = np.repeat(np.arange(table.rows), np.maximum(lengths, 1))
    objects = lists.filter(lengths > 0).explode().struct
    # The object of each row; none for an empty list.
    place = pl.Series(np.cumsum(lengths[row] > 0) - 1).set(pl.Series(lengths[row] == 0), None)
    (role, field), number = next(iter(value.items())), free_name(table, "row")
    names = {part: f"{column}.{part}" for part in (item, field)}
    made = pl.DataFrame({names[part]: objects.field(part).gather(place) for part in names})
    kept = [c for c in table.columns if c != column and c not in names.values()]
    rows = pl.Series(number, [f"row {n + 1}" for n in row])

    def load(columns: Sequence[str], most: int | None) -> pl.DataFrame:
        base = table.load([c for c in columns if c in kept], None)
        found = {c: base[c].gather(row) for c in base.columns}
        found |= {c: made[c] for c in columns if c in made.columns} | {number: rows}
        frame = pl.DataFrame({c: found[c] for c in columns})
        return frame if most is None else frame.head(most)

    first = np.flatnonzero(np.append(True, row[1:] != row[:-1]))
    better = "1 is the best" if role == "rank" else "larger is better"
    note = f"Each row holds a list of items in {column!r}: {item!r}, by {field!r}; {better}."
    return replace(
        table,
        columns=(*kept, *made.columns, number),
        load=load,
        rows=len(row),
        locate=lambda found: table.locate([int(row[n]) for n in found]),
        blank_rows=None if table.blank_rows is None else table.blank_rows[row],
        unreadable_rows={int(first[n]): why for n, why in table.unreadable_rows.items()},
        set_aside={reason: mask[row] for reason, mask in table.set_aside.items()},
        entries=table.rows,
        roles={**table.roles, "item": names[item], role: names[field]} | ({"list": number} if role == "rank" else {}),
        notes=(*table.notes, note),
    )


def read_wide(table: SourceTable, kind: str | None) -> SourceTable | None:
    """Return a table of answers, grades or lists if the columns are those of several annotators or of a grid."""
    if kind in (None, "comparisons") and (group := _annotator_columns(table)):
        return _answers(table, group, {column: column for column in group})
    if kind not in (None, "ratings", "rankings") or (grid := _grid_columns(table)) is None:
        return None
    group = list(grid)
    numbers = _numbers(table, group)
    if kind == "rankings" or (kind is None and _are_ranks(numbers)):
        ranks = _ranks(table, group, grid)
        other = f"If the largest is the best, read the source with columns={{'grade': {','.join(group)!r}}}."
        return ranks if any("," in column for column in group) else replace(ranks, notes=(*ranks.notes, other))
    return _grades(table, group, grid)


def _columns_of_pattern(table: SourceTable, text: str) -> list[str] | None:
    """Return the columns of a pattern (Q*) or of a list of names (a,b,c); None if it is neither."""
    if "*" in text:
        found = [column for column in table.columns if fnmatch.fnmatchcase(column, text)]
        if not found:
            raise FormatError(f"{table.name}: no column fits {text!r}.")
        return found
    names = [name.strip() for name in text.split(",")]
    if len(names) < 2 or not all(names):
        return None
    return [find_column(table, name) for name in names]


def _pattern_of(table: SourceTable, group: Sequence[str]) -> str:
    """Return the pattern of exactly these columns if there is a short one, else the list of their names."""
    same = (len(set(letters)) == 1 for letters in zip(*group, strict=False))
    pattern = f"{group[0][: sum(takewhile(bool, same))]}*"
    fits = [column for column in table.columns if fnmatch.fnmatchcase(column, pattern)]
    return pattern if len(pattern) > 2 and fits == list(group) else ",".join(group)


def _find_plain(table: SourceTable, name: str) -> str:
    alike = [column for column in table.columns if normalize_name(column) == normalize_name(name)]
    return name if name in table.columns else alike[0] if len(alike) == 1 else ""


def free_name(table: SourceTable, name: str) -> str:
    """Return a name that no column has."""
    while name in table.columns:
        name += "'"
    return name


def unpivot(table: SourceTable, group: Sequence[str], names: Mapping[str, str], name: str, value: str) -> SourceTable:
    """Return one row per cell of a group of columns; empty cells are blank rows."""
    count, kept = len(group), [column for column in table.columns if column not in group]

    def load(columns: Sequence[str], rows: int | None) -> pl.DataFrame:
        height = table.rows if rows is None else min(table.rows, -(-rows // count))
        base = table.load([c for c in columns if c in kept], None if rows is None else height)
        row = np.repeat(np.arange(height), count)
        found = {column: base[column].gather(row) for column in base.columns}
        if name in columns:
            found[name] = pl.Series(name, [names[column] for column in group] * height, dtype=pl.String)
        if value in columns:
            cells = table.load(group, None if rows is None else height)
            texts = [parse_labels(cells[column], strip_spaces=True) for column in group]
            order = np.arange(count * height).reshape(count, height).T.ravel()
            found[value] = pl.concat([text.alias(value) for text in texts]).gather(order)
        frame = pl.DataFrame({column: found[column] for column in columns})
        return frame if rows is None else frame.head(rows)

    def locate(rows: Sequence[int]) -> list[RowLocation]:
        return table.locate([row // count for row in rows])

    wide = replace(
        table,
        columns=(*kept, name, value),
        load=load,
        rows=table.rows * count,
        locate=locate,
        set_aside={reason: np.repeat(mask, count) for reason, mask in table.set_aside.items()},
        unreadable_rows={row * count + n: why for row, why in table.unreadable_rows.items() for n in range(count)},
        entries=table.rows - (0 if table.blank_rows is None else int(np.count_nonzero(table.blank_rows))),
    )
    empty = load([value], None)[value].is_null().to_numpy()
    # An unreadable row is still an error, though none of its cells has a value.
    empty[list(wide.unreadable_rows)] = False
    return replace(wide, blank_rows=empty)


def _annotator_columns(table: SourceTable) -> list[str]:
    """Return columns such as annotator1, annotator2 or judge_a, judge_b, if there are two or more."""
    groups: dict[str, list[str]] = {}
    for column in table.columns:
        name = normalize_name(column)
        if (found := re.fullmatch(r"(\D+?)(?:id)?(\d+|[a-e])", name)) and found[1] in (*ANNOTATOR_WORDS, "ann"):
            groups.setdefault(found[1], []).append(column)
    sides = RoleMatcher(table, {}).pair(("left", "right"))
    return next((group for group in groups.values() if len(group) > 1 and sides), [])


def _answers(table: SourceTable, group: Sequence[str], names: Mapping[str, str]) -> SourceTable:
    # Named as the caller would name them, for messages about codes.
    who, winner = free_name(table, "annotator"), _pattern_of(table, group)
    note = f"Each row holds the answers of {len(group)} annotators: {list_names(group)}."
    found = unpivot(table, group, names, who, winner)
    roles = {**table.roles, "annotator": who, "winner": winner}
    return replace(found, roles=roles, notes=(*table.notes, note))


def _split_answers(table: SourceTable, column: str) -> SourceTable | None:
    """Return one row per answer if the cells of a column hold several, such as -1,0,1."""
    if table.load([column], 1)[column].dtype != pl.String:
        return None
    cells = parse_labels(table.load([column], None)[column], strip_spaces=True)
    several = cells.str.contains(f"^{_SEVERAL_ANSWERS.pattern}$")
    if not several.any() or not several.fill_null(True).mean() > _MOST_ROWS:  # type: ignore[operator]
        return None
    most = int(cells.str.count_matches(",").fill_null(0).to_numpy().max())
    parts = cells.str.split_exact(",", most).struct.unnest()
    parts.columns = [f"{column} ({n})" for n in range(1, parts.width + 1)]
    spread = with_columns_computed(table, parts)
    found = unpivot(spread, parts.columns, {c: c for c in parts.columns}, free_name(table, "number"), "answer")
    note = f"Each cell of {column!r} was read as several answers, of unknown annotators."
    return replace(found, notes=(*table.notes, note))


def _grid_columns(table: SourceTable) -> dict[str, str] | None:
    """Return the columns of a grid and the item of each: one question of a form, or numbers beside a voter."""
    questions: dict[str, dict[str, str]] = {}
    for column in table.columns:
        if (found := _BRACKETED.fullmatch(column)) is not None:
            questions.setdefault(found[1].strip(), {})[column] = found[2].strip()
    grids = [grid for grid in questions.values() if len(grid) > 1]
    if len(grids) == 1:
        return grids[0] if len(set(grids[0].values())) == len(grids[0]) else None
    roles = ("annotator", "time", "duration", "query", "weight")
    taken = {name for role in roles for tier in SYNONYMS[role] for name in tier}
    free = [c for c in table.columns if normalize_name(c) not in taken | NOT_ITEMS | GRID_ANNOTATORS]
    free = [c for c in free if normalize_name(c) not in _REMARKS or is_numeric(table, c)]
    if grids or len(free) < _MIN_LISTED or not table.rows:
        return None
    if _are_words_of_a_scale(table, free):
        named = _voter(table) or "timestamp" in map(normalize_name, table.columns)
        return {column: column for column in free} if named else None
    group = [column for column in free if is_numeric(table, column)]
    numbers = _numbers(table, group) if len(group) >= _MIN_LISTED and len(group) == len(free) else np.empty((0, 0))
    if not numbers.size or not _is_one_scale(numbers):
        return None
    # One row without a voter could be anything; many rows of one person are measurements or trials.
    unnamed = len(numbers) > 1 and (_are_ranks(numbers) or _is_form(table, numbers))
    return _without_question(group) if _has_a_row_each(table) or unnamed else None


def _without_question(group: Sequence[str]) -> dict[str, str]:
    """Return the items of columns such as rank_tea and rank_milk: what comes after the words that all begin with."""
    start = re.match(r"(?:rank|ranking|rate|rating|score|grade)(?:_of)?(?:[_:.-]| -)\s*", group[0], re.IGNORECASE)
    names = [column[start.end() :] for column in group] if start else []
    alike = start is not None and all(column.startswith(start[0]) for column in group) and all(names)
    return dict(zip(group, names if alike and len({*names}) == len(names) else group, strict=True))


def _has_a_row_each(table: SourceTable) -> bool:
    """Return whether a column names a voter in each row, and few voters twice."""
    who = _voter(table)
    cells = _labels(table, [who]) if who else None
    return cells is not None and cells[0].n_unique() >= _MOST_ROWS * table.rows


def _are_words_of_a_scale(table: SourceTable, columns: Sequence[str]) -> bool:
    """Return whether all cells are words of one scale, such as agree and disagree."""
    cells = _labels(table, columns)
    return cells is not None and is_scale_of_words({word for series in cells for word in series.drop_nulls().unique()})


def _is_form(table: SourceTable, numbers: FloatArray) -> bool:
    """Return whether the numbers are grades of a form that names nobody, but says when each row was sent."""
    seen = numbers[np.isfinite(numbers)]
    whole = bool((seen == np.floor(seen)).all())
    return "timestamp" in map(normalize_name, table.columns) and whole and float(seen.max()) <= _MAX_FORM_GRADE


def _voter(table: SourceTable) -> str:
    """Return the column that names the voter of each row of a grid."""
    who: dict[str, str] = {}
    matcher = RoleMatcher(table, {})
    tiers = (*SYNONYMS["annotator"], tuple(sorted(GRID_ANNOTATORS)))
    matcher.add(who, "annotator", tiers)
    return who.get("annotator", "")


def is_numeric(table: SourceTable, column: str) -> bool:
    """Return whether nearly all cells of a column are numbers."""
    series = table.load([column], None)[column]
    if series.dtype.is_nested() or series.dtype == pl.Object:
        return False
    cells = parse_labels(series, strip_spaces=True).drop_nulls()
    read = cells.str.contains(r"^[+-]?\d+(\.\d+)?$")
    return bool(len(cells)) and float(read.mean() or 0.0) >= _MOST_CELLS  # type: ignore[arg-type]


def _numbers(table: SourceTable, group: Sequence[str]) -> FloatArray:
    """Return the numbers at the beginning of cells, NaN for others."""
    frame = table.load(group, None)
    columns = [parse_labels(frame[c], strip_spaces=True).str.extract(_LEADING_NUMBER) for c in group]
    return np.column_stack([parse_numbers(column) for column in columns])


def _is_one_scale(numbers: FloatArray) -> bool:
    seen = numbers[np.isfinite(numbers)]
    return bool(seen.size) and bool((seen >= 0).all() and (seen <= _MAX_GRADE).all())


def _are_ranks(numbers: FloatArray) -> bool:
    """Return whether the numbers of most rows are 1, 2, 3 … in some order."""
    ordered = np.sort(numbers, axis=1)
    present = np.isfinite(ordered)
    expected = np.arange(1, numbers.shape[1] + 1)
    rows = ((ordered == expected) | ~present).all(axis=1) & (present.sum(axis=1) > 1)
    return bool(rows.mean() >= _MOST_ROWS) if len(rows) else False


def _without_totals(table: SourceTable) -> SourceTable:
    """Set the last rows aside if they are called total, mean and the like."""
    totals = np.zeros(table.rows, bool)
    start = max(table.rows - _MAX_TOTALS, 1)
    rows = table.load(table.columns, None).slice(start).rows()
    for n, row in reversed([*enumerate(rows, start)]):
        first = next((cell for cell in row if isinstance(cell, str) and cell.strip()), "")
        if first and normalize_name(first) not in _TOTALS:
            break
        totals[n] = bool(first)
    return replace(table, set_aside={**table.set_aside, "total": totals}) if totals.any() else table


def _grades(table: SourceTable, group: Sequence[str], names: Mapping[str, str]) -> SourceTable:
    table = _without_totals(table)
    item, grade = free_name(table, "item"), free_name(table, "grade")
    found = unpivot(table, group, names, item, grade)
    cells = found.load([grade], None)[grade]
    number = cells.str.extract(_LEADING_NUMBER)
    found = with_columns_computed(found, pl.DataFrame({grade: number.fill_null(cells)}))
    assert found.blank_rows is not None
    unanswered = missing_numbers(cells)
    unanswered[list(found.unreadable_rows)] = False
    found = replace(found, blank_rows=found.blank_rows | unanswered)
    who = _voter(table)
    if not who:
        who = free_name(found, "row")
        rows = pl.Series(who, _row_names(table)).gather(np.repeat(np.arange(table.rows), len(group)))
        found = with_columns_computed(found, rows.to_frame())
    note = f"Each row is an annotator, and its grades are in {list_names(group)}: larger is better."
    roles = {**table.roles, "annotator": who, "item": item, "grade": grade}
    return replace(found, roles=roles, notes=(*table.notes, note, *_if_ranks(group)))


def _row_names(table: SourceTable) -> list[str]:
    """Return the cells of a column without a name, as spreadsheets have it before the rows; else numbers."""
    if "" in table.columns and (cells := _labels(table, [""])) is not None:
        names = [name for name in cells[0].to_list() if name]
        if len({*names}) == table.rows:
            return names
    return [f"row {n}" for n in range(1, table.rows + 1)]


def _if_ranks(group: Sequence[str]) -> tuple[str, ...]:
    return (f"If 1 is the best, read the source with columns={{'rank': {','.join(group)!r}}}.",)


def _ranks(table: SourceTable, group: Sequence[str], names: Mapping[str, str]) -> SourceTable:
    order = free_name(table, "order")
    items = [pl.Series([names[column]] * table.rows, dtype=pl.String) for column in group]
    places = _places(table, items, _numbers(table, group), largest_first=False)
    note = f"Each row is a list, and the ranks of its items are in {list_names(group)}: 1 is the best."
    return with_order(table, order, places, note, _voter(table))


def _lists(table: SourceTable, items: Sequence[str], values: Sequence[str], value: str) -> SourceTable:
    frame = table.load(items, None)
    labels = [parse_labels(frame[column], strip_spaces=True) for column in items]
    places = _places(table, labels, _numbers(table, values), largest_first=value == "score")
    better = "larger" if value == "score" else "smaller"
    what = f"{list_names(items)} by {list_names(values)}"
    note = f"Each row is a list of {what}: {better} is better, negative is not ranked."
    return with_order(table, free_name(table, "order"), places, note, "")


def _places(table: SourceTable, items: Sequence[pl.Series], values: FloatArray, *, largest_first: bool) -> pl.Series:
    """Return the list of each row: places from best to worst, each a list of tied items."""
    long = pl.DataFrame(
        {
            "row": np.repeat(np.arange(table.rows), len(items)),
            "item": [label for row in zip(*(series.to_list() for series in items), strict=True) for label in row],
            "value": values.ravel() * (-1 if largest_first else 1),
            "ranked": (np.isfinite(values) & (values >= 0)).ravel(),
        },
        schema_overrides={"item": pl.String},
    ).filter(pl.col("ranked") & pl.col("item").is_not_null())
    places = long.group_by("row", "value").agg("item").sort("row", "value").group_by("row", maintain_order=True)
    every = pl.DataFrame({"row": np.arange(table.rows)})
    return every.join(places.agg("item"), on="row", how="left", maintain_order="left")["item"]


def with_order(table: SourceTable, order: str, places: pl.Series, note: str, who: str) -> SourceTable:
    """Add the column of orders, and say what it was made of; rows that rank nothing are set aside."""
    unranked: BoolArray = (places.list.len().fill_null(0) == 0).to_numpy()
    if table.blank_rows is not None:
        unranked = unranked & ~table.blank_rows
    roles = {**table.roles, "order": order} | ({"annotator": who} if who else {})
    return with_columns_computed(
        table,
        pl.DataFrame({order: places}),
        roles=roles,
        set_aside={**table.set_aside, "nothing ranked": unranked},
        notes=(*table.notes, note),
    )


def list_names(columns: Sequence[str]) -> str:
    """Return names for a message, the first and last of many."""
    names = [repr(column) for column in columns]
    return ", ".join(names) if len(names) <= _MIN_LISTED else f"{names[0]}, …, {names[-1]}"


# Rankings whose columns are places: 1st choice, 2nd choice …; and choices of the best (and worst) of a few items.

_ORDINALS = {word: n for n, word in enumerate("first second third fourth fifth sixth seventh eighth".split(), 1)}  # noqa: SIM905
_PLACE = re.compile(
    r"(?:(?:rank|choice|preference|pref|place|vote|option|pick)(\d+)|(\d+)(?:st|nd|rd|th)?"
    r"(?:choice|preference|pref|place|pick|rank)|(first|second|third|fourth|fifth|sixth|seventh|eighth)"
    r"(?:choice|preference|place|pick))"
)
_BARE_PLACE = re.compile(r"(?:.*\[)?(\d+)\]?")
# In a table of ballots, how many people gave each.
_BALLOT_COUNTS = frozenset(["count", "counts", "votes", "voters", "ballots", "frequency", "freq", "numvotes"])
_ORDINAL = re.compile(rf"\d+(?:st|nd|rd|th)|{'|'.join(_ORDINALS)}")
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
    # Columns that are called 1, 2, 3 or Q1[1], Q1[2], Q1[3] are places if the same items are in all of them.
    numbers = {column: found[1] for column in table.columns if (found := _BARE_PLACE.fullmatch(column)) is not None}
    bare = table.has_header and {"1", "2"} <= {*numbers.values()}
    for column in table.columns:
        if bare and column in numbers:
            if places.setdefault(int(numbers[column]), column) != column:
                return None
        elif (found := _place_of(column)) is not None:
            number = _ORDINALS[found[3]] if found[3] else int(found[1] or found[2])
            if places.setdefault(number, column) != column:
                return None
    if len(places) < 2 or sorted(places) != list(range(1, len(places) + 1)):
        return None
    if any(normalize_name(c) in _CHOSEN for c in table.columns if c not in places.values()):
        return None  # options, of which another column says which was chosen
    columns = [places[n] for n in sorted(places)]
    cells = _labels(table, columns)
    if cells is None or any(_are_numbers(series) for series in cells):
        return None
    if bare and (len(columns) < _MIN_LISTED or not _same_in_all(cells)):
        return None
    lists = [[[item] for item in row if item] for row in zip(*(series.to_list() for series in cells), strict=True)]
    note = f"Each row is a list, best first: {list_names(columns)}."
    ballots = with_order(table, free_name(table, "order"), _as_places(lists), note, "")
    count = _column(table, _BALLOT_COUNTS)
    if not count or not is_numeric(table, count) or not (_numbers(table, [count]) > 0).all():
        return ballots
    counted = f"{count!r} was read as how often each list was given."
    return replace(ballots, roles={**ballots.roles, "weight": count}, notes=(*ballots.notes, counted))


def _same_in_all(cells: Sequence[pl.Series]) -> bool:
    """Return whether columns hold the same items, and no row has one twice."""
    first, *others = ({*series.drop_nulls()} for series in cells)
    rows = [[item for item in row if item] for row in zip(*(series.to_list() for series in cells), strict=True)]
    return all(first & other for other in others) and all(len({*row}) == len(row) for row in rows)


def _place_of(column: str) -> re.Match[str] | None:
    """Return the place in a name such as 1st choice, or in the brackets of a form: How do you rank these? [First]."""
    if (asked := _BRACKETED.fullmatch(column)) is None:
        return _PLACE.fullmatch(normalize_name(column))
    place = _ORDINAL.match(normalize_name(asked[2]))
    return place and _PLACE.fullmatch(f"{place[0]}choice")


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


# Tables of totals: how often each side of a pair won, or the grades of an item by several annotators in one row.

_SIDE = "a|b|1|2|i|j|x|y|left|right|home|away"
_WINS = re.compile(rf"(?:wins?|count|votes|n)({_SIDE})|({_SIDE})(?:wins?|count|votes)")
_TICKED = re.compile(
    rf"(?:wins?|winner|won|better|preferred|chosen)({_SIDE})|({_SIDE})(?:wins?|winner|won|better|preferred|chosen)"
)
_FIRST = ("a", "1", "i", "x", "left", "home")
_DRAWN = frozenset(["ties", "tie", "draws", "draw", "drawn", "nties", "numties", "counttie", "tiecount"])
_RATER = re.compile(rf"(?:{'|'.join(ANNOTATOR_WORDS)}|participant|subject|subj|sub|user|student|obs)(?:id)?\d+")
# Abbreviations, which stand for annotators only where there are three or more.
_BRIEF_RATER = re.compile(r"[jr]\d+")
_MIN_RATERS = 2


def read_tallies(table: SourceTable, kind: str | None) -> SourceTable | None:
    """Return one row per side with its wins as the weight, or one row per grade; None if the columns are neither."""
    if kind in (None, "comparisons") and (found := _wins(table) or _ticked_sides(table)) is not None:
        return found
    return _raters(table, kind) if kind in (None, "ratings") else None


def _wins(table: SourceTable) -> SourceTable | None:
    sides: dict[str, str] = {}
    for column in table.columns:
        if (match := _WINS.fullmatch(normalize_name(column))) is not None:
            side = "left" if (match[1] or match[2]) in _FIRST else "right"
            if sides.setdefault(side, column) != column:
                return None
        elif normalize_name(column) in _DRAWN:
            sides.setdefault("tie", column)
    pair = _named_sides(table)
    group = [sides[side] for side in ("left", "right", "tie") if side in sides]
    if not {"left", "right"} <= sides.keys() or not pair or not all(is_numeric(table, column) for column in group):
        return None
    winner, weight = free_name(table, "winner"), free_name(table, "weight")
    names = {column: side for side, column in sides.items()}
    found = unpivot(table, group, names, winner, weight)
    never = np.nan_to_num(parse_numbers(found.load([weight], None)[weight]), nan=1.0) == 0
    note = f"{list_names(group)} were read as how often each side won{' or both tied' if 'tie' in sides else ''}."
    return replace(
        found,
        blank_rows=never if found.blank_rows is None else found.blank_rows | never,
        entries=0,
        part_of=np.repeat(np.arange(table.rows), len(group)),
        roles={**table.roles, **pair, "winner": winner, "weight": weight},
        notes=(*table.notes, note),
    )


def _ticked_sides(table: SourceTable) -> SourceTable | None:
    """Return the winner of each row if two columns say for each side whether it won: a_wins, b_wins."""
    sides: dict[str, str] = {}
    for column in table.columns:
        if (match := _TICKED.fullmatch(normalize_name(column))) is not None:
            sides.setdefault("left" if (match[1] or match[2]) in _FIRST else "right", column)
    cells = _labels(table, [sides["left"], sides["right"]]) if len(sides) == 2 and _named_sides(table) else None
    if cells is None or any(not {*c.drop_nulls().str.to_lowercase()} <= {"true", "false"} for c in cells):
        return None
    won = [(c.str.to_lowercase() == "true").fill_null(False) for c in cells]
    words = pl.when(won[0] & ~won[1]).then(pl.lit("left")).when(won[1] & ~won[0]).then(pl.lit("right"))
    winner = free_name(table, "winner")
    note = f"{sides['left']!r} and {sides['right']!r} say who won; neither or both is a tie."
    said = pl.select(words.otherwise(pl.lit("tie")).alias(winner))
    return with_columns_computed(table, said, roles={**table.roles, "winner": winner}, notes=(*table.notes, note))


_GAMES = re.compile(r"[01½=]+")
_POINTS = {"0": 0.0, "1": 1.0, "½": 0.5, "=": 0.5}


def read_crosstable(table: SourceTable) -> SourceTable | None:
    """Return one row per game of a tournament's crosstable: row n, column m is what player n scored against m."""
    if not _MIN_LISTED <= table.rows <= _MAX_PLAYERS or (found := _players(table)) is None:
        return None
    columns, players = found
    cells = table.load(columns, None)
    scores = [
        [_scores_of(text) for text in parse_labels(cells[column], strip_spaces=True).to_list()] for column in columns
    ]
    # Both players' rows hold each game.
    games = [
        (row, column, score)
        for column in range(len(columns))
        for row in range(column)
        for score, other in zip(scores[column][row], scores[row][column], strict=False)
        if score + other == 1
    ]
    if 2 * len(games) < _MOST_CELLS * sum(len(games) for row in scores for games in row) or not games:
        return None
    words = {0.0: "right", 0.5: "tie", 1.0: "left"}
    frame = pl.DataFrame(
        {
            "left": [players[row] for row, _, _ in games],
            "right": [players[column] for _, column, _ in games],
            "winner": [words[score] for _, _, score in games],
        }
    )
    note = f"The table was read as the results of {len(games):,} games between the {len(players)} players of its rows."
    return replace(
        table_from_frame(frame, table.name),
        unit=table.unit,
        locate=lambda rows: table.locate([games[row][0] for row in rows]),
        notes=(*table.notes, note),
        roles={"left": "left", "right": "right", "winner": "winner"},
        positions_known=False,
        frame_backend=table.frame_backend,
        entries=table.rows,
    )


def _players(table: SourceTable) -> tuple[list[str], list[str]] | None:
    """Return the columns of opponents, numbered or named as the rows are, and the names of the players in the rows."""
    numbers = [str(n) for n in range(1, table.rows + 1)]
    numbered = set(numbers) <= {*table.columns}
    for column in table.columns:
        if normalize_name(column) in NOT_ITEMS - {""} or (numbered and column in numbers):
            continue
        labels = _labels(table, [column])
        names = [] if labels is None else [name or "" for name in labels[0].to_list()]
        if "" in names or len({*names}) < table.rows or labels is None or _are_numbers(labels[0]):
            continue
        if numbered or {*names} <= {*table.columns}:
            return (numbers if numbered else names), names
    return None


def _scores_of(text: str | None) -> list[float]:
    """Return the points of each game of a cell such as 1, ½ or 1½0; none for the player's own cell."""
    text = {"0.5": "½", ".5": "½", "1/2": "½"}.get(text or "", text or "")
    return [_POINTS[sign] for sign in text] if _GAMES.fullmatch(text) else []


def _named_sides(table: SourceTable) -> dict[str, str] | None:
    with suppress(CrowdrankError):
        return RoleMatcher(table, {}).pair(("left", "right"))
    return {}


def _raters(table: SourceTable, kind: str | None) -> SourceTable | None:
    if _named_sides(table) is not None:  # answers to comparisons, not grades
        return None
    group = [column for column in table.columns if _RATER.fullmatch(normalize_name(column))]
    if not group:
        group = [column for column in table.columns if _BRIEF_RATER.fullmatch(normalize_name(column))]
        group = group if len(group) >= _MIN_LISTED else []
    item = _item_column(table, [column for column in table.columns if column not in group])
    if len(group) < _MIN_RATERS or not item or not all(is_numeric(table, column) for column in group):
        return None
    numbers = _numbers(table, group)
    if kind is None and len(numbers) >= _MIN_LISTED and _are_ranks(numbers.T):
        return _ranks_of_items(table, group, item)
    return _grades_of_items(table, group, item)


def _ranks_of_items(table: SourceTable, group: Sequence[str], item: str) -> SourceTable:
    """Return one row per rank of a table with items in rows and the ranks of each annotator in a column."""
    who, rank = free_name(table, "annotator"), free_name(table, "rank")
    note = f"Each row is an item, and its ranks by {len(group)} annotators are in {list_names(group)}: 1 is the best."
    found = unpivot(table, group, {column: column for column in group}, who, rank)
    roles = {**table.roles, "item": item, "annotator": who, "rank": rank}
    return replace(found, roles=roles, notes=(*table.notes, note))


def _grades_of_items(table: SourceTable, group: Sequence[str], item: str) -> SourceTable:
    """Return one row per grade of a table with items in rows and annotators in columns."""
    table = _without_totals(table)
    who, grade = free_name(table, "annotator"), free_name(table, "grade")
    note = (
        f"Each row is an item, and its grades by {len(group)} annotators are in {list_names(group)}: larger is better."
    )
    found = unpivot(table, group, {column: column for column in group}, who, grade)
    roles = {**table.roles, "item": item, "annotator": who, "grade": grade}
    return replace(found, roles=roles, notes=(*table.notes, note))


def _item_column(table: SourceTable, columns: Sequence[str]) -> str:
    """Return the column that names the item of each row: known by its name, or the only one with a value per row."""
    if not table.rows:
        return ""
    named = {normalize_name(column): column for column in columns}
    found = [named[name] for word in ITEM_WORDS for name in (f"{word}name", word, f"{word}id") if name in named]
    if found or "name" in named:
        return found[0] if found else named["name"]
    columns = [column for column in columns if normalize_name(column) not in NOT_ITEMS - {""}]
    cells = table.load(columns, None) if columns else pl.DataFrame()
    plain = [c for c in columns if not _holds_objects(cells[c]) and cells[c].n_unique() == table.rows]
    return plain[0] if len(plain) == 1 else ""


def _holds_objects(column: pl.Series) -> bool:
    return column.dtype.is_nested() or column.dtype == pl.Object


# Two items in one text: the question of a form (Which is nicer, tea or milk?), or a cell such as "tea vs milk".

_VERSUS = re.compile(r"\s*(?P<left>\S.*?)\s+(?:vs\.?|versus|v\.)\s+(?P<right>.*\S)\s*", re.IGNORECASE)
_MOST_ANSWERS = 6


def read_pairs_in_text(table: SourceTable) -> SourceTable | None:
    """Return one comparison per answer if columns are questions about two items, or if a column says who met."""
    if not table.rows or _named_sides(table) is not None:
        return None
    return _questions(table) or _met(table)


def _questions(table: SourceTable) -> SourceTable | None:
    """Return one row per answer if two or more columns are questions that name both items of their answers."""
    answers: dict[str, set[str]] = {}
    for column in table.columns:
        cells = _labels(table, [column])
        given = set() if cells is None else {*cells[0].drop_nulls().unique().head(_MOST_ANSWERS).to_list()}
        named = {word for word in given if not is_outcome_word(word)}
        if 0 < len(named) <= 2 and len(given) < _MOST_ANSWERS and all(_says(column, word) for word in named):
            answers[column] = named
    every = {item for items in answers.values() for item in items}
    pairs = {column: _two_of(column, every) for column in answers}
    group = [column for column, pair in pairs.items() if len(pair) == 2 and answers[column] <= {*pair}]
    if len(group) < 2:
        return None
    question, answer, who = (free_name(table, name) for name in ("question", "answer", "row"))
    found = unpivot(table, group, {column: column for column in group}, question, answer)
    asked = found.load([question], None)[question].to_list()
    computed = {side: [pairs[column][n] for column in asked] for n, side in enumerate(("left", "right"))}
    if not (voter := _voter(table)):
        voter, computed[who] = who, [name for name in _row_names(table) for _ in group]
    found = with_columns_computed(found, pl.DataFrame(computed))
    note = f"Each row is an annotator, and {list_names(group)} are questions about two items each."
    roles = {**table.roles, "annotator": voter, "left": "left", "right": "right", "winner": answer}
    return replace(found, roles=roles, positions_known=False, notes=(*table.notes, note))


def _says(question: str, item: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(item)}(?!\w)", question, re.IGNORECASE) is not None


def _two_of(question: str, items: set[str]) -> list[str]:
    """Return the items that a question names, in its order; New York is not York."""
    longest_first = sorted(items, key=len, reverse=True)
    pattern = "|".join(rf"(?<!\w){re.escape(item)}(?!\w)" for item in longest_first)
    by_name = {item.casefold(): item for item in items}
    return list(dict.fromkeys(by_name.get(found.casefold(), found) for found in re.findall(pattern, question, re.I)))


def _met(table: SourceTable) -> SourceTable | None:
    """Return the two sides of a column whose cells are all such as "tea vs milk"."""
    for column in table.columns:
        cells = _labels(table, [column])
        texts = [] if cells is None else [text for text in cells[0].to_list() if text]
        if texts and all(_VERSUS.fullmatch(text) for text in texts):
            parsed = [_VERSUS.fullmatch(text or "") for text in cells[0].to_list()]  # type: ignore[index]
            sides = {side: [match and match[side] for match in parsed] for side in ("left", "right")}
            frame = pl.DataFrame(sides, schema=dict.fromkeys(sides, pl.String))
            note = f"The cells of {column!r} were read as the two sides of a comparison."
            roles = {**table.roles, "left": "left", "right": "right"}
            return with_columns_computed(table, frame, roles=roles, notes=(*table.notes, note))
    return None
