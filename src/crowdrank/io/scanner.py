"""`scan`: comparisons from files larger than memory, read once in batches and kept as codes in files."""

from __future__ import annotations

import glob
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
from crowdrank.data.chunks import ColumnStore, TemporaryFolder, remap_codes, write_columns
from crowdrank.data.comparisons import stored_columns
from crowdrank.data.tables import MAX_LISTED, ImportReport, MalformedRow
from crowdrank.errors import DataWarning, FormatError, issue_warning
from crowdrank.io.builders import build_comparisons
from crowdrank.io.column_roles import RoleMatch, match_roles
from crowdrank.io.column_roles import stored_columns as stored_columns_of
from crowdrank.io.delimited import DELIMITERS
from crowdrank.io.rows import Rows, too_few_usable
from crowdrank.io.source_table import SourceTable, dedupe_names, table_from_frame
from crowdrank.io.sources import PARQUET_SUFFIXES

# Rows read at a time: about fifty megabytes of labels.
ROWS_PER_BATCH = 1 << 18
_SUFFIXES = (*PARQUET_SUFFIXES, ".csv", ".tsv", ".tab")
_HEADER_BYTES = 1 << 16

Progress = Callable[[int], None]


def scan(
    source: str | PathLike[str],
    *,
    columns: Mapping[str, str | None] | None = None,
    strict: bool = False,
    folder: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    warn: bool = True,
) -> Comparisons:
    """Read comparisons from files that may be larger than memory.

    The files are read once. Their rows are kept as codes, 13 bytes per judgment (one more if some say that both items
    are bad), in temporary files that are deleted
    when the result is no longer used. Times, durations and features are not kept.

    Parameters
    ----------
    source : path
        A Parquet or CSV file, a folder of such files, or a pattern such as ``votes/*.parquet``.
    columns : mapping of str to str or None, optional
        The column of a role; None for a role without a column. The other roles are guessed.
    strict : bool, default False
        Raise an error for the first row that cannot be used.
    folder : path, optional
        Where to keep the temporary files. For a Dask cluster, a folder that all machines can read.
    progress : callable, optional
        Called with the number of rows read so far.
    warn : bool, default True
        Emit a `DataWarning` if rows could not be used.

    Returns
    -------
    Comparisons
        Its columns are memory-mapped, and its `import_report` says how each row was handled.
    """
    files = [_FileReader(path) for path in _find_files(str(source))]
    scanning = _Scan(match_roles(files[0].table, "comparisons", columns), strict, progress)
    temporary = TemporaryFolder(None if folder is None else Path(folder))
    try:
        store = write_columns(scanning.encoded_batches(files), temporary)
        scanning.finish_checks(str(source))
        report = scanning.report(str(source))
        if warn and (sentence := report.dropped_summary()):
            issue_warning(sentence, DataWarning, stacklevel=2)
        return scanning.comparisons(store, report)
    except BaseException:
        temporary.remove()
        raise


def scan_with_report(
    source: str | PathLike[str],
    *,
    columns: Mapping[str, str | None] | None = None,
    strict: bool = False,
    folder: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> tuple[Comparisons, ImportReport]:
    """Scan without a warning, and return the comparisons with their import report. Parameters as for `scan`."""
    found = scan(source, columns=columns, strict=strict, folder=folder, progress=progress, warn=False)
    assert found.import_report is not None
    return found, found.import_report


def _find_files(source: str) -> list[Path]:
    """Return the files of a source, sorted by name."""
    path = Path(source)
    if path.is_dir():
        found = [file for file in path.rglob("*") if not file.name.startswith((".", "_"))]
    else:
        found = [path] if path.exists() else [Path(name) for name in glob.glob(source, recursive=True)]
    files = sorted(file for file in found if file.suffix.lower() in _SUFFIXES and file.is_file())
    if not files:
        raise FormatError(f"{source}: no file with one of the suffixes {', '.join(_SUFFIXES)}.")
    return files


class _FileReader:
    """Reads one file in batches."""

    def __init__(self, path: Path):
        self.path, self.text = path, path.suffix.lower() not in PARQUET_SUFFIXES
        self.lazy = self._guard(lambda: _open_text(path) if self.text else pl.scan_parquet(path))
        self.stored = self._guard(lambda: self.lazy.collect_schema().names())
        self.columns, self.repeated_names = dedupe_names([name.strip() for name in self.stored])

    @property
    def table(self) -> SourceTable:
        """The columns, without rows."""
        empty = table_from_frame(pl.DataFrame({name: [] for name in self.columns}), self.path.name)
        return replace(empty, repeated_names=self.repeated_names)

    def batches(self, wanted: Sequence[str]) -> Iterator[SourceTable]:
        if missing := [name for name in wanted if name not in self.columns]:
            raise FormatError(
                f"{self.path.name}: no column {missing[0]!r}, which the first file has.",
                remedy="All files need the same columns.",
            )
        positions = [self.columns.index(name) for name in wanted]
        chosen = self.lazy.select(pl.nth(position) for position in positions)
        batches = self._guard(lambda: chosen.collect_batches(chunk_size=ROWS_PER_BATCH, maintain_order=True))
        while (frame := self._guard(lambda: next(batches, None))) is not None:
            columns = {name: frame.get_column(self.stored[n]) for n, name in zip(positions, wanted, strict=True)}
            yield replace(table_from_frame(pl.DataFrame(columns), self.path.name), strip_spaces=self.text)

    def _guard(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = str(error).strip().split("\n", 1)[0]
            raise FormatError(f"{self.path.name}: cannot be read ({reason}).") from error


def _open_text(path: Path) -> pl.LazyFrame:
    """Open a text file; the delimiter is the one that splits the header into most fields."""
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES).decode("utf-8", "replace").lstrip().split("\n", 1)[0]
    return pl.scan_csv(path, separator=max(DELIMITERS, key=header.count), infer_schema=False)


def _map_ahead(work: Callable[[Any], Any], inputs: Iterator[Any]) -> Iterator[Any]:
    """Map `work` over inputs in order, and start the next while one is used: at most two results exist at a time."""
    with ThreadPoolExecutor(2) as threads:
        earlier: Future[Any] | None = None
        for one in inputs:
            later = threads.submit(work, one)
            if earlier is not None:
                yield earlier.result()
            earlier = later
        if earlier is not None:
            yield earlier.result()


class _Batch(Rows):
    """The rows of one batch; it may have few usable rows, or none."""

    counts_duplicates = False

    def finish_checks(self) -> None:
        if self.strict and self.errors.count:
            raise FormatError(f"{self.table.name}: {self._first(1)}")


class _Vocabulary:
    """Codes for names, in the order in which they first appear."""

    def __init__(self) -> None:
        self.codes: dict[Any, int] = {}

    def encode(self, names: Sequence[Any]) -> Int32Array:
        codes = self.codes
        return np.array([codes.setdefault(name, len(codes)) for name in names], np.int32)

    def sorted(self) -> tuple[list[Any], Int32Array]:
        """Return the names in sorted order, and the position there of each code."""
        names = sorted(self.codes)
        position = np.empty(len(names), np.int32)
        position[self.encode(names)] = np.arange(len(names), dtype=np.int32)
        return names, position


@dataclass
class _Scan:
    """One scan of the files: the codes of names, and the counts for the import report."""

    match: RoleMatch
    strict: bool
    progress: Progress | None
    items: _Vocabulary = field(default_factory=_Vocabulary)
    annotators: _Vocabulary = field(default_factory=_Vocabulary)
    rows_read: int = 0
    kept: int = 0
    ties: int = 0
    both_bad: int = 0
    skips: int = 0
    self_comparisons: int = 0
    malformed_count: int = 0
    malformed: list[MalformedRow] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)

    def encoded_batches(self, files: Sequence[_FileReader]) -> Iterator[dict[str, Any]]:
        """Iterate over the columns of batches, encoded in order of appearance."""
        wanted = [column for role, column in self.match.roles.items() if role not in ("time", "duration")]
        roles = {role: column for role, column in self.match.roles.items() if column in wanted}
        match = replace(self.match, roles=roles)
        stored = list(dict.fromkeys(c for name in wanted for c in stored_columns_of(name, files[0].columns)))
        batches = ((file, table) for file in files for table in file.batches(stored))

        def read(batch: tuple[_FileReader, SourceTable]) -> tuple[_FileReader, _Batch, Comparisons]:
            rows = _Batch(batch[1], match, strict=self.strict)
            return batch[0], rows, build_comparisons(rows)

        current, rows_before = None, 0
        for file, rows, found in _map_ahead(read, batches):
            current, rows_before = file, rows_before if file is current else 0
            self._count(rows, rows_before, file.path.name if len(files) > 1 else "")
            rows_before += rows.table.rows
            if len(found):
                yield self._encode(found)
            if self.progress is not None:
                self.progress(self.rows_read)

    def _encode(self, found: Comparisons) -> dict[str, Any]:
        items = found.items
        names = zip(items.queries[items.query], items.labels, strict=True) if items.has_queries else items.labels
        code = self.items.encode(list(names))
        columns = stored_columns(found) | {"left": code[found.left], "right": code[found.right]}
        if found.annotator is not None:
            columns["annotator"] = self.annotators.encode(found.annotators.tolist())[found.annotator]
        return columns

    def _count(self, rows: _Batch, rows_before: int, file: str) -> None:
        problems, counts = rows.errors, rows.counts
        self.rows_read += problems.rows_read
        self.kept += int(np.count_nonzero(problems.usable))
        self.ties += counts.ties
        self.both_bad += counts.both_bad
        self.skips += counts.skips
        self.self_comparisons += counts.self_comparisons
        self.malformed_count += problems.count
        self.notes |= dict.fromkeys(counts.notes)
        if problems.count and len(self.malformed) < MAX_LISTED:
            where = f" ({file})" if file else ""
            self.malformed += [
                MalformedRow(m.line + rows_before, m.column, m.reason + where)
                for m in problems.malformed(MAX_LISTED - len(self.malformed))
            ]

    def finish_checks(self, name: str) -> None:
        """Raise an error if too few rows of the source can be used."""
        if not self.rows_read:
            raise FormatError(f"{name}: has columns but no rows.")
        if not self.kept or 2 * self.malformed_count > self.rows_read:
            examples = " ".join(m.sentence("row") for m in self.malformed[:3])
            raise too_few_usable(name, self.match, self.malformed_count, self.rows_read, examples)

    def comparisons(self, store: ColumnStore, report: ImportReport) -> Comparisons:
        """Return the rows in files, after their codes have been changed to the sorted order of the names."""
        names, item_code = self.items.sorted()
        new_codes = {"left": item_code, "right": item_code}
        annotators, annotator_code = self.annotators.sorted()
        if annotators:
            new_codes["annotator"] = annotator_code
        remap_codes(store, new_codes)
        items = _items_in_queries(names) if "query" in self.match.roles else Items.of(names)
        columns: dict[str, Any] = {**store.load_all(), "annotators": _labels(annotators), "storage": store}
        positions_known = "left" in self.match.roles
        return Comparisons(items=items, **columns, positions_known=positions_known, import_report=report)

    def report(self, name: str) -> ImportReport:
        return ImportReport(
            source=name,
            kind="comparisons",
            format="tidy",
            columns=dict(self.match.roles),
            rows_read=self.rows_read,
            kept=self.kept,
            ties=self.ties,
            both_bad=self.both_bad,
            skips=self.skips,
            malformed_count=self.malformed_count,
            self_comparisons=self.self_comparisons,
            malformed=tuple(self.malformed),
            unit="row",
            notes=(*self.match.notes, *self.notes),
        )


def _items_in_queries(names: Sequence[tuple[str, str]]) -> Items:
    queries = sorted({query for query, _ in names})
    code = {query: n for n, query in enumerate(queries)}
    of_item = np.array([code[query] for query, _ in names], np.int32)
    return Items(_labels([label for _, label in names]), of_item, _labels(queries))


def _labels(names: Sequence[str]) -> ObjectArray:
    return np.array(names, dtype=object)
