"""Files larger than memory: read once, a batch at a time, and kept as codes in files of our own."""

from __future__ import annotations

import glob
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crowdrank.arrays import Int32Array, ObjectArray
from crowdrank.data import Comparisons, Items
from crowdrank.data.chunks import Folder, Storage, renumber, store
from crowdrank.data.comparisons import columns_of
from crowdrank.errors import DataWarning, FormatError
from crowdrank.io.builders import comparisons
from crowdrank.io.delimited import DELIMITERS
from crowdrank.io.import_report import MOST_LISTED, ImportReport, Malformed
from crowdrank.io.role_matching import Match, match
from crowdrank.io.rows import Rows
from crowdrank.io.tables import Table, table_of, told_apart

# Rows read at a time: some fifty megabytes of labels.
ROWS_AT_ONCE = 1 << 18
_PARQUET = (".parquet", ".pq")
_SUFFIXES = (*_PARQUET, ".csv", ".tsv", ".tab")
_HEAD = 1 << 16

Tell = Callable[[int], None]


def scan(
    source: str | PathLike[str],
    *,
    columns: Mapping[str, str | None] | None = None,
    strict: bool = False,
    folder: str | PathLike[str] | None = None,
) -> Comparisons:
    """Comparisons of a Parquet or CSV file, a folder of such files or a pattern (`votes/*.parquet`), of any length.

    They are read once and kept as codes, 13 bytes a judgment, in files below `folder` (of the system's choice if None;
    for a Dask cluster one that all its machines see), which go when nobody needs them any more. `columns` and `strict`
    are as in `read`. Times, durations and features are left where they are.
    """
    found, report = scan_with_report(source, columns=columns, strict=strict, folder=folder)
    if sentence := report.dropped():
        warnings.warn(sentence, DataWarning, stacklevel=2)
    return found


def scan_with_report(
    source: str | PathLike[str],
    *,
    columns: Mapping[str, str | None] | None = None,
    strict: bool = False,
    folder: str | PathLike[str] | None = None,
    tell: Tell | None = None,
) -> tuple[Comparisons, ImportReport]:
    """Like `scan`, with an account of every row in place of the warning; `tell` hears how many were read so far."""
    parts = [_Parted(path) for path in _files(str(source))]
    reading = _Reading(match(parts[0].table, "comparisons", columns), strict, tell)
    kept = Folder(None if folder is None else Path(folder))
    try:
        stored = store(reading.pieces(parts), kept)
        reading.settle(str(source))
        return reading.named(stored), reading.report(str(source))
    except BaseException:
        kept.remove()
        raise


def is_long(source: str | PathLike[str]) -> bool:
    """Whether this is a folder, or a pattern: what only `scan` can read."""
    return Path(source).is_dir() or (glob.has_magic(str(source)) and not Path(source).exists())


def _files(source: str) -> list[Path]:
    """All that belongs to a source, in the order of the names."""
    path = Path(source)
    if path.is_dir():
        found = [file for file in path.rglob("*") if not file.name.startswith((".", "_"))]
    else:
        found = [path] if path.exists() else [Path(name) for name in glob.glob(source, recursive=True)]
    files = sorted(file for file in found if file.suffix.lower() in _SUFFIXES and file.is_file())
    if not files:
        raise FormatError(f"{source}: no file that ends in {', '.join(_SUFFIXES)}.")
    return files


class _Parted:
    """One file, to be read a batch at a time."""

    def __init__(self, path: Path):
        self.path, self.text = path, path.suffix.lower() not in _PARQUET
        self.lazy = self._refusing(lambda: _open_text(path) if self.text else pl.scan_parquet(path))
        self.stored = self._refusing(lambda: self.lazy.collect_schema().names())
        self.columns, self.repeated = told_apart([name.strip() for name in self.stored])

    @property
    def table(self) -> Table:
        """Its columns, without rows."""
        empty = table_of(pl.DataFrame({name: [] for name in self.columns}), self.path.name)
        return replace(empty, repeated=self.repeated)

    def batches(self, wanted: Sequence[str]) -> Iterator[Table]:
        if missing := [name for name in wanted if name not in self.columns]:
            raise FormatError(f"{self.path.name}: no column {missing[0]!r}, which the first file has.")
        places = [self.columns.index(name) for name in wanted]
        chosen = self.lazy.select(pl.nth(place) for place in places)
        batches = self._refusing(lambda: chosen.collect_batches(chunk_size=ROWS_AT_ONCE, maintain_order=True))
        while (frame := self._refusing(lambda: next(batches, None))) is not None:
            columns = {name: frame.get_column(self.stored[place]) for place, name in zip(places, wanted, strict=True)}
            yield replace(table_of(pl.DataFrame(columns), self.path.name), trimmed=self.text)

    def _refusing(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = str(error).strip().split("\n", 1)[0]
            raise FormatError(f"{self.path.name}: cannot be read ({reason}).") from error


def _open_text(path: Path) -> pl.LazyFrame:
    """Fields are separated by what splits the header into most of them."""
    with path.open("rb") as file:
        header = file.read(_HEAD).decode("utf-8", "replace").lstrip().split("\n", 1)[0]
    return pl.scan_csv(path, separator=max(DELIMITERS, key=header.count), infer_schema=False)


def _two_at_a_time(work: Callable[[Any], Any], given: Iterator[Any]) -> Iterator[Any]:
    """What `work` makes of each, in order, while it works on the next: no more than two are there at once."""
    with ThreadPoolExecutor(2) as threads:
        earlier: Future[Any] | None = None
        for one in given:
            later = threads.submit(work, one)
            if earlier is not None:
                yield earlier.result()
            earlier = later
        if earlier is not None:
            yield earlier.result()


class _Batch(Rows):
    """Rows of one batch, of which few, or none, may be usable."""

    counts_repeats = False

    def settle(self) -> None:
        if self.strict and self.problems.count:
            raise FormatError(f"{self.table.name}: {self._first(1)}")


class _Names:
    """Codes for names as they come."""

    def __init__(self) -> None:
        self.codes: dict[Any, int] = {}

    def code(self, names: Sequence[Any]) -> Int32Array:
        codes = self.codes
        return np.array([codes.setdefault(name, len(codes)) for name in names], np.int32)

    def sorted(self) -> tuple[list[Any], Int32Array]:
        """The names in order, and the place there of each code."""
        names = sorted(self.codes)
        place = np.empty(len(names), np.int32)
        place[self.code(names)] = np.arange(len(names), dtype=np.int32)
        return names, place


@dataclass
class _Reading:
    """What is learnt of the rows while they pass."""

    match: Match
    strict: bool
    tell: Tell | None
    items: _Names = field(default_factory=_Names)
    annotators: _Names = field(default_factory=_Names)
    rows_read: int = 0
    kept: int = 0
    ties: int = 0
    skips: int = 0
    self_comparisons: int = 0
    malformed_count: int = 0
    malformed: list[Malformed] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)

    def pieces(self, parts: Sequence[_Parted]) -> Iterator[dict[str, Any]]:
        """The columns of one batch after another, in codes that are given as names come."""
        wanted = [column for role, column in self.match.roles.items() if role not in ("time", "duration")]
        roles = {role: column for role, column in self.match.roles.items() if column in wanted}
        named = replace(self.match, roles=roles)
        batches = ((part, table) for part in parts for table in part.batches(wanted))

        def read(batch: tuple[_Parted, Table]) -> tuple[_Parted, _Batch, Comparisons]:
            rows = _Batch(batch[1], named, strict=self.strict)
            return batch[0], rows, comparisons(rows)

        file, before = None, 0
        for part, rows, found in _two_at_a_time(read, batches):
            file, before = part, before if part is file else 0
            self._account(rows, before, part.path.name if len(parts) > 1 else "")
            before += rows.table.rows
            if len(found):
                yield self._coded(found)
            if self.tell is not None:
                self.tell(self.rows_read)

    def _coded(self, found: Comparisons) -> dict[str, Any]:
        items = found.items
        names = zip(items.queries[items.query], items.labels, strict=True) if items.has_queries else items.labels
        place = self.items.code(list(names))
        columns = columns_of(found) | {"left": place[found.left], "right": place[found.right]}
        if found.annotator is not None:
            columns["annotator"] = self.annotators.code(found.annotators.tolist())[found.annotator]
        return columns

    def _account(self, rows: _Batch, before: int, file: str) -> None:
        problems, counted = rows.problems, rows.counted
        self.rows_read += problems.rows_read
        self.kept += int(np.count_nonzero(problems.usable))
        self.ties += counted.ties
        self.skips += counted.skips
        self.self_comparisons += counted.self_comparisons
        self.malformed_count += problems.count
        self.notes |= dict.fromkeys(counted.notes)
        if problems.count and len(self.malformed) < MOST_LISTED:
            where = f" ({file})" if file else ""
            self.malformed += [
                Malformed(m.line + before, m.column, m.reason + where)
                for m in problems.malformed(MOST_LISTED - len(self.malformed))
            ]

    def settle(self, name: str) -> None:
        """All was read: refuse what is of little use."""
        if not self.rows_read:
            raise FormatError(f"{name}: has columns but no rows.")
        if not self.kept or 2 * self.malformed_count > self.rows_read:
            roles = ", ".join(f"{column!r} as {role}" for role, column in self.match.roles.items())
            first = " ".join(m.sentence("row") for m in self.malformed[:3])
            raise FormatError(
                f"{name}: {self.malformed_count:,} of {self.rows_read:,} rows cannot be used, so the columns may mean "
                f"something else ({roles}). {first} Say what they are: --column ROLE=COLUMN (columns={{…}})."
            )

    def named(self, stored: Storage) -> Comparisons:
        """The rows in files, in codes of the names in their order."""
        names, place = self.items.sorted()
        places = {"left": place, "right": place}
        annotators, places_of_people = self.annotators.sorted()
        if annotators:
            places["annotator"] = places_of_people
        renumber(stored, places)
        items = _items_in_queries(names) if "query" in self.match.roles else Items.plain(names)
        columns: dict[str, Any] = {**stored.whole(), "annotators": _labels(annotators), "stored": stored}
        return Comparisons(items=items, **columns, sided="left" in self.match.roles)

    def report(self, name: str) -> ImportReport:
        return ImportReport(
            source=name,
            kind="comparisons",
            format="tidy",
            columns=dict(self.match.roles),
            rows_read=self.rows_read,
            kept=self.kept,
            ties=self.ties,
            skips=self.skips,
            malformed_count=self.malformed_count,
            self_comparisons=self.self_comparisons,
            malformed=tuple(self.malformed),
            unit="row",
            notes=(*self.match.notes, *self.notes),
        )


def _items_in_queries(names: Sequence[tuple[str, str]]) -> Items:
    queries = sorted({query for query, _ in names})
    code = {query: place for place, query in enumerate(queries)}
    of_item = np.array([code[query] for query, _ in names], np.int32)
    return Items(_labels([label for _, label in names]), of_item, _labels(queries))


def _labels(names: Sequence[str]) -> ObjectArray:
    return np.array(names, dtype=object)
