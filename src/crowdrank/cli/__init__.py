"""The command line: one file per command.

Exit codes: 0 success; 1 the data, a file or a setting is invalid (standard error says what); 2 the command
line is invalid, such as an unknown option; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from crowdrank import __version__
from crowdrank.cli.annotators import annotators
from crowdrank.cli.backup import backup
from crowdrank.cli.check import check
from crowdrank.cli.compare import compare
from crowdrank.cli.convert import convert
from crowdrank.cli.demo import demo
from crowdrank.cli.explain import explain
from crowdrank.cli.export import export
from crowdrank.cli.formats import formats
from crowdrank.cli.learn import learn
from crowdrank.cli.models import models
from crowdrank.cli.next import next_questions
from crowdrank.cli.output import print_error
from crowdrank.cli.plan import plan_collection
from crowdrank.cli.predict import predict
from crowdrank.cli.rank import rank
from crowdrank.cli.serve import serve
from crowdrank.cli.simulate import simulate
from crowdrank.cli.simulate_active import simulate_active
from crowdrank.errors import CrowdrankError

app = typer.Typer(
    name="crowdrank",
    help="Rankings you can trust from many unreliable judgments.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
_RANKING, _DATA, _COLLECTING, _LEARNING = "Rank", "Data", "Collect judgments", "Learn to rank"
app.command(rich_help_panel=_RANKING)(rank)
app.command(rich_help_panel=_RANKING)(compare)
app.command(rich_help_panel=_RANKING)(check)
app.command(rich_help_panel=_RANKING)(annotators)
app.command(rich_help_panel=_RANKING)(explain)
app.command(rich_help_panel=_RANKING)(models)
app.command(rich_help_panel=_DATA)(formats)
app.command(rich_help_panel=_DATA)(convert)
app.command(rich_help_panel=_DATA)(simulate)
app.command("next", rich_help_panel=_COLLECTING)(next_questions)
app.command("plan", rich_help_panel=_COLLECTING)(plan_collection)
app.command("simulate-active", rich_help_panel=_COLLECTING)(simulate_active)
app.command(rich_help_panel=_COLLECTING)(serve)
app.command(rich_help_panel=_COLLECTING)(export)
app.command(rich_help_panel=_COLLECTING)(backup)
app.command(rich_help_panel=_COLLECTING)(demo)
app.command(rich_help_panel=_LEARNING)(learn)
app.command(rich_help_panel=_LEARNING)(predict)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"crowdrank {__version__}")
        raise typer.Exit


@app.callback()
def _global_options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Rankings you can trust from many unreliable judgments."""


def main() -> None:
    """Run the `crowdrank` command."""
    try:
        app()
    except CrowdrankError as error:
        print_error(error)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the program that reads our output has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
