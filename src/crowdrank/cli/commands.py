"""The commands, by name. A command's own module is imported when the command runs."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from crowdrank import __version__


class Command(NamedTuple):
    """A command of the command line.

    Parameters
    ----------
    panel : str
        Heading of the help screen.
    function : str
        Its function, as "module:name" in this package.
    summary : str
        First sentence of the function's docstring. A test keeps the two alike.
    """

    panel: str
    function: str
    summary: str


_RANK, _DATA, _COLLECT, _LEARN = "Rank", "Data", "Collect judgments", "Learn to rank"
_MACHINES = "For language models"

COMMANDS = {
    "start": Command(_RANK, "start:start", "Look at a file, ask what is unclear, and rank it."),
    "rank": Command(_RANK, "rank:rank", "Rank the items of a file of judgments."),
    "compare": Command(
        _RANK, "compare:compare", "Compare models on these judgments by cross-validation, and recommend one."
    ),
    "check": Command(
        _RANK,
        "check:check",
        "Simulate answers to the same questions, and count how often intervals, groups and verdicts are right.",
    ),
    "annotators": Command(
        _RANK, "annotators:annotators", "Show how reliable each annotator is: estimate, interval, verdict and reason."
    ),
    "judges": Command(
        _RANK,
        "judges:judges",
        "Audit a jury: agreement with gold or humans, flips, biases, shared errors, and which judges to pay for.",
    ),
    "explain": Command(
        _RANK,
        "explain:explain",
        "Show why one item ranks above another, or how fragile the first place is.",
    ),
    "models": Command(_RANK, "listings:models", "List the models and the kinds of judgments that each reads."),
    "formats": Command(
        _DATA, "listings:formats", "List the file formats: how each is recognised, and whether it can be written."
    ),
    "convert": Command(_DATA, "convert:convert", "Convert judgments from one file format to another."),
    "simulate": Command(
        _DATA, "simulate:simulate", "Simulate a crowd: votes to rank, and the truth to evaluate the ranking against."
    ),
    "next": Command(
        _COLLECT, "next:next_questions", "Choose the most useful questions to ask next, and who should answer them."
    ),
    "plan": Command(
        _COLLECT,
        "plan:plan_collection",
        "Estimate by simulation how many votes a collection needs, and what they cost.",
    ),
    "simulate-active": Command(
        _COLLECT,
        "simulate:simulate_active",
        "Compare policies that choose questions: accuracy by number of votes, on simulated annotators.",
    ),
    "judge": Command(
        _COLLECT,
        "judge:judge",
        "Have language models compare items, and write their votes; or have one take part in a study on a server.",
    ),
    "serve": Command(
        _COLLECT, "serve:serve", "Start or resume a collection: a web page to compare items, and a live leaderboard."
    ),
    "export": Command(_COLLECT, "export:export", "Write the votes of a collection to a file."),
    "backup": Command(_COLLECT, "export:backup", "Copy a collection, whether or not it is being served."),
    "migrate": Command(_COLLECT, "export:migrate", "Copy a collection from SQLite to PostgreSQL, or back."),
    "demo": Command(_COLLECT, "demo:demo", "Start a demonstration server where simulated annotators vote live."),
    "learn": Command(_LEARN, "learn:learn", "Learn a ranking function for new items from features and ranked lists."),
    "predict": Command(
        _LEARN, "learn:predict", "Rank items by their features, with a ranking function from `crowdrank learn`."
    ),
    "mcp": Command(
        _MACHINES,
        "mcp:mcp",
        "Serve rank, annotators, explain and next to language models, over the Model Context Protocol.",
    ),
}


# The screens shown before any command is chosen. Plain text, so that they appear at once.

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
