"""crowdrank start: look at a file, ask what is unclear, and rank it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from crowdrank.cli.output import console, spinner, with_flags
from crowdrank.errors import CrowdrankError, FormatError, SettingError, UnknownNameError

if TYPE_CHECKING:
    import polars as pl

    from crowdrank.pipeline import PreparedData

Answer = TypeVar("Answer")

_EXAMPLE = Path("crowdrank-example")
_MAX_COLUMNS, _MAX_VALUES, _VALUE_LENGTH = 20, 3, 24
_SUGGESTED = "as suggested"
# A table with fewer columns holds no judgments that a person could point out.
_MIN_COLUMNS = 2
# What a row may be, the roles of its columns in the order of the question, and the question. The last may be left out.
_SHAPES = {
    "comparison": (
        ("left", "right", "winner", "annotator"),
        "Which columns hold the two items, the winner, and who answered (if known)?",
    ),
    "grade": (("item", "grade", "annotator"), "Which columns hold the item, its grade, and who graded it (if known)?"),
    "list": (("order", "annotator"), "Which columns hold the list, best first, and who made it (if known)?"),
}


def start(
    file: Annotated[
        Path | None, typer.Argument(help="File of judgments, in any format. Default: a simulated example.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Take the default answer to every question.")] = False,
) -> None:
    """Look at a file, ask what is unclear, and rank it."""
    from crowdrank.cli.application import build_app

    questions = Questions(yes)
    chosen = _choose_file(questions) if file is None else file
    columns, has_annotators = _choose_columns(chosen, questions)
    source = [str(chosen), *(word for pair in columns for word in ("--column", pair))]
    report = f"{chosen.stem or 'crowdrank'}-report.html"
    words = ["rank", *source, *(["--report", report] if questions.confirm(f"Write a report to {report}?") else [])]
    typer.echo()
    build_app(["rank"])(words, prog_name="crowdrank", standalone_mode=False)
    typer.echo(f"\nThe command was:\n  {shlex.join(['crowdrank', *words])}")
    if has_annotators:
        typer.echo(f"To see whom to trust:\n  {shlex.join(['crowdrank', 'annotators', *source])}")


@dataclass(frozen=True)
class Questions:
    """Asks on the terminal, or takes the default answers.

    Parameters
    ----------
    use_defaults : bool
        Whether to ask nothing.
    """

    use_defaults: bool

    def ask(self, question: str, default: str, parse: Callable[[str], Answer]) -> Answer:
        """Ask until the answer can be parsed. Enter is the default."""
        while not self.use_defaults:
            try:
                return parse(input(f"{question} [{default}] ").strip() or default)
            except EOFError:
                typer.echo()
                raise SettingError("The question was not answered. To take the default answers, add --yes.") from None
            except CrowdrankError as error:
                typer.echo(f"  {with_flags(str(error))}")
        return parse(default)

    def confirm(self, question: str) -> bool:
        """Ask a question of yes or no; yes is the default."""
        return self.ask(question, "yes", _parse_yes)


def _parse_yes(text: str) -> bool:
    if text.lower() not in ("y", "yes", "n", "no"):
        raise SettingError(f"Please answer yes or no, got {text!r}.")
    return text.lower().startswith("y")


def _choose_file(questions: Questions) -> Path:
    """The file that the user names, or a simulated example."""
    example = _EXAMPLE / "votes.csv"
    named = questions.ask("Which file holds the judgments? Enter for an example:", str(example), _parse_file)
    if named != example or example.exists():
        return named
    from crowdrank.simulation import crowd_bt

    crowd_bt(items=20, annotators=15, pairs=120, votes=5, labels="logistic").write(_EXAMPLE)
    typer.echo(f"Simulated an example crowd: {example}.")
    return example


def _parse_file(text: str) -> Path:
    path = Path(text.strip("'\"")).expanduser()
    if not path.exists() and path != _EXAMPLE / "votes.csv":
        raise FormatError(f"{path}: no such file.")
    return path


def _choose_columns(file: Path, questions: Questions) -> tuple[list[str], bool]:
    """Say what the file is. Returns the `role=column` that it needs to be read, and whether it names annotators."""
    from crowdrank.pipeline import RankOptions, prepare
    from crowdrank.reports import facts

    try:
        found = prepare(file, RankOptions(), spinner)
    except FormatError as error:
        if (questions.use_defaults and not error.suggestion) or not file.is_file():
            raise
        columns = _ask_for_roles(file, error, questions)
        return columns, any(pair.startswith("annotator=") for pair in columns)
    console().print(f"{file.name}: {facts(found.judgments)}.", style="bold")
    if found.judgments.annotator is not None:
        return [], True
    columns = _ask_for_annotator(file, found, questions)
    return columns, bool(columns)


def _ask_for_annotator(file: Path, found: PreparedData, questions: Questions) -> list[str]:
    """Ask which of the columns without a role names who answered, if one could."""
    frame = _first_rows(file)
    used = set() if found.report is None else set(found.report.columns.values())
    free = [] if frame is None else [name for name in frame.columns if name not in used and _repeats(frame[name])]
    if not free or questions.use_defaults:
        return []
    assert frame is not None
    _show_columns(frame, free)
    named = questions.ask(
        "Which column says who answered? A name, a number, or none:",
        "none",
        lambda text: [] if text.lower() == "none" else _parse_columns(text, free),
    )
    return [f"annotator={name}" for name in named[:1]]


def _ask_for_roles(file: Path, error: FormatError, questions: Questions) -> list[str]:
    """Show the columns of a file that was not understood, and ask for their roles."""
    frame = _first_rows(file)
    suggested = [f"{role}={column}" for role, column in (error.suggestion or {}).items() if column]
    if frame is None or len(frame.columns) < (1 if suggested else _MIN_COLUMNS):
        raise error
    typer.echo(f"{file.name} is a table, but its column names do not say what they contain:")
    _show_columns(frame, frame.columns)
    question = "What is one row: a comparison of two items, a grade, or a list?"
    if suggested:
        codes = " If the codes mean something else, exchange left and right." if "=left" in str(suggested) else ""
        typer.echo(f"By its cells it can be read with {', '.join(suggested)}.{codes}")
        question = "Read it this way? Or is one row a comparison of two items, a grade, or a list?"
    shape = questions.ask(
        question,
        _SUGGESTED if suggested else "comparison",
        lambda text: _SUGGESTED if suggested and text in (_SUGGESTED, "y", "yes") else _parse_shape(text),
    )
    if shape == _SUGGESTED:
        return suggested
    roles, question = _SHAPES[shape]
    from crowdrank.io import read

    def parse(text: str) -> list[str]:
        named = _parse_columns(text, frame.columns)
        if not len(roles) - 1 <= len(named) <= len(roles):
            raise SettingError(f"Name {len(roles) - 1} or {len(roles)} columns, got {len(named)}.")
        if not questions.use_defaults:  # otherwise the ranking says what is wrong
            read(file, columns=dict(zip(roles, named, strict=False)), warn=False)
        return named

    default = ", ".join(str(n + 1) for n in range(min(len(roles), len(frame.columns))))
    named = questions.ask(f"{question} Names or numbers:", default, parse)
    return [f"{role}={name}" for role, name in zip(roles, named, strict=False)]


def _parse_shape(text: str) -> str:
    found = [shape for shape in _SHAPES if shape.startswith(text.lower().rstrip("s"))]
    if not found:
        raise UnknownNameError("kind of row", text, _SHAPES)
    return found[0]


def _parse_columns(text: str, known: Sequence[str]) -> list[str]:
    """Columns given by name or number, separated by commas or else by spaces."""
    words = [text] if text in known else [word.strip() for word in (text.split(",") if "," in text else text.split())]
    return [_parse_column(word, known) for word in words if word]


def _parse_column(word: str, known: Sequence[str]) -> str:
    if word in known:
        return word
    if word.isdigit() and 1 <= int(word) <= len(known):
        return known[int(word) - 1]
    raise UnknownNameError("column", word, known)


def _first_rows(file: Path) -> pl.DataFrame | None:
    """The first rows as a table; None for a file that is not one."""
    from crowdrank.io.sources import open_table

    try:
        return open_table(file).sample
    except CrowdrankError:
        return None


def _repeats(values: pl.Series) -> bool:
    """Whether a column could name annotators: several values, most of which come again."""
    return 1 < values.n_unique() <= max(2, len(values) // 2)


def _show_columns(frame: pl.DataFrame, names: Iterable[str]) -> None:
    """Print the columns with a number and their first values."""
    from rich.table import Table

    from crowdrank.reports import label, number_column, short

    table = Table(box=None, pad_edge=False)
    number_column(table, "")
    for head in ("column", "first values"):
        table.add_column(head)
    names = list(names)
    for n, name in enumerate(names[:_MAX_COLUMNS], 1):
        values = frame[name].drop_nulls().unique(maintain_order=True).head(_MAX_VALUES)
        table.add_row(str(n), label(name), label(", ".join(short(value, _VALUE_LENGTH) for value in values)))
    screen = console()
    screen.print(table)
    if len(names) > _MAX_COLUMNS:
        screen.print(f"   … and {len(names) - _MAX_COLUMNS:,} more", style="dim")
