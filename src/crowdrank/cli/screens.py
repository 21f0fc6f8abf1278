"""The screens shown before any command is chosen. Plain text, so that they appear at once."""

from __future__ import annotations

import os
import sys

from crowdrank import __version__
from crowdrank.cli.commands import COMMANDS

_PITCH = "Rankings you can trust from many unreliable judgments."
_OPTIONS = {
    "--version": "Show the version and exit.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show the completion script of the current shell, to copy it or customize the installation.",
    "--help": "Show this message and exit.",
}
_FIRST = {
    "crowdrank start votes.csv": "look at your file, ask what is unclear, rank it",
    "crowdrank rank votes.csv": "rank the items of a file of judgments",
    "crowdrank serve items.csv": "collect judgments on a web page",
}
_WIDEST = 100


def version_line() -> str:
    """The name and version of the program."""
    return f"crowdrank {__version__}"


def first_screen() -> str:
    """What `crowdrank` shows without a command: three commands to try, and where to find help."""
    width = max(map(len, _FIRST)) + 3
    tries = [f"  {command:<{width}}{what}" for command, what in _FIRST.items()]
    return "\n".join(
        [
            f"{version_line()}: {_PITCH[0].lower()}{_PITCH[1:]}",
            "",
            _bold("Try"),
            *tries,
            "",
            "Without a file, `crowdrank start` ranks an example.",
            "`crowdrank --help` lists all commands; `crowdrank rank --help` explains one.",
        ]
    )


def help_screen() -> str:
    """What `crowdrank --help` shows: all commands and options."""
    lines = ["Usage: crowdrank [OPTIONS] COMMAND [ARGS]...", "", _PITCH]
    for panel in dict.fromkeys(command.panel for command in COMMANDS.values()):
        lines += ["", _bold(panel)]
        lines += _rows({name: command.summary for name, command in COMMANDS.items() if command.panel == panel})
    lines += ["", _bold("Options"), *_rows(_OPTIONS)]
    lines += ["", "`crowdrank COMMAND --help` explains a command."]
    return "\n".join(lines)


def _rows(texts: dict[str, str]) -> list[str]:
    indent = 2 + max(map(len, (*COMMANDS, *_OPTIONS))) + 2
    rows: list[str] = []
    for name, text in texts.items():
        first, *rest = _wrapped(text, max(_terminal_width() - indent, 20))
        rows += [f"  {name:<{indent - 2}}{first}", *(" " * indent + line for line in rest)]
    return rows


def _wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` characters."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def _terminal_width() -> int:
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given) > 0:
        return min(int(given), _WIDEST)
    try:
        return min(os.get_terminal_size(sys.stdout.fileno()).columns or 80, _WIDEST)
    except (OSError, ValueError):  # standard output is not a terminal, or not a file
        return 80


def _bold(text: str) -> str:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty()
    return text if plain else f"\033[1m{text}\033[0m"
