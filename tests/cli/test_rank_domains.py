"""crowdrank rank with hidden domains: --query, --set domains and --heat-map."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import pytest

from crowdrank import BradleyTerry, Comparisons, Ranking
from crowdrank.models import REGISTRY, Model
from crowdrank.models.base import FitOptions
from crowdrank.results import Domains


@dataclass(frozen=True, kw_only=True)
class ByHand(Model):
    """Every query is its own domain, and everyone is an expert in all but the last one."""

    reads: ClassVar[type] = Comparisons
    domains: int | Literal["auto"] = 3

    def _fit(self, judgments: Comparisons, options: FitOptions) -> Ranking:
        ranking = BradleyTerry().fit(judgments)
        with_domains = ranking.with_parts(domains=lambda: chart(judgments))
        return replace(with_domains, settings={"domains": self.domains})


def chart(judgments: Comparisons) -> Domains:
    queries = judgments.items.queries
    expertise = np.full((len(judgments.annotators), len(queries)), 3.0)
    expertise[:, -1] = -3.0
    difficulty = np.linspace(0.5, 1.5, len(queries))
    return Domains(
        annotators=judgments.annotators,
        queries=queries,
        expertise=(expertise, expertise - 0.1, expertise + 0.1),
        membership=np.eye(len(queries)),
        difficulty=(difficulty,) * 3,
        n_judgments=np.full(expertise.shape, 4),
    )


@pytest.fixture(autouse=True)
def by_hand(monkeypatch):
    monkeypatch.setitem(REGISTRY, "by-hand", ByHand)


@pytest.fixture
def votes(tmp_path):
    """Two topics; ann is right in both, bob only in the first."""
    rows = [
        f"{who},{topic},{a},{b},{a if who == 'ann' or topic == 'jazz' else b}"
        for who in ("ann", "bob")
        for topic in ("jazz", "rock")
        for a, b in ("xy", "yz", "xz")
    ]
    path = tmp_path / "votes.csv"
    path.write_text("worker,topic,left,right,winner\n" + "\n".join(rows) + "\n")
    return path


def test_domains_are_told_after_the_ranking(crowdrank, votes):
    code, out, err = crowdrank("rank", votes, "--model", "by-hand", "--query", "topic", "--set", "domains=auto")
    assert (code, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines.index("Ranked by bradley-terry.") < lines.index("2 domains of 2 queries.")
    assert "1 1 jazz expert ann, bob" in lines
    assert "2 1 rock reversed ann, bob" in lines
    assert any(line.startswith("Hardest: rock (1.50); easiest: jazz (0.50)") for line in lines)


@pytest.mark.parametrize(("typed", "read"), [("auto", "auto"), ("4", 4)])
def test_the_number_of_domains_is_a_setting(crowdrank, votes, typed, read):
    words = ("rank", votes, "--model", "by-hand", "--query", "topic", "--json")
    assert json.loads(crowdrank(*words, "--set", f"domains={typed}").out)["settings"]["domains"] == read


def test_json_has_the_domains(crowdrank, votes):
    found = json.loads(crowdrank("rank", votes, "--model", "by-hand", "--query", "topic", "--json").out)["domains"]
    assert (found["count"], found["sizes"]) == (2, [1, 1])
    assert [row["query"] for row in found["queries"]] == ["rock", "jazz"]
    assert {(row["annotator"], row["domain"]) for row in found["ask"]} == {
        (a, d) for a in ("ann", "bob") for d in (1, 2)
    }
    assert found["annotators"][0]["verdict"] == "expert"


def test_json_of_other_models_says_that_there_are_none(crowdrank, votes):
    assert json.loads(crowdrank("rank", votes, "--query", "topic", "--json").out)["domains"] is None


def test_json_out_keeps_the_domains(crowdrank, votes, tmp_path):
    crowdrank("rank", votes, "--model", "by-hand", "--query", "topic", "--out", tmp_path / "r.json")
    assert Ranking.load(tmp_path / "r.json").domains.domain.tolist() == [1, 2]


def test_a_heat_map_is_drawn(crowdrank, votes, tmp_path):
    pytest.importorskip("altair", reason="draws the heat map")
    path = tmp_path / "heat.svg"
    ended = crowdrank("rank", votes, "--model", "by-hand", "--query", "topic", "--heat-map", path)
    assert ended.code == 0
    assert f"Written to {path}." in ended.out
    assert ">bob</text>" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "domains=3"), "No setting named 'domains'"),
        (("--heat-map", "heat.svg"), "--heat-map needs a model with domains: pass --model tpp or by-hand."),
        (("--model", "borda", "--heat-map", "heat.svg"), "--heat-map needs a model with domains: pass --model tpp"),
        (("--model", "by-hand", "--set", "domains=many"), "domains cannot be 'many'; expected an integer or auto."),
        (("--model", "by-hand", "--heat-map", "heat.pdf"), "drawn as .html, .svg, .png"),
        (
            ("--model", "by-hand", "--column", "annotator=", "--heat-map", "heat.svg"),
            "--column annotator= says that there are none",
        ),
    ],
)
def test_mistakes_are_answered_in_one_line(crowdrank, votes, words, said, tmp_path, monkeypatch):
    pytest.importorskip("altair", reason="a heat map needs it")
    monkeypatch.chdir(tmp_path)
    code, _, err = crowdrank("rank", votes, "--query", "topic", *words)
    assert code == 1
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "heat.svg").exists()


@pytest.mark.skipif("tpp" not in REGISTRY, reason="tpp is not offered yet")
def test_tpp_finds_domains_of_topics(crowdrank, votes):
    ended = crowdrank("rank", votes, "--model", "tpp", "--query", "topic", "--set", "domains=auto")
    assert ended.code == 0
    assert "of 2 queries." in ended.out
