"""Appending of new judgments to a file: checked first, whole or not at all."""

from __future__ import annotations

import json

import pytest

from crowdrank.errors import DataError, FormatError
from crowdrank.io import check_addition

HELD = "annotator,left,right,winner\nann,a,b,a\nbob,b,c,b\n"


def appended(tmp_path, held, fresh, suffix=".csv", fresh_suffix=None):
    target, source = tmp_path / f"votes{suffix}", tmp_path / f"new{fresh_suffix or suffix}"
    target.write_text(held, encoding="utf-8")
    source.write_text(fresh, encoding="utf-8")
    addition = check_addition(target, source)
    assert target.read_text(encoding="utf-8") == held
    addition.write()
    return target.read_text(encoding="utf-8")


def test_columns_may_stand_in_another_order(tmp_path):
    text = appended(tmp_path, HELD, "winner,annotator,left,right\nc,cy,a,c\n")
    assert text == HELD + "cy,a,c,c\n"


def test_the_last_line_may_lack_its_end_and_names_may_hold_commas(tmp_path):
    text = appended(tmp_path, HELD.strip(), 'annotator;left;right;winner\ncy;"x, y";b;b\n')
    assert text == HELD + 'cy,"x, y",b,b\n'


def test_tabs_and_lines_of_json(tmp_path):
    text = appended(tmp_path, HELD.replace(",", "\t"), HELD.replace("ann,", "eve,"), ".tsv", ".csv")
    assert text.endswith("eve\ta\tb\ta\nbob\tb\tc\tb\n")
    held, fresh = (json.dumps({"left": "a", "right": "b", "winner": w}) + "\n" for w in ("a", "b"))
    assert appended(tmp_path, held, fresh, ".jsonl") == held + fresh


@pytest.mark.parametrize(
    ("fresh", "suffix", "error", "said"),
    [
        ("left,right,winner\na,b,a\n", ".csv", FormatError, "without annotator"),
        ("annotator,left,right,winner,mood\nx,a,b,a,m\n", ".csv", FormatError, "with mood"),
        ("annotator,left,right,winner\nx,a,b\n", ".csv", FormatError, "row 2: 3 cells"),
        ("annotator,left,right,winner\n", ".csv", DataError, "no rows"),
        ("", ".csv", DataError, "is empty"),
        ("annotator,left,right,winner\nbob,b,c,b\n", ".csv", DataError, "appended before"),
        ("{}", ".jsonl", FormatError, "both must be"),
    ],
)
def test_what_cannot_be_appended(tmp_path, fresh, suffix, error, said):
    with pytest.raises(error, match=said):
        appended(tmp_path, HELD, fresh, ".csv", suffix)


def test_lines_that_are_not_json_are_named(tmp_path):
    with pytest.raises(FormatError, match="line 2"):
        appended(tmp_path, '{"left": 1}\n', '{"left": 2}\noops\n', ".jsonl")
