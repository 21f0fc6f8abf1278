"""Saving and loading ranking functions, and refusing other files."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from crowdrank.errors import DataError, FormatError, UnknownNameError
from crowdrank.ltr import Features, RankingFunction, Validation
from crowdrank.ltr.boosted import TreeEnsemble
from crowdrank.ltr.expertise import annotator_expertise
from crowdrank.ltr.linear import LinearScorer
from crowdrank.ltr.ranking_function import save
from tests.ltr.test_boosted import a_state

NAMES = ("x", "y")


def a_function(trees: bool = False) -> RankingFunction:
    line = LinearScorer(np.array([1.0, -2.0]), np.array([0.5, 0.0]), np.array([1.0, 3.0]))
    people = annotator_expertise(
        np.array(["ann", "bob"], dtype=object),
        np.array([5, 4]),
        np.array([0.5, -1.0]),
        np.array([100.0, 100.0]),
        length=8,
        native="pandas",
    )
    return RankingFunction(
        scorer=TreeEnsemble.from_state(a_state(), 2) if trees else line,
        names=NAMES,
        method="ltr-crowds",
        settings={"ranker": "linear", "top": None},
        expertise=people,
        validation=Validation("NDCG@5", 0.5, 0.1, 20, "grades"),
        notes=("A note.",),
    )


def some_features() -> Features:
    rng = np.random.default_rng(0)
    return Features.of(rng.random((20, 2)), item=[f"i{n}" for n in range(20)], query=["p", "q"] * 10, names=NAMES)


@pytest.mark.parametrize("trees", [False, True])
def test_a_saved_function_is_loaded_unchanged(tmp_path: Path, trees: bool) -> None:
    function, features = a_function(trees), some_features()
    function.save(tmp_path / "model.crowdrank")
    again = RankingFunction.load(tmp_path / "model.crowdrank")
    np.testing.assert_array_equal(again.scores(features), function.scores(features))
    assert again.rank(features).equals(function.rank(features))
    pd.testing.assert_frame_equal(again.annotators.table(), function.annotators.table())
    assert (again.validation, again.notes, again.settings) == (function.validation, function.notes, function.settings)
    assert repr(again) == repr(function) == "<RankingFunction of 2 features by ltr-crowds (linear)>"


def test_the_same_function_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        a_function().save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_ranks_are_per_query_and_equal_scores_share_them() -> None:
    features = Features.of(
        {"query": ["q", "p", "p", "p"], "item": ["d", "c", "b", "a"], "y": [0, 1, 0, 0], "x": [1, 1, 1, 1]}
    )
    found = a_function().rank(features)
    assert found["query"].to_list() == ["p", "p", "p", "q"]
    assert found["item"].to_list() == ["a", "b", "c", "d"]
    assert found["rank"].to_list() == [1, 1, 3, 1]


def test_rank_returns_the_kind_of_frame_it_was_given() -> None:
    frame = pd.DataFrame({"item": ["a", "b"], "y": [0.0, 1.0], "x": [0.0, 0.0]})
    assert isinstance(a_function().rank(frame), pd.DataFrame)
    assert isinstance(a_function().rank(pl.from_pandas(frame)), pl.DataFrame)


def test_a_feature_that_is_missing_is_named() -> None:
    with pytest.raises(UnknownNameError, match="No feature named 'y'"):
        a_function().rank({"item": ["a"], "x": [1]})


def test_methods_without_annotator_models_have_no_expertise() -> None:
    function = RankingFunction(scorer=a_function().scorer, names=NAMES, method="borda", settings={})
    with pytest.raises(DataError, match="The method borda does not estimate the expertise of annotators"):
        _ = function.annotators


def test_verdicts_follow_from_theta_and_its_interval() -> None:
    theta = np.array([-1.0, -0.1, 0.0, 0.5, 0.0, -0.01])
    names = ["good", "weak", "coin", "turned", "new", "nearly"]
    people = annotator_expertise(
        np.array(names, dtype=object),
        np.array([40, 40, 40, 40, 2, 9000]),
        theta,
        np.array([900.0, 900.0, 900.0, 900.0, 2.0, 1e6]),
        length=10,
    )
    verdict = dict(people.table().select("annotator", "verdict").iter_rows())
    assert verdict == {
        "good": "reliable",
        "weak": "noisy",
        "coin": "random",
        "turned": "reversed",
        "new": "too few to say",
        "nearly": "random",
    }
    np.testing.assert_allclose(people["quality"], 1 / (1 + np.exp(theta)))
    assert people.reversed == ["turned"]


def changed(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Path:
    """A saved file with one change."""
    a_function(trees=True).save(path)
    with zipfile.ZipFile(path) as file:
        parts = [json.loads(file.read(name)) for name in ("function.json", "scorer.json")]
    change(*parts)
    with zipfile.ZipFile(path, "w") as file:
        for name, part in zip(("function.json", "scorer.json"), parts, strict=True):
            file.writestr(name, json.dumps(part))
    return path


HOSTILE: list[Callable[[dict[str, Any], dict[str, Any]], None]] = [
    lambda function, scorer: function.clear(),
    lambda function, scorer: function.update(crowdrank_function=99),
    lambda function, scorer: function.update(features=["x"] * 0),
    lambda function, scorer: function.update(annotators={"annotator": ["ann"]}),
    lambda function, scorer: function["annotators"].update(judged=[1]),
    lambda function, scorer: function.update(convergence={"converged": True, "run": "rm"}),
    lambda function, scorer: function.update(settings=3),
    lambda function, scorer: scorer.update(kind="os.system"),
    lambda function, scorer: scorer.update(left=[0, 0, 0]),
    lambda function, scorer: scorer.update(roots=[10**9]),
    lambda function, scorer: scorer.update(roots=[10**30]),
    lambda function, scorer: scorer.update(feature=["x", "y", "z"]),
    lambda function, scorer: scorer.update(kind="linear", weights=[1], centre=[1], scale=[1]),
    lambda function, scorer: scorer.update(kind="linear", weights=[1, "nan"], centre=[1, 1], scale=[1, 1]),
]


@pytest.mark.parametrize("change", HOSTILE)
def test_a_manipulated_file_is_refused(tmp_path: Path, change: Any) -> None:
    with pytest.raises(FormatError):
        RankingFunction.load(changed(tmp_path / "model.crowdrank", change))


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.crowdrank"
    with pytest.raises(FormatError, match="there is no such file"):
        RankingFunction.load(path)
    a_function().save(path)
    whole = path.read_bytes()
    for content in (b"", b"PK", b"{}", whole[:-40], whole[:60] + b"\0\0\0" + whole[63:]):
        path.write_bytes(content)
        with pytest.raises(FormatError):
            RankingFunction.load(path)


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdrank.ltr.ranking_function.MAX_MEMBER_BYTES", 10_000)
    path = changed(tmp_path / "model.crowdrank", lambda function, scorer: function.update(notes=["x" * 20_000]))
    with pytest.raises(FormatError, match="larger than the limit of 10,000 bytes"):
        RankingFunction.load(path)


def test_files_with_other_members_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.crowdrank"
    a_function().save(path)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("../evil.py", "print()")
    with pytest.raises(FormatError, match="not a ranking function"):
        RankingFunction.load(path)


def test_an_unwritable_path_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be written"):
        save(a_function(), tmp_path / "nowhere" / "model.crowdrank")
