"""crowdrank rank on folders, within a memory limit, and with a warm start."""

import json
import logging

import polars as pl
import pytest

from crowdrank.engines import open_engine
from crowdrank.errors import SettingError
from tests.docs.pages import ROOT

VOTES = ROOT / "examples" / "cities" / "votes.csv"


@pytest.fixture
def folder(tmp_path):
    frame = pl.read_csv(VOTES)
    (tmp_path / "votes").mkdir()
    for part in range(2):
        frame[part::2].write_parquet(tmp_path / "votes" / f"part-{part}.parquet")
    return tmp_path / "votes"


def ranked(crowdrank, *arguments):
    ended = crowdrank("rank", *arguments, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def names(answer):
    return [row["item"] for row in answer["ranking"]]


@pytest.mark.parametrize("arguments", [[], ["--memory", "2GB"], ["--engine", "out-of-core"], ["--engine", "local"]])
def test_a_folder_is_ranked_as_its_files_together(crowdrank, folder, arguments):
    whole, found = ranked(crowdrank, VOTES), ranked(crowdrank, folder, *arguments)
    assert names(found) == names(whole)
    assert found["log_likelihood"] == pytest.approx(whole["log_likelihood"], rel=1e-9)
    assert found["import"]["kept"] == whole["import"]["kept"]


def test_a_pattern_and_a_file_with_a_memory_limit_are_streamed(crowdrank, folder):
    whole = ranked(crowdrank, VOTES)
    assert names(ranked(crowdrank, folder / "part-*.parquet")) == names(whole)
    assert names(ranked(crowdrank, VOTES, "--memory", "1GB")) == names(whole)


def test_an_earlier_ranking_is_a_good_start(crowdrank, folder, tmp_path):
    settings = ["--model", "bradley-terry", "--set", "prior_scale=3", "--set", "tolerance=1e-8"]
    first = ranked(crowdrank, VOTES, *settings, "--out", tmp_path / "ranking.json")
    again = ranked(crowdrank, folder, *settings, "--warm-start", tmp_path / "ranking.json")
    assert names(again) == names(first)
    assert again["log_likelihood"] == pytest.approx(first["log_likelihood"], rel=1e-9)
    assert again["convergence"]["steps"] < first["convergence"]["steps"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scheduler", "tcp://nowhere:1"], "also pass --engine dask"),
        (["--memory", "much"], "such as 4GB"),
        (["--memory", "4GB", "--engine", "local"], "--memory limits --engine out-of-core"),
        (
            ["--memory", "4GB", "--features", "length"],
            "--features other than position can be used only when the file is read into memory",
        ),
        (["--memory", "4GB", "--encoding", "latin-1"], "--encoding can be used only when"),
        (["--warm-start", "nowhere.json"], "is not a ranking"),
        (["--model", "borda", "--engine", "dask"], "borda computes on one machine: omit --engine dask"),
    ],
)
def test_options_that_contradict_each_other_are_refused(crowdrank, arguments, message):
    ended = crowdrank("rank", VOTES, *arguments)
    assert ended.code == 1
    assert message in ended.err


def test_a_model_without_starting_values_refuses_a_warm_start(crowdrank, tmp_path):
    earlier = tmp_path / "ranking.json"
    ranked(crowdrank, VOTES, "--out", earlier)
    ended = crowdrank("rank", VOTES, "--model", "borda", "--warm-start", earlier)
    assert ended.code == 1
    assert "--warm-start needs a model whose solver has starting values: bradley-terry" in ended.err


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    distributed = pytest.importorskip("distributed")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)

    def nobody(address, timeout):
        raise OSError(f"no answer from {address}")

    monkeypatch.setattr(distributed, "Client", nobody)
    with (
        pytest.raises(SettingError, match="No Dask scheduler responds at 'tcp://nowhere:1'"),
        open_engine("dask", "tcp://nowhere:1"),
    ):
        pass
