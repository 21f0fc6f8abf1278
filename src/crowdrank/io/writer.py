"""`write`, `write_table` and appending: judgments and tables to files, or to the end of a file of judgments."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from crowdrank.data import Comparisons, Judgments, Rankings, Ratings
from crowdrank.errors import DataError, FormatError
from crowdrank.io.formats.registry import get_format, list_formats

if TYPE_CHECKING:
    from crowdrank.io.formats.base import Writer

# Tables for documents: Markdown, LaTeX, HTML and Excel, written with the standard library.

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
# Characters that XML 1.0 does not allow.
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_DECIMALS = 3
_BELOW_THIS_MORE_DECIMALS = 0.01


def write_markdown(frame: pl.DataFrame, path: Path) -> None:
    """Write a table of GitHub's Markdown."""
    rules = ["---:" if is_number else "---" for is_number in _numeric(frame)]
    rows = [frame.columns, rules, *([_markdown(cell) for cell in row] for row in _cells(frame))]
    path.write_text("".join(f"| {' | '.join(row)} |\n" for row in rows), encoding="utf-8")


def write_latex(frame: pl.DataFrame, path: Path) -> None:
    """Write a tabular environment with the rules of the package booktabs."""
    columns = "".join("r" if is_number else "l" for is_number in _numeric(frame))
    head = " & ".join(_latex(name.replace("_", " ")) for name in frame.columns)
    body = "".join(f"{' & '.join(map(_latex, row))} \\\\\n" for row in _cells(frame))
    text = f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{head} \\\\\n\\midrule\n{body}\\bottomrule\n\\end{{tabular}}\n"
    path.write_text(text, encoding="utf-8")


def write_html(frame: pl.DataFrame, path: Path) -> None:
    """Write a page that holds the table and nothing else."""
    align = [' style="text-align:right"' if is_number else "" for is_number in _numeric(frame)]
    head = "".join(f"<th{how}>{escape(name)}</th>" for name, how in zip(frame.columns, align, strict=True))
    rows = "".join(
        "<tr>" + "".join(f"<td{how}>{escape(cell)}</td>" for cell, how in zip(row, align, strict=True)) + "</tr>\n"
        for row in _cells(frame)
    )
    page = (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{escape(path.stem)}</title></head>\n'
        f"<body>\n<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</body>\n</html>\n"
    )
    path.write_text(page, encoding="utf-8")


def write_workbook(frame: pl.DataFrame, path: Path) -> None:
    """Write an Excel workbook with one sheet; numbers stay numbers."""
    lines = [_sheet_row(1, frame.columns)]
    lines += [_sheet_row(n, row) for n, row in enumerate(frame.iter_rows(), start=2)]
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="rId1" Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}">'
        '<sheets><sheet name="ranking" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        f'<Relationship Id="rId1" Type="{office}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{main}"><sheetData>{"".join(lines)}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n{text}')


def _sheet_row(number: int, values: Sequence[object]) -> str:
    cells = "".join(_sheet_cell(f"{_column_name(n)}{number}", value) for n, value in enumerate(values))
    return f'<row r="{number}">{cells}</row>'


def _sheet_cell(place: str, value: object) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<c r="{place}"><v>{value!r}</v></c>'
    text = escape(_NOT_IN_XML.sub("", str(value)), quote=False)
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>'


def _column_name(index: int) -> str:
    """
    >>> _column_name(0), _column_name(25), _column_name(26)
    ('A', 'Z', 'AA')
    """
    name, rest = "", index + 1
    while rest:
        rest, digit = divmod(rest - 1, 26)
        name = chr(ord("A") + digit) + name
    return name


def _numeric(frame: pl.DataFrame) -> list[bool]:
    return [kind.is_numeric() for kind in frame.dtypes]


def _cells(frame: pl.DataFrame) -> list[list[str]]:
    return [[_text(value) for value in row] for row in frame.iter_rows()]


def _text(value: object) -> str:
    """
    >>> _text(0.12345), _text(0.00012345), _text(12), _text(None)
    ('0.123', '0.000123', '12', '')
    """
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        small = 0 < abs(value) < _BELOW_THIS_MORE_DECIMALS
        return f"{value:.3g}" if small else f"{value:.{_DECIMALS}f}"
    return " ".join(str(value).split())


def _markdown(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


_Writers = dict[str, Callable[[pl.DataFrame, Path], object]]
_DATA_WRITERS: _Writers = {
    ".csv": lambda frame, path: frame.write_csv(path),
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".jsonl": lambda frame, path: frame.write_ndjson(path),
    ".ndjson": lambda frame, path: frame.write_ndjson(path),
    ".json": lambda frame, path: frame.write_json(path),
    ".parquet": lambda frame, path: frame.write_parquet(path),
}
_DOCUMENT_WRITERS: _Writers = {
    ".md": write_markdown,
    ".tex": write_latex,
    ".html": write_html,
    ".xlsx": write_workbook,
}
_TABLE_WRITERS: _Writers = {**_DATA_WRITERS, **_DOCUMENT_WRITERS}
SUFFIXES = tuple(_TABLE_WRITERS)
DATA_SUFFIXES = tuple(_DATA_WRITERS)
"""The suffixes of tables that are read back as they were; tables for documents round their numbers."""
# The suffixes of formats that other programs read as tables.
TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")

_KINDS = {Comparisons: "comparisons", Ratings: "ratings", Rankings: "rankings"}
_CONVERSION_RULES = {
    ("ratings", "comparisons"): "of two items that one annotator graded, the better grade wins and equal grades tie",
    ("rankings", "comparisons"): "every two items of a list, except those tied on its last place",
    ("comparisons", "rankings"): "each annotator's items by wins minus losses",
    ("ratings", "rankings"): "each annotator's items by grade",
    ("comparisons", "ratings"): "1 for the winner, 0 for the loser, ½ each for a tie",
    ("rankings", "ratings"): "the share of the other items that are below it",
}


def write(judgments: Judgments, path: str | PathLike[str], format: str = "tidy") -> list[str]:  # noqa: A002
    """Write judgments to a file.

    Parameters
    ----------
    judgments : Comparisons, Ratings or Rankings
        The judgments. They are converted if the format holds another kind.
    path : path
        The file. Its suffix must be one of the format.
    format : str, default "tidy"
        A format that can be written; ``crowdrank.io.list_formats()`` lists them.

    Returns
    -------
    list of str
        Sentences about conversions and omissions.

    Raises
    ------
    FormatError
        If the format cannot be written or cannot hold these judgments, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> votes = Comparisons.of(["x", "y"], ["y", "z"], ["x", "tie"], annotator=["ann", "bob"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(votes, Path(folder) / "votes.csv", "crowd-kit")
    ['1 tie was left out: crowd-kit has none.']
    """
    target, writer = Path(path), _writer(format)
    if target.suffix.lower() not in writer.suffixes:
        known = ", ".join(suffix or "nothing" for suffix in writer.suffixes)
        raise FormatError(
            f"{target.name}: {format} files end in {known}, got {target.suffix!r}.", remedy="Rename the file."
        )
    kind = _KINDS[type(judgments)]
    notes = []
    if kind not in writer.kinds:
        wanted = writer.kinds[0]
        notes.append(f"{kind.capitalize()} were converted to {wanted}: {_CONVERSION_RULES[kind, wanted]}.")
        judgments = _convert(judgments, wanted)
        if not len(judgments):
            raise FormatError(f"{target.name}: nothing is left to write. {notes[0]}")
    notes += writer.write(judgments, target)
    n_both_bad = judgments.n_both_bad if isinstance(judgments, Comparisons) else 0
    if n_both_bad and "both_bad" not in writer.optional_columns:
        notes.append(f"{n_both_bad:,} answers that both items are bad are plain ties in {format}.")
    if lost := [name for name in _optional_columns(judgments) if name not in writer.optional_columns]:
        notes.append(f"Left out, because {format} has no column for it: {', '.join(lost)}.")
    return notes


def _convert(judgments: Judgments, kind: str) -> Judgments:
    if isinstance(judgments, Rankings) and kind == "comparisons":
        return judgments.to_comparisons(ties="above_last")
    if isinstance(judgments, Ratings) and kind == "comparisons":
        return judgments.to_comparisons(ties="keep")
    converted: Judgments = getattr(judgments, f"to_{kind}")()
    return converted


def _optional_columns(judgments: Judgments) -> list[str]:
    """Return the optional columns that these judgments have."""
    names = ("annotator", "weight", "time", "duration")
    present = [name for name in names if getattr(judgments, name, None) is not None]
    queries = ["query"] if judgments.items.has_queries else []
    return present + queries + (["features"] if getattr(judgments, "features", None) else [])


def _writer(name: str) -> Writer:
    found = get_format(name).writer
    if found is None:
        known = ", ".join(known.name for known in list_formats() if known.writer is not None)
        raise FormatError(f"{name} can be read but not written.", remedy=f"Formats that can be written: {known}.")
    return found


def write_table(frame: pl.DataFrame, path: str | PathLike[str]) -> None:
    """Write a table.

    Parameters
    ----------
    frame : polars.DataFrame
        The table.
    path : path
        The file; its suffix is .csv, .tsv, .jsonl (.ndjson), .json, .parquet, .xlsx, .md, .tex (booktabs) or .html.

    Raises
    ------
    FormatError
        If the suffix is another, or the file cannot be written.
    """
    target = Path(path)
    write_frame = _TABLE_WRITERS.get(target.suffix.lower())
    if write_frame is None:
        raise FormatError(f"{target.name}: tables are written as {', '.join(SUFFIXES)}, got {target.suffix!r}.")
    guard_write(target, lambda: write_frame(frame, target))


def write_lines(lines: pl.Series, path: Path) -> None:
    """Write lines of text."""
    guard_write(path, lambda: path.write_text("\n".join(lines.to_list()) + "\n", encoding="utf-8"))


def guard_write(target: Path, write: Callable[[], object]) -> None:
    """Run a function that writes a file, and raise a `FormatError` if it fails."""
    try:
        write()
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise FormatError(f"{target}: cannot be written ({reason}).") from error


# New judgments at the end of a file of judgments, for leaderboards that are updated daily.

_SUFFIXES = {".csv": ",", ".tsv": "\t", ".jsonl": ""}


@dataclass(frozen=True)
class Addition:
    """Rows that were checked and can be appended to a file.

    Parameters
    ----------
    target : Path
        The file of judgments.
    text : str
        The rows, as they will stand there.
    rows : int
        Their number.
    """

    target: Path
    text: str
    rows: int

    def write(self) -> None:
        """Append the rows. The file is replaced in one step, so that nobody reads half of it."""
        held = self.target.read_bytes()
        end = b"" if not held or held.endswith(b"\n") else b"\n"
        fresh = self.target.with_name(f".{self.target.name}.new")
        fresh.write_bytes(held + end + self.text.encode())
        os.replace(fresh, self.target)


def check_addition(target: str | Path, source: str | Path) -> Addition:
    """Check that the rows of a file can be appended to another, and return them.

    Parameters
    ----------
    target : path
        The file of judgments: .csv, .tsv or .jsonl.
    source : path
        The new judgments, in a file of the same kind with the same columns, in any order.

    Returns
    -------
    Addition
        The rows; `write` appends them.

    Raises
    ------
    FormatError
        If the files have other columns or are of another kind.
    DataError
        If there are no rows, or the file ends with these rows already.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "votes.csv").write_text("left,right,winner\\na,b,a\\n")
    >>> _ = (folder / "new.csv").write_text("winner,left,right\\nc,a,c\\n")
    >>> check_addition(folder / "votes.csv", folder / "new.csv").write()
    >>> (folder / "votes.csv").read_text().splitlines()[-1]
    'a,c,c'
    """
    target, source = Path(target), Path(source)
    suffix, other = target.suffix.lower(), source.suffix.lower()
    if suffix not in _SUFFIXES or other not in _SUFFIXES or (suffix == ".jsonl") != (other == ".jsonl"):
        raise FormatError(f"{source.name} cannot be appended to {target.name}: both must be .csv or .tsv, or .jsonl.")
    for path in (target, source):
        if not path.is_file():
            raise FormatError(f"{path}: no such file.")
    if suffix == ".jsonl":
        held, fresh = (_lines(path) for path in (target, source))
    else:
        held, fresh = _csv_rows(target, source)
    if not fresh:
        raise DataError(f"{source.name} has no rows to append.")
    if held[-len(fresh) :] == fresh:
        raise DataError(f"{target.name} ends with the rows of {source.name} already: they were appended before.")
    return Addition(target, "".join(f"{row}\n" for row in fresh), len(fresh))


def _lines(path: Path) -> list[str]:
    """Lines of JSON, each checked."""
    lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    for number, line in enumerate(lines, 1):
        try:
            json.loads(line)
        except ValueError as error:
            raise FormatError(f"{path.name}, line {number}: not valid JSON.") from error
    return lines


def _csv_rows(target: Path, source: Path) -> tuple[list[str], list[str]]:
    """Rows of both files as they would stand in the target, without the header."""
    held, fresh = _table(target), _table(source)
    if sorted(held[0]) != sorted(fresh[0]):
        missing, more = (sorted(set(a) - set(b)) for a, b in ((held[0], fresh[0]), (fresh[0], held[0])))
        found = [f"without {', '.join(missing)}"] if missing else []
        found += [f"with {', '.join(more)}"] if more else []
        raise FormatError(
            f"{source.name} has other columns than {target.name}: {' and '.join(found) or 'another number'}."
        )
    order = [fresh[0].index(name) for name in held[0]]
    delimiter = _delimiter(target)

    def written(row: list[str]) -> str:
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter, lineterminator="").writerow(row)
        return text.getvalue()

    for number, row in enumerate(fresh[1:], 2):
        if len(row) != len(order):
            raise FormatError(f"{source.name}, row {number}: {len(row)} cells, but there are {len(order)} columns.")
    return [written(row) for row in held[1:]], [written([row[n] for n in order]) for row in fresh[1:]]


def _table(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.reader(file, delimiter=_delimiter(path)) if row]
    if not rows:
        raise DataError(f"{path.name} is empty.")
    return rows


def _delimiter(path: Path) -> str:
    """The delimiter that the header has most of; a comma or a tab by the name of the file if there is none."""
    with path.open(encoding="utf-8-sig") as file:
        header = file.readline()
    best = max(",;\t|", key=header.count)
    return best if header.count(best) else _SUFFIXES[path.suffix.lower()]
