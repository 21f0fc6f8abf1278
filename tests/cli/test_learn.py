"""crowdrank learn and crowdrank predict."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crowdrank.data import Rankings
from crowdrank.simulation import list_crowd
from tests.cli.conftest import Command

CROWD = list_crowd(
    queries=12, items=6, annotators=3, labels="mallows", expertise="uniform(-1.5,-0.8)", first_expertise=0.8, seed=4
)
QUICK = ("--set", "iterations=3", "--set", "held_out=0")


@pytest.fixture
def training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lists of three annotators, the first of whom is reversed; features of the items, as a table and in LETOR."""
    lists, items = CROWD.judgments, CROWD.judgments.items
    assert isinstance(lists, Rankings)
    lists.to_frame().drop("list").write_csv(tmp_path / "lists.csv")
    columns = {"query": items.queries[items.query].tolist(), "item": items.labels.tolist(), **CROWD.features}
    frame = pl.DataFrame(columns)
    frame.write_parquet(tmp_path / "items.parquet")
    frame.write_csv(tmp_path / "items.csv")
    grade = np.argsort(np.argsort(CROWD.truth.reshape(12, 6), axis=1), axis=1).ravel() // 2
    rows = zip(grade, columns["query"], CROWD.features["x1"], CROWD.features["x2"], columns["item"], strict=True)
    (tmp_path / "train.letor").write_text("".join(f"{g} qid:{q} 1:{a} 2:{b} #docid = {i}\n" for g, q, a, b, i in rows))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_function_is_learnt_kept_and_used(crowdrank: Command, training: Path) -> None:
    learnt = crowdrank("learn", "lists.csv", "--features", "items.parquet", "--out", "model.crowdrank")
    assert learnt.code == 0, learnt.err
    assert "36 lists of 72 items in 12 queries by 3 annotators; 2 features." in learnt.out
    words = {line.split()[0]: line for line in learnt.out.splitlines() if line.startswith("annotator")}
    assert words["annotator1"].rstrip().endswith("reversed")
    assert words["annotator2"].rstrip().endswith("reliable")
    assert "Validation: Kendall's tau" in learnt.out
    assert "Written to model.crowdrank." in learnt.out
    ranked = crowdrank("predict", "model.crowdrank", "items.csv", "--out", "ranked.csv", "--top", "2")
    assert ranked.code == 0, ranked.err
    assert "… and 2 more queries: --out writes them all." in ranked.out
    frame = pl.read_csv(training / "ranked.csv")
    assert frame.columns == ["query", "item", "rank", "score"]
    assert frame.height == 72
    best = frame.filter(rank=1)["item"].to_list()
    items, truth = CROWD.judgments.items, CROWD.truth.reshape(12, 6)
    right = [items.labels[6 * q + int(np.argmax(row))] for q, row in enumerate(truth)]
    assert sum(a == b for a, b in zip(best, right, strict=True)) >= 10


def test_features_may_come_first_and_grades_validate(crowdrank: Command, training: Path) -> None:
    learnt = crowdrank("learn", "train.letor", "--lists", "lists.csv", "--labels", "map", "--json")
    assert learnt.code == 0, learnt.err
    content = json.loads(learnt.out)
    assert content["validation"]["metric"] == "NDCG@5"
    assert content["validation"]["value"] > 0.9
    assert content["features"] == ["f1", "f2"]
    assert content["annotators"][-1]["annotator"] == "annotator1"
    assert content["annotators"][-1]["verdict"] == "reversed"
    assert content["settings"]["labels"] == "map"


def test_where_it_is_learnt_makes_no_difference(crowdrank: Command, training: Path) -> None:
    pytest.importorskip("distributed")
    words = ("learn", "lists.csv", "--features", "items.csv", *QUICK, "--json")
    here, there = crowdrank(*words), crowdrank(*words, "--engine", "dask")
    assert there.code == 0, there.err
    assert json.loads(there.out) == json.loads(here.out)


def test_what_is_known_is_told(crowdrank: Command, training: Path) -> None:
    told = (
        "--annotator-quality",
        "annotator1=-2",
        "--annotator-quality",
        "annotator2=-3..-1",
        "--annotator-order",
        "annotator2>annotator3",
    )
    learnt = crowdrank("learn", "lists.csv", "--features", "items.csv", *told, *QUICK, "--json")
    content = json.loads(learnt.out)
    found = {row["annotator"]: row["expertise"] for row in content["annotators"]}
    assert found["annotator1"] == -2
    assert -3 <= found["annotator2"] <= -1
    assert found["annotator2"] <= found["annotator3"]


def test_truth_of_some_queries_can_be_given(crowdrank: Command, training: Path) -> None:
    items = CROWD.judgments.items
    pl.DataFrame(
        {
            "query": items.queries[items.query][:18].tolist(),
            "item": items.labels[:18].tolist(),
            "value": CROWD.truth[:18],
        }
    ).write_csv(training / "truth.csv")
    known = crowdrank(
        "learn", "lists.csv", "--features", "items.csv", "--truth", "truth.csv", *QUICK, "--method", "truth"
    )
    assert known.code == 0, known.err
    assert "Learned by truth" in known.out
    assert crowdrank("learn", "lists.csv", "--features", "items.csv", *QUICK, "--method", "truth").code == 1


def test_ratings_are_made_lists(crowdrank: Command, training: Path) -> None:
    frame = pl.read_csv(training / "lists.csv")
    frame.select("query", "annotator", "item", rating=7 - pl.col("rank")).write_csv(training / "ratings.csv")
    rated = crowdrank("learn", "ratings.csv", "--features", "items.csv", *QUICK, "--method", "ltrma-d")
    listed = crowdrank("learn", "lists.csv", "--features", "items.csv", *QUICK, "--method", "ltrma-d")
    assert "Converted to lists: each annotator's items ordered by grade." in rated.out
    assert rated.out.splitlines()[3:8] == listed.out.splitlines()[2:7]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("lists.csv",), "learning needs both"),
        (("lists.csv", "--features", "items.csv", "--lists", "lists.csv"), "learning needs both"),
        (("lists.csv", "--features", "items.csv", "--method", "ltr-crowd"), "did you mean 'ltr-crowds'"),
        (("lists.csv", "--features", "items.csv", "--ranker", "forest"), "No ranker named 'forest'"),
        (("lists.csv", "--features", "items.csv", "--set", "top=3"), "--set top=… is not possible: use --top."),
        (("lists.csv", "--features", "items.csv", "--annotator-quality", "zoe=-1"), "No annotator named 'zoe'"),
        (
            ("lists.csv", "--features", "items.csv", "--annotator-quality", "annotator1=good"),
            "--annotator-quality takes a number",
        ),
        (
            (
                "lists.csv",
                "--features",
                "items.csv",
                *("--annotator-order", "annotator1>annotator2"),
                *("--annotator-order", "annotator2>annotator1"),
            ),
            "cannot be better than",
        ),
        (
            (
                "lists.csv",
                "--features",
                "items.csv",
                "--annotator-quality",
                "annotator1=-1",
                "--annotator-quality",
                "annotator1=-3..-2",
            ),
            "--annotator-quality gives annotator1 twice",
        ),
        (("lists.csv", "--features", "none.csv"), "there is no such file"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    crowdrank: Command, training: Path, words: tuple[str, ...], message: str
) -> None:
    ended = crowdrank("learn", *words)
    assert ended.code == 1
    assert message in ended.err
    assert len(ended.err.strip().splitlines()) == 1


@pytest.mark.parametrize("words", [("--missing-features", "mean"), ("--engine", "cloud"), ("--labels", "magic")])
def test_a_value_that_is_not_a_choice_is_a_usage_error(
    crowdrank: Command, training: Path, words: tuple[str, str]
) -> None:
    ended = crowdrank("learn", "lists.csv", "--features", "items.csv", *words)
    assert ended.code == 2
    assert words[1] in ended.err


def test_bad_data_are_named(crowdrank: Command, training: Path) -> None:
    lists, items = (training / "lists.csv").read_text(), (training / "items.csv").read_text().splitlines()
    (training / "unknown.csv").write_text(lists + "query01,annotator1,zoe,9\n")
    assert (
        "No features for 1 of 73 items: zoe (query01)"
        in crowdrank("learn", "unknown.csv", "--features", "items.csv").err
    )
    (training / "short.csv").write_text("\n".join(items[:-1]) + "\n")
    assert "No features for 1 of 72 items" in crowdrank("learn", "lists.csv", "--features", "short.csv").err
    hole = items.copy()
    hole[3] = ",".join([*hole[3].split(",")[:3], "nan"])
    (training / "hole.csv").write_text("\n".join(hole) + "\n")
    ended = crowdrank("learn", "lists.csv", "--features", "hole.csv", *QUICK)
    assert "hole.csv: line 4: feature 'x2' of item" in ended.err
    filled = crowdrank("learn", "lists.csv", "--features", "hole.csv", *QUICK, "--missing-features", "zero")
    assert filled.code == 0, filled.err


def test_queries_without_lists_and_one_annotator_only_are_borne(crowdrank: Command, training: Path) -> None:
    frame = pl.read_csv(training / "lists.csv")
    frame.filter((pl.col("annotator") == "annotator2") & (pl.col("query") != "query12")).write_csv(training / "one.csv")
    ended = crowdrank("learn", "one.csv", "--features", "items.csv", *QUICK)
    assert ended.code == 0, ended.err
    assert "11 lists of 66 items in 11 queries by 1 annotator" in ended.out
    assert "Note: There is one annotator" in ended.out


def test_prediction_refuses_what_it_cannot_rank(crowdrank: Command, training: Path) -> None:
    crowdrank("learn", "lists.csv", "--features", "items.csv", "--method", "borda", *QUICK, "--out", "model.crowdrank")
    (training / "other.csv").write_text("item,x1\na,1\n")
    assert "No feature named 'x2'" in crowdrank("predict", "model.crowdrank", "other.csv").err
    assert "not a ranking function" in crowdrank("predict", "items.csv", "items.csv").err
    (training / "new.csv").write_text("item,x2,x1,style\na,0.1,1,bold\nb,0.9,1,plain\n")
    ended = crowdrank("predict", "model.crowdrank", "new.csv", "--json")
    assert [row["item"] for row in json.loads(ended.out)] == ["b", "a"]
