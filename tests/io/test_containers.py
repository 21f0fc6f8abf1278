"""Compressed files, archives, workbooks, standard input, folders and several files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zipfile
from pathlib import Path

import polars as pl
import pytest

from crowdrank.errors import FormatError
from crowdrank.io import read, read_with_report

TEXT = "left,right,winner\nx,y,x\n\ny,z,tie\nz,x,q\n"
# TEXT as one raw block of Zstandard: frame header, block header (last block, its length), content, no checksum.
ZSTD = b"\x28\xb5\x2f\xfd\x20" + bytes([len(TEXT)]) + (len(TEXT) << 3 | 1).to_bytes(3, "little") + TEXT.encode()


def check(source: object) -> None:
    found, report = read_with_report(source)
    assert len(found) == 2
    assert [m.line for m in report.malformed] == [5]


@pytest.mark.parametrize(
    ("suffix", "data"),
    [
        (".gz", gzip.compress(TEXT.encode())),
        (".bz2", bz2.compress(TEXT.encode())),
        (".xz", lzma.compress(TEXT.encode())),
        (".zst", ZSTD),
    ],
    ids=["gzip", "bzip2", "xz", "zstandard"],
)
def test_compressed_text_is_read_and_cut_text_refused(tmp_path: Path, suffix: str, data: bytes) -> None:
    path = tmp_path / f"votes.csv{suffix}"
    path.write_bytes(data)
    check(path)
    path.write_bytes(data[:-8])
    with pytest.raises(FormatError, match="is not a complete"):
        read(path)
    path.write_bytes(b"left,right")
    with pytest.raises(FormatError, match="is not a complete"):
        read(path)


def zipped(members: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_an_archive_is_read_without_what_describes_it(tmp_path: Path) -> None:
    path = tmp_path / "votes.zip"
    path.write_bytes(zipped({"README.md": "hi", "__MACOSX/votes.csv": "junk", "data/votes.csv": TEXT}))
    check(path)
    path.write_bytes(zipped({"a.csv": TEXT, "b.csv": TEXT}))
    assert len(read(path, warn=False)) == 4
    path.write_bytes(zipped({"README.md": "hi"}))
    with pytest.raises(FormatError, match="contains no data file"):
        read(path)
    path.write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(FormatError, match="not a complete zip"):
        read(path)


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (TEXT.encode(), gzip.compress(TEXT.encode()), zipped({"votes.csv": TEXT})):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        check("-")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'[{"left":"x","right":"y","winner":"y"}]')))
    assert len(read("-")) == 1


def test_addresses_are_refused_in_a_sentence() -> None:
    for address in ("https://example.org/votes.csv", Path("http://example.org/votes.csv"), "hf://datasets/x"):
        with pytest.raises(FormatError, match=r"URLs are not read\. Download the file"):
            read(address)


def test_an_address_keeps_its_slashes_as_a_path() -> None:
    with pytest.raises(FormatError, match=r"^https://example\.org/votes\.csv: URLs"):
        read(Path("https://example.org/votes.csv"))


def test_a_missing_file_suggests_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text(TEXT)
    with pytest.raises(FormatError, match=r"there is no such file\. Did you mean .*votes\.csv"):
        read(tmp_path / "vote.csv")
    with pytest.raises(FormatError, match=r"there is no such file\.$"):
        read(tmp_path / "nowhere" / "else.txt")


def test_data_that_are_not_text_are_not_taken_for_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "votes"
    path.write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 4)
    with pytest.raises(FormatError, match="not plain text. Export it") as caught:
        read(path)
    assert "utf-16" not in str(caught.value)


def test_several_files_are_read_together_and_name_the_file_of_a_fault(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(TEXT)
    for source in ([tmp_path / "a.csv", tmp_path / "b.csv"], str(tmp_path / "*.csv"), tmp_path):
        found, report = read_with_report(source)
        assert (len(found), report.rows_read) == (4, 6)
        assert [(m.line, m.reason[-7:]) for m in report.malformed] == [(5, "(a.csv)"), (5, "(b.csv)")]
    with pytest.raises(FormatError, match="no file has such a name"):
        read(str(tmp_path / "*.tsv"))


def test_a_file_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(TEXT)
    for again in (tmp_path / "a.csv", str(tmp_path / "*.csv"), tmp_path):
        with pytest.raises(FormatError, match=r"a\.csv: is named twice"):
            read([tmp_path / "a.csv", again])


def test_files_that_differ_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXT)
    (tmp_path / "b.csv").write_text("item,grade\nx,1\ny,2\n")
    (tmp_path / "c.csv").write_text(TEXT)
    with pytest.raises(FormatError, match="different columns"):
        read([tmp_path / "a.csv", tmp_path / "b.csv"])
    with pytest.raises(FormatError, match=r"b\.csv have different columns"):
        read([tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.csv"])


def test_a_data_set_of_hugging_face_is_read_from_its_folder(tmp_path: Path) -> None:
    frame = pl.DataFrame({"left": ["x", "y"], "right": ["y", "z"], "winner": ["x", "z"]})
    (tmp_path / "README.md").write_text("---\n")
    (tmp_path / "data").mkdir()
    frame.write_parquet(tmp_path / "data" / "train-00000-of-00002.parquet")
    frame.write_parquet(tmp_path / "data" / "train-00001-of-00002.parquet")
    assert len(read(tmp_path)) == 4
    saved = tmp_path / "saved" / "train"
    saved.mkdir(parents=True)
    frame.write_ipc_stream(saved / "data-00000-of-00001.arrow")
    (saved / "state.json").write_text("{}")
    (saved / "dataset_info.json").write_text("{}")
    assert len(read(tmp_path / "saved")) == 2


def workbook(rows: list[list[str | float | None]], titles: tuple[str, ...] = ()) -> bytes:
    """A small workbook, with shared and inline strings and numbers; titles name sheets, of which the last is the table.

    The other sheets hold a single cell.
    """
    texts = [cell for row in rows for cell in row if isinstance(cell, str)]
    shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
    lines = []
    for number, row in enumerate(rows, 1):
        cells = ""
        for place, cell in enumerate(row):
            reference = f'r="{chr(65 + place)}{number}"'
            if isinstance(cell, str):
                cells += f'<c {reference} t="s"><v>{texts.index(cell)}</v></c>'
            elif cell is not None:
                cells += (
                    f'<c {reference} s="1"><v>{cell}</v></c>' if place == 3 else f"<c {reference}><v>{cell}</v></c>"
                )
        lines.append(f'<row r="{number}">{cells}</row>')
    styles = '<xf numFmtId="0"/><xf numFmtId="14"/>'
    sheet = f"<sheetData>{''.join(lines)}</sheetData>"
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    office = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    named = "".join(f'<sheet name="{title}" r:id="rId{n}"/>' for n, title in enumerate(titles, 1))
    links = "".join(
        f'<Relationship Id="rId{n}" Target="worksheets/sheet{len(titles) + 1 - n}.xml"/>'
        for n in range(1, len(titles) + 1)
    )
    one_cell = f'<worksheet {space}><sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData></worksheet>'
    others = {f"xl/worksheets/sheet{n}.xml": one_cell for n in range(2, len(titles) + 1)}
    return zipped(
        {
            "xl/workbook.xml": f"<workbook {space} {office}><sheets>{named}</sheets></workbook>",
            "xl/_rels/workbook.xml.rels": f"<Relationships>{links}</Relationships>",
            **others,
            "xl/sharedStrings.xml": f"<sst {space}>{shared}</sst>",
            "xl/styles.xml": f"<styleSheet {space}><cellXfs>{styles}</cellXfs></styleSheet>",
            "xl/worksheets/sheet1.xml": f"<worksheet {space}>{sheet}</worksheet>",
        }
    )


ROWS: list[list[str | float | None]] = [
    ["left", "right", "winner", "date"],
    ["x", "y", "x", 45000.5],
    [None, None, None, None],
    ["y", "z", "tie", 45001.0],
    ["z", "x", "q", None],
]


def test_the_first_sheet_of_a_workbook_is_read(tmp_path: Path) -> None:
    path = tmp_path / "votes.xlsx"
    path.write_bytes(workbook(ROWS))
    check(path)
    assert read(path, warn=False).time.tolist() == [1678881600.0, 1678924800.0]


def test_the_first_sheet_with_a_table_is_read_and_named(tmp_path: Path) -> None:
    path = tmp_path / "votes.xlsx"
    path.write_bytes(workbook(ROWS, ("Read me", "Votes")))
    check(path)
    assert read_with_report(path)[1].notes[0] == "Only the sheet 'Votes' was read, not 'Read me'."


def test_a_cut_workbook_is_refused(tmp_path: Path) -> None:
    path, data = tmp_path / "votes.xlsx", workbook(ROWS)
    for end in range(0, len(data), 40):
        path.write_bytes(data[:end])
        with pytest.raises(FormatError):
            read(path)
