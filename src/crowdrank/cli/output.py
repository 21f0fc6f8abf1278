"""Output of commands: tables, JSON, progress, and library messages rewritten with command-line options."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdrank.errors import FormatError, SettingError

if TYPE_CHECKING:
    from rich.console import Console

_COLUMN_ARGUMENTS = {
    "columns": "--column",
    "gold_columns": "--gold-column",
    "items_columns": "--items-column",
    "features_columns": "--features-column",
}
_ARGUMENTS = (
    "aliases",
    "anchors",
    "annotator_order",
    "annotator_quality",
    "by",
    "cluster",
    "criteria",
    "encoding",
    "engine",
    "exclude",
    "features",
    "format",
    "gold_pairs",
    "init",
    "items",
    "journal",
    "kind",
    "level",
    "link_to",
    "llm",
    "max_tokens",
    "memory",
    "min_comparisons",
    "missing",
    "out",
    "pairs",
    "people",
    "price_in",
    "price_out",
    "query",
    "scheduler",
    "score_scale",
    "strict",
    "system",
    "uncertainty",
    "weights",
)
_FLAGS = {
    "aliases": "--alias",
    "anchors": "--anchor",
    "init": "--warm-start",
    "score_scale": "--scale",
    "weights": "--weight",
}
_ENTRY = re.compile(r"""(['"]?)([^'":,{}]+)\1\s*:\s*('[^']*'|"[^"]*"|[^,'"]+)""")
# One expression for both, because the options made from a mapping contain `query=`.
_ARGUMENT = re.compile(
    rf"\b(?:(?P<columns>{'|'.join(_COLUMN_ARGUMENTS)})=\{{(?P<roles>[^{{}}]*)\}}"
    rf"|(?P<flag>header=(?:True|False)|control=True)"
    rf"|(?P<name>{'|'.join(_ARGUMENTS)})=(?P<value>'[^']*'|\"[^\"]*\")?)"
)
_CALL = re.compile(r"\s*cr\.rank\(")
_WIDEST, UNLIMITED = 100, 1_000_000

ShowProgress = Callable[[int, int, str], None]


def console(widest: int | None = None, wide: bool = False) -> Console:
    """Where tables are printed: cut to the terminal, or `wide` enough for everything."""
    from rich.console import Console

    found = Console(highlight=False, markup=False, emoji=False)
    if wide:
        found.width = UNLIMITED
    elif widest is not None:
        found.width = min(found.width, widest)
    return found


def page() -> Console:
    """A console of at most a hundred columns, for wide tables."""
    return console(_WIDEST)


def print_json(content: Any, **options: Any) -> None:
    print(json.dumps(content, ensure_ascii=False, **options))


def print_written(paths: Iterable[Path | None]) -> None:
    for path in paths:
        if path is not None:
            print(f"Written to {path}.")


def check_table(path: Path | None, *more_suffixes: str) -> None:
    """Raise FormatError if a table cannot be written to this file, before anything is computed."""
    from crowdrank.io.writer import SUFFIXES

    if path is None:
        return
    if path.suffix.lower() not in (*SUFFIXES, *more_suffixes):
        raise FormatError(f"{path.name}: tables are written as {', '.join(SUFFIXES)}, got {path.suffix!r}.")
    if not path.parent.is_dir():
        raise FormatError(f"{path}: there is no folder {path.parent} to write into.")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise FormatError(f"{path}: cannot be written{' because it is a folder' if path.is_dir() else ''}.")


def print_error(error: Exception) -> None:
    """Print an error on standard error: one line, and the guide that a file which is not understood comes with."""
    print(f"crowdrank: {with_flags(str(error))}", file=sys.stderr)
    for note in getattr(error, "__notes__", ()):
        print(as_commands(note), file=sys.stderr)


def as_commands(text: str) -> str:
    """Rewrite the lines of a text that are calls of `cr.rank` as commands, and arguments in other lines as options.

    >>> as_commands("  cr.rank('my votes.csv', columns={'winner': 'home team'}, header=False)")
    "  crowdrank rank 'my votes.csv' --column 'winner=home team' --no-header"
    """
    return "\n".join(_as_command(line) if _CALL.match(line) else with_flags(line) for line in text.split("\n"))


def _as_command(line: str) -> str:
    call = ast.parse(line.strip(), mode="eval").body
    assert isinstance(call, ast.Call)
    if not isinstance(call.args[0], ast.Constant | ast.List):
        return line
    source = ast.literal_eval(call.args[0])
    words = ["crowdrank", "rank", *([source] if isinstance(source, str) else source)]
    for keyword in call.keywords:
        value = ast.literal_eval(keyword.value)
        if keyword.arg == "columns":
            words += [w for role, column in value.items() for w in ("--column", f"{role}={column or ''}")]
        elif keyword.arg == "header":
            words.append("--header" if value else "--no-header")
        else:
            words += [f"--{keyword.arg}", value]
    return f"  {shlex.join(words)}"


def with_flags(message: str) -> str:
    """Rewrite the Python arguments in a message as command-line options.

    >>> with_flags("No column is the winner: pass columns={'winner': 'COLUMN'}.")
    'No column is the winner: pass --column winner=COLUMN.'
    >>> with_flags("memory= limits engine='out-of-core'.")
    '--memory limits --engine out-of-core.'
    """
    return _ARGUMENT.sub(_as_options, message)


def _as_options(found: re.Match[str]) -> str:
    if (flag := found["flag"]) is not None:
        return {"header=True": "--header", "header=False": "--no-header", "control=True": "--control"}[flag]
    if (name := found["name"]) is not None:
        option = _FLAGS.get(name, f"--{name.replace('_', '-')}")
        return option if found["value"] is None else f"{option} {_unquoted(found['value'])}"
    option = _COLUMN_ARGUMENTS[found["columns"]]
    entries = [(entry[2].strip(), entry[3].strip()) for entry in _ENTRY.finditer(found["roles"])]
    if not entries:
        return f"{option} ROLE=COLUMN"
    return " ".join(f"{option} {role}={_unquoted(value)}" for role, value in entries)


def _unquoted(value: str) -> str:
    """A Python literal as a word of the shell: None is empty; words with spaces or special characters are quoted."""
    if value == "None":
        return ""
    word = value[1:-1] if value[:1] in "'\"" else value
    return shlex.quote(word) if re.search(r"[\s*?\[\]()&|;<>$!#]", word) else word


def require_extra(*modules: str, extra: str = "server") -> None:
    """Raise an error that names the extra to install, if a module is missing."""
    if any(find_spec(module) is None for module in modules):
        raise SettingError(f"This command needs an extra: pip install 'crowdrank[{extra}]'")


@contextmanager
def spinner(label: str) -> Iterator[Callable[[str], None]]:
    """Show a label with a spinner; yields a function that adds a detail to it."""
    from rich.console import Console

    terminal = Console(stderr=True)
    if not terminal.is_terminal:
        yield lambda detail: None
        return
    with terminal.status(f"{label} …") as status:
        yield lambda detail: status.update(f"{label}: {detail} …")


@contextmanager
def progress_bar(label: str) -> Iterator[ShowProgress]:
    """Show a bar with the remaining time; yields a function of the steps done, their total, and a detail."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    terminal = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    bar = Progress(
        *columns, console=terminal, transient=True, disable=not terminal.is_terminal, speed_estimate_period=600
    )
    with bar as progress:
        task = progress.add_task(label, total=None)

        def show(done: int, total: int, detail: str = "") -> None:
            progress.update(task, description=f"{label}: {detail}" if detail else label, completed=done, total=total)

        yield show
