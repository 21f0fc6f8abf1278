"""PrefLib's orders (soc, soi, toc, toi): the count of each list, alternatives by number, ties in braces."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import polars as pl

from crowdrank.data import Rankings
from crowdrank.errors import FormatError
from crowdrank.io.formats.base import Format, Writer, assign_roles, optional, split_lines
from crowdrank.io.source_table import RowLocation, SourceTable, table_from_frame
from crowdrank.io.sources import Source
from crowdrank.io.writer import write_lines

_HEADER = re.compile(r"#\s*(FILE NAME|TITLE|DATA TYPE|NUMBER ALTERNATIVES|ALTERNATIVE NAME)", re.IGNORECASE)
_NAME = re.compile(r"#\s*ALTERNATIVE NAME\s+(\d+)\s*:\s*(.*)", re.IGNORECASE)
_OLD_NAME = re.compile(r"(\d+)\s*,\s*(.+)")
_OLD_COUNTS = re.compile(r"\d+\s*,\s*\d+\s*,\s*\d+")
_DATA = r"^(\d+)\s*[:,]\s*(.+)$"
_SUFFIXES = (".soc", ".soi", ".toc", ".toi")


def _recognises(source: Source) -> bool:
    comments = itertools.takewhile(lambda line: line.lstrip().startswith("#"), source.head)
    return bool(source.head) and (any(_HEADER.match(line.strip()) for line in comments) or _is_old(source.head))


def _is_old(head: tuple[str, ...]) -> bool:
    """Return whether the file has the old header: number of alternatives, their names, a line of three counts."""
    if not re.fullmatch(r"\s*\d{1,6}\s*", head[0]) or len(head) < 3:
        return False
    names, rest = head[1 : int(head[0]) + 1], head[int(head[0]) + 1 :]
    named = all(_OLD_NAME.fullmatch(line.strip()) for line in names)
    return bool(names) and named and (not rest or bool(_OLD_COUNTS.fullmatch(rest[0].strip())))


def _read(source: Source) -> SourceTable:
    lines = split_lines(source)
    if not _recognises(source):
        raise FormatError(f"{source.name}: a PrefLib file must begin with lines such as '# ALTERNATIVE NAME 1: …'.")
    start, names = _names(lines)
    body = lines[start:]
    parts = body.str.extract_groups(_DATA).struct.unnest()
    order = _orders(parts["2"], names)
    unknown = _has_unknown(order)
    blank_rows = ((body == "") | body.str.starts_with("#")).to_numpy()
    unreadable_rows = dict.fromkeys(
        (parts["1"].is_null().to_numpy() & ~blank_rows).nonzero()[0].tolist(), "is not a list of numbers"
    )
    unreadable_rows |= dict.fromkeys(
        unknown.to_numpy().nonzero()[0].tolist(), "names an alternative that the header does not"
    )
    table = replace(
        table_from_frame(pl.DataFrame({"order": order, "weight": parts["1"]}), source.name),
        unit="line",
        blank_rows=blank_rows,
        unreadable_rows=unreadable_rows,
        locate=lambda rows: [RowLocation(row + start + 1) for row in rows],
    )
    return assign_roles(table, "preflib", order="order", weight="weight")


def _orders(text: pl.Series, names: dict[str, str]) -> pl.Series:
    """Return lists of names; if there are ties, lists of places, each a list of names."""
    called = pl.element().replace_strict(names, default=None, return_dtype=pl.String) if names else pl.element()
    word = r"[^,{}\s]+"
    if not text.str.contains("{", literal=True).any():
        return text.str.extract_all(word).list.eval(called)
    # A place is a number, or numbers in braces.
    places = text.str.extract_all(r"\{[^}]*\}|" + word)
    return places.list.eval(pl.element().str.extract_all(word).list.eval(called))


def _has_unknown(order: pl.Series) -> pl.Series:
    """Return which lists contain a number without a name."""
    flat = pl.DataFrame({"row": pl.int_range(len(order), eager=True), "item": order}).explode("item")
    if flat["item"].dtype == pl.List:
        flat = flat.explode("item")
    lacking = flat.filter(pl.col("item").is_null())["row"].unique()
    return pl.int_range(len(order), eager=True).is_in(lacking.implode()) & order.is_not_null()


def _names(lines: pl.Series) -> tuple[int, dict[str, str]]:
    """Return the line where the lists begin, and the name of each number."""
    if not lines[0].startswith("#"):
        number = int(lines[0])
        found = lines[1 : number + 1].str.extract_groups(_OLD_NAME.pattern).struct.unnest()
        return number + 2, dict(zip(found["1"], found["2"], strict=True))
    head = lines.filter(lines.str.starts_with("#"))
    found = head.str.extract_groups(f"(?i){_NAME.pattern}").struct.unnest().drop_nulls()
    names = {n: name.strip() or n for n, name in zip(found["1"], found["2"], strict=True)}
    # An alternative that is counted but has no line of its own is known by its number.
    count = head.str.extract(r"(?i)^#\s*NUMBER ALTERNATIVES\s*:\s*(\d{1,6})\s*$").drop_nulls()
    numbers = range(1, int(count[0]) + 1) if len(count) and names else ()
    return 0, {str(n): str(n) for n in numbers} | names


def _write(lists: Rankings, path: Path) -> list[str]:
    items = lists.items
    if len(items.queries) > 1:
        raise FormatError(
            f"{path.name}: a PrefLib file holds one election, and the judgments have {len(items.queries)} queries.",
            remedy="Write one file per query.",
        )
    frame = lists.to_polars().with_columns(number=pl.Series(lists.item + 1).cast(pl.String))
    tied = (
        pl.when(pl.len() > 1)
        .then(pl.lit("{") + pl.col("number").str.join(",") + "}")
        .otherwise(pl.col("number").first())
    )
    places = frame.group_by("list", "rank", maintain_order=True).agg(place=tied)
    orders = places.group_by("list", maintain_order=True).agg(pl.col("place").str.join(","))
    orders = orders.with_columns(count=pl.Series(lists.weights))
    counted = (
        orders.group_by("place", maintain_order=True)
        .agg(pl.col("count").sum())
        .sort("count", descending=True, maintain_order=True)
    )
    if not (counted["count"] == counted["count"].round()).all():
        raise FormatError(f"{path.name}: PrefLib needs whole numbers as weights of lists.")
    body = counted.select(pl.format("{}: {}", pl.col("count").cast(pl.Int64), "place")).to_series()
    write_lines(pl.concat([pl.Series(_header(lists, counted, path), dtype=pl.String), body.alias("")]), path)
    return []


def _header(lists: Rankings, counted: pl.DataFrame, path: Path) -> list[str]:
    ties = bool(counted["place"].str.contains("{", literal=True).any())
    complete = bool((lists.lengths == len(lists.items)).all())
    header = {
        "FILE NAME": path.name,
        "DATA TYPE": f"{'t' if ties else 's'}o{'c' if complete else 'i'}",
        "NUMBER ALTERNATIVES": len(lists.items),
        "NUMBER VOTERS": int(counted["count"].sum()),
        "NUMBER UNIQUE ORDERS": counted.height,
        **{f"ALTERNATIVE NAME {n}": name for n, name in enumerate(lists.items.labels, 1)},
    }
    return [f"# {key}: {value}" for key, value in header.items()]


PREFLIB = Format(
    name="preflib",
    description="PrefLib's orders (.soc, .soi, .toc, .toi), ties in braces; the count of a list is its weight.",
    known_by="a header of # FILE NAME, # ALTERNATIVE NAME 1 …; in old files, a count of alternatives and their names",
    recognises=_recognises,
    read=_read,
    writer=Writer(("rankings",), _SUFFIXES, optional("weight"), _write),
)
