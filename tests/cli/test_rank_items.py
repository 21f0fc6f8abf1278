"""crowdrank rank with columns about items: features, and systems."""

from __future__ import annotations

import json

import numpy as np
import pytest

QUERIES = 12


@pytest.fixture
def pages(tmp_path):
    """Pages of two engines for several queries, the first engine better; and a file about the pages."""
    rng, rows = np.random.default_rng(0), []
    for n in range(QUERIES):
        for k in range(8):
            sides = ["good", "poor"] if rng.random() < 0.5 else ["poor", "good"]
            better = "good" if rng.random() < 0.8 else "poor"
            left, right = (f"{side}{n:02d}" for side in sides)
            layout = "grid" if rng.random() < 0.5 else "list"
            rows.append(f"w{k},q{n:02d},{left},{right},{better}{n:02d},{sides[0]},{sides[1]},{layout}")
    header = "worker,query,left,right,winner,left_engine,right_engine,layout"
    votes = tmp_path / "votes.csv"
    votes.write_text("\n".join([header, *rows]) + "\n")
    about = [
        f"{kind}{n:02d},{kind},{100 * n + len(kind)},{'bold' if n % 3 else 'plain'}"
        for n in range(QUERIES)
        for kind in ("good", "poor")
    ]
    (tmp_path / "items.csv").write_text("\n".join(["item,engine,length,style", *about]) + "\n")
    return votes


def answer(ended):
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out)


def test_features_come_from_both_files(crowdrank, pages):
    words = (
        "--model",
        "factor-bt",
        "--features",
        "position,layout,length,style",
        "--items",
        pages.with_name("items.csv"),
    )
    told = answer(crowdrank("rank", pages, *words, "--json"))
    assert told["settings"]["features"] == ["position", "layout", "length", "style"]
    names = [effect["feature"] for effect in told["bias_effects"]]
    assert names == ["position", "layout=grid", "layout=list", "length", "style=bold"]
    code, out, _ = crowdrank("rank", pages, *words)
    assert code == 0
    assert "effect on left" in out
    assert "layout=grid" in out


@pytest.mark.parametrize("words", [(), ("--model", "bradley-terry"), ("--model", "crowd-bt")])
def test_models_without_features_refuse_them(crowdrank, pages, words):
    ended = crowdrank("rank", pages, "--features", "layout", *words)
    assert ended.code == 1
    assert "does not use --features. Pass --control" in ended.err
    assert "factor-bt" in ended.err


@pytest.mark.parametrize("from_file", [True, False], ids=["a column about items", "columns of the two sides"])
def test_systems_are_compared(crowdrank, pages, from_file):
    words = ("--system", "engine", *(("--items", pages.with_name("items.csv")) if from_file else ()))
    found = answer(crowdrank("rank", pages, *words, "--json"))["systems"]
    assert [row["system"] for row in found["order"]] == ["good", "poor"]
    (pair,) = found["pairs"]
    assert 0.5 < pair["low"] < pair["probability"] < pair["high"] < 1
    assert pair["queries"] == QUERIES
    assert found["queries_resampled"] is True
    code, out, _ = crowdrank("rank", pages, *words)
    assert code == 0
    assert "beats the others" in out
    assert "for queries like these" in " ".join(out.split())


def test_an_item_may_be_a_system_by_its_own_name(crowdrank, tmp_path):
    votes = tmp_path / "votes.csv"
    rows = [f"p{n},x,y,{'y' if n % 4 == 0 else 'x'}" for n in range(8) for _ in range(3)]
    votes.write_text("\n".join(["query,model_a,model_b,winner", *rows]) + "\n")
    for system in ("item", "model"):
        found = answer(crowdrank("rank", votes, "--system", system, "--json"))["systems"]
        assert [row["system"] for row in found["order"]] == ["x", "y"]


def test_without_uncertainty_there_are_no_intervals(crowdrank, pages):
    words = ("--model", "factor-bt", "--uncertainty", "none", "--system", "engine")
    told = answer(crowdrank("rank", pages, *words, "--json"))
    assert told["systems"]["pairs"][0]["low"] is None
    assert told["bias_effects"] == []
    assert "nan" not in crowdrank("rank", pages, *words).out


def test_a_bootstrap_serves_as_well(crowdrank, pages):
    words = ("--model", "bradley-terry", "--uncertainty", "bootstrap", "--system", "engine", "--json")
    assert answer(crowdrank("rank", pages, *words))["systems"]["pairs"][0]["low"] > 0.5


def test_an_item_of_two_systems_is_refused(crowdrank, pages):
    text = pages.read_text().replace("poor03,good,poor", "poor03,good,good", 1)
    assert text != pages.read_text()
    pages.write_text(text)
    code, _, err = crowdrank("rank", pages, "--system", "engine")
    assert code == 1
    assert "Item poor03 (q03) has more than one engine" in err


def test_items_the_file_says_nothing_of_are_named(crowdrank, pages):
    items = pages.with_name("items.csv")
    items.write_text("\n".join(items.read_text().splitlines()[:-2]) + "\n")
    code, _, err = crowdrank("rank", pages, "--system", "engine", "--items", items)
    assert code == 1
    assert "items.csv: no row for 2 of 24 items, such as good11 (q11), poor11 (q11)" in err


def test_a_system_nobody_tells_of_is_explained(crowdrank, pages):
    code, _, err = crowdrank("rank", pages, "--system", "maker")
    assert code == 1
    assert "left_maker and right_maker" in err


def test_models_whose_scores_are_no_strengths_are_refused(crowdrank, pages):
    code, _, err = crowdrank("rank", pages, "--system", "engine", "--model", "borda")
    assert code == 1
    assert "Scores of borda give an order but not the probability of a win" in err


def test_columns_of_the_file_about_items_can_be_named(crowdrank, pages):
    items = pages.with_name("items.csv")
    items.write_text(items.read_text().replace("item,engine", "page,engine"))
    assert crowdrank("rank", pages, "--system", "engine", "--items", items).code == 1
    words = ("--system", "engine", "--items", items, "--items-column", "item=page", "--json")
    assert answer(crowdrank("rank", pages, *words))["systems"]["order"][0]["system"] == "good"


def test_grades_can_be_compared_by_system_too(crowdrank, tmp_path):
    (tmp_path / "grades.csv").write_text("rater,item,grade\nann,x,3\nann,y,1\nbob,x,4\nbob,z,2\nbob,y,3\n")
    (tmp_path / "items.csv").write_text("item,engine\nx,g\ny,h\nz,h\n")
    words = ("--system", "engine", "--items", tmp_path / "items.csv", "--json")
    found = answer(crowdrank("rank", tmp_path / "grades.csv", *words))
    assert found["systems"]["order"][0]["system"] == "g"
    assert found["systems"]["queries_resampled"] is False
