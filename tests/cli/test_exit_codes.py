"""Exit codes of each command, as in docs/cli.md: 0, 1 with one line on stderr, or 2 for an invalid command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from crowdrank.cli import app

CITIES = Path(__file__).parents[2] / "examples" / "cities"
VOTES = CITIES / "votes.csv"
READING = {
    "rank": (),
    "compare": ("--models", "bradley-terry,thurstone"),
    "check": ("--model", "bradley-terry", "--simulations", 2),
    "annotators": (),
    "explain": ("--item", "Tokyo", "--above", "Delhi"),
    "next": (),
}
every_reader = pytest.mark.parametrize("command", READING)
COMMANDS = typer.main.get_command(app).commands
SHORT = ("--model", "crowd-bt", "--set", "estimation=joint", "--set", "max_steps=1")


@every_reader
def test_a_missing_file_is_1_and_one_line(crowdrank, command):
    code, out, err = crowdrank(command, "nowhere.csv", *READING[command])
    assert (code, out) == (1, "")
    assert err.startswith("crowdrank: ")
    assert err.count("\n") == 1


@every_reader
def test_data_that_cannot_be_read_is_1_and_a_guide(crowdrank, command, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("colour,weight\nred,1\n")
    code, out, err = crowdrank(command, path, *READING[command])
    assert (code, out) == (1, "")
    first, *guide = err.splitlines()
    assert first.startswith("crowdrank: votes.csv: no column for ")
    assert guide[0].split() == ["column", "first", "rows", "might", "be"]
    assert guide[-1].split()[:2] == ["crowdrank", "rank"]


@every_reader
def test_an_unknown_option_is_2(crowdrank, command):
    code, out, _ = crowdrank(command, VOTES, *READING[command], "--no-such-option")
    assert (code, out) == (2, "")


def test_an_unknown_command_is_2(crowdrank):
    assert crowdrank("rnak", VOTES).code == 2


@every_reader
def test_json_is_all_that_stdout_holds(crowdrank, command):
    code, out, err = crowdrank(command, VOTES, *READING[command], "--json")
    assert (code, err) == (0, "")
    json.loads(out)


def test_a_ranking_that_stopped_short_is_0_and_says_so(crowdrank):
    code, out, err = crowdrank("rank", VOTES, *SHORT, "--top", 1)
    assert (code, err) == (0, "")
    assert "Note: crowd-bt did not converge in 1 steps" in out
    answer = json.loads(crowdrank("rank", VOTES, *SHORT, "--json").out)
    assert answer["convergence"]["converged"] is False
    assert "did not converge in 1 steps" in answer["notes"][0]


def test_annotators_weighed_by_a_fit_that_stopped_short_are_0_and_said_so(crowdrank):
    code, out, _ = crowdrank("annotators", VOTES, *SHORT, "--no-verdicts", "--top", 1)
    assert code == 0
    assert "Note: crowd-bt did not converge in 1 steps" in out
    code, out, err = crowdrank("annotators", VOTES, *SHORT, "--no-verdicts", "--json")
    assert code == 0
    assert isinstance(json.loads(out), list)
    assert "did not converge in 1 steps" in err
    answer = json.loads(crowdrank("annotators", VOTES, *SHORT, "--exclude", "boris", "--json").out)
    assert answer["converged"] is False


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"start", "serve", "demo", "export", "backup", "mcp"}))
def test_every_command_that_answers_speaks_to_machines(name):
    """Every command except those that ask questions, serve pages or copy a collection to a file."""
    assert "--json" in {option for parameter in COMMANDS[name].params for option in parameter.opts}


def test_a_simulated_crowd_tells_machines_where_it_is(crowdrank, tmp_path):
    code, out, _ = crowdrank("simulate", "--out", tmp_path / "crowd", "--items", 5, "--pairs", 8, "--json")
    assert code == 0
    told = json.loads(out)
    assert all(Path(path).exists() for path in told["files"])
    assert told["settings"]["items"] == 5
