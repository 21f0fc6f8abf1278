"""Tables for documents: Markdown, LaTeX, HTML and Excel, written with the standard library."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

import polars as pl

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
