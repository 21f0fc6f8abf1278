"""crowdrank rank --measure: whose expected value crowd-agg makes largest."""

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
def test_the_measure_is_a_setting_of_the_model(crowdrank, grades, measure):
    words = ("rank", grades, "--model", "crowd-agg", "--uncertainty", "none", "--json")
    ended = crowdrank(*words, "--measure", measure)
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out)["settings"]["measure"] == measure
    assert ended == crowdrank(*words, "--set", f"measure={measure}")


def test_a_model_that_maximises_no_measure_refuses_it(crowdrank, grades):
    ended = crowdrank("rank", grades, "--measure", "ndcg")
    assert ended.code == 1
    assert "--measure needs a model that maximises one (crowd-agg), got graded-response." in ended.err


def test_an_unknown_measure_is_refused(crowdrank, grades):
    ended = crowdrank("rank", grades, "--model", "crowd-agg", "--measure", "map")
    assert ended.code == 1
    assert "--measure must be ndcg or rbp, got 'map'." in ended.err
