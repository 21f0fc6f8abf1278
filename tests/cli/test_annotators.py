"""crowdrank annotators."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

CITIES = Path(__file__).parents[2] / "examples" / "cities"


def test_the_reversed_of_the_example_are_believed_least(crowdrank):
    answer = json.loads(crowdrank("annotators", CITIES / "votes.csv", "--json").out)
    kinds = dict(pl.read_csv(CITIES / "annotators.csv").select("annotator", "kind").iter_rows())
    assert {kinds[row["annotator"]] for row in answer[-3:]} == {"reversed"}
    assert all(row["quality_low"] <= row["quality"] <= row["quality_high"] for row in answer)


def test_the_best_and_the_worst_are_shown(crowdrank):
    code, out, _ = crowdrank("annotators", CITIES / "votes.csv", "--top", 2)
    assert code == 0
    assert "… and 26 more" in out
    assert "boris" in out


def test_the_table_is_written(crowdrank, tmp_path):
    path = tmp_path / "people.csv"
    assert crowdrank("annotators", CITIES / "votes.csv", "--out", path, "--model", "factor-bt").code == 0
    assert "pull_of_position" in pl.read_csv(path).columns


@pytest.mark.parametrize("model", ["bradley-terry", "borda"])
def test_a_model_blind_to_annotators_is_refused(crowdrank, model):
    code, _, err = crowdrank("annotators", CITIES / "votes.csv", "--model", model)
    assert code == 1
    assert "crowd-bt" in err


def test_judgments_without_annotators_are_refused(crowdrank, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("left,right,winner\na,b,a\n")
    code, _, err = crowdrank("annotators", path)
    assert code == 1
    assert "annotators" in err


def test_settings_that_are_pairs_are_read(crowdrank):
    words = ("--model", "crowd-bt", "--set", "quality_prior=2,1.5", "--json")
    answer = json.loads(crowdrank("rank", CITIES / "votes.csv", *words).out)
    assert answer["settings"]["quality_prior"] == [2.0, 1.5]
