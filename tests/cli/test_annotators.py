"""crowdrank annotators."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

VERDICTS = ("reliable", "random", "reversed", "one-sided")
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
    assert "Verdicts: " in out
    assert "below half" in out


def test_verdicts_fit_what_the_annotators_are(crowdrank):
    answer = json.loads(crowdrank("annotators", CITIES / "votes.csv", "--json").out)
    kinds = dict(pl.read_csv(CITIES / "annotators.csv").select("annotator", "kind").iter_rows())
    verdicts = {word: {kinds[row["annotator"]] for row in answer if row["verdict"] == word} for word in VERDICTS}
    assert verdicts["reversed"] == {"reversed"}
    assert verdicts["one-sided"] == {"left", "right"}
    assert verdicts["random"] <= {"random", "noisy"}
    assert verdicts["reliable"] <= {"good", "noisy"}
    assert all(row["p_hasty"] is None and 0 <= row["p_above_half"] <= 1 for row in answer)


def test_verdicts_can_be_left_out(crowdrank):
    words = ("annotators", CITIES / "votes.csv", "--no-verdicts")
    assert "verdict" not in json.loads(crowdrank(*words, "--json").out)[0]
    assert "Verdicts" not in crowdrank(*words).out


def test_the_seed_and_the_level_are_heard(crowdrank):
    def answer(*words):
        return json.loads(crowdrank("annotators", CITIES / "votes.csv", "--json", *words).out)

    first = answer("--seed", 1)
    assert first == answer("--seed", 1)
    assert first != answer("--seed", 2)
    strict = answer("--level", 1e-6)
    assert sum(row["verdict"] == "too few to say" for row in strict) > 10
    assert crowdrank("annotators", CITIES / "votes.csv", "--level", 0.7).code == 1


def test_lists_get_no_verdicts(crowdrank, tmp_path):
    path = tmp_path / "lists.csv"
    rows = [f"{who},{item},{rank}" for who in ("ann", "bob", "cem") for rank, item in enumerate("abc", 1)]
    path.write_text("annotator,item,rank\n" + "\n".join(rows) + "\n")
    code, out, _ = crowdrank("annotators", path)
    assert code == 0
    assert "No verdicts" in out
    assert "ann" in out


def test_the_table_is_written(crowdrank, tmp_path):
    path = tmp_path / "people.csv"
    assert crowdrank("annotators", CITIES / "votes.csv", "--out", path, "--model", "factor-bt").code == 0
    assert {"weight_of_position", "verdict", "reason", "p_below_half"} <= set(pl.read_csv(path).columns)


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


def test_misfit_of_annotators_and_reliability_of_the_scale(crowdrank, tmp_path):
    words = ("annotators", CITIES / "votes.csv", "--no-verdicts", "--reliability", "--out", tmp_path / "a.csv")
    code, out, err = crowdrank(*words, "--model", "factor-bt")
    assert (code, err) == (0, "")
    assert "Scale separation reliability" in out
    table = pl.read_csv(tmp_path / "a.csv")
    assert {"infit", "outfit"} <= set(table.columns)
    assert 0.5 < table["infit"].mean() < 1.5
