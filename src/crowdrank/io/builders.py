"""Comparisons from rows.

Ratings from rows.

Rankings from rows: one item a row, or one whole order a row.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray, Int32Array, IntArray
from crowdrank.data import LEFT, TIE, Comparisons, Rankings, Ratings
from crowdrank.data.labels import encode_annotators, encode_items
from crowdrank.errors import FormatError
from crowdrank.io import cells
from crowdrank.io.cells import SKIP, UNKNOWN, outcomes, plain_words
from crowdrank.io.column_roles import DURATIONS, plain
from crowdrank.io.rows import Explain, Rows, shown

# A column of this name says where its item was shown, so there is nothing to turn round.
_ON_THE_LEFT = ("left", "lhs")
_LONGEST_KEY = float(2**62)
# Half of all answers taking longer than this are more likely counted in milliseconds.
_LONG_MEDIAN = 1000.0


def comparisons(rows: Rows) -> Comparisons:
    """From left, right and winner, or from winner and loser; skips are left out and counted."""
    sided = rows.has("left")
    first, second = ("left", "right") if sided else ("winner", "loser")
    left, right = rows.labels(first), rows.labels(second)
    if sided:
        left, right, outcome = _answered(rows, left, right)
    else:
        outcome = _first_won(rows, left, right)
    who, query = rows.maybe_labels("annotator"), rows.maybe_labels("query")
    weight = rows.maybe_weight()
    rows.counted.skips = rows.problems.ignore(outcome == SKIP)
    rows.settle()
    items, (lefts, rights) = encode_items([rows.usable(left), rows.usable(right)], [first, second], rows.usable(query))
    annotators, annotator = encode_annotators(rows.usable(who))
    outcome = rows.usable(outcome)
    rows.counted.ties = int(np.count_nonzero(outcome == TIE))
    if annotator is not None and rows.counts_repeats:
        rows.counted.duplicates = count_repeats(annotator, lefts, rights, outcome + 1)
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
        features={name: cells.values_of(rows.usable(rows.frame[name])) for name in rows.features},
        sided=sided and rows.table.sided,
        native=rows.table.native,
    )


def _refuse_same(rows: Rows, left: pl.Series, right: pl.Series, column: str) -> None:
    same = (left == right).fill_null(False)
    rows.counted.self_comparisons = rows.problems.refuse(
        same, column, lambda row: f"{shown(left[row])} is compared with itself"
    )


def _first_won(rows: Rows, winner: pl.Series, loser: pl.Series) -> npt.NDArray[np.int8]:
    _refuse_same(rows, winner, loser, rows.match.roles["loser"])
    return np.full(len(winner), LEFT, np.int8)


def _answered(rows: Rows, left: pl.Series, right: pl.Series) -> tuple[pl.Series, pl.Series, npt.NDArray[np.int8]]:
    """Both items as they were shown, and which of them won."""
    roles, short = rows.match.roles, rows.table.short
    _refuse_same(rows, left, right, roles["right"])
    winner = rows.labels("winner")
    sides = (short.get(roles["left"], roles["left"]), short.get(roles["right"], roles["right"]))
    swapped = rows.table.swapped
    if swapped is not None and not plain(sides[0]).startswith(_ON_THE_LEFT):
        winner = _named_by_column(winner, left, right, sides)
        turned = pl.Series(swapped)
        left, right = right.zip_with(turned, left), left.zip_with(turned, right)
    found = outcomes(left, right, winner, sides)
    rows.counted.unknown_items = rows.problems.refuse(
        found == UNKNOWN,
        roles["winner"],
        lambda row: f"{shown(winner[row])} is neither {shown(left[row])}, {shown(right[row])}, a tie nor a skip",
    )
    return left, right, found


def _named_by_column(winner: pl.Series, left: pl.Series, right: pl.Series, sides: tuple[str, str]) -> pl.Series:
    """A winner called by its column (model_1) by its own name: shown the other way round, it is not on the left."""
    said = plain_words(winner)
    for side, item in zip(sides, (left, right), strict=True):
        winner = item.zip_with((said == plain(side)).fill_null(False), winner)
    return winner


def count_repeats(annotator: Int32Array, *codes: AnyArray) -> int:
    """How many rows say again, exactly, what their annotator has said before."""
    sizes = [int(c.max(initial=0)) + 1 for c in codes]
    if (int(annotator.max(initial=0)) + 1) * np.prod(np.asarray(sizes, float)) < _LONGEST_KEY:
        key = annotator.astype(np.int64)
        for code, size in zip(codes, sizes, strict=True):
            key = key * size + code
        return len(key) - pl.Series(key).n_unique()
    frame = pl.DataFrame({str(n): c for n, c in enumerate((annotator, *codes))})
    return frame.height - frame.n_unique()


def _time(rows: Rows) -> FloatArray | None:
    return _recorded(rows, cells.moments(rows.usable(rows.column("time"))), "time") if rows.has("time") else None


def _duration(rows: Rows) -> FloatArray | None:
    if not rows.has("duration"):
        return None
    name = rows.match.roles["duration"]
    values = cells.numbers(rows.usable(rows.column("duration")))
    seconds = _recorded(rows, values / DURATIONS.get(plain(name), 1.0), "duration")
    if seconds is not None and np.nanmedian(seconds) > _LONG_MEDIAN:
        rows.note(f"Half of the answers took over {_LONG_MEDIAN:,.0f} s; if {name!r} counts milliseconds, divide it.")
    return seconds


def _recorded(rows: Rows, values: FloatArray, role: str) -> FloatArray | None:
    """Values with NaN where nothing was recorded; None where nothing ever was."""
    values = np.where(np.isfinite(values), values, np.nan)
    missing = int(np.count_nonzero(np.isnan(values)))
    name = rows.match.roles[role]
    if missing == len(values):
        rows.note(f"{name!r} holds no {role} that can be read; it was left out.")
        return None
    if missing:
        rows.note(f"{name!r}: no {role} in {missing:,} of {len(values):,} rows.")
    return values


def ratings(rows: Rows) -> Ratings:
    """Item and grade."""
    item, grade = rows.labels("item"), rows.numbers("grade")
    who, query = rows.maybe_labels("annotator"), rows.maybe_labels("query")
    weight = rows.maybe_weight()
    rows.settle()
    found = Ratings.of(
        item=rows.usable(item),
        grade=rows.usable(grade),
        annotator=rows.usable(who),
        query=rows.usable(query),
        weight=rows.usable(weight),
        native=rows.table.native,
    )
    if found.annotator is not None:
        said = pl.DataFrame({"who": found.annotator, "item": found.item, "grade": np.asarray(found.grade)})
        rows.counted.duplicates = said.height - said.n_unique()
    return found


_KEYS = ("query", "annotator", "list")


def rankings(rows: Rows) -> Rankings:
    return _from_orders(rows) if rows.has("order") else _from_places(rows)


def _from_places(rows: Rows) -> Rankings:
    """Item and rank; a list is what one annotator said in one query (and list, where lists are named)."""
    item, rank = rows.labels("item"), rows.numbers("rank")
    keys = {role: labels for role in _KEYS if (labels := rows.maybe_labels(role)) is not None}
    weight = rows.maybe_weight()
    frame = pl.DataFrame({**keys, "item": item, "rank": rank, "row": np.arange(len(item))})
    frame = frame.filter(rows.problems.usable)
    again = frame.filter(~pl.struct(*keys, "item").is_first_distinct())["row"].to_numpy()
    _refuse_rows(rows, again, rows.match.roles["item"], lambda row: f"{shown(item[row])} already stands in this list")
    rows.settle()
    kept = frame.filter(rows.problems.usable[frame["row"].to_numpy()])
    return _finished(rows, kept, [*keys], None if weight is None else weight[kept["row"].to_numpy()])


def _from_orders(rows: Rows) -> Rankings:
    """Strings like "a>b=c>d", best first, ties between equals signs; or lists, a place a list of the items tied on it.

    Every row is a list of its own.
    """
    order = rows.column("order")
    listed = order.dtype == pl.List
    if listed:
        order = order.set(order.list.len() == 0, None)
        rows.problems.refuse_missing(order, rows.match.roles["order"], "order")
    else:
        order = rows.labels("order")
    keys = {role: labels for role in _KEYS[:2] if (labels := rows.maybe_labels(role)) is not None}
    weight = rows.maybe_weight()
    column = rows.match.roles["order"]
    if not listed and not order.str.contains(">").any():
        raise FormatError(f"{rows.table.name}: column {column!r} holds no lists like 'a>b=c>d'.")
    frame = _listed_places(order) if listed else _places(order)
    empty = frame.filter(pl.col("item").fill_null("") == "")["row"].to_numpy()
    _refuse_rows(rows, empty, column, lambda row: f"{shown(order[row])} leaves a place empty")
    again = frame.filter(~pl.struct("row", "item").is_first_distinct())["row"].to_numpy()
    _refuse_rows(rows, again, column, lambda row: f"{shown(order[row])} names an item twice")
    rows.settle()
    frame = frame.filter(rows.problems.usable[frame["row"].to_numpy()])
    row = frame["row"]
    named = [labels.gather(row).alias(role) for role, labels in keys.items()]
    # Padded, so that lists sorted by name stay in the order of the file.
    frame = frame.with_columns(*named, row.cast(pl.String).str.zfill(12).alias("list"))
    return _finished(rows, frame, [*keys, "list"], None if weight is None else weight[row.to_numpy()])


def _places(order: pl.Series) -> pl.DataFrame:
    """One row an item: the row its list stands in, and its place there."""
    frame = pl.DataFrame({"row": np.arange(len(order)), "item": order}).drop_nulls()
    frame = frame.with_columns(pl.col("item").str.split(">"))
    frame = frame.with_columns(rank=pl.int_ranges(1, pl.col("item").list.len() + 1)).explode("item", "rank")
    frame = frame.with_columns(pl.col("item").str.split("=")).explode("item")
    return frame.with_columns(pl.col("item").str.strip_chars())


def _listed_places(order: pl.Series) -> pl.DataFrame:
    """The same, from lists of places, or plain lists of items."""
    frame = pl.DataFrame({"row": np.arange(len(order)), "item": order}).drop_nulls()
    frame = frame.with_columns(rank=pl.int_ranges(1, pl.col("item").list.len() + 1)).explode("item", "rank")
    if frame["item"].dtype == pl.List:
        frame = frame.explode("item").drop_nulls()  # a place on which nothing stands
    return frame.with_columns(pl.col("item").cast(pl.String).str.strip_chars())


def _refuse_rows(rows: Rows, numbers: IntArray, column: str, explain: Explain) -> None:
    mask = np.zeros(rows.table.rows, bool)
    mask[numbers] = True
    rows.problems.refuse(mask, column, explain)


def _finished(rows: Rows, frame: pl.DataFrame, keys: list[str], weight: FloatArray | None) -> Rankings:
    columns = {key: frame[key] for key in keys}
    found = Rankings.of(item=frame["item"], rank=frame["rank"], **columns, native=rows.table.native)
    places = found.place[found.offsets[1:] - 1] + 1
    rows.counted.ties = len(found.item) - int(places.sum())
    return found if weight is None else replace(found, weight=_weight_of_lists(rows, frame, keys, weight))


def _weight_of_lists(rows: Rows, frame: pl.DataFrame, keys: list[str], weight: FloatArray) -> FloatArray:
    """One weight a list, in the order of `Rankings.of`: by query, annotator and list."""
    lists = (
        frame.with_columns(pl.Series("weight", weight))
        .group_by(keys or pl.lit(0))
        .agg(least=pl.col("weight").min(), weight=pl.col("weight").max())
    )
    if keys:
        lists = lists.sort(keys)
    if (lists["least"] != lists["weight"]).any():
        column = rows.match.roles["weight"]
        raise FormatError(f"{rows.table.name}: column {column!r} gives rows of one list different weights.")
    return lists["weight"].to_numpy()
