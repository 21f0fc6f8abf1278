"""`crowdrank judges` as a user runs it."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest


@pytest.fixture
def files(tmp_path):
    """Three judges on twenty pairs: one is right, one looks at the left, one is a copy of it."""
    rows, gold = ["query,annotator,left,right,winner"], ["query,winner,loser"]
    for n in range(20):
        gold.append(f"q{n},<b>,y")
        for left, right in (("<b>", "y"), ("y", "<b>")):
            rows += [f"q{n},right,{left},{right},<b>"]
            rows += [f"q{n},{who},{left},{right},{left if n % 4 else '<b>'}" for who in ("sided", "copy")]
    (tmp_path / "votes.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "gold.csv").write_text("\n".join(gold) + "\n")
    people = "annotator,kind,family,price\nright,llm,a,2\nsided,llm,b,0.5\ncopy,llm,b,0.5\n"
    (tmp_path / "people.csv").write_text(people)
    return tmp_path


def test_the_audit_is_shown_and_written(crowdrank, files):
    page, table = files / "judges.html", files / "judges.csv"
    known = ("--people", files / "people.csv", "--gold-pairs", files / "gold.csv")
    ended = crowdrank("judges", files / "votes.csv", *known, "--report", page, "--out", table)
    assert ended.code == 0, ended.err
    assert "3 judges, 20 pairs, 20 of them with an answer from gold." in ended.out
    assert "2 judges are inconsistent" in ended.out
    assert "Recommended jury: right." in ended.out
    assert table.read_text().startswith("annotator,kind,family,price,votes,pairs,agreement")
    HTMLParser().feed(page.read_text())
    assert "Who errs with whom" in page.read_text()
    assert "<script" not in page.read_text()


def test_a_narrow_terminal_shows_prices_in_full(crowdrank, files, monkeypatch):
    known = ("--people", files / "people.csv", "--gold-pairs", files / "gold.csv")
    monkeypatch.setenv("COLUMNS", "80")
    narrow = crowdrank("judges", files / "votes.csv", *known).out
    monkeypatch.setenv("COLUMNS", "120")
    wide = crowdrank("judges", files / "votes.csv", *known).out
    for shown in (narrow, wide):
        assert "per correct" in shown
    rows = [next(line for line in shown.splitlines() if line.startswith("copy")) for shown in (narrow, wide)]
    assert rows[0].split()[-1] == rows[1].split()[-1]
    assert len(rows[0]) <= 80 < len(rows[1])


def test_gold_and_humans_are_shown_together(crowdrank, files):
    (files / "people.csv").write_text("annotator,kind\nright,human\nsided,llm\n")
    known = ("--people", files / "people.csv", "--gold-pairs", files / "gold.csv", "--report", files / "judges.html")
    ended = crowdrank("judges", files / "votes.csv", *known)
    assert ended.code == 0, ended.err
    assert "  humans  " in ended.out
    assert "κ with humans" in (files / "judges.html").read_text()


def test_the_budget_limits_the_jury(crowdrank, files):
    known = ("--people", files / "people.csv", "--gold-pairs", files / "gold.csv", "--budget", 1.5)
    found = json.loads(crowdrank("judges", files / "votes.csv", *known, "--json").out)
    assert found["jury"]["price"] <= 1.5
    assert "right" not in found["jury"]["members"]
    assert found["judges"][0]["annotator"] == "right"
    assert found["alpha"]["all judges"]["value"] > 0


def test_without_gold_the_audit_says_what_it_cannot_see(crowdrank, files):
    ended = crowdrank("judges", files / "votes.csv", "--top", 1, "--report", files / "judges.html")
    assert ended.code == 0
    assert "shared errors cannot be seen" in " ".join(ended.out.split())
    assert "… 1 more …" in ended.out
    assert "Who errs with whom" not in (files / "judges.html").read_text()


def test_mistakes_are_told(crowdrank, files):
    budget = crowdrank("judges", files / "votes.csv", "--gold-pairs", files / "gold.csv", "--budget", 1)
    assert (budget.code, budget.out) == (1, "")
    assert "--people" in budget.err
    assert crowdrank("judges", files / "votes.csv", "--report", files / "judges.pdf").code == 1
