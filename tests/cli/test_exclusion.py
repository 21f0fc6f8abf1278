"""crowdrank annotators --exclude."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

VOTES = Path(__file__).parents[2] / "examples" / "cities" / "votes.csv"


def test_the_ranking_without_stands_beside_the_one_with(crowdrank):
    code, out, err = crowdrank("annotators", VOTES, "--exclude", "reversed", "--exclude", "vera", "--top", 2)
    assert (code, err) == (0, "")
    assert "Without 4 annotators and their 203 judgments: boris, dev, liam, vera." in out
    assert re.search(r"\d+ of 40 items change rank", out)
    assert re.search(r"\d+ (up|down)", out)


def test_machines_are_told_every_move(crowdrank):
    answer = json.loads(crowdrank("annotators", VOTES, "--exclude", "boris", "--json").out)
    assert answer["excluded"] == ["boris"]
    assert answer["judgments"] == 42
    assert len(answer["ranking"]) == 40
    assert sum(row["moved"] != 0 for row in answer["ranking"]) == answer["items_moved"]


def test_names_may_stand_in_a_file(crowdrank, tmp_path):
    names, out = tmp_path / "out.csv", tmp_path / "moves.csv"
    names.write_text("annotator\nboris\ndev\n")
    answer = crowdrank("annotators", VOTES, "--exclude-file", names, "--out", out)
    assert "Without 2 annotators" in answer.out
    assert {"item", "rank", "rank_without", "moved"} <= set(pl.read_csv(out).columns)


def test_any_model_may_rank(crowdrank):
    assert "Ranked by borda" in crowdrank("annotators", VOTES, "--exclude", "boris", "--model", "borda").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--exclude", "boriss"), "did you mean 'boris'?"),
        (("--exclude", "hasty"), "No annotator to exclude"),
        (("--exclude-file", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_mistakes_are_answered_in_one_line(crowdrank, words, said):
    code, _, err = crowdrank("annotators", VOTES, *words)
    assert code == 1
    assert said in err
    assert err.count("\n") == 1
