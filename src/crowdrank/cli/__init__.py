"""The command line: a file per command, or for a few related short ones.

Exit codes: 0 success; 1 the data, a file or a setting is invalid (standard error says what); 2 the command
line is invalid, such as an unknown option; 130 interrupted.

Only the module of the command that runs is imported, and none for `crowdrank`, `--version` and `--help`.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import TYPE_CHECKING, Any

from crowdrank.cli.commands import COMMANDS

if TYPE_CHECKING:
    import typer

    app: typer.Typer

__all__ = ["app", "main"]

_FORMER_NAMES = {"--map": "--column", "--gold-map": "--gold-column"}


def main() -> None:
    """Run the `crowdrank` command."""
    try:
        _run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the program that reads our output has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _run(words: list[str]) -> None:
    completing = "_CROWDRANK_COMPLETE" in os.environ
    if not completing and (screen := _screen(words)):
        print(screen)
        return
    # Importing libraries makes many objects and no garbage: with the usual threshold, looking for it takes a twentieth
    # of the time of a small ranking.
    gc.set_threshold(50_000, *gc.get_threshold()[1:])
    # Python looks for cycles among all objects once more when it exits, which takes a sixth of that time.
    atexit.register(gc.freeze)
    from crowdrank.errors import CrowdrankError

    try:
        _run_command(words, completing)
    except CrowdrankError as error:
        from crowdrank.cli.output import print_error

        print_error(error)
        sys.exit(1)


def _run_command(words: list[str], completing: bool) -> None:
    if words[:1] == ["rank"] and len(words) == 2 and not words[1].startswith("-") and not completing:
        # The most usual command needs no parser. Importing one takes longer than the ranking of a small file.
        from pathlib import Path

        from crowdrank.cli.rank_tables import rank_file

        rank_file(Path(words[1]))
        return
    from crowdrank.cli.application import build_app

    # Completion, and errors about unknown commands, need all of them.
    alone = words and words[0] in COMMANDS and not completing
    app = build_app(words[:1]) if alone else build_app()
    app([_present_name(word) for word in words], prog_name="crowdrank")


def _present_name(word: str) -> str:
    """An option by its present name: `--map` is what `--column` was called, in older guides and scripts."""
    option, equals, value = word.partition("=")
    return _FORMER_NAMES.get(option, option) + equals + value


def _screen(words: list[str]) -> str:
    """The text to show if no command is needed for it."""
    from crowdrank.cli import commands

    if not words:
        return commands.first_screen()
    shown = {"--version": commands.version_line, "--help": commands.help_screen}
    return shown[words[0]]() if words[0] in shown else ""


def __getattr__(name: str) -> Any:
    """`app`, the application with all commands, is built when it is first used."""
    if name == "app":
        from crowdrank.cli.application import build_app

        globals()["app"] = build_app()
        return globals()["app"]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
