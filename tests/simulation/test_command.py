import json

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from crowdrank.cli.simulate import GENERATORS, simulate
from crowdrank.errors import CrowdrankError, SettingError, UnknownNameError

app = typer.Typer()
app.command()(simulate)


def run(*arguments):
    """Run the command; errors are raised, as in the CLI's `main`, which prints them."""
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if isinstance(result.exception, CrowdrankError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command_of_the_readme_writes_a_crowd(tmp_path):
    out = tmp_path / "crowd"
    said = run(
        "--items", 100, "--annotators", 100, "--pairs", 400, "--votes", 10, "--quality", "beta(2,1)", "--out", out
    )
    assert "4,000 simulated votes on 100 items by 100 annotators (seed 0)." in said
    assert "votes.csv, gold.csv, annotators.csv, settings.json" in said.replace("\n", " ")
    assert len(pl.read_csv(out / "votes.csv")) == 4000


@pytest.mark.parametrize("kind", GENERATORS)
def test_every_kind_can_be_written(kind, tmp_path):
    run(
        "--kind",
        kind,
        "--items",
        6,
        "--out",
        tmp_path,
        "--seed",
        3,
        *(["--pairs", 10] if kind in SMALL else MORE[kind]),
    )
    assert json.loads((tmp_path / "settings.json").read_text())["seed"] == 3
    assert len(pl.read_csv(tmp_path / "votes.csv"))


SMALL = ("crowd-bt", "factors")
MORE = {
    "domains": ["--queries", 4],
    "lists": ["--labels", "mallows"],
    "mixed": ["--votes", 5, "--mix", "good=3, left=1"],
    "preferences": ["--votes", 5, "--queries", 2],
    "ratings": ["--votes", 5, "--levels", 3],
}


def test_options_reach_the_generator(tmp_path):
    run("--kind", "mixed", "--votes", 7, "--mix", "good=3, left=1", "--out", tmp_path)
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings["votes_each"] == 7
    assert settings["kinds"] == {"good": 3, "left": 1}


def test_a_folder_in_use_is_left_alone_unless_forced(tmp_path):
    (tmp_path / "votes.csv").write_text("precious")
    with pytest.raises(SettingError, match="not empty"):
        run("--out", tmp_path)
    assert (tmp_path / "votes.csv").read_text() == "precious"
    run("--out", tmp_path, "--force")
    assert len(pl.read_csv(tmp_path / "votes.csv")) == 4000


def test_an_existing_empty_folder_is_used(tmp_path):
    run("--out", tmp_path)
    assert (tmp_path / "gold.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["--kind", "domain"], UnknownNameError, "did you mean 'domains'"),
        (["--kind", "domains", "--pairs", 4], SettingError, "--pairs does not apply to a crowd of kind 'domains'"),
        (["--kind", "mixed", "--mix", "good"], SettingError, "--mix takes counts such as"),
        (["--quality", "high"], SettingError, "quality must be a number, or a distribution"),
        (["--labels", "coin"], SettingError, "labels must be 'order' or 'logistic'"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(arguments, error, message, tmp_path):
    with pytest.raises(error, match=message):
        run(*arguments, "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "crowd").write_text("")
    with pytest.raises(SettingError, match="must be a folder"):
        run("--out", tmp_path / "crowd")
