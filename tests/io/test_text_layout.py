"""Text without a header, with spaces or several signs between fields, and with comments."""

from __future__ import annotations

from pathlib import Path

import pytest

from crowdrank.errors import FormatError
from crowdrank.io import read, read_with_report

MATCHES = ["ann bob", "bob cy", "cy ann", "ann cy", "bob ann"]


def save(tmp_path: Path, text: str, name: str = "votes.txt") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("sign", [" ", "   ", "\t", ",", ";"])
def test_matches_without_a_header_are_read_and_it_is_said(tmp_path: Path, sign: str) -> None:
    path = save(tmp_path, "\n".join(line.replace(" ", sign) for line in MATCHES))
    found, report = read_with_report(path)
    assert (len(found), report.columns) == (5, {"winner": "1", "loser": "2"})
    assert any("looks like data" in note for note in report.notes)
    assert any("column 1 as winner" in note for note in report.notes)


def test_a_last_column_that_repeats_an_item_is_the_winner(tmp_path: Path) -> None:
    rows = ["ann,x,y,x", "bob,y,z,z", "ann,z,x,x", "bob,x,y,y"]
    assert len(read(save(tmp_path, "\n".join(rows)))) == 4


def test_lines_of_orders_are_lists(tmp_path: Path) -> None:
    found, report = read_with_report(save(tmp_path, "tea>milk>juice\nmilk>tea\njuice>tea>milk\n"))
    assert (len(found), report.columns) == (3, {"order": "1"})
    assert any("looks like data" in note for note in report.notes)


def test_orders_with_spaces_are_lists_of_a_voter(tmp_path: Path) -> None:
    found, report = read_with_report(save(tmp_path, "green tea > milk\nmilk > juice\njuice > green tea\n"))
    assert (len(found), report.columns) == (3, {"order": "1"})
    assert found.items.labels.tolist() == ["green tea", "juice", "milk"]
    found, report = read_with_report(
        save(tmp_path, "ann: tea > milk > juice\nbob: milk > tea\ncy: tea > juice > milk\n")
    )
    assert report.columns == {"order": "2", "annotator": "1"}
    assert found.items.labels.tolist() == ["juice", "milk", "tea"]


@pytest.mark.parametrize(
    "text",
    [
        "| left | right | winner |\n|------|:-----:|-------:|\n| x | y | x |\n| y | z | tie |\n| z | x | q |\n",
        "+------+-------+--------+\n| left | right | winner |\n+------+-------+--------+\n| x    | y     | x      |\n"
        "| y    | z     | tie    |\n| z    | x     | q      |\n+------+-------+--------+\n",
    ],
    ids=["markdown", "database"],
)
def test_the_lines_that_draw_a_table_are_not_rows(tmp_path: Path, text: str) -> None:
    found, report = read_with_report(save(tmp_path, text))
    assert (len(found), report.rows_read) == (2, 3)
    assert [text.split("\n")[m.line - 1].split()[1] for m in report.malformed] == ["z"]


def test_ratings_with_times_are_not_relevance_judgments(tmp_path: Path) -> None:
    lines = [f"{n % 6} {n % 4} {1 + n % 5} {881250000 + n}" for n in range(24)]
    with pytest.raises(FormatError) as error:
        read(save(tmp_path, "\n".join(lines)))
    assert error.value.suggestion == {"annotator": "1", "item": "2", "grade": "3"}


def test_a_bar_separates_fields_beside_several_answers(tmp_path: Path) -> None:
    columns = {"left": "1", "right": "2", "winner": "3:1=left,0=tie,-1=right"}
    path = save(tmp_path, "ann|bob|0,1,-1\nbob|cy|1,1,-1\ncy|ann|-1,1,1\n")
    assert len(read(path, columns=columns, header=False)) == 9


def test_a_table_that_could_mean_several_things_is_refused_with_the_call(tmp_path: Path) -> None:
    rows = [f"w{n % 4}\t{100 + n % 7}\t{n % 2}" for n in range(30)]
    path = save(tmp_path, "\n".join(rows), "labels.tsv")
    with pytest.raises(FormatError, match="no column for") as error:
        read(path)
    (note,) = error.value.__notes__
    assert "columns={'annotator': '1', 'item': '2', 'grade': '3'}, header=False" in note
    found = read(path, columns={"annotator": "1", "item": "2", "grade": "3"}, header=False)
    assert len(found) == 30


def test_the_first_row_is_counted_when_there_is_no_header(tmp_path: Path) -> None:
    path = save(tmp_path, "a,b\nc,d\nd\na,d\n")
    columns = {"winner": "1", "loser": "2"}
    assert len(read(path, columns=columns, header=False, warn=False)) == 3
    _, report = read_with_report(path, columns=columns, header=False)
    assert [m.line for m in report.malformed] == [3]


@pytest.mark.parametrize("header", ["left,right,winner", "Winner,Loser,x", "who,document,stars", "a,b,winner"])
def test_a_header_is_not_taken_for_data(tmp_path: Path, header: str) -> None:
    _, report = read_with_report(
        save(tmp_path, f"{header}\nx,y,1\ny,z,2\n"),
        columns=dict(zip(("left", "right", "winner"), header.split(","), strict=True)),
    )
    assert report.rows_read == 2


def test_a_header_can_be_insisted_on(tmp_path: Path) -> None:
    path = save(tmp_path, "x,y\nx,z\ny,x\n")
    columns = {"winner": "x", "loser": "y"}
    assert len(read(path, columns=columns, header=True)) == 2


def test_spaces_and_several_signs_separate_fields(tmp_path: Path) -> None:
    assert len(read(save(tmp_path, "left right  winner\nx y    x\ny z z\n"))) == 2
    assert len(read(save(tmp_path, "left, right; winner\nx; y, x\ny, z, z\nz;x;z\n"))) == 3
    assert len(read(save(tmp_path, "left,right,winner\nx\ty\tx\ny\tz\tz\nz\tx\tz\n"))) == 3


def test_comment_lines_are_skipped_and_keep_their_numbers(tmp_path: Path) -> None:
    text = "# made by hand\n# on a Monday\nleft,right,winner\nx,y,x\n# a remark, with a comma\ny,z,q\nz,x,z\n"
    _, report = read_with_report(save(tmp_path, text, "votes.csv"))
    assert (report.rows_read, report.kept) == (3, 2)
    assert [m.line for m in report.malformed] == [6]


def test_a_commented_header_is_a_header(tmp_path: Path) -> None:
    assert len(read(save(tmp_path, "# winner loser\nx y\ny z\nx z\n"))) == 3


def test_a_comment_may_stand_above_the_head_of_a_preflib_file(tmp_path: Path) -> None:
    text = "# Edited by hand\n# FILE NAME: t.toi\n# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: tea\n"
    found = read(save(tmp_path, text + "# ALTERNATIVE NAME 2: milk\n2: 1,{2,3}\n1: 3,2\n", "votes.toi"))
    assert sorted(found.items.labels) == ["3", "milk", "tea"]
