"""JSON in a list or on lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crowdrank.errors import FormatError
from crowdrank.io import MalformedRow, read, read_with_report

VOTES = [
    {"worker": "ann", "left": "x", "right": "y", "winner": "x"},
    {"worker": "bob", "left": "x", "right": "y", "winner": "tie"},
]


def save(folder: Path, data: str | bytes, name: str = "votes.jsonl") -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def lines(*records: Any) -> str:
    return "\n".join(record if isinstance(record, str) else json.dumps(record) for record in records)


@pytest.mark.parametrize("name", ["v.json", "v.jsonl", "v.ndjson"])
@pytest.mark.parametrize("text", [lines(*VOTES), json.dumps(VOTES), "\ufeff" + json.dumps(VOTES, indent=1)])
def test_objects_stand_in_a_list_or_on_lines(tmp_path: Path, name: str, text: str) -> None:
    found, report = read_with_report(save(tmp_path, text, name))
    assert found.outcome.tolist() == [1, 0]
    assert (report.kept, found.annotators.tolist()) == (2, ["ann", "bob"])


@pytest.mark.parametrize("as_list", [True, False])
def test_numbers_and_words_may_share_a_column(tmp_path: Path, as_list: bool) -> None:
    records = [
        {"left": 1, "right": 2, "winner": 2},
        {"left": 1.0, "right": "two", "winner": "tie"},
        {"left": True, "right": 2, "winner": 2.0},
    ]
    found = read(save(tmp_path, json.dumps(records) if as_list else lines(*records)))
    assert found.outcome.tolist() == [-1, 0, -1]
    assert {"2", "two", "true"} <= set(found.items.labels)


def test_sides_may_be_numbers(tmp_path: Path) -> None:
    records = [{"generator_1": "m", "generator_2": "n", "preference": p} for p in (1.0, 2.0)]
    assert read(save(tmp_path, lines(*records))).outcome.tolist() == [1, -1]


def test_broken_lines_are_left_out_by_their_number(tmp_path: Path) -> None:
    good = VOTES[0]
    text = lines(good, "", '{"worker": "ann", "le', good, "[1, 2]", {"worker": "cy"}, good, good)
    _, report = read_with_report(save(tmp_path, text))
    assert [(m.line, m.column) for m in report.malformed] == [(3, ""), (5, ""), (6, "left")]
    assert "is not valid JSON" in report.malformed[0].reason
    assert report.malformed[1].reason == "expected an object, got [1, 2]"
    assert (report.rows_read, report.unit) == (7, "line")


def test_line_numbers_skip_blank_lines(tmp_path: Path) -> None:
    bad = {"worker": "ann", "left": "x", "right": "y", "winner": "z"}
    _, report = read_with_report(save(tmp_path, lines("", VOTES[0], "", "", bad, VOTES[1])))
    assert report.malformed == (MalformedRow(5, "winner", "'z' is neither 'x', 'y', a tie nor a skip"),)


def test_entries_of_a_list_are_counted_from_one(tmp_path: Path) -> None:
    _, report = read_with_report(save(tmp_path, json.dumps([*VOTES, 7, *VOTES]), "v.json"))
    assert report.malformed == (MalformedRow(3, "", "expected an object, got 7"),)
    assert report.unit == "row"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("[", "line 1: is not valid JSON"),
        ("[]", "contains no objects"),
        ("[1, 2]", "contains no objects"),
        ("3", "expected a list of objects, got 3"),
        ("{}", "no column for"),
        ("{nonsense", "contains no objects"),
        ("[" * 100_000, "is not valid JSON"),
        ('{"a": ' * 5_000, "contains no objects"),
        ("[" + "9" * 5_000 + "]", "is not valid JSON"),
        ('[{"left": "\\ud800", "right": "y", "winner": "y", "\\ud800": 1}]', ""),
        ('{"left": "\\ud800", "right": "y", "winner": "y"}', ""),
    ],
)
def test_what_is_no_table_says_so(tmp_path: Path, text: str, message: str) -> None:
    path = save(tmp_path, text, "v.json")
    if not message:
        assert len(read(path)) == 1
        return
    with pytest.raises(FormatError, match=message):
        read(path)


@pytest.mark.parametrize("as_list", [True, False])
def test_nested_columns_matter_only_in_a_role(tmp_path: Path, as_list: bool) -> None:
    records = [{**vote, "chat": [{"role": "user"}], "extra": [1, "a", {}]} for vote in VOTES]
    path = save(tmp_path, json.dumps(records) if as_list else lines(*records))
    assert len(read(path)) == 2
    with pytest.raises(FormatError, match="column 'chat' holds lists or objects"):
        read(path, columns={"annotator": "chat"})
