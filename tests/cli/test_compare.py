"""crowdrank compare, and rank --model auto."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

import crowdrank as cr
from crowdrank.simulation import crowd_bt, factor_crowd, list_crowd
from tests.models.jury.simulated import jury

CITIES = Path(__file__).parents[2] / "examples" / "cities"
VOTES = CITIES / "votes.csv"
FEW = ("--models", "bradley-terry,crowd-bt,factor-bt,borda")


def test_the_answer_names_a_model_and_says_why(crowdrank):
    code, out, err = crowdrank("compare", VOTES, *FEW)
    assert (code, err) == (0, "")
    assert "Use crowd-bt, the default. The judgments name several annotators" in out
    assert "nats per answer" in " ".join(out.split())
    assert "5 folds: 1,473 by judgment and 1,473 by annotator" in out


def test_slow_models_are_left_out_and_said_so(crowdrank):
    _, out, _ = crowdrank("compare", VOTES, "--folds", 2)
    assert "Not compared:" in out
    assert "bayesian-crowd-bt: slow" in out
    assert "condorcet-fuse" in out


def test_gold_adds_the_accuracy_of_each(crowdrank):
    _, out, _ = crowdrank("compare", VOTES, *FEW, "--folds", 2, "--gold", CITIES / "gold.csv")
    assert "accuracy" in out
    assert re.search(r"Note: Against gold, crowd-bt orders 9\d\.\d% of the pairs correctly", out)


def test_people_say_whose_answers_are_predicted(crowdrank, tmp_path):
    votes, _ = jury(questions=10)
    cr.io.write_table(votes.to_frame(), tmp_path / "votes.csv")
    kinds = [f"{name},{'human' if name == 'good0' else 'llm'}" for name in votes.annotators]
    (tmp_path / "people.csv").write_text("\n".join(["annotator,kind", *kinds]) + "\n")
    options = ("--people", tmp_path / "people.csv", "--models", "crowd-bt", "--folds", 2)
    code, out, _ = crowdrank("compare", tmp_path / "votes.csv", *options)
    assert code == 0
    assert "2 folds: 20 by judgment." in out
    assert "Only the humans' answers were predicted, because the ranking is theirs." in out


def test_machines_are_told_all(crowdrank):
    answer = json.loads(crowdrank("compare", VOTES, *FEW, "--json", "--gold", CITIES / "gold.csv").out)
    assert answer["recommended"] == "crowd-bt"
    rows = {row["model"]: row for row in answer["models"]}
    assert rows["borda"]["log_likelihood"] == {}
    gain = rows["crowd-bt"]["log_likelihood"]["judgment"]["gain"]
    assert gain["value"] > 2 * gain["std_error"] > 0
    assert rows["crowd-bt"]["gold"]["accuracy"] > 0.9


def test_the_table_can_be_written(crowdrank, tmp_path):
    out = tmp_path / "models.csv"
    assert crowdrank("compare", VOTES, *FEW, "--folds", 2, "--out", out).code == 0
    assert set(pl.read_csv(out)["model"]) == {"bradley-terry", "crowd-bt", "factor-bt", "borda"}


def test_lists_are_compared_by_agreement(crowdrank, tmp_path):
    list_crowd(queries=3, items=5, annotators=12, seed=1).write(tmp_path)
    code, out, _ = crowdrank("compare", tmp_path / "votes.csv", "--models", "borda,plackett-luce,median-rank")
    assert code == 0
    assert "agreement" in out
    assert "log score" not in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--models", "crowd-btt"), "did you mean 'crowd-bt'?"),
        (("--models", "bradley-terry"), "needs at least two models"),
        (("--folds", "1"), "at least 2"),
        (("--gold", "nowhere.csv"), "nowhere.csv"),
        (("--features", "colour"), "colour"),
    ],
)
def test_mistakes_are_answered_in_one_line(crowdrank, words, said):
    code, _, err = crowdrank("compare", VOTES, *words)
    assert code == 1
    assert said in err
    assert err.count("\n") == 1


def test_too_few_judgments_are_refused(crowdrank, votes):
    code, _, err = crowdrank("compare", votes)
    assert code == 1
    assert "needs at least 20 judgments; got 8" in err


def test_auto_takes_the_model_that_suits_and_says_why(crowdrank, tmp_path):
    code, out, _ = crowdrank("rank", VOTES, "--model", "auto", "--top", 1)
    assert code == 0
    assert "Ranked by crowd-bt.\nUse crowd-bt, the default." in out
    crowd_bt(items=15, annotators=10, pairs=60, votes=6, quality="1", labels="logistic", seed=1).write(tmp_path)
    answer = json.loads(crowdrank("rank", tmp_path / "votes.csv", "--model", "auto", "--json").out)
    assert answer["model"] in ("crowd-bt", "bradley-terry")
    assert "the default" in answer["chosen_because"]


def test_a_model_that_is_clearly_better_comes_with_its_command(crowdrank, tmp_path):
    factor_crowd(items=30, annotators=30, pairs=300, votes=12, seed=1).write(tmp_path)
    votes = tmp_path / "votes.csv"
    models = ("--models", "crowd-bt,factor-bt", "--features", "factor1,factor2", "--folds", 2)
    answer = json.loads(crowdrank("compare", votes, *models, "--json").out)
    assert (answer["recommended"], answer["default"]) == ("factor-bt", "crowd-bt")
    out = crowdrank("compare", votes, *models).out
    assert f"To use it: crowdrank rank {votes} --model factor-bt" in out


def test_auto_on_few_judgments_takes_the_default(crowdrank, votes):
    code, out, _ = crowdrank("rank", votes, "--model", "auto")
    assert code == 0
    assert "crowd-bt is the default model; no others were compared" in out


def test_auto_without_annotators_takes_the_default(crowdrank, tmp_path):
    path = tmp_path / "nameless.csv"
    path.write_text("left,right,winner\n" + "a,b,a\nb,c,b\nc,a,a\n" * 10)
    code, out, _ = crowdrank("rank", path, "--model", "auto")
    assert code == 0
    assert "bradley-terry is the default model; no others were compared" in out
    assert "do not name several annotators" in out


def test_a_model_that_was_named_was_not_chosen(crowdrank, votes):
    assert json.loads(crowdrank("rank", votes, "--json", "--model", "crowd-bt").out)["chosen_because"] is None
    assert "several annotators" in json.loads(crowdrank("rank", votes, "--json").out)["chosen_because"]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "model", "why"),
    [
        ("country_population", "crowd-bt", "the default"),
        ("llmfao", "crowd-bt", "crowd-bt predicts held-out answers clearly better than bradley-terry"),
    ],
)
def test_what_is_said_of_real_judgments(crowdrank, data_folder, name, model, why):
    answer = json.loads(crowdrank("compare", data_folder / name / "pairwise.csv", *FEW, "--json").out)
    assert answer["recommended"] == model
    assert why in answer["why"]
