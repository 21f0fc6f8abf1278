"""Text files as people make them: encodings, delimiters, quotes, ragged lines, and exact line numbers."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from crowdrank.errors import DataWarning, FormatError
from crowdrank.io import MalformedRow, read, read_with_report
from crowdrank.io.delimited import read_delimited
from crowdrank.io.source_table import RowLocation
from crowdrank.io.sources import _check_utf8

HEADER = b"worker,left,right,winner\n"
GOOD = b"ann,x,y,x\n"


def save(folder: Path, data: bytes | str, name: str = "votes.csv") -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@pytest.mark.parametrize("name", ["v.csv", "v.tsv", "v.tab", "v.txt", "v", "V.CSV"])
@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_the_header_tells_the_delimiter(tmp_path: Path, name: str, sign: str) -> None:
    found = read(save(tmp_path, (HEADER + GOOD).decode().replace(",", sign), name))
    assert (len(found), found.items.labels.tolist()) == (1, ["x", "y"])


def test_a_spreadsheet_may_declare_its_delimiter(tmp_path: Path) -> None:
    path = save(tmp_path, "\nsep=;\n\nleft;right;winner,x\nx;y;x\nx;y;q\nx;y;y\n")
    _, report = read_with_report(path, columns={"winner": "winner,x"})
    assert report.malformed[0].line == 6


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + HEADER + GOOD,
        (HEADER + GOOD).decode().encode("utf-16"),
        b"\xfe\xff" + (HEADER + GOOD).decode().encode("utf-16-be"),
        (HEADER + GOOD).replace(b"\n", b"\r\n"),
        (HEADER + GOOD).replace(b"\n", b"\r"),
        b"\n\r\n" + HEADER + b"\n" + GOOD + b"\n\n",
        b" Worker , LEFT ,Right,  winner\n  ann, x ,y  ,\tx\n",
        b'"worker","left","right","winner"\n"ann","x","y","x"\n',
        HEADER + b"ann,x,y,x",
        HEADER + GOOD + b"   \n,,,\n",
        HEADER.replace(b"\n", b",,\n") + b"ann,x,y,x,,\n",
        b",worker,left,right,winner\n0,ann,x,y,x\n",
    ],
)
def test_the_same_vote_however_it_was_saved(tmp_path: Path, data: bytes) -> None:
    found, report = read_with_report(save(tmp_path, data))
    assert found.items.labels.tolist() == ["x", "y"]
    assert found.annotators.tolist() == ["ann"]
    assert (report.rows_read, report.kept, report.malformed_count) == (1, 1, 0)


def test_compressed_text_is_unpacked(tmp_path: Path) -> None:
    assert len(read(save(tmp_path, gzip.compress(HEADER + GOOD), "votes.csv.gz"))) == 1
    with pytest.raises(FormatError, match="is not a complete gzip file"):
        read(save(tmp_path, gzip.compress(HEADER + GOOD)[:-4], "cut.csv.gz"))


def test_other_encodings_are_named_with_their_line_and_read_when_told(tmp_path: Path) -> None:
    path = save(tmp_path, HEADER + GOOD + "bob,é,y,y\n".encode("latin-1"))
    with pytest.raises(FormatError, match=r"votes.csv: line 3 is not UTF-8 text \(byte 0xe9\).*encoding=\'latin-1\'"):
        read(path)
    assert "é" in read(path, encoding="latin-1").items.labels
    with pytest.raises(FormatError, match="line 3 is not ascii text"):
        read(path, encoding="ascii")
    with pytest.raises(FormatError, match="unknown encoding 'klingon'"):
        read(path, encoding="klingon")


def test_bad_bytes_are_found_across_chunks() -> None:
    _check_utf8("a\nöööö\n".encode(), "f", chunk=5)
    with pytest.raises(FormatError, match="line 3 is not UTF-8"):
        _check_utf8("ab\nöö\n".encode() + b"c\xc3x", "f", chunk=5)
    with pytest.raises(FormatError, match="line 2 is not UTF-8"):
        _check_utf8(b"abc\n\xc3", "f", chunk=5)


def test_a_nul_byte_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"line 3 contains a NUL byte") as caught:
        read(save(tmp_path, HEADER + GOOD + b"bob,\0,y,y\n"))
    assert "utf-16" not in str(caught.value)
    with pytest.raises(FormatError, match=r"line 1 contains a NUL byte.*utf-16-le"):
        read(save(tmp_path, (HEADER + GOOD).decode().encode("utf-16-le")))


@pytest.mark.parametrize("data", [b"", b"\n\n", b"   \n", b"\xef\xbb\xbf", b"sep=;\n", b"\r\r"])
def test_an_empty_file_says_so(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(FormatError, match=r"votes\.csv: is empty"):
        read(save(tmp_path, data))


@pytest.mark.parametrize("data", [HEADER, HEADER.strip(), HEADER + b"\n\n"])
def test_a_header_alone_says_so(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(FormatError, match="has columns but no rows"):
        read(save(tmp_path, data))


def test_one_column_hints_at_the_delimiter(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"only 'worker/left/right'.*separated by comma, semicolon, tab or bar"):
        read(save(tmp_path, "worker/left/right\nann/x/y\n"))


def test_missing_files_and_folders_say_so(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="there is no such file"):
        read(tmp_path / "none.csv")
    with pytest.raises(FormatError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(FormatError, match=r"suffix '\.ods' cannot be read.*\.csv, .*\.parquet"):
        read(save(tmp_path, b"x", "votes.ods"))
    with pytest.raises(FormatError, match=r"path|no such file"):
        read("a\0b.csv")
    with pytest.raises(FormatError, match=r"path|no such file"):
        read("x" * 100_000)


def test_an_unreadable_file_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(FormatError, match=r"votes.csv: cannot be read \(permission denied\)"):
        read(save(tmp_path, HEADER))


def test_a_doubled_header_matters_only_in_a_role(tmp_path: Path) -> None:
    assert len(read(save(tmp_path, "left,right,winner,note,note\nx,y,x,1,2\n"))) == 1
    with pytest.raises(FormatError, match="two columns are called 'left'"):
        read(save(tmp_path, "left,right,winner,left\nx,y,x,z\n"))
    with pytest.raises(FormatError, match="two columns are called 'note'"):
        read(save(tmp_path, "left,right,winner,note,note\nx,y,x,1,2\n"), features=["note"])
    with pytest.raises(FormatError, match="'Left' and 'LEFT' could each be the left"):
        read(save(tmp_path, "Left,right,winner,LEFT\nx,y,x,z\n"))
    assert len(read(save(tmp_path, "left,right,winner,LEFT\nx,y,x,z\n"))) == 1


def test_lines_are_counted_past_blanks_and_quoted_newlines(tmp_path: Path) -> None:
    data = (
        'worker,left,right,winner,"a\nnote"\n'  # lines 1 and 2
        'ann,x,y,x,"one\ntwo\r\nthree"\n'  # 3 to 5
        "\n"  # 6
        "ann,x,y,nobody,\n"  # 7
        'ann,x,x,x,"\n"\n'  # 8 and 9
        "ann,x,y\n"  # 10
        "ann,x,y,y,\n"
        "ann,x,y,y,\n"
        "ann,,y,y,\n"  # 13
        "ann,x,y,y,\nann,x,y,y,\n"
    )
    _, report = read_with_report(save(tmp_path, data))
    assert report.unit == "line"
    assert report.malformed == (
        MalformedRow(7, "winner", "'nobody' is neither 'x', 'y', a tie nor a skip"),
        MalformedRow(8, "right", "'x' is compared with itself"),
        MalformedRow(10, "", "3 fields where the header has 5"),
        MalformedRow(13, "left", "the left is missing"),
    )
    assert (report.rows_read, report.kept) == (9, 5)


def test_rows_with_too_many_fields_are_left_out(tmp_path: Path) -> None:
    data = HEADER + GOOD + b'\n"a\nb",x,y,x\nann,x,y,x,extra,\nann,x,y,y,\nann,x\n' + GOOD + b"ann,x,y,q\n" + GOOD
    _, report = read_with_report(save(tmp_path, data))
    assert report.malformed == (
        MalformedRow(6, "", "6 fields where the header has 4"),
        MalformedRow(8, "", "2 fields where the header has 4"),
        MalformedRow(10, "winner", "'q' is neither 'x', 'y', a tie nor a skip"),
    )
    assert (report.rows_read, report.kept) == (8, 5)


def test_short_rows_are_fine_where_nothing_needed_is_missing(tmp_path: Path) -> None:
    _, report = read_with_report(save(tmp_path, "left,right,winner,comment\nx,y,x\nx,y,y,hm\n"))
    assert report.kept == 2


def test_a_quote_never_closed_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="line 3: a quote is opened and never closed"):
        read(save(tmp_path, HEADER + GOOD + b'ann,"x, or so,y,x\n' + GOOD * 3))
    with pytest.raises(FormatError, match="line 1: a quote is opened and never closed"):
        read(save(tmp_path, b'"' + HEADER + GOOD))
    with pytest.raises(FormatError, match="line 1: a quote is opened and never closed"):
        read(save(tmp_path, b'"'))


def test_quotes_are_characters_where_every_line_is_whole_without_them(tmp_path: Path) -> None:
    found, report = read_with_report(save(tmp_path, 'left\tright\twinner\n"x\ty\ty\nz\ty\ty\n', "votes.tsv"))
    assert found.items.labels.tolist() == ['"x', "y", "z"]
    assert "ordinary characters" in report.notes[0]


def test_quotes_inside_a_cell_are_characters(tmp_path: Path) -> None:
    found = read(save(tmp_path, 'left,right,winner\n5" disk,3" disk,5" disk\n"say ""hi""",3" disk,"3"" disk"\n'))
    assert found.items.labels.tolist() == ['3" disk', '5" disk', 'say "hi"']


def test_no_line_is_better_than_a_wrong_one(tmp_path: Path) -> None:
    data = 'left,right,winner,note\nx,y,x,"" "a\nb"\nx,y,q,\nx,y,y,\n'
    _, report = read_with_report(save(tmp_path, data))
    assert all(m.line in (0, 4) for m in report.malformed if "'q'" in m.reason)


def test_huge_cells_are_read(tmp_path: Path) -> None:
    long = "z" * 200_000
    data = f"left,right,winner\n{long},y,{long}\n{long},y,q\ny,{long},y\nx,y,x,too,many\nx,y,y\n"
    found, report = read_with_report(save(tmp_path, data))
    assert long in found.items.labels
    assert [m.line for m in report.malformed] == [3, 5]


def test_numbers_are_labels_as_they_are_written(tmp_path: Path) -> None:
    found = read(save(tmp_path, "left,right,winner\n007,7,007\n7.0,1e3,1e3\n"))
    assert found.items.labels.tolist() == ["007", "1e3", "7", "7.0"]


def test_files_too_large_to_scan_count_rows_and_say_so() -> None:
    table = read_delimited(HEADER + GOOD + b"\nann,x,y,q\n" + GOOD, "votes.csv", max_scan_bytes=10)
    assert (table.unit, table.locate([2])) == ("row", [RowLocation(3)])
    assert "too large to count its lines" in table.notes[0]
    table = read_delimited(HEADER + GOOD + b"ann,x,y,y,extra\n", "votes.csv", max_scan_bytes=10)
    assert table.rows == 2
    assert "cut to its length" in table.notes[1]
    with pytest.raises(FormatError, match="cannot be read as delimited text"):
        read_delimited(HEADER + GOOD + b'ann,"x,y,x\n', "votes.csv", max_scan_bytes=10)


def test_the_warning_names_file_and_line(tmp_path: Path) -> None:
    with pytest.warns(
        DataWarning, match=r"votes.csv: 1 of 3 rows .* Line 3, column 'right': 'x' is compared with itself"
    ):
        read(save(tmp_path, HEADER + GOOD + b"ann,x,x,x\n" + GOOD))


def test_headers_longer_than_every_row_still_name_their_columns(tmp_path: Path) -> None:
    header = ",".join(["left", "right", "winner"] + [""] * 3000)
    assert len(read(save(tmp_path, header + "\nx,y,x\n"))) == 1
