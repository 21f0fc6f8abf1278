"""The Typer application: all commands, or only the one that will run."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Annotated

import typer

from crowdrank.cli.commands import COMMANDS, first_screen, help_screen, version_line


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version_line())
        raise typer.Exit


def _show_help(wanted: bool) -> None:
    if wanted:
        typer.echo(help_screen())
        raise typer.Exit


def _global_options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
    show_help: Annotated[
        bool, typer.Option("--help", help="Show this message and exit.", callback=_show_help, is_eager=True)
    ] = False,
) -> None:
    """Rankings you can trust from many unreliable judgments."""
    if context.invoked_subcommand is None:
        typer.echo(first_screen())


def build_app(names: Iterable[str] = tuple(COMMANDS)) -> typer.Typer:
    """The application with these commands, whose modules are imported."""
    app = typer.Typer(
        name="crowdrank", add_completion=True, pretty_exceptions_enable=False, rich_markup_mode="markdown"
    )
    app.callback(invoke_without_command=True, add_help_option=False)(_global_options)
    for name in names:
        panel, function, _ = COMMANDS[name]
        module, attribute = function.split(":")
        app.command(name, rich_help_panel=panel)(getattr(import_module(f"crowdrank.cli.{module}"), attribute))
    return app
