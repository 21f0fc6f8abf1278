"""crowdrank rank --set: settings of a single model, such as the measure of crowd-agg."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def grades(tmp_path):
    path = tmp_path / "ratings.csv"
    rows = ["ann,a,3", "ann,b,2", "ann,c,0", "bob,a,2", "bob,b,1", "bob,c,1"]
    path.write_text("worker,item,rating\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("measure", ["ndcg", "rbp"])
def test_the_measure_is_a_setting_of_crowd_agg(crowdrank, grades, measure):
    words = ("rank", grades, "--model", "crowd-agg", "--uncertainty", "none", "--json")
    ended = crowdrank(*words, "--set", f"measure={measure}")
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out)["settings"]["measure"] == measure


def test_a_model_without_the_setting_refuses_it(crowdrank, grades):
    ended = crowdrank("rank", grades, "--set", "measure=ndcg")
    assert ended.code == 1
    assert "No setting named 'measure'" in ended.err


def test_a_value_that_is_not_a_choice_is_refused(crowdrank, grades):
    ended = crowdrank("rank", grades, "--model", "crowd-agg", "--set", "measure=map")
    assert ended.code == 1
    assert "map" in ended.err
