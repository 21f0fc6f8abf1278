"""Progress on a terminal. Nothing is shown when standard error is not one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from crowdrank.errors import SettingError

ShowProgress = Callable[[int, int, str], None]


def require_extra(*modules: str, extra: str = "server") -> None:
    """Raise an error that names the extra to install, if a module is missing."""
    if any(find_spec(module) is None for module in modules):
        raise SettingError(f"This command needs an extra: pip install 'crowdrank[{extra}]'")


@contextmanager
def spinner(label: str) -> Iterator[Callable[[str], None]]:
    """Show a label with a spinner; yields a function that adds a detail to it."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda detail: None
        return
    with console.status(f"{label} …") as status:
        yield lambda detail: status.update(f"{label}: {detail} …")


@contextmanager
def progress_bar(label: str) -> Iterator[ShowProgress]:
    """Show a bar with the remaining time; yields a function of the steps done, their total, and a detail."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    bar = Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal, speed_estimate_period=600
    )
    with bar as progress:
        task = progress.add_task(label, total=None)

        def show(done: int, total: int, detail: str = "") -> None:
            progress.update(task, description=f"{label}: {detail}" if detail else label, completed=done, total=total)

        yield show
