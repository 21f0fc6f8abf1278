"""Rankings from rows: one item a row, or one whole order a row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.errors import FormatError
from crowdrank.files import cells
from crowdrank.files.problems import Explain, shown
from crowdrank.files.rows import Rows
from crowdrank.judgments import Rankings

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


def _refuse_rows(rows: Rows, numbers: npt.NDArray[np.int64], column: str, explain: Explain) -> None:
    mask = np.zeros(rows.table.rows, bool)
    mask[numbers] = True
    rows.problems.refuse(mask, column, explain)


def _finished(rows: Rows, frame: pl.DataFrame, keys: list[str], weight: cells.Numbers | None) -> Rankings:
    columns = {key: frame[key] for key in keys}
    found = Rankings.of(item=frame["item"], rank=frame["rank"], **columns, native=rows.table.native)
    places = found.place[found.offsets[1:] - 1] + 1
    rows.counted.ties = len(found.item) - int(places.sum())
    return found if weight is None else replace(found, weight=_weight_of_lists(rows, frame, keys, weight))


def _weight_of_lists(rows: Rows, frame: pl.DataFrame, keys: list[str], weight: cells.Numbers) -> cells.Numbers:
    """One weight a list, in the order of `Rankings.of`: by query, annotator and list."""
    lists = frame.with_columns(pl.Series("weight", weight)).group_by(keys or pl.lit(0)).agg(
        least=pl.col("weight").min(), weight=pl.col("weight").max()
    )  # fmt: skip
    if keys:
        lists = lists.sort(keys)
    if (lists["least"] != lists["weight"]).any():
        column = rows.match.roles["weight"]
        raise FormatError(f"{rows.table.name}: column {column!r} gives rows of one list different weights.")
    return lists["weight"].to_numpy()
