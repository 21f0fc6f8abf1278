"""The screens before a command is chosen, and the table of commands behind them."""

import re
from importlib import import_module

import pytest
from typer.testing import CliRunner

import crowdrank as package
from crowdrank.cli import app
from crowdrank.cli.commands import COMMANDS

runner = CliRunner()


def test_the_command_alone_says_what_to_try(crowdrank):
    code, out, err = crowdrank()
    assert (code, err) == (0, "")
    tried = re.findall(r"^  crowdrank (\w+)", out, re.MULTILINE)
    assert len(tried) == 3
    assert set(tried) <= set(COMMANDS)
    assert "crowdrank --help" in out
    assert max(map(len, out.splitlines())) <= 80


def test_help_lists_every_command_with_its_summary(crowdrank):
    code, out, _ = crowdrank("--help")
    assert code == 0
    listed = dict(re.findall(r"^  ([\w-]+) +(.*)$", out, re.MULTILINE))
    for name, command in COMMANDS.items():
        assert command.summary.startswith(listed[name])
    for option in ("--version", "--help", "--install-completion", "--show-completion"):
        assert option in listed


@pytest.mark.parametrize("width", [30, 60, 200])
def test_help_fits_the_terminal(crowdrank, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = crowdrank("--help").out.splitlines()
    words = [line for line in lines if line.startswith(" ")]
    assert max(map(len, words)) <= max(min(width, 100), 45)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_is_the_first_sentence_of_the_docstring(name):
    module, function = COMMANDS[name].function.split(":")
    written = getattr(import_module(f"crowdrank.cli.{module}"), function).__doc__
    assert written.strip().split("\n")[0] == COMMANDS[name].summary


def test_the_application_shows_the_same_screens(crowdrank, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    for words in ([], ["--help"], ["--version"]):
        assert runner.invoke(app, words).output == crowdrank(*words).out
    assert crowdrank("--version").out == f"crowdrank {package.__version__}\n"


def test_ranking_a_file_without_options_is_the_same_with_the_default_options(crowdrank, votes):
    alone = crowdrank("rank", votes)
    assert alone.code == 0
    assert alone == crowdrank("rank", votes, "--top", "20")
    assert alone.out == runner.invoke(app, ["rank", str(votes)]).output
    assert crowdrank("rank", "nowhere.csv") == crowdrank("rank", "nowhere.csv", "--top", "20")


def test_a_command_has_its_own_help(crowdrank):
    code, out, _ = crowdrank("rank", "--help")
    assert code == 0
    assert "Rank the items of a file of judgments." in out


def test_a_misspelt_command_suggests_the_right_one(crowdrank):
    code, out, err = crowdrank("rnak", "votes.csv")
    assert (code, out) == (2, "")
    assert "'rank'" in err
