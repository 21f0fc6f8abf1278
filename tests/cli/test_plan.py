"""crowdrank plan."""

from __future__ import annotations

import json

import pytest

EASY = ("--quality", 0.95, "--target", "accuracy 0.8", "--labels", "order", "--trials", 2, "--processes", 1)
SMALL = ("plan", "--items", 8, "--annotators", 5, *EASY)


def test_a_plan_says_votes_and_cost(crowdrank):
    ended = crowdrank(*SMALL, "--price", 0.25)
    assert ended.code == 0
    assert ended.err == ""
    assert "8 items, 5 annotators" in ended.out
    assert "votes" in ended.out
    head, *rows = (line for line in ended.out.split("\n\n")[-1].splitlines() if line.strip())
    assert head.split() == ["votes", "cost", "accuracy"]
    for row in rows:
        votes, cost, accuracy, *_ = row.split()
        assert float(cost) == int(votes) / 4
        assert 0 <= float(accuracy) <= 1
    assert max(map(len, ended.out.splitlines())) <= 100


def test_json_says_the_same(crowdrank):
    found = json.loads(crowdrank(*SMALL, "--price", 2, "--json").out)
    assert found["cost"] == pytest.approx(2 * found["votes"])
    assert found["low"] <= found["votes"] <= found["high"]
    assert len(found["reached"]) == 2
    assert found["curve"][-1]["mean"] > found["curve"][0]["mean"]


def test_what_is_out_of_reach_is_null(crowdrank):
    found = json.loads(crowdrank(*SMALL, "--target", "order", "--most", 5, "--json").out)
    assert found["votes"] is None
    assert found["cost"] is None
    assert found["reached"] == [None, None]
    assert found["never"] == 2
    assert "Out of reach" in crowdrank(*SMALL, "--target", "order", "--most", 5).out


def test_the_curve_is_of_what_was_asked_for(crowdrank):
    for target, head in (("tau 0.5", "tau"), ("top 2", "share of the top 2"), ("order", "accuracy")):
        out = crowdrank(*SMALL, "--target", target, "--most", 10).out
        assert out.split("\n\n")[-1].splitlines()[0].split() == ["votes", "cost", *head.split()]


def test_the_policy_takes_settings(crowdrank):
    words = (*SMALL, "--most", 40, "--json", "--policy")
    plain, settings, other = (
        json.loads(crowdrank(*words, policy).out)
        for policy in ("adaptive", "adaptive:epsilon=0.1:floor=6", "adaptive:epsilon=1")
    )
    assert plain == settings
    assert plain["curve"] != other["curve"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--target", "tua 0.9"), "tau 0.9"),
        (("--target", "tau 9"), "must lie between 0 and 1, got 9"),
        (("--target", "a over b"), "A plan is for"),
        (("--quality", "bta(5,2)"), "did you mean 'beta'?"),
        (("--quality", "1.5"), "quality must lie between 0 and 1"),
        (("--policy", "adaptve"), "did you mean 'adaptive'?"),
        (("--policy", "adaptive:floor"), "adaptive:epsilon=0.2:floor=5; got 'floor'"),
        (("--price", -1), "price must be zero or more"),
        (("--probability", 2), "probability"),
        (("--items", 1), "items must be at least 2"),
        (("--processes", 2, "--quality", "bta(5,2)"), "did you mean 'beta'?"),
    ],
)
def test_mistakes_are_explained(crowdrank, words, said):
    ended = crowdrank(*SMALL, *words)
    assert ended.code == 1
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_value_that_is_not_a_choice_is_a_usage_error(crowdrank):
    ended = crowdrank(*SMALL, "--labels", "magic")
    assert ended.code == 2
    assert "'order', 'logistic'" in ended.err


@pytest.mark.parametrize("missing", ["items", "annotators"])
def test_how_many_there_are_must_be_said(crowdrank, missing):
    words = [word for name in {"items", "annotators"} - {missing} for word in (f"--{name}", 5)]
    ended = crowdrank("plan", *words)
    assert ended.code == 2
    assert f"--{missing}" in ended.err
