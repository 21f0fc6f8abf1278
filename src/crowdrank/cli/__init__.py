"""The command line: one file per command.

Exit codes: 0 all went well; 1 the data, a file or a setting is at fault (one line on stderr says what);
2 the command itself was misspelt; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from crowdrank import __version__
from crowdrank.cli.annotators import annotators
from crowdrank.cli.backup import backup
from crowdrank.cli.compare import compare
from crowdrank.cli.convert import convert
from crowdrank.cli.demo import demo
from crowdrank.cli.explain import explain
from crowdrank.cli.export import export
from crowdrank.cli.formats import formats
from crowdrank.cli.learn import learn
from crowdrank.cli.models import models
from crowdrank.cli.next import next_questions
from crowdrank.cli.plan import plan_collection
from crowdrank.cli.predict import predict
from crowdrank.cli.rank import rank
from crowdrank.cli.serve import serve
from crowdrank.cli.simulate import simulate
from crowdrank.cli.simulate_active import simulate_active
from crowdrank.errors import CrowdrankError

app = typer.Typer(
    name="crowdrank",
    help="Trusted rankings from many unreliable judgments.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(rank)
app.command()(compare)
app.command()(annotators)
app.command()(explain)
app.command()(models)
app.command()(formats)
app.command()(convert)
app.command()(simulate)
app.command("next")(next_questions)
app.command("plan")(plan_collection)
app.command("simulate-active")(simulate_active)
app.command()(serve)
app.command()(export)
app.command()(backup)
app.command()(demo)
app.command()(learn)
app.command()(predict)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"crowdrank {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Say which crowdrank this is.", callback=_say_version, is_eager=True)
    ] = False,
) -> None:
    """Trusted rankings from many unreliable judgments."""


def main() -> None:
    """What the `crowdrank` command runs."""
    try:
        app()
    except CrowdrankError as error:
        typer.echo(f"crowdrank: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has gone away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
