"""crowdrank next."""

from __future__ import annotations

import json

import polars as pl
import pytest


@pytest.fixture
def items(tmp_path):
    path = tmp_path / "items.csv"
    path.write_text("item,owner\na,\nb,bob\nc,\nd,\n")
    return path


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("annotator,quota,price,available\nann,6,1,yes\nbob,,2,yes\nzoe,1,,yes\neve,,,no\n")
    return path


def test_questions_are_printed_and_written(crowdrank, votes, items, people, tmp_path):
    out = tmp_path / "tasks.csv"
    ended = crowdrank("next", votes, "--items", items, "--annotators", people, "--count", 8, "--out", out)
    assert ended.code == 0
    assert "8 judgments so far" in ended.out
    assert f"Written to {out}." in ended.out
    tasks = pl.read_csv(out)
    assert tasks.columns == ["annotator", "left", "right", "policy", "probability"]
    assert set(tasks["annotator"]) <= {"ann", "bob", "zoe"}
    assert tasks.filter(pl.col("annotator") == "zoe").height <= 1
    assert tasks.filter(pl.col("annotator") == "ann").height <= 3  # three of six are used up
    bobs = tasks.filter(pl.col("annotator") == "bob")
    assert not set(bobs["left"]) & {"b"} | set(bobs["right"]) & {"b"}
    assert tasks["probability"].is_between(0, 1, closed="right").all()


def test_a_collection_can_begin_without_votes(crowdrank, items, people):
    ended = crowdrank("next", "--items", items, "--annotators", people, "--count", 3, "--json")
    questions = json.loads(ended.out)
    assert len(questions) == 3
    assert {label for q in questions for label in (q["left"], q["right"])} <= set("abcd")


def test_questions_for_one_annotator(crowdrank, votes):
    questions = json.loads(crowdrank("next", votes, "--annotator", "newcomer", "--count", 2, "--json").out)
    assert [q["annotator"] for q in questions] == ["newcomer"] * 2


@pytest.mark.parametrize("policy", ["gain", "thompson", "random", "epsilon-greedy", "uncertainty", "coverage"])
@pytest.mark.parametrize("beliefs", ["online", "mcmc"])
def test_every_policy_can_be_asked_whatever_steers(crowdrank, votes, items, policy, beliefs):
    words = ("next", votes, "--items", items, "--policy", policy, "--beliefs", beliefs, "--count", 3, "--json")
    questions = json.loads(crowdrank(*words).out)
    assert len(questions) == 3
    assert crowdrank(*words).out == crowdrank(*words).out


def test_settings_of_the_policy_are_taken(crowdrank, votes, items):
    ended = crowdrank("next", votes, "--items", items, "--set", "epsilon=1", "--count", 3, "--json")
    assert {q["policy"] for q in json.loads(ended.out)} == {"random"}
    assert "epsilon" in crowdrank("next", votes, "--set", "epsilonn=1").err


def test_items_of_queries_are_asked_within_them(crowdrank, tmp_path):
    items = tmp_path / "items.csv"
    items.write_text("query,item\nq1,a\nq1,b\nq2,a\nq2,c\n")
    questions = json.loads(crowdrank("next", "--items", items, "--annotator", "ann", "--json").out)
    assert {(q["query"], *sorted((q["left"], q["right"]))) for q in questions} == {("q1", "a", "b"), ("q2", "a", "c")}


def test_how_near_a_decision_is_can_be_asked(crowdrank, votes):
    ended = crowdrank("next", votes, "--until", "top 1", "--count", 2)
    assert "top 1: not decided, probability 0." in ended.out
    assert "votes in total" in ended.out or "out of reach" in ended.out


def test_once_it_is_decided_nothing_is_asked(crowdrank, tmp_path):
    clear = tmp_path / "clear.csv"
    rows = [f"{who},{a},{b},{a}" for who in "xyz" for a, b in ("ab", "ac", "bc") for _ in range(12)]
    clear.write_text("\n".join(["worker,left,right,winner", *rows]))
    out = tmp_path / "tasks.csv"
    ended = crowdrank("next", clear, "--until", "top 1", "--repeats", "--out", out)
    assert "top 1: decided." in ended.out
    assert f"Written to {out} (no questions)." in ended.out
    assert pl.read_csv(out).is_empty()
    assert "questions for" not in ended.out
    assert json.loads(crowdrank("next", clear, "--until", "top 1", "--repeats", "--json").out) == []


def test_too_few_are_said_to_be_left(crowdrank, votes):
    ended = crowdrank("next", votes, "--count", 50)
    assert ended.code == 0
    assert "are left to ask" in ended.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("next",), "Nothing to ask about"),
        (("next", "--items", "{items}"), "No annotators to ask"),
        (("next", "{votes}", "--policy", "thomson"), "thompson"),
        (("next", "{votes}", "--annotators", "{bad}"), "quota of 'ann'"),
        (("next", "nowhere.csv"), "no such file"),
        (("next", "{votes}", "--until", "top three"), "top 3"),
        (("next", "{votes}", "--until", "top 1", "--beliefs", "online"), "--until needs posterior draws"),
    ],
)
def test_mistakes_are_explained(crowdrank, votes, items, tmp_path, words, said):
    bad = tmp_path / "bad.csv"
    bad.write_text("annotator,quota\nann,many\n")
    ended = crowdrank(*(str(word).format(votes=votes, items=items, bad=bad) for word in words))
    assert ended.code == 1
    assert said in ended.err


def test_a_value_that_is_not_a_choice_is_a_usage_error(crowdrank, votes):
    ended = crowdrank("next", votes, "--beliefs", "magic")
    assert ended.code == 2
    assert "'auto', 'mcmc', 'online'" in ended.err


def test_answers_to_buy_have_a_gain_per_price(crowdrank, votes, tmp_path):
    prices, out = tmp_path / "prices.csv", tmp_path / "buy.csv"
    prices.write_text("annotator,kind,price\ngold,,4\n")
    ended = crowdrank("next", votes, "--ask", "gold", "--people", prices, "--count", 2, "--out", out)
    assert ended.code == 0, ended.err
    assert "2 answers at a price of 8" in ended.out
    bought = pl.read_csv(out)
    assert bought.columns == ["annotator", "left", "right", "gain", "price", "gain_per_price"]
    assert bought["annotator"].to_list() == ["gold", "gold"]
    assert bought["gain_per_price"].to_list() == pytest.approx((bought["gain"] / 4).to_list())
    listed = json.loads(crowdrank("next", votes, "--ask", "gold", "--count", 1, "--json").out)
    assert set(listed[0]) == set(bought.columns)


def test_ask_needs_votes_and_known_names(crowdrank, votes, people):
    assert "--ask needs a file" in crowdrank("next", "--ask", "gold").err
    assert "did you mean 'ann'" in crowdrank("next", votes, "--ask", "annn").err
    assert "--people and --gold-pairs are for --ask" in crowdrank("next", votes, "--people", people).err
