"""crowdrank explain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

VOTES = Path(__file__).parents[2] / "examples" / "cities" / "votes.csv"


def test_the_answer_comes_in_plain_words_first(crowdrank):
    code, out, err = crowdrank("explain", VOTES, "--item", "Tokyo", "--above", "Delhi")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("Tokyo ranks above Delhi by 0.")
    assert lines[1].startswith("Of the direct judgments, 1 chose Tokyo, 0 Delhi")
    assert "paula" in out
    assert "Tokyo – Mexico City – Delhi" in out
    assert "the direct answers" in out


def test_the_lower_item_may_be_asked_about_too(crowdrank):
    out = crowdrank("explain", VOTES, "--item", "Delhi", "--above", "Tokyo").out
    assert out.startswith("Tokyo ranks above Delhi by 0.")


def test_machines_get_numbers_that_add_up(crowdrank):
    answer = json.loads(crowdrank("explain", VOTES, "--item", "Tokyo", "--above", "Cairo", "--json").out)
    assert answer["direct"] + answer["indirect"] == pytest.approx(answer["difference"], abs=1e-4)
    assert sum(row["influence"] for row in answer["annotators"]) == pytest.approx(answer["difference"], abs=1e-4)
    assert answer["model"] == "crowd-bt"


def test_items_that_never_met_and_nobody_connects(crowdrank, tmp_path):
    path = tmp_path / "apart.csv"
    path.write_text("left,right,winner\na,b,a\nc,d,c\n")
    out = crowdrank("explain", path, "--item", "a", "--above", "d").out
    assert "No judgment compares the two directly." in out
    assert "No chain of comparisons" in out


def test_a_query_is_named_where_there_are_several(crowdrank, tmp_path):
    path = tmp_path / "queries.csv"
    path.write_text("topic,left,right,winner\nx,a,b,a\nx,a,b,a\ny,a,b,b\n")
    words = ("explain", path, "--query", "topic", "--item", "a", "--above", "b")
    assert crowdrank(*words, "--within", "x").out.startswith("a ranks above b")
    assert crowdrank(*words, "--within", "y").out.startswith("b ranks above a")
    code, _, err = crowdrank(*words)
    assert code == 1
    assert "Name the query" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--item", "Tokio", "--above", "Delhi"), "did you mean 'Tokyo'?"),
        (("--item", "Tokyo", "--above", "Tokyo"), "two different items"),
        (("--item", "Tokyo", "--above", "Delhi", "--model", "elo"), "cannot be explained"),
    ],
)
def test_mistakes_are_answered_in_one_line(crowdrank, words, said):
    code, _, err = crowdrank("explain", VOTES, *words)
    assert code == 1
    assert said in err
    assert err.count("\n") == 1


def test_both_items_must_be_named(crowdrank):
    assert crowdrank("explain", VOTES, "--item", "Tokyo").code == 1


def test_the_fewest_votes_that_decide_on_the_first_place(crowdrank):
    code, out, err = crowdrank("explain", VOTES, "--fragile", "--stuffing")
    assert (code, err) == (0, "")
    assert out.startswith("Without 1 of 1,473 votes (0.1%), Delhi would be first instead of Tokyo.")
    assert "annotators (3.3%)" in out
    assert "No sign of vote stuffing." in out
    assert "Not tested: burst (the votes have no times)." in out


def test_fragility_for_machines(crowdrank):
    answer = json.loads(crowdrank("explain", VOTES, "--fragile", "--stuffing", "--json").out)
    votes, annotators = answer["fragility"]
    assert (votes["by"], votes["size"], annotators["by"]) == ("votes", 1, "annotators")
    assert annotators["annotators"] == ["paula"]
    assert answer["stuffing"]["alarms"] == []


def test_something_must_be_asked(crowdrank, tmp_path):
    code, _, err = crowdrank("explain", VOTES, "--item", "Tokyo")
    assert code == 1
    assert "pass --fragile" in err
    path = tmp_path / "ratings.csv"
    path.write_text("annotator,item,rating\nu,a,1\nu,b,2\nv,a,3\nv,b,1\n")
    code, _, err = crowdrank("explain", path, "--stuffing")
    assert code == 1
    assert "are ratings" in err
