"""The layout of delimited text: comment lines, the delimiter, and whether the first line names the columns."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from crowdrank.io.synonyms import NAMES_BY_ROLE, normalize_name

DELIMITERS = ",;\t|"
_HEAD_BYTES, _HEAD_LINES, _MOST_LINES = 1 << 16, 50, 0.5
_MAX_TITLES, _MIN_LINES = 5, 4
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
# Words that are as often values as names of columns.
_ALSO_VALUES = frozenset(
    "a b c x y l r p1 p2 first second left right lhs rhs home away white black choice answer".split()  # noqa: SIM905
)
_KNOWN_NAMES = (
    frozenset(name for tiers in NAMES_BY_ROLE.values() for tier in tiers for name in tier)
    | frozenset(["id", "name", "text", "title", "prompt", "question", "value", "gold", "truth", "quota", "group"])
) - _ALSO_VALUES


def blank_comments(data: bytes) -> bytes:
    """Return text whose comment lines (#) are empty, if it begins with one; a commented header loses its sign."""
    if not data.lstrip().startswith(b"#"):
        return data
    lines = data.split(b"\n")
    if all(line.lstrip().startswith(b"#") for line in lines if line.strip()):
        return data
    first = next(n for n, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(b"#"))
    last = max(n for n in range(first) if lines[n].strip())
    found = [b"" if line.lstrip().startswith(b"#") else line for line in lines]
    names = re.split(r"[,;|\s]+", lines[last].decode("utf-8", "replace").strip("# \t"))
    if len(names) > 1 and sum(normalize_name(name) in _KNOWN_NAMES | _ALSO_VALUES for name in names) > 1:
        found[last] = lines[last].lstrip().lstrip(b"# \t")
    return b"\n".join(found)


def without_titles(body: bytes) -> bytes:
    """Return text without lines of a title above its header: lines without the delimiter that all others have."""
    lines = body[:_HEAD_BYTES].decode("utf-8", "replace").split("\n")[:_HEAD_LINES]
    first = next((n for n, line in enumerate(lines) if any(sign in line for sign in DELIMITERS)), 0)
    rest = [line for line in lines[first:] if line.strip()]
    if not 0 < first <= _MAX_TITLES or len(rest) < _MIN_LINES or '"' in "".join(lines[:first]):
        return body
    # Not a list of single names with a comma somewhere: every line has the same number of fields.
    if not any(len({line.count(sign) for line in rest}) == 1 and sign in rest[0] for sign in DELIMITERS):
        return body
    return body.split(b"\n", first)[first]


def title_notes(lines: int) -> tuple[str, ...]:
    """Return the remark that lines above the header were left out, if there are any."""
    if not lines:
        return ()
    above = "The line above the header was" if lines == 1 else f"The {lines} lines above the header were"
    return (f"{above} taken for a title. If there is none, pass header=False.",)


def find_delimiter(body: bytes, prefer: str) -> tuple[bytes, str]:
    """Return the text and its delimiter; text that is separated by spaces or in several ways gets tabs."""
    lines = _head_lines(body)
    if len(counts := {line.count("::") for line in lines}) == 1 and min(counts) > 1:
        return body.replace(b"::", b"\t"), "\t"
    outside_quotes = re.sub(r'"[^"]*"', "", lines[0])
    best = max(prefer + DELIMITERS, key=outside_quotes.count)
    if b'"' in body[:_HEAD_BYTES]:
        return body, best
    if best not in lines[0]:
        counts = {len(line.split()) for line in lines}
        by_space = len(lines) > 1 and len(counts) == 1 and min(counts) > 1
        return (_with_tabs(body, rb"[ \t]+"), "\t") if by_space else (body, best)
    # Decimal commas, or several answers in one cell: another sign separates fields.
    if best == "," and not _names_columns(lines[0].split(",")):
        other = next((sign for sign in ";|\t" if _count_fields(lines, sign) > 1), best)
        if other != best:
            return body, other
    if _count_fields(lines, best) == 0:
        for sign in DELIMITERS:
            if _count_fields(lines, sign) > 1:
                return body, sign
        for mixed in (r"[ \t]*[,;|\t][ \t]*", r"[ \t]*[,;|\t ][ \t]*"):
            if len(counts := {len(re.split(mixed, line.strip())) for line in lines}) == 1 and min(counts) > 1:
                return _with_tabs(body, mixed.encode()), "\t"
    return body, best


def _head_lines(body: bytes) -> list[str]:
    lines = body[:_HEAD_BYTES].decode("utf-8", "replace").split("\n")
    complete = lines if len(body) <= _HEAD_BYTES or len(lines) == 1 else lines[:-1]
    return [line for line in complete if line.strip()][:_HEAD_LINES] or [""]


def _count_fields(lines: Sequence[str], sign: str) -> int:
    """Return the number of fields of every line; 0 if most lines differ from the first."""
    counts = [line.rstrip().count(sign) + 1 for line in lines]
    same = sum(count == counts[0] for count in counts)
    if counts[0] == 1:
        return 1 if same == len(counts) else 0
    return counts[0] if same > _MOST_LINES * len(counts) or len(counts) < 3 else 0


def _with_tabs(body: bytes, pattern: bytes) -> bytes:
    return re.sub(pattern, b"\t", re.sub(rb"(?m)^[ \t]+|[ \t]+$", b"", body))


def _names_columns(fields: Sequence[str]) -> bool:
    return any(normalize_name(field) in _KNOWN_NAMES for field in fields)


def has_header(body: bytes, delimiter: str) -> bool:
    """Return whether the first line names the columns.

    It does not if none of its fields is a known name and one of them is a number above numbers, or is repeated in its
    column: names of columns are not.
    """
    csv.field_size_limit(max(csv.field_size_limit(), (1 << 31) - 1))
    try:
        rows = [row for row in csv.reader(_head_lines(body), delimiter=delimiter) if row]
    except csv.Error:
        return True
    if len(rows) < 2 or len(rows[0]) < 2:
        return len(rows) < 2 or not all(len(row) == 1 and ">" in row[0] for row in rows)  # lines such as a>b>c
    columns = [[row[n].strip() for row in rows[1:] if n < len(row) and row[n].strip()] for n in range(len(rows[0]))]
    first = [field.strip() for field in rows[0]]
    pairs = list(zip(first, columns, strict=True))
    if any(normalize_name(field) in _KNOWN_NAMES and field not in cells for field, cells in pairs):
        return True
    return not any(_is_value(field, cells) for field, cells in pairs)


def _is_value(field: str, cells: Sequence[str]) -> bool:
    """Return whether a field of the first line looks like the cells below it."""
    if not field or not cells:
        return False
    if _NUMBER.fullmatch(field):
        return all(_NUMBER.fullmatch(cell) for cell in cells)
    return field in cells
