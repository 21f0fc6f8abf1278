"""crowdrank simulate-active."""

from __future__ import annotations

import json
import sys

import polars as pl
import pytest

SMALL = ("simulate-active", "--items", 8, "--annotators", 5, "--budget", 40, "--trials", 2, "--processes", 1)
ONLINE = (*SMALL, "--beliefs", "online")


def test_a_table_has_votes_down_and_policies_across(crowdrank):
    ended = crowdrank(*SMALL, "--policies", "adaptive:epsilon=0.2:floor=5, random")
    assert ended.code == 0
    assert ended.err == ""
    lines = ended.out.splitlines()
    assert lines[0] == "8 items, 5 annotators, 40 votes; 2 collections per policy, beliefs by MCMC."
    rows = [line.split() for line in lines if "±" in line and line.split()[0].isdigit()]
    assert [int(row[0]) for row in rows] == list(range(4, 41, 4))
    assert {len(row) for row in rows} == {7}
    assert "epsilon=0.2" in ended.out
    assert any(line.split()[:1] == ["area"] for line in lines)
    assert "standard errors" in lines[-1] or "random" in lines[-1]
    assert max(map(len, lines)) <= 100


def test_many_policies_fit_the_page(crowdrank):
    names = "adaptive,thompson,gain:exploration=12.5,epsilon-greedy:epsilon=0.25,uncertainty,coverage,random"
    ended = crowdrank(*ONLINE, "--policies", names)
    assert ended.code == 0
    assert max(map(len, ended.out.splitlines())) <= 100
    assert ended.out.count("area  ") == 2
    assert "exploration=12.5" in ended.out


def test_curves_are_written_and_drawn(crowdrank, tmp_path):
    out, plot = tmp_path / "curves.csv", tmp_path / "curves.html"
    ended = crowdrank(*ONLINE, "--policies", "gain,random", "--out", out, "--plot", plot)
    assert ended.code == 0
    assert f"Written to {out}." in ended.out
    assert pl.read_csv(out).height == 40
    assert "gain" in plot.read_text(encoding="utf-8")


def test_json_has_the_same_numbers(crowdrank, tmp_path):
    out = tmp_path / "curves.jsonl"
    ended = crowdrank(*ONLINE, "--policies", "gain:exploration=5,random", "--json", "--out", out)
    found = json.loads(ended.out)
    assert found["best"] in {"gain:exploration=5", "random"}
    assert [row["policy"] for row in found["areas"]] == ["gain:exploration=5", "random"]
    assert pl.read_ndjson(out).to_dicts() == found["curves"]
    assert found["curves"][-1]["difference"] is None


def test_settings_of_a_policy_reach_it(crowdrank):
    words = (*ONLINE, "--budget", 20, "--json", "--policies")
    found = json.loads(crowdrank(*words, "epsilon-greedy:epsilon=1,epsilon-greedy,epsilon-greedy:epsilon=0.1").out)
    free, default, same = (row["area"] for row in found["areas"])
    assert free != default == same


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--policies", "gian"), "did you mean 'gain'?"),
        (("--policies", "gain,gain"), "twice"),
        (("--policies", ","), "Name at least one policy to compare"),
        (("--policies", "gain:exploration"), "adaptive:epsilon=0.2:floor=5; got 'exploration'"),
        (("--policies", "gain:explration=5"), "did you mean 'exploration'?"),
        (("--policies", "gain:exploration=much"), "exploration cannot be 'much'"),
        (("--budget", 1000), "at most 140"),
        (("--quality", "beta(2)"), "beta takes two numbers"),
        (("--plot", "curves.pdf"), "drawn as .html, .svg, .png"),
        (("--out", "curves.doc"), "tables are written as"),
    ],
)
def test_mistakes_are_explained(crowdrank, words, said):
    ended = crowdrank(*ONLINE, "--policies", "random", *words)
    assert ended.code == 1
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "choices"),
    [(("--labels", "magic"), "'order', 'logistic'"), (("--beliefs", "magic"), "'mcmc', 'online'")],
)
def test_a_value_that_is_not_a_choice_is_a_usage_error(crowdrank, words, choices):
    ended = crowdrank(*ONLINE, *words)
    assert ended.code == 2
    assert choices in ended.err


def test_nobody_waits_for_a_figure_that_cannot_be_drawn(crowdrank, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    ended = crowdrank("simulate-active", "--plot", "curves.html")  # by default, minutes
    assert ended.code == 1
    assert "pip install 'crowdrank[reports]'" in ended.err
