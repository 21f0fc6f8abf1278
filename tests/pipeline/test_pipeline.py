"""cr.rank does what the command `crowdrank rank` does."""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from dataclasses import fields, replace
from pathlib import Path

import polars as pl
import pytest

import crowdrank as cr
from crowdrank.cli import main
from crowdrank.cli.output import with_flags
from crowdrank.errors import (
    ConvergenceWarning,
    DataError,
    DataWarning,
    FormatError,
    SettingError,
    UnknownNameError,
)
from crowdrank.pipeline import RankOptions, rank, run

CITIES = Path(__file__).parents[2] / "examples" / "cities"
VOTES = {
    "worker": ["ann", "ann", "ann", "bob", "bob", "bob", "cat", "cat"],
    "left": ["a", "b", "a", "a", "c", "a", "a", "b"],
    "right": ["b", "c", "c", "b", "b", "c", "b", "c"],
    "winner": ["a", "b", "a", "b", "b", "a", "tie", "c"],
}


def scores(ranking):
    return dict(zip(ranking.items.labels, ranking.scores, strict=True))


@pytest.fixture
def printed(monkeypatch, capsys):
    """The JSON that the command prints."""

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["crowdrank", "rank", *map(str, words), "--json"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return json.loads(capsys.readouterr().out)

    return command


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ((), {}),
        (("--model", "bradley-terry", "--set", "prior_scale=0.5"), {"model": "bradley-terry", "prior_scale": 0.5}),
        (
            ("--annotator-quality", "boris=0.9", "--annotator-order", "mina>hugo"),
            {"annotator_quality": {"boris": 0.9}, "annotator_order": [("mina", "hugo")]},
        ),
        (("--set", "max_steps=1"), {"max_steps": 1}),
        (("--gold", CITIES / "gold.csv"), {"gold": CITIES / "gold.csv"}),
    ],
    ids=["default", "settings", "annotators", "not converged", "gold"],
)
def test_scores_and_notes_are_those_of_the_command(printed, words, options):
    answer = printed(CITIES / "votes.csv", *words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranking = rank(CITIES / "votes.csv", **options)
    assert ranking.model == answer["model"]
    assert {row["item"]: row["score"] for row in answer["ranking"]} == pytest.approx(scores(ranking))
    assert [with_flags(note) for note in ranking.notes] == answer["notes"]


@pytest.mark.parametrize(
    "source",
    [VOTES, pl.DataFrame(VOTES), cr.read(VOTES), str(CITIES / "votes.csv"), CITIES / "votes.csv"],
    ids=["dict", "frame", "judgments", "text", "path"],
)
def test_every_kind_of_source_is_ranked(source):
    ranking = rank(source)
    assert ranking.model == "crowd-bt"
    assert ranking.table().height == len(ranking.items)


def test_a_pandas_frame_gives_a_pandas_table():
    pd = pytest.importorskip("pandas")
    assert isinstance(rank(pd.DataFrame(VOTES)).table(), pd.DataFrame)


def test_a_model_can_be_given_with_its_settings():
    model = cr.BradleyTerry(prior_scale=0.5)
    assert scores(rank(VOTES, model=model)) == pytest.approx(scores(model.fit(cr.read(VOTES))))
    assert rank(VOTES, model=model, ties="half").settings == {**rank(VOTES, model=model).settings, "ties": "half"}


def test_an_earlier_ranking_is_a_start(tmp_path):
    first = rank(CITIES / "votes.csv", model="bradley-terry", prior_scale=3.0, tolerance=1e-8)
    first.save(tmp_path / "r.json")
    for init in (first, tmp_path / "r.json"):
        again = rank(CITIES / "votes.csv", model="bradley-terry", prior_scale=3.0, tolerance=1e-8, init=init)
        assert scores(again) == pytest.approx(scores(first), abs=1e-5)
        assert again.convergence.steps < first.convergence.steps


def test_uncertainty_can_be_bootstrapped_or_left_out():
    assert "bootstrap" in rank(VOTES, uncertainty="bootstrap").uncertainty.method
    assert "std_error" not in rank(VOTES, uncertainty="none").table().columns


def test_gold_pairs_are_a_list_a_table_or_judgments():
    pairs = [("c", "a"), ("c", "b")]
    table = {"winner": ["c", "c"], "loser": ["a", "b"]}
    expected = scores(rank(VOTES, gold_pairs=pairs))
    assert max(expected, key=expected.get) == "c"
    for given in (table, cr.read(table)):
        assert scores(rank(VOTES, gold_pairs=given)) == pytest.approx(expected)


def test_warnings_are_issued_and_noted():
    with pytest.warns(ConvergenceWarning) as caught:
        ranking = rank(CITIES / "votes.csv", model="bradley-terry", prior_scale=3.0, max_steps=1)
    assert str(caught[0].message) in ranking.notes
    with pytest.warns(DataWarning, match="zebra"):
        rank({**VOTES, "winner": [*VOTES["winner"][:-1], "zebra"]})


def test_run_returns_everything_that_the_command_shows():
    engines = [f"{side}_engine" for side in ("left", "right")]
    sides = {name: ["x" if item == "a" else "y" for item in VOTES[name.split("_")[0]]] for name in engines}
    result = run({**VOTES, **sides}, RankOptions(gold={"item": ["a", "b", "c"], "value": [3, 2, 1]}, system="engine"))
    assert result.report.kept == 8
    assert result.choice.name == "crowd-bt"
    assert "annotators" in result.choice.reason
    assert result.evaluation.accuracy == 1
    assert [row["system"] for row in result.systems.as_dict()["order"]] == ["x", "y"]


def test_systems_are_compared_without_the_shrinkage_of_a_learnt_spread():
    """Forty queries of eight votes, of which the first system wins six: 75 %, not what a shrunk score would say."""
    query = [f"q{n:02d}" for n in range(40) for _ in range(8)]
    votes = {"left": ["a"] * 320, "right": ["b"] * 320, "winner": (["a"] * 6 + ["b"] * 2) * 40, "query": query}
    result = run(votes, RankOptions(model="bradley-terry", query="query", system="item"))
    chance, low, high = result.systems.probability("a", "b")
    assert chance == pytest.approx(0.75, abs=0.03)
    assert low < 0.75 < high
    assert result.ranking.settings["prior_scale"] == "auto"


def test_features_of_judgments_name_their_systems_too():
    votes = replace(cr.read(VOTES), features={"left_engine": cr.read(VOTES).left, "right_engine": cr.read(VOTES).right})
    assert run(votes, RankOptions(system="engine")).systems is not None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"prior_scal": 1}, UnknownNameError, "did you mean 'prior_scale'"),
        ({"model": "crowd-btt"}, UnknownNameError, "did you mean 'crowd-bt'"),
        ({"level": 2}, SettingError, "level must be between 0 and 1, got 2"),
        ({"uncertainty": "hope"}, SettingError, "model, bootstrap or none, got 'hope'"),
        ({"missing": "last"}, SettingError, "unknown or worse, got 'last'"),
        ({"missing": "worse"}, DataError, "these judgments are comparisons"),
        ({"engine": "clowd"}, UnknownNameError, "No engine named 'clowd'"),
        ({"model": "borda", "engine": "dask"}, SettingError, "omit engine='dask'"),
        ({"model": "borda", "annotator_quality": {"ann": 0.9}}, SettingError, "uses side information: crowd-bt"),
        ({"gold": "nowhere.csv"}, FormatError, "nowhere.csv"),
        ({"gold": {"x": [1]}}, FormatError, "Name it: gold_columns={'item': 'COLUMN'}"),
        ({"gold": {"item": ["a"], "y": [1]}, "gold_columns": {"value": "z"}}, UnknownNameError, "Check gold_columns="),
        ({"items": {"x": [1]}}, FormatError, "Name it: items_columns={'item': 'COLUMN'}"),
        ({"columns": {"winner": "nowhere"}}, (FormatError, UnknownNameError), "nowhere"),
    ],
)
def test_mistakes_are_explained_in_the_words_of_python(options, error, message):
    with pytest.raises(error, match=message) as raised:
        rank(VOTES, **options)
    assert " --" not in str(raised.value)


def pairs_of(count, extra=()):
    rows = [(f"a{n}", f"b{n}", f"a{n}") for n in range(count)] + list(extra)
    return dict(zip(("left", "right", "winner"), zip(*rows, strict=True), strict=True))


def test_items_that_were_compared_once_each_are_not_ranked():
    with pytest.raises(DataError, match="^4,624 items were compared once each: there is nothing to rank") as raised:
        rank(pairs_of(2312))
    assert "--column left=COLUMN" in with_flags(str(raised.value))
    with pytest.raises(DataError, match="^Nearly all of 200 items were compared once each"):
        rank(pairs_of(100, [("a0", "b0", "a0")]))
    queries = {**pairs_of(20), "query": [f"q{n}" for n in range(20)]}
    with pytest.raises(DataError, match="^40 items were compared once each"):
        rank(queries, query="query")


def test_items_that_were_compared_once_with_a_common_one_are_ranked():
    rows = {"left": ["base"] * 30, "right": [f"b{n}" for n in range(30)], "winner": ["base"] * 30}
    assert len(rank(rows, uncertainty="none")) == 31
    with pytest.warns(DataWarning, match="never compared with each other"):
        assert len(rank(pairs_of(2), uncertainty="none")) == 4
    assert len(rank(pairs_of(40, [(f"a{n}", f"a{n + 1}", f"a{n}") for n in range(39)]), uncertainty="none")) == 80


def test_options_of_a_file_are_refused_for_judgments():
    with pytest.raises(SettingError, match="columns= describes a file or table, but the source is Comparisons"):
        rank(cr.read(VOTES), columns={"annotator": "worker"})


def test_rank_and_its_options_have_the_same_names_and_defaults():
    signature = inspect.signature(rank).parameters
    named = {name for name, parameter in signature.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY}
    assert named == {entry.name for entry in fields(RankOptions)} - {"settings"}
    defaults = RankOptions()
    for name in named:
        assert (signature[name].default or None) == (getattr(defaults, name) or None)


def test_no_setting_of_a_model_is_hidden_by_an_option():
    passed_on = {"seed", "features", "measure"}
    options = {entry.name for entry in fields(RankOptions)} - passed_on
    for model in cr.models.REGISTRY.values():
        assert not options & {entry.name for entry in fields(model)}
