"""crowdrank formats, crowdrank convert, and --format."""

from __future__ import annotations

import json
from pathlib import Path

from crowdrank.io import FORMATS, read

FIXTURES = Path(__file__).parents[1] / "io" / "fixtures"


def test_formats_lists_every_format_and_what_it_is_known_by(crowdrank):
    code, out, _ = crowdrank("formats")
    assert code == 0
    assert all(known.name in out for known in FORMATS)
    assert "columns HITId" in out


def test_formats_as_json_says_what_can_be_written(crowdrank):
    by_name = {entry["format"]: entry for entry in json.loads(crowdrank("formats", "--json").out)}
    assert list(by_name) == [known.name for known in FORMATS]
    assert by_name["evalica"]["writes"] == ["comparisons"]
    assert by_name["mturk"]["writes"] == []


def test_convert_goes_from_one_format_to_another_and_says_what_was_dropped(crowdrank, tmp_path):
    target = tmp_path / "out.csv"
    code, out, _ = crowdrank("convert", FIXTURES / "toloka.tsv", target, "--to", "evalica")
    assert code == 0
    assert "5 rows read, 2 kept, 1 set aside (gold), 1 set aside (rejected), 1 set aside (not submitted)." in out
    assert target.read_text() == "worker,left,right,winner\nu1,a.png,b.png,left\nu3,c.png,a.png,right\n"


def test_convert_as_json_has_the_import_report(crowdrank, tmp_path):
    told = json.loads(
        crowdrank("convert", FIXTURES / "mturk.csv", tmp_path / "o.csv", "--to", "crowd-kit", "--json").out
    )
    assert told["import"]["set_aside"] == {"rejected": 1}
    assert told["notes"][0] == "1 tie was left out: crowd-kit has none."


def test_convert_writes_tidy_files_unless_told_otherwise(crowdrank, tmp_path):
    target = tmp_path / "out.parquet"
    assert crowdrank("convert", FIXTURES / "preflib.toi", target).code == 0
    assert read(target).weight.tolist() == [4.0, 3.0, 1.0]


def test_convert_refuses_what_it_cannot_do_in_one_line(crowdrank, tmp_path):
    for words in (["--to", "nonsense"], ["--to", "gavel"], ["--strict"], ["--format", "gavel"]):
        code, _, err = crowdrank("convert", FIXTURES / "toloka.tsv", tmp_path / "o.csv", *words)
        assert code == 1
        assert err.count("\n") == 1


def test_rank_recognises_a_format_and_reports_what_was_dropped(crowdrank):
    answer = json.loads(crowdrank("rank", FIXTURES / "mturk.csv", "--uncertainty", "none", "--json").out)
    assert answer["import"]["format"] == "mturk"
    assert answer["import"]["set_aside"] == {"rejected": 1}
    assert next(row["item"] for row in answer["ranking"]) == "bot"


def test_rank_takes_the_format_it_is_told(crowdrank):
    words = ("rank", FIXTURES / "evalica-llmfao.csv", "--uncertainty", "none", "--json", "--format")
    assert json.loads(crowdrank(*words, "tidy").out)["import"]["format"] == "tidy"
    code, _, err = crowdrank(*words, "evalicca")
    assert code == 1
    assert "did you mean 'evalica'" in err
