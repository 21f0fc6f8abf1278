"""Guess the roles of columns from their cells, when their names do not say enough.

A guess is used on its own only where the cells leave no doubt and the source has no names (two columns of the same
items, a last column that repeats one of them, or lists such as a>b>c). Otherwise it is shown to the user as a
suggestion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import polars as pl

from crowdrank.data import LEFT, RIGHT
from crowdrank.errors import CrowdrankError
from crowdrank.io.builders import UNKNOWN, is_scale_of_words, parse_outcomes
from crowdrank.io.column_roles import (
    CODE_MEANINGS,
    JOIN,
    NAMES_BY_ROLE,
    NOT_ITEMS,
    SYNONYMS,
    TEXT_WORDS,
    named_sides,
    normalize_name,
    stored_columns,
)
from crowdrank.io.rows import missing_numbers, parse_labels, parse_numbers, parse_timestamps
from crowdrank.io.source_table import SourceTable

_SAMPLE_ROWS = 2_000
_MAX_COLUMNS, _MAX_UNNAMED = 60, 5
# Shares: of common values in two columns of items, of rows that a winner explains.
_OVERLAP, _MOST = 0.3, 0.8
# The smallest share of rows that each side of a guessed winner wins.
_FEWEST = 0.1
_WINNER_NAMES = frozenset(name for tier in SYNONYMS["winner"] for name in tier)
_GRADE_NAMES = frozenset(name for tier in SYNONYMS["grade"] for name in tier)
_LONG_TEXT, _LONG_START = 80, 12
_QUESTIONS = frozenset(["prompt", "question", "instruction", "input", "query", "promptid", "questionid"])
# 1979 in seconds since 1970; numbers of items and grades are smaller.
_FIRST_SECOND = 3e8
_OPTIONAL = ("annotator", "query", "weight", "time", "duration")
_NUMBERED = re.compile(r"[^\d]\d$|[ _.-][abAB]$")
# Names of numbers that describe an item and are no part of its name, and of counts, which are not scores.
_NOT_PARTS = re.compile(
    r"score|rating|elo|prefer|rank|odds|pts|points|lat|lon|length|len|time|created|date|price|votes|result|outcome",
    re.IGNORECASE,
)
_RESULTS = re.compile(r"result|outcome|winner", re.IGNORECASE)
_COUNTS = re.compile(r"wins?|losses|count|num|votes", re.IGNORECASE)
# Numbers of both sides that were known before they met.
_BEFOREHAND = re.compile(r"rating|elo|rank|seed|odds|prob|age|height|weight|len|tokens", re.IGNORECASE)
# Columns in which 0 is the first of two buttons; in others 1 says yes to the first.
_CHOSEN = re.compile(r"response|choice|chosen|button|selected|pick|index|preferred", re.IGNORECASE)
_MOST_CODES, _MAX_GRADE, _MAX_POINTS, _MIN_NAMED, _MIN_NUMBERED = 11, 10, 100, 3, 5
# Columns in which 1 to 5 may go from the first side to the second, and the usual lengths of such scales.
_SCALE = re.compile(
    r"prefer|choice|choose|scale|slider|likert|better|comparison|rating|score|judg|answer|response|label|vote",
    re.IGNORECASE,
)
_SCALE_SIZES = (4, 5, 6, 7, 8, 9, 10)
_RANK = re.compile(r"rank|place|position", re.IGNORECASE)
_BEATS = frozenset(["beats", "beat", "defeats", "defeated", "def", "def.", "d.", "over", "won", ">"])
# Keys on both sides of the keyboard, as experiments use them.
_KEYS = ("fj", "zm", "qp", "sk", "dk", "al", "ei", "sl")
_SIDED = re.compile(r"(.*?)[ _.-]?([12]|[ab]|left|right|first|second)", re.IGNORECASE)
_SIDE_FIRST = re.compile(r"(home|left|white)([ _.-]?.+)", re.IGNORECASE)
_SECOND = {"1": "2", "a": "b", "left": "right", "first": "second", "home": "away", "white": "black"}
# Also words for player 1 and player 2, but in a column of its own more often a participant.
_PARTICIPANT = re.compile(r"p\d+", re.IGNORECASE)
_JUDGE = re.compile(r"(j|r|judge|rater|reviewer|grader)[ _.-]?\d+", re.IGNORECASE)
_WORKER = re.compile(r"(w|worker|judge|user|u|annotator|rater|turker|obs|observer)[_-]?\d+", re.IGNORECASE)


@dataclass(frozen=True)
class ColumnSample:
    """The first cells of a column, as text."""

    name: str
    cells: pl.Series

    @cached_property
    def values(self) -> frozenset[str]:
        return frozenset(self.cells.drop_nulls().to_list())

    @cached_property
    def present(self) -> int:
        return len(self.cells) - self.cells.null_count()

    @cached_property
    def numeric(self) -> bool:
        return bool(self.present) and int(np.isfinite(parse_numbers(self.cells)).sum()) == self.present

    @cached_property
    def fractional(self) -> bool:
        """Whether the cells are numbers with fractions, which name nothing."""
        return self.numeric and bool((parse_numbers(self.cells) % 1 > 0).any())

    @property
    def one_each(self) -> bool:
        """Whether every row has a value of its own, as an id has."""
        return self.present > 2 and len(self.values) == self.present

    @property
    def long(self) -> bool:
        return float(self.cells.str.len_chars().mean() or 0.0) > _LONG_TEXT  # type: ignore[arg-type]

    @property
    def clock(self) -> bool:
        """Whether the cells are seconds or milliseconds since 1970."""
        return self.numeric and bool(np.nanmin(parse_numbers(self.cells)) > _FIRST_SECOND)

    def describe(self) -> str:
        """Return in a few words what the cells look like."""
        if not self.present:
            return "empty"
        if self.numeric:
            if self.clock:
                return "times"
            numbers = parse_numbers(self.cells)
            low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
            return f"numbers from {low:.10g} to {high:.10g}" if low < high else f"always {low:.10g}"
        if len(self.values) == 1:
            return "the same in every row"
        if np.isfinite(parse_timestamps(self.cells)).sum() == self.present:
            return "times"
        if self.long:
            return "long text"
        return "different in every row" if self.one_each else f"{len(self.values):,} different values"


def sample_columns(table: SourceTable) -> list[ColumnSample]:
    """Return the first cells of the columns that hold one value per row."""
    found = []
    for column in table.columns[:_MAX_COLUMNS]:
        cells = table.load([column], _SAMPLE_ROWS)[column]
        if table.blank_rows is not None:
            cells = cells.filter(~table.blank_rows[: len(cells)])
        if cells.dtype.is_nested() or cells.dtype == pl.Object:
            continue
        try:
            found.append(ColumnSample(column, parse_labels(cells, strip_spaces=True).alias("cell")))
        except CrowdrankError:
            continue
    return found


def guess_unnamed(table: SourceTable) -> Mapping[str, str]:
    """Return the roles of columns without names, if the cells leave no doubt; else nothing."""
    columns = sample_columns(table)
    if len(columns) != len(table.columns) or not 1 <= len(columns) <= 4:
        return {}
    if len(columns) == 1:
        return {"order": columns[0].name} if columns[0].cells.str.contains(">").all() else {}
    if len(columns) == 2:
        if columns[1].cells.str.contains(" > ", literal=True).all():
            return {"annotator": columns[0].name, "order": columns[1].name}
        return {"winner": columns[0].name, "loser": columns[1].name} if _same_items(*columns) else {}
    if len(columns) == 3:  # ann beats bob, or ann 3-1 bob
        left, between, right = columns
        if {word.casefold() for word in between.values} <= _BEATS and _same_items(left, right):
            return {"winner": left.name, "loser": right.name}
        if between.cells.str.contains(r"^\d+\s*[-–:]\s*\d+$").all() and not (left.numeric or right.numeric):
            return {"left": left.name, "winner": between.name, "right": right.name}
    left, right, winner = columns[-3:]
    if not _same_items(left, right) or winner.values > left.values | right.values:
        return {}
    named = ((winner.cells == left.cells) | (winner.cells == right.cells)).fill_null(False)
    if float(named.mean() or 0.0) < _MOST:  # type: ignore[arg-type]
        return {}
    roles = {"left": left.name, "right": right.name, "winner": winner.name}
    return roles | ({"annotator": columns[0].name} if len(columns) == 4 else {})


def suggest_roles(table: SourceTable) -> list[dict[str, str]]:
    """Return suggestions for `columns`, the most likely first; the caller tries whether they work."""
    columns = [column for column in sample_columns(table) if column.present]
    if not table.has_header and len(columns) > _MAX_UNNAMED and all(column.numeric for column in columns):
        return []  # a matrix of numbers
    by_name = {column.name: column for column in columns}
    suggestions = [*_find_ranks(table, columns), *_find_givers(columns)]
    found = _find_sides(table, columns, by_name)
    for sides in found:
        used = {part for side in sides for part in side.split(JOIN)}
        rest = [column for column in columns if column.name not in used]
        base = dict(zip(("left", "right"), sides, strict=True))
        suggestions += [base | {"winner": pattern} for pattern in _find_several_winners(rest)]
        winners = _find_winners(by_name, sides, rest)
        named = [winner for winner in winners if normalize_name(winner.partition(":")[0]) in _WINNER_NAMES]
        suggestions += [base | {"winner": winner} for winner in named]
        # Scores before columns that only look like winners: the country of a match is often that of the home team.
        suggestions += [base | scores for scores in _find_scores(rest)]
        suggestions += [base | {"winner": winner} for winner in winners if winner not in named]
        # Other columns may say who won in a way that is not understood, so only two columns are winner and loser.
        plain = not any(JOIN in side or _NUMBERED.search(side) for side in sides)
        if all(_is_optional(column.name) for column in rest) and plain:
            suggestions.append({"winner": sides[0], "loser": sides[1]})
    if not any(_are_sides(table, *sides, by_name) for sides in found):
        suggestions += _find_ratings(table, columns)
    suggestions += [{"order": column.name} for column in columns if _holds_lists(column)]
    if not found:
        suggestions += [{"order": c.name} for c in columns if c.cells.drop_nulls().str.contains(r"[^>]>[^>]").all()]
    return [_with_optional(table, roles, columns) for roles in suggestions]


def _are_sides(table: SourceTable, left: str, right: str, by_name: Mapping[str, ColumnSample]) -> bool:
    """Return whether two columns are certainly the sides of a comparison, by their names or the same words in both."""
    if {"left": left, "right": right} == named_sides(table):
        return True
    first, second = by_name.get(left), by_name.get(right)
    return first is not None and second is not None and not first.numeric and _same_items(first, second)


def _is_optional(name: str) -> bool:
    """Return whether a column is known by its name to be beside the point: who, when, or which query."""
    return any(normalize_name(name) in tier for role in _OPTIONAL for tier in SYNONYMS[role])


def _names_annotator(name: str) -> bool:
    return any(normalize_name(name) in tier for tier in SYNONYMS["annotator"])


def _same_items(first: ColumnSample, second: ColumnSample) -> bool:
    """Return whether two columns hold the same items, and never the same item in one row."""
    common = len(first.values & second.values)
    fewest = min(len(first.values), len(second.values))
    equal = int((first.cells == second.cells).sum() or 0)
    if first.numeric and second.numeric and 2 * common < max(len(first.values), len(second.values)):
        return False
    return fewest > 1 and common >= max(_OVERLAP * fewest, 1) and 10 * equal <= first.present


def _find_sides(
    table: SourceTable, columns: Sequence[ColumnSample], by_name: Mapping[str, ColumnSample]
) -> list[tuple[str, str]]:
    """Return pairs of columns that could be left and right: by name, by numbered names, and by common values."""
    found: dict[tuple[str, str], None] = {}
    named = named_sides(table)
    if named and by_name.keys() >= {*named.values()}:
        found[(named["left"], named["right"])] = None
    paired = [(a.name, b) for a in columns if (b := _other_side(a.name)) in by_name]
    # Numbers that describe an item, and codes of three annotators or more, are no part of its name.
    paired = [
        (first, second)
        for first, second in paired
        if not _RESULTS.search(first)
        and not (by_name[first].numeric and (_NOT_PARTS.search(first) or _in_series(first, by_name)))
    ]
    if paired:
        firsts, seconds = zip(*paired, strict=True)
        found[(JOIN.join(firsts), JOIN.join(seconds))] = None
    # A column that is known as something else, such as the item or the query, is no side.
    free = [column for column in columns if not _has_another_role(column.name)]
    alike = [
        (a, b)
        for n, a in enumerate(free)
        for b in free[n + 1 :]
        if not a.long and _same_items(a, b) and not {normalize_name(a.name), normalize_name(b.name)} & NOT_ITEMS
        if not (a.numeric and b.numeric and (_in_series(a.name, by_name) or _in_series(b.name, by_name)))
    ]
    # Names before numbers, then the pair with most common values.
    alike.sort(key=lambda pair: (pair[0].numeric, -len(pair[0].values & pair[1].values)))
    found |= dict.fromkeys((a.name, b.name) for a, b in alike[:3])
    return list(found)


def _has_another_role(name: str) -> bool:
    """Return whether a column is known by its name, and not as a side or a winner."""
    short = normalize_name(name)
    roles = {role for role, tiers in NAMES_BY_ROLE.items() if any(short in tier for tier in tiers)}
    return bool(roles & {"item", *_OPTIONAL}) and not roles & {"left", "right", "winner", "loser"}


def _in_series(name: str, by_name: Mapping[str, ColumnSample]) -> bool:
    """Return whether a column is one of three or more of numbers: J1, J2, J3."""
    stem = name.rstrip("0123456789")
    return stem not in ("", name) and all(f"{stem}{n}" in by_name and by_name[f"{stem}{n}"].numeric for n in (1, 2, 3))


def _other_side(name: str) -> str:
    """Return the column of the second side for one of the first: type2 for type1."""
    if (match := _SIDE_FIRST.fullmatch(name)) is not None:
        second = _SECOND[match[1].lower()]
        return (second.capitalize() if match[1][0].isupper() else second) + match[2]
    match = _SIDED.fullmatch(name)
    if match is None or not match[1] or match[2].lower() not in _SECOND:
        return ""
    second = _SECOND[match[2].lower()]
    return name[: match.start(2)] + (second.upper() if match[2].isupper() else second)


def _find_winners(
    by_name: Mapping[str, ColumnSample], sides: tuple[str, str], rest: Sequence[ColumnSample]
) -> list[str]:
    left, right = (_joined([by_name[part].cells for part in side.split(JOIN)]) for side in sides)
    found = []
    for column in rest:
        if all(map(_PARTICIPANT.fullmatch, column.values)) and not column.values <= {*sides}:
            continue
        # The second of two columns says who lost: black_result, b_wins.
        if _is_optional(column.name) or any(_other_side(name) == column.name for name in by_name):
            continue
        if _BEFOREHAND.search(column.name) and _other_side(column.name) in by_name:
            continue
        if keys := next((pair for pair in _KEYS if {*pair} == column.values), ""):
            found.append((-1.0, f"{column.name}:{keys[0]}=left,{keys[1]}=right"))
            continue
        outcome, _, unclear = parse_outcomes(left, right, column.cells, sides)
        known = float((outcome[column.cells.is_not_null().to_numpy()] != UNKNOWN).mean()) if column.present else 0.0
        if known >= _MOST and min((outcome == LEFT).mean(), (outcome == RIGHT).mean()) >= _FEWEST:
            found.append((-known, column.name))
        elif column.cells.str.contains(r"^-?[01](\s*,\s*-?[01])+$").mean() == 1:
            found.append((-2.0, f"{column.name}:1=left,0=tie,-1=right"))
        elif len(column.values) in (2, 3) and column.values <= {"0", "1", "2", "3"}:
            found.append((0.0, f"{column.name}:{_code_meanings(sorted(column.values), column.name, sides)}"))
        elif 2 < len(unclear) <= _MOST_CODES and {-float(code) for code in unclear} == {float(c) for c in unclear}:
            signs = {code: "left" if float(code) > 0 else "right" if float(code) < 0 else "tie" for code in unclear}
            found.append((0.0, f"{column.name}:{','.join(f'{code}={word}' for code, word in signs.items())}"))
        elif scale := _scale_meanings(column.name, unclear):
            found.append((0.0, f"{column.name}:{scale}"))
    return [name for _, name in sorted(found)]


def _scale_meanings(name: str, codes: Sequence[str]) -> str:
    """Return the meanings of a scale such as 1 to 5, from much better to much worse; "" if the codes are none."""
    numbers = [float(code) for code in codes]
    if len(numbers) < 3 or not _SCALE.search(name) or numbers[0] != 1 or not all(n.is_integer() for n in numbers):
        return ""
    most = next((size for size in _SCALE_SIZES if size >= numbers[-1]), 0)
    middle = (1 + most) / 2
    words = ["left" if number < middle else "right" if number > middle else "tie" for number in numbers]
    return ",".join(f"{code}={word}" for code, word in zip(codes, words, strict=True)) if most else ""


def _find_several_winners(rest: Sequence[ColumnSample]) -> list[str]:
    """Return patterns of three or more numbered columns of codes, such as human1, human2, human3."""
    groups: dict[str, list[ColumnSample]] = {}
    for column in rest:
        if (numbered := re.fullmatch(r"(.*\D)\d+", column.name)) is not None:
            groups.setdefault(numbered[1], []).append(column)
    found = []
    for start, group in groups.items():
        values = frozenset().union(*(column.values for column in group))
        if len(group) > 2 and len(values) > 1 and values <= {"0", "1", "2"}:
            codes = "" if len(values) > 2 else f":{_code_meanings(sorted(values), start)}"
            found.append(f"{start}*{codes}")
    return found


def _joined(parts: Sequence[pl.Series]) -> pl.Series:
    return parts[0] if len(parts) == 1 else pl.select(pl.concat_str(parts, separator=JOIN)).to_series().alias("cell")


def _code_meanings(codes: Sequence[str], column: str, sides: tuple[str, str] = ("", "")) -> str:
    second = ("left", "right") if _CHOSEN.search(column) or _is_about_second(column, sides) else ("right", "left")
    words = second if len(codes) == 2 else ("left", "right", "tie")
    return ",".join(f"{code}={word}" for code, word in zip(codes, words, strict=True))


def _is_about_second(column: str, sides: tuple[str, str]) -> bool:
    """Return whether a column such as away_win, or bResult for red and blue, says whether the second side won."""
    words = [{word.casefold() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", side)} for side in sides]
    said = [word.casefold() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", column)]
    first, second = words[0] - words[1], words[1] - words[0]
    if not said or not first or not second:
        return False
    initials = [{word[0] for word in own} for own in (first, second)]
    return said[0] in second or (said[0] in initials[1] and said[0] not in initials[0] and len(said) > 1)


def _find_scores(rest: Sequence[ColumnSample]) -> list[dict[str, str]]:
    by_name = {column.name: column for column in rest}
    numeric = {c.name for c in rest if c.numeric and not c.one_each}
    numeric = {name for name in numeric if not _COUNTS.search(name) and not _BEFOREHAND.search(name)}
    numeric = {name for name in numeric if not _in_series(name, by_name)}
    pairs = [(name, other) for name in sorted(numeric) if (other := _other_side(name)) in numeric]
    return [{"left_score": a, "right_score": b} for a, b in pairs[:1]]


def _find_ranks(table: SourceTable, columns: Sequence[ColumnSample]) -> list[dict[str, str]]:
    """Return the roles of places in races: a list and a rank that are known by their names, and the other label."""
    by_role = {
        role: [c for tier in SYNONYMS[role] for name in tier for c in columns if normalize_name(c.name) == name]
        for role in ("list", "rank")
    }
    if not by_role["list"] or not by_role["rank"]:
        return []
    races, place = by_role["list"][0], by_role["rank"][0]
    labels = [c for c in columns if not (c.numeric or c.one_each or c.long) and c not in (races, place)]
    items = [c for c in labels if len(c.values) > 1 and not _repeats_within(races, c)]
    return [{"list": races.name, "item": items[0].name, "rank": place.name}] if items else []


def _repeats_within(lists: ColumnSample, items: ColumnSample) -> bool:
    pairs = [*zip(lists.cells.to_list(), items.cells.to_list(), strict=True)]
    return len({*pairs}) < len(pairs)


def _find_givers(columns: Sequence[ColumnSample]) -> list[dict[str, str]]:
    """Return the roles of votes that are sent: from_country, to_country and points."""
    senders = [c for c in columns if re.match("from|voter|giver|sender", c.name, re.IGNORECASE)]
    takers = [c for c in columns if re.match("to|for|receiver|recipient|target", c.name, re.IGNORECASE)]
    pairs = [(a, b) for a in senders for b in takers if not a.numeric and a is not b and a.values & b.values]
    grades = [c for c in columns if c.numeric and normalize_name(c.name) in _GRADE_NAMES]
    return [{"annotator": a.name, "item": b.name, "grade": grades[0].name} for a, b in pairs[:1] if grades]


def _find_ratings(table: SourceTable, columns: Sequence[ColumnSample]) -> list[dict[str, str]]:
    """Return the roles of a table with a label and a number for each: annotator, item and grade."""
    if not table.has_header and len(columns) == 4 and columns[3].clock and columns[2].numeric:
        # A time at the end tells the usual order: user, item, rating, time.
        return [dict(zip(("annotator", "item", "grade"), (c.name for c in columns), strict=False))]
    labels = [c for c in columns if not c.one_each and not c.long and len(c.values) > 1 and not _COUNTS.search(c.name)]
    names = {column.name for column in columns}
    sided = {name for first in names if (second := _other_side(first)) in names for name in (first, second)}
    labels = [c for c in labels if not c.clock and c.name not in sided]
    if table.has_header and (several := _grades_by_column(table, columns) or _grades_of_a_person(columns)):
        return [several]
    if table.has_header and (
        texts := _graded_texts(columns) or _grades_in_series(columns) or _grades_by_question(columns)
    ):
        return [texts]
    grades = [c for c in labels if (c.numeric and len(c.values) <= 101) or _is_scale(c)]
    grades = [c for c in grades if not any(normalize_name(c.name) in tier for tier in SYNONYMS["list"])]
    # A number that goes with another column one to one is its number, not a grade: document 7 is doc7.
    grades = [c for c in grades if not any(_go_together(c, other) for other in labels if other is not c)]
    # Where there is a column such as `vote` or `chosen`, no other number says what people thought.
    choices = [c for c in labels if normalize_name(c.name) in _WINNER_NAMES - _GRADE_NAMES]
    grades = [c for c in grades if c in choices] if choices else grades
    if not grades or len(labels) < 2:
        return []
    if table.has_header and all(_is_optional(c.name) for c in labels if c not in grades):
        return []
    grade = next((c for c in grades if len(c.values) == min(len(g.values) for g in grades)), grades[0])
    value = "rank" if _RANK.search(grade.name) else "grade"
    others = [
        c
        for c in labels
        if c is not grade and not c.fractional and (not _is_optional(c.name) or _names_annotator(c.name))
    ]
    if (item := _item_by_name(table)) and any(c.name == item for c in columns if len(c.values) > 1):
        who = next((c.name for c in others if _names_annotator(c.name)), "")
        return [({"annotator": who} if who else {}) | {"item": item, value: grade.name}]
    if not others:
        return []
    if (known := [c for c in others if _names_annotator(c.name)]) and len(others) > 2:
        rest = [c for c in others if c not in known]
        others = [known[0], next((c for c in rest if not c.numeric), rest[0])] if rest else others
    others = others[:2]
    # Workers have names such as w17; else there are usually fewer of them than of items.
    others.sort(key=lambda c: (not _is_optional(c.name), not any(map(_WORKER.fullmatch, c.values)), len(c.values)))
    giver = "list" if value == "rank" and not _names_annotator(others[0].name) else "annotator"
    roles = dict(zip((giver, "item") if len(others) == 2 else ("item",), (c.name for c in others), strict=True))
    return [roles | {value: grade.name}]


def _graded_texts(columns: Sequence[ColumnSample]) -> dict[str, str]:
    """Return the roles of texts that are graded once each, such as the responses to a prompt: item, query and grade."""
    texts = [c for c in columns if (c.one_each or c.long) and not c.numeric and normalize_name(c.name) in TEXT_WORDS]
    grades = [c for c in columns if c.numeric and not c.clock and not c.one_each and len(c.values) > 1]
    if len(texts) != 1 or not grades:
        return {}
    asked = [c.name for c in columns if normalize_name(c.name) in _QUESTIONS and not c.one_each and not c.numeric]
    named = [c for c in grades if normalize_name(c.name) in _GRADE_NAMES]
    found = {"item": texts[0].name, "grade": (named or grades)[0].name}
    return found | ({"query": asked[0]} if asked else {})


def _grades_by_question(columns: Sequence[ColumnSample]) -> dict[str, str]:
    """Return a pattern of questions that begin alike and are answered by numbers: How do you like the food of …."""
    for first in columns:
        start = first.name[: first.name.rfind(" ") + 1]
        group = [c for c in columns if len(start) >= _LONG_START and c.name.startswith(start)]
        if len(group) >= _MIN_NAMED and "*" not in start and "," not in start and all(map(_is_graded, group)):
            return {"grade": f"{start}*"}
    return {}


def _is_graded(column: ColumnSample) -> bool:
    """Return whether the cells are whole numbers on a short scale, or say that there is none."""
    numbers = parse_numbers(column.cells)
    seen = numbers[np.isfinite(numbers)]
    plain = bool((np.isfinite(numbers) | missing_numbers(column.cells)).all())
    return plain and seen.size > 1 and bool(((seen >= 0) & (seen <= _MAX_GRADE)).all())


def _grades_in_series(columns: Sequence[ColumnSample]) -> dict[str, str]:
    """Return the item and the columns of judges who are numbered: J1, J2, J3 beside a skater and a component."""
    by_name = {column.name: column for column in columns}
    several = [c.name for c in columns if _JUDGE.fullmatch(c.name) and _in_series(c.name, by_name)]
    labels = [c for c in columns if not (c.numeric or c.long) and len(c.values) > 1 and c.name not in several]
    if not several or not labels or any(_names_annotator(c.name) for c in labels):
        return {}
    return {"item": labels[0].name, "grade": ",".join(several)}


def _go_together(first: ColumnSample, second: ColumnSample) -> bool:
    """Return whether every value of one column goes with one value of the other."""
    if len(first.values) != len(second.values) or len(first.values) < _MIN_NUMBERED:
        return False
    pairs = {*zip(first.cells.to_list(), second.cells.to_list(), strict=True)}
    return len(pairs) == len(first.values)


def _is_scale(column: ColumnSample) -> bool:
    """Return whether cells are words of a scale, or numbers before words: 6: weak accept."""
    return is_scale_of_words(column.values) or bool(
        column.cells.drop_nulls().str.contains(r"^\d+ ?[:=–-] ?[^\d\s]").all()
    )


def _grades_by_column(table: SourceTable, columns: Sequence[ColumnSample]) -> dict[str, str]:
    """Return the item and the columns of grades if all other columns are grades on one scale, one per person."""
    item, most = _item_by_name(table), _MAX_GRADE
    if not item and columns and columns[0].one_each and not columns[0].numeric and len(columns) > _MIN_NAMED:
        item, most = columns[0].name, _MAX_POINTS
    rest = [column for column in columns if column.name != item and normalize_name(column.name) not in NOT_ITEMS]
    numbers = [column for column in rest if column.numeric and "," not in column.name]
    if not item or len(rest) < 2 or len(numbers) < len(rest):
        return {}
    grades = [parse_numbers(column.cells) for column in numbers]
    lows, highs = [float(np.nanmin(seen)) for seen in grades], [float(np.nanmax(seen)) for seen in grades]
    # With no name to tell what the rows are, the numbers of all columns must overlap as those of one scale do.
    graded = min(lows) >= 0 and max(highs) <= most and (most == _MAX_GRADE or max(lows) <= min(highs))
    return {"item": item, "grade": ",".join(column.name for column in numbers)} if graded else {}


def _grades_of_a_person(columns: Sequence[ColumnSample]) -> dict[str, str]:
    """Return the columns of grades if all others but an annotator's are numbers on one scale, one column per item."""
    rest = [column for column in columns if not _is_optional(column.name)]
    names = {column.name for column in rest}
    plain = all(c.numeric and not c.clock and "," not in c.name and _other_side(c.name) not in names for c in rest)
    if len(rest) < _MIN_NAMED or not plain or not any(_names_annotator(column.name) for column in columns):
        return {}
    seen = np.concatenate([parse_numbers(column.cells) for column in rest])
    graded = bool(np.nanmin(seen) >= 0 and np.nanmax(seen) <= _MAX_POINTS)
    return {"grade": ",".join(column.name for column in rest)} if graded else {}


def _holds_lists(column: ColumnSample) -> bool:
    """Return whether cells list the same few items in different orders, separated by commas, semicolons or bars."""
    for sign in ";|,":
        lists = [[part.strip() for part in cell.split(sign)] for cell in column.values]
        items = {item for row in lists for item in row}
        if lists and min(map(len, lists)) > 1 and len(items) <= max(map(len, lists)) * 3 and "" not in items:
            return len(lists) > 1 and all(len({*row}) == len(row) for row in lists)
    return False


def _with_optional(table: SourceTable, roles: dict[str, str], columns: Sequence[ColumnSample]) -> dict[str, str]:
    """Read the only other column of a table without names as the query: names cannot say what it is."""
    if table.has_header or "item" in roles:
        return roles
    used = {part for column in roles.values() for part in column.split(":")[0].split(JOIN)}
    free = [c for c in columns if c.name not in used and not c.one_each and len(c.values) > 1]
    return roles | {"query": free[0].name} if len(free) == 1 else roles


# A guide for a source that was not understood: its first rows, what each column might be, the call that reads it.

_ROWS, _WIDTH, _MAX_SHOWN_COLUMNS, _MAX_NAME = 3, 16, 25, 24
_MAX_ROWS_TRIED = 200_000
MEANING, _MAX_MEANINGS = "MEANING", 7

Row = tuple[str, str, str]
Try = Callable[[Mapping[str, str | None]], object]


@dataclass(frozen=True)
class Guide:
    """What a person needs to read a source.

    Parameters
    ----------
    rows : tuple of (str, str, str)
        The name of each column, its first cells, and what it might be.
    call : str
        The Python call that reads the source, or nearly does.
    columns : mapping of str to str or None, optional
        The columns of the call, if it was tried and reads the source.
    """

    rows: tuple[Row, ...]
    call: str
    columns: Mapping[str, str | None] | None = None

    def __str__(self) -> str:
        lines = _aligned([("column", "first rows", "might be"), *self.rows])
        said = "Fill in the columns of your file:" if self.columns is None else "This reads it:"
        if MEANING in self.call:
            said = f"Fill in what each word means: {', '.join(CODE_MEANINGS)}."
        if self.columns is not None and "=left" in self.call:
            said = "This reads it (exchange the words if the codes mean something else):"
        return "\n".join([*lines, said, f"  {self.call}"])


def make_guide(
    table: SourceTable, source: Any, given: Mapping[str, str | None], attempt: Try, options: Mapping[str, str]
) -> Guide:
    """Return a guide; `attempt` raises a CrowdrankError for columns that do not read the source."""
    suggestions = suggest_roles(table) if table.rows <= _MAX_ROWS_TRIED else []
    for roles in suggestions:
        columns = {**roles, **given}
        try:
            attempt(columns)
        except CrowdrankError:
            continue
        return Guide(_rows(table, roles), _call(source, columns, table.has_header, options), columns)
    sides, item = named_sides(table) or _likely_sides(table), _item_by_name(table)
    template = {"left": "COLUMN", "right": "COLUMN", "winner": _winner_template(table), **sides}
    if item and not sides:
        template = {"item": item, "grade": "COLUMN"}
    return Guide(_rows(table, {}), _call(source, {**template, **given}, table.has_header, options))


def _likely_sides(table: SourceTable) -> dict[str, str]:
    """Return two columns of the same words, which are probably the sides."""
    columns = [column for column in sample_columns(table) if column.present and not column.numeric]
    columns = [column for column in columns if not is_scale_of_words(column.values)]
    alike = [(a, b) for n, a in enumerate(columns) for b in columns[n + 1 :] if not a.long and _same_items(a, b)]
    return {"left": alike[0][0].name, "right": alike[0][1].name} if len(alike) == 1 else {}


def _winner_template(table: SourceTable) -> str:
    """Return the column whose name is one for the winner, with its words if they are few; else a placeholder."""
    for column in sample_columns(table):
        words = sorted(column.values)
        plain = not re.search("[:=,]", "".join(words))
        if normalize_name(column.name) in _WINNER_NAMES and plain and 1 < len(words) <= _MAX_MEANINGS:
            return f"{column.name}:{','.join(f'{word}={MEANING}' for word in words)}"
    return "COLUMN"


def _item_by_name(table: SourceTable) -> str:
    """Return the column that is known by its name as the item, and could not be the winner."""
    named = {normalize_name(column): column for column in table.columns}
    for name in _WINNER_NAMES & named.keys():
        del named[name]
    return next((named[name] for tier in SYNONYMS["item"] for name in tier if name in named), "")


def describe_columns(table: SourceTable, roles: Mapping[str, str]) -> str:
    """Return the first rows as text, with the role that each column was read as."""
    return "\n".join(_aligned([("column", "first rows", "read as"), *_rows(table, roles, known_by_name=False)]))


def _aligned(rows: Sequence[Row]) -> list[str]:
    widths = [max(len(row[n]) for row in rows) for n in (0, 1)]
    return [f"  {a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows]


def _rows(
    table: SourceTable, roles: Mapping[str, str], *, known_by_name: bool = True
) -> tuple[tuple[str, str, str], ...]:
    by_column: dict[str, list[str]] = {}
    for role, expression in roles.items():
        for column in _columns_of(table, expression):
            by_column.setdefault(column, []).append(role)
    described = {sample.name: (sample.cells, sample.describe()) for sample in sample_columns(table)}
    rows = []
    for column in table.columns[:_MAX_SHOWN_COLUMNS]:
        cells, looks = described.get(column, (None, "lists or objects"))
        shown = "" if cells is None else ", ".join(_cut(cell or "", _WIDTH) for cell in cells.head(_ROWS).to_list())
        known = by_column.get(column) or (_roles_by_name(column) if known_by_name else [])
        said = [" or ".join(known)] if known else []
        rows.append((_cut(column, _MAX_NAME), shown, ": ".join([*said, looks] if known_by_name else said)))
    if len(table.columns) > _MAX_SHOWN_COLUMNS:
        rows.append(("…", "", f"{len(table.columns) - _MAX_SHOWN_COLUMNS} more columns"))
    return tuple(rows)


def _columns_of(table: SourceTable, expression: str) -> Sequence[str]:
    """Return the columns that an expression such as type+level, label:0=left,1=right or human* reads."""
    plain = stored_columns(expression, table.columns)
    return [column for column in table.columns if fnmatchcase(column, plain[0])] if "*" in plain[0] else plain


def _roles_by_name(column: str) -> list[str]:
    name = normalize_name(column)
    found = [role for role, tiers in NAMES_BY_ROLE.items() if any(name in tier for tier in tiers)][:3]
    # The second of model_0 and model_1 is more often the first of model_1 and model_2.
    return [
        role for role in found if role.replace("right", "left") == role or role.replace("right", "left") not in found
    ]


def _cut(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _call(source: Any, columns: Mapping[str, str | None], has_header: bool, options: Mapping[str, str]) -> str:
    header = "" if has_header else ", header=False"
    more = "".join(f", {name}={value!r}" for name, value in options.items())
    return f"cr.rank({_source(source)}, columns={dict(columns)!r}{header}{more})"


def _source(source: Any) -> str:
    if isinstance(source, str | PathLike):
        return repr(str(source))
    if isinstance(source, Sequence):
        return repr([str(path) for path in source])
    return "frame"
