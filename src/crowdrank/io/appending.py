"""New judgments at the end of a file of judgments, for leaderboards that are updated daily."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path

from crowdrank.errors import DataError, FormatError

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
