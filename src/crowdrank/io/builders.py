"""Build comparisons, ratings and rankings from validated rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray, Int32Array, IntArray
from crowdrank.data import LEFT, TIE, Comparisons, Rankings, Ratings
from crowdrank.data.labels import encode_annotators, encode_items
from crowdrank.errors import FormatError
from crowdrank.io.column_roles import DURATIONS, RoleMatcher, columns_error, normalize_name
from crowdrank.io.outcomes import BOTH_BAD, SKIP, UNKNOWN, list_codes, normalize_names, parse_outcomes
from crowdrank.io.rows import (
    Explain,
    Rows,
    missing_numbers,
    parse_numbers,
    parse_numbers_or_text,
    parse_timestamps,
    show_cell,
)

# A column of this name says where its item was shown, even in rows marked as swapped.
_LEFT_PREFIXES = ("left", "lhs")
_MAX_KEY = float(2**62)
# A longer median duration was probably recorded in milliseconds.
_MAX_MEDIAN_SECONDS = 1000.0
# More different numbers than this are not codes for a side.
_MAX_CODES = 4


def build_comparisons(rows: Rows) -> Comparisons:
    """Build comparisons from left, right and winner, or from winner and loser; skips are counted and left out."""
    positions_known = rows.has("left")
    first, second = ("left", "right") if positions_known else ("winner", "loser")
    left, right = rows.labels(first), rows.labels(second)
    if rows.has("winner") and positions_known:
        left, right, outcome = _with_outcomes(rows, left, right)
    elif positions_known:
        outcome = _by_values(rows, left, right)
    else:
        outcome = _first_won(rows, left, right)
    who, query = rows.optional_labels("annotator"), rows.optional_labels("query")
    weight = rows.optional_weights()
    rows.counts.skips += rows.errors.ignore(outcome == SKIP)
    rows.finish_checks()
    items, (lefts, rights) = encode_items([rows.usable(left), rows.usable(right)], [first, second], rows.usable(query))
    annotators, annotator = encode_annotators(rows.usable(who))
    outcome = rows.usable(outcome)
    if annotator is not None and rows.counts_duplicates:
        rows.counts.duplicates = count_duplicates(annotator, lefts, rights, outcome + 1)
    both_bad = outcome == BOTH_BAD
    outcome = np.where(both_bad, TIE, outcome)
    rows.counts.ties, rows.counts.both_bad = int(np.count_nonzero(outcome == TIE)), int(np.count_nonzero(both_bad))
    return Comparisons(
        items=items,
        left=lefts,
        right=rights,
        outcome=outcome,
        annotators=annotators,
        annotator=annotator,
        weight=rows.usable(weight),
        time=_time(rows),
        duration=_duration(rows),
        both_bad=both_bad,
        features={name: parse_numbers_or_text(rows.usable(rows.frame[name])) for name in rows.features},
        positions_known=positions_known and rows.table.positions_known,
        frame_backend=rows.table.frame_backend,
    )


def _refuse_same(rows: Rows, left: pl.Series, right: pl.Series, column: str) -> None:
    same = (left == right).fill_null(False)
    rows.counts.self_comparisons = rows.errors.refuse(
        same, column, lambda row: f"{show_cell(left[row])} is compared with itself"
    )


def _first_won(rows: Rows, winner: pl.Series, loser: pl.Series) -> npt.NDArray[np.int8]:
    _refuse_same(rows, winner, loser, rows.match.roles["loser"])
    return np.full(len(winner), LEFT, np.int8)


def _with_outcomes(rows: Rows, left: pl.Series, right: pl.Series) -> tuple[pl.Series, pl.Series, npt.NDArray[np.int8]]:
    """Return both items as they were shown, and the outcome."""
    roles, short = rows.match.roles, rows.table.short_names
    _refuse_same(rows, left, right, roles["right"])
    winner = rows.labels("winner")
    sides = (short.get(roles["left"], roles["left"]), short.get(roles["right"], roles["right"]))
    swapped = rows.table.shown_swapped
    if swapped is not None and not normalize_name(sides[0]).startswith(_LEFT_PREFIXES):
        winner = _winner_by_name(winner, left, right, sides)
        exchanged = pl.Series(swapped)
        left, right = right.zip_with(exchanged, left), left.zip_with(exchanged, right)
    found, codes, unclear = parse_outcomes(left, right, winner, sides)
    if unclear:
        raise _unclear_codes(rows, unclear)
    if codes:
        said = ", ".join(f"{code} {meaning}" for code, meaning in codes.items())
        rows.note(f"Codes in {roles['winner']!r} were read as {said}. {_other_meanings(roles['winner'], codes)}")
    rows.counts.unknown_items = rows.errors.refuse(
        found == UNKNOWN,
        roles["winner"],
        lambda row: (
            f"{show_cell(winner[row])} is neither {show_cell(left[row])}, {show_cell(right[row])}, a tie nor a skip"
        ),
    )
    return left, right, found


def _other_meanings(column: str, codes: Iterable[str]) -> str:
    meanings = ",".join(f"{code}={word}" for code, word in zip(codes, ("right", "left", "tie"), strict=False))
    return f"If they mean something else, say so: columns={{'winner': '{column}:{meanings}'}}."


def _unclear_codes(rows: Rows, codes: Sequence[str]) -> FormatError:
    """Return the error for a winner that is given by numbers without a conventional meaning."""
    column = rows.match.roles["winner"]
    problem = f"{rows.table.name}: the winner {column!r} holds numbers ({list_codes(codes)}), which do not say who won."
    scores = RoleMatcher(rows.table, {}).pair(("left_score", "right_score")) or {}
    if column in scores.values():
        roles = {role: name for role, name in rows.match.roles.items() if role in ("left", "right")} | scores
        return columns_error(problem, "If they are scores, the larger wins with", roles)
    if len(codes) > _MAX_CODES:
        scores = {"left_score": column, "right_score": "COLUMN"}
        return columns_error(problem, "If they are scores, name those of both sides:", scores)
    meanings = ",".join(f"{c}={word}" for c, word in zip(reversed(codes), ("left", "right", "tie"), strict=False))
    return columns_error(problem, "Say what each means:", {"winner": f"{column}:{meanings}"})


def _by_values(rows: Rows, left: pl.Series, right: pl.Series) -> npt.NDArray[np.int8]:
    """Return outcomes by two scores, of which the larger wins, or by two ranks, of which the smaller wins."""
    _refuse_same(rows, left, right, rows.match.roles["right"])
    value, sign = ("score", 1) if rows.has("left_score") else ("rank", -1)
    first, second = (parse_numbers(rows.column(f"{side}_{value}")) for side in ("left", "right"))
    for side, numbers in (("left", first), ("right", second)):
        # A match that was not played and a system that was not ranked (-1) have no outcome.
        column = rows.column(f"{side}_{value}")
        rows.counts.skips += rows.errors.ignore(missing_numbers(column) | ((value == "rank") & (numbers < 0)))
        rows.refuse_numbers(f"{side}_{value}", np.isfinite(numbers), "a number")
    better = {"score": "the larger", "rank": "the smaller"}[value]
    columns = " and ".join(repr(rows.match.roles[f"{side}_{value}"]) for side in ("left", "right"))
    rows.note(f"{better.capitalize()} of {columns} wins; equal {value}s are ties.")
    return np.sign(np.nan_to_num(sign * (first - second))).astype(np.int8)


def _winner_by_name(winner: pl.Series, left: pl.Series, right: pl.Series, sides: tuple[str, str]) -> pl.Series:
    """Replace the name of a column (model_1) by its item, because a swapped item is not on the side of its column."""
    names = normalize_names(winner)
    for side, item in zip(sides, (left, right), strict=True):
        winner = item.zip_with((names == normalize_name(side)).fill_null(False), winner)
    return winner


def count_duplicates(annotator: Int32Array, *codes: AnyArray) -> int:
    """Count the rows that repeat an earlier row of the same annotator."""
    sizes = [int(c.max(initial=0)) + 1 for c in codes]
    if (int(annotator.max(initial=0)) + 1) * np.prod(np.asarray(sizes, float)) < _MAX_KEY:
        key = annotator.astype(np.int64)
        for code, size in zip(codes, sizes, strict=True):
            key = key * size + code
        return len(key) - pl.Series(key).n_unique()
    frame = pl.DataFrame({str(n): c for n, c in enumerate((annotator, *codes))})
    return frame.height - frame.n_unique()


def _time(rows: Rows) -> FloatArray | None:
    return _recorded(rows, parse_timestamps(rows.usable(rows.column("time"))), "time") if rows.has("time") else None


def _duration(rows: Rows) -> FloatArray | None:
    if not rows.has("duration"):
        return None
    name = rows.match.roles["duration"]
    values = parse_numbers(rows.usable(rows.column("duration")))
    seconds = _recorded(rows, values / DURATIONS.get(normalize_name(name), 1.0), "duration")
    if seconds is not None and np.nanmedian(seconds) > _MAX_MEDIAN_SECONDS:
        rows.note(
            f"Half of the answers took over {_MAX_MEDIAN_SECONDS:,.0f} s. If {name!r} is in milliseconds, divide it."
        )
    return seconds


def _recorded(rows: Rows, values: FloatArray, role: str) -> FloatArray | None:
    """Return values with NaN where nothing was recorded; None if nothing was recorded at all."""
    values = np.where(np.isfinite(values), values, np.nan)
    missing = int(np.count_nonzero(np.isnan(values)))
    name = rows.match.roles[role]
    if missing == len(values):
        rows.note(f"{name!r} contains no {role} that can be read; it was ignored.")
        return None
    if missing:
        rows.note(f"{name!r}: no {role} in {missing:,} of {len(values):,} rows.")
    return values


def build_ratings(rows: Rows) -> Ratings:
    """Build ratings from item and grade."""
    item, grade = rows.labels("item"), rows.numbers("grade")
    who, query = rows.optional_labels("annotator"), rows.optional_labels("query")
    weight = rows.optional_weights()
    rows.finish_checks()
    found = Ratings.of(
        item=rows.usable(item),
        grade=rows.usable(grade),
        annotator=rows.usable(who),
        query=rows.usable(query),
        weight=rows.usable(weight),
        frame_backend=rows.table.frame_backend,
    )
    if found.annotator is not None:
        answers = pl.DataFrame({"who": found.annotator, "item": found.item, "grade": np.asarray(found.grade)})
        rows.counts.duplicates = answers.height - answers.n_unique()
    return found


_LIST_KEYS = ("query", "annotator", "list")


def build_rankings(rows: Rows) -> Rankings:
    return _from_orders(rows) if rows.has("order") else _from_ranks(rows)


def _from_ranks(rows: Rows) -> Rankings:
    """Build rankings from item and rank; rows with the same annotator, query and list name form one list."""
    item, rank = rows.labels("item"), rows.numbers("rank")
    keys = {role: labels for role in _LIST_KEYS if (labels := rows.optional_labels(role)) is not None}
    weight = rows.optional_weights()
    frame = pl.DataFrame({**keys, "item": item, "rank": rank, "row": np.arange(len(item))})
    frame = frame.filter(rows.errors.usable)
    again = frame.filter(~pl.struct(*keys, "item").is_first_distinct())["row"].to_numpy()
    _refuse_rows(rows, again, rows.match.roles["item"], lambda row: f"{show_cell(item[row])} is already in this list")
    rows.finish_checks()
    kept = frame.filter(rows.errors.usable[frame["row"].to_numpy()])
    return _to_rankings(rows, kept, [*keys], None if weight is None else weight[kept["row"].to_numpy()])


def _from_orders(rows: Rows) -> Rankings:
    """Build one list per row, from text such as "a>b=c>d" (best first, = for ties) or from lists of tied items."""
    order = rows.column("order")
    listed = order.dtype == pl.List
    if listed:
        order = order.set(order.list.len() == 0, None)
        rows.errors.refuse_missing(order, rows.match.roles["order"], "order")
    else:
        order = rows.labels("order")
    keys = {role: labels for role in _LIST_KEYS[:2] if (labels := rows.optional_labels(role)) is not None}
    weight = rows.optional_weights()
    column = rows.match.roles["order"]
    if not listed and not order.str.contains(">").any():
        order = _with_signs(rows, order, column)
    frame = _listed_places(order) if listed else _places(order)
    empty = frame.filter(pl.col("item").fill_null("") == "")["row"].to_numpy()
    _refuse_rows(rows, empty, column, lambda row: f"{show_cell(order[row])} leaves a place empty")
    again = frame.filter(~pl.struct("row", "item").is_first_distinct())["row"].to_numpy()
    _refuse_rows(rows, again, column, lambda row: f"{show_cell(order[row])} names an item twice")
    rows.finish_checks()
    frame = frame.filter(rows.errors.usable[frame["row"].to_numpy()])
    row = frame["row"]
    named = [labels.gather(row).alias(role) for role, labels in keys.items()]
    # Padded with zeros, so that lists sorted by name keep the order of the file.
    frame = frame.with_columns(*named, row.cast(pl.String).str.zfill(12).alias("list"))
    return _to_rankings(rows, frame, [*keys, "list"], None if weight is None else weight[row.to_numpy()])


def _with_signs(rows: Rows, order: pl.Series, column: str) -> pl.Series:
    """Return lists that are separated by commas, semicolons or bars, best first, in the form a>b>c."""
    for sign, name in ((";", "semicolons"), ("|", "bars"), (",", "commas")):
        if (order.str.count_matches(sign, literal=True) > 0).mean() == 1:
            rows.note(f"The lists in {column!r} are separated by {name}, and the first item was read as the best.")
            return order.str.strip_chars(f" {sign}").str.replace_all(sign, ">", literal=True)
    raise FormatError(f"{rows.table.name}: column {column!r} contains no lists such as 'a>b=c>d' or 'a, b, c'.")


def _places(order: pl.Series) -> pl.DataFrame:
    """Return one row per item: the row of its list, and its rank there."""
    frame = pl.DataFrame({"row": np.arange(len(order)), "item": order}).drop_nulls()
    frame = frame.with_columns(pl.col("item").str.split(">"))
    frame = frame.with_columns(rank=pl.int_ranges(1, pl.col("item").list.len() + 1)).explode("item", "rank")
    frame = frame.with_columns(pl.col("item").str.split("=")).explode("item")
    return frame.with_columns(pl.col("item").str.strip_chars())


def _listed_places(order: pl.Series) -> pl.DataFrame:
    """Return the same from lists of places, or from lists of items."""
    frame = pl.DataFrame({"row": np.arange(len(order)), "item": order}).drop_nulls()
    frame = frame.with_columns(rank=pl.int_ranges(1, pl.col("item").list.len() + 1)).explode("item", "rank")
    if frame["item"].dtype == pl.List:
        frame = frame.explode("item").drop_nulls()  # empty places
    return frame.with_columns(pl.col("item").cast(pl.String).str.strip_chars())


def _refuse_rows(rows: Rows, numbers: IntArray, column: str, explain: Explain) -> None:
    mask = np.zeros(rows.table.rows, bool)
    mask[numbers] = True
    rows.errors.refuse(mask, column, explain)


def _to_rankings(rows: Rows, frame: pl.DataFrame, keys: list[str], weight: FloatArray | None) -> Rankings:
    columns = {key: frame[key] for key in keys}
    found = Rankings.of(item=frame["item"], rank=frame["rank"], **columns, frame_backend=rows.table.frame_backend)
    places = found.place[found.offsets[1:] - 1] + 1
    rows.counts.ties = len(found.item) - int(places.sum())
    return found if weight is None else replace(found, weight=_weight_of_lists(rows, frame, keys, weight))


def _weight_of_lists(rows: Rows, frame: pl.DataFrame, keys: list[str], weight: FloatArray) -> FloatArray:
    """Return one weight per list, in the order of `Rankings.of`: by query, annotator and list."""
    lists = (
        frame.with_columns(pl.Series("weight", weight))
        .group_by(keys or pl.lit(0))
        .agg(least=pl.col("weight").min(), weight=pl.col("weight").max())
    )
    if keys:
        lists = lists.sort(keys)
    if (lists["least"] != lists["weight"]).any():
        column = rows.match.roles["weight"]
        raise FormatError(
            f"{rows.table.name}: column {column!r} gives rows of one list different weights.",
            remedy="Give one weight per list.",
        )
    return lists["weight"].to_numpy()
