"""`crowdrank judge` as a user runs it."""

from __future__ import annotations

import json
import sys

import pytest

from crowdrank.cli import main
from tests.judging.conftest import KEY
from tests.judging.fake_endpoint import completion, error, verdict


@pytest.fixture
def judge(endpoint, tmp_path, monkeypatch, capsys):
    """Run `crowdrank judge` on four items; returns its exit code and its output."""
    (tmp_path / "items.csv").write_text("item,text,year\na,one,1\nb,two,2\nc,three,3\nd,four,4\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*words):
        usual = ["items.csv", "--endpoint", endpoint.url, "--llm", "m", "--backoff", "0.01"]
        monkeypatch.setattr(sys, "argv", ["crowdrank", "judge", *usual, *words])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, *capsys.readouterr()

    return run


ASK = ("--question", "Which?", "--out", "votes.csv")


def test_votes_are_written_and_ranked(judge, endpoint, tmp_path, monkeypatch, capsys):
    code, out, err = judge(*ASK, "--both-orders", "--people-out", "people.csv")
    assert (code, err) == (0, "")
    assert "12 questions: 12 answered, 0 left to ask." in out
    assert "Written to votes.csv." in out
    monkeypatch.setattr(sys, "argv", ["crowdrank", "rank", "votes.csv"])
    main()
    assert "12 comparisons" in capsys.readouterr().out
    assert (tmp_path / "people.csv").read_text().startswith("annotator,kind,family,price\nm,llm,m,")


def test_options_reach_the_request(judge, endpoint, tmp_path):
    (tmp_path / "prompt.txt").write_text("{question} {left} ({left.year}) or {right} ({right.year})\n")
    words = ("--template", "prompt.txt", "--set", "seed=7", "--set", "reasoning_effort=low", "--temperature", "-1")
    code, _, err = judge(*ASK, *words, "--pairs", "2", "--annotator", "x")
    assert code == 0, err
    body = endpoint.requests[0].body
    assert (body["seed"], body["reasoning_effort"]) == (7, "low")
    assert "temperature" not in body
    assert len(endpoint.requests) == 4
    assert "(1)" in "".join(endpoint.prompts)
    assert (tmp_path / "votes.csv").read_text().splitlines()[1].startswith("x,")


def test_a_dry_run_shows_the_prompt_and_the_cost(judge, endpoint):
    code, out, _ = judge(*ASK, "--dry-run", "--price-in", "1000", "--price-out", "1000", "--budget", "0.1")
    assert code == 0
    assert "    Which?" in out
    assert "6 questions: 0 answered, 6 left to ask." in out
    assert "That is more than the budget: 0.1" in out
    assert not endpoint.requests
    assert "the cost is unknown" in judge(*ASK, "--dry-run")[1]


def test_json_is_one_object(judge, endpoint):
    endpoint.behaviour = lambda number, body: verdict("A") if number else completion("?")
    code, out, _ = judge(*ASK, "--json", "--price-in", "1000", "--asks", "1")
    found = json.loads(out)
    assert code == 0
    assert (found["questions"], found["answered"], found["no_answer"], found["left"]) == (6, 5, 1, 0)
    assert found["spent"] == pytest.approx(0.6)
    assert found["people"] == [{"annotator": "m", "kind": "llm", "family": "m", "price": pytest.approx(0.1)}]


def test_an_error_is_one_line_without_the_key(judge, endpoint):
    endpoint.behaviour = lambda number, body: error(401, f"wrong key {KEY}")
    code, out, err = judge(*ASK)
    assert (code, out) == (1, "")
    assert err.startswith("crowdrank: The endpoint answers HTTP 401: wrong key [key]")
    assert err.count("\n") == 1
    assert KEY not in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--question", "Which?"], "give a file of votes with --out, or --journal"),
        ([*ASK, "--pairs", "1"], "at least 2 per item"),
        ([*ASK, "--pairs", "nowhere.csv"], "nowhere.csv"),
        ([*ASK, "--template", "nowhere.txt"], "nowhere.txt"),
        ([*ASK[:3], "votes.pdf"], "tables are written as"),
        (["--out", "votes.csv"], "needs a question"),
        ([*ASK, "--set", "stream=true"], "'stream' of a request cannot be set"),
    ],
)
def test_mistakes_are_told_in_the_words_of_the_command(words, message, judge, endpoint):
    code, out, err = judge(*words)
    assert (code, out) == (1, "")
    assert message in err
    assert not endpoint.requests


def test_no_votes_are_an_error(judge, endpoint, tmp_path):
    endpoint.behaviour = lambda number, body: completion("?")
    code, out, err = judge(*ASK)
    assert (code, out) == (1, "")
    assert "No question was answered. 6 questions got no answer that can be understood, in 3 asks each." in err
    assert not (tmp_path / "votes.csv").exists()
