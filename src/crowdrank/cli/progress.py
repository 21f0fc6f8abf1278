"""What a command needs beyond the core.

A word on what is going on, where somebody is watching.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from crowdrank.errors import SettingError


def needed(*modules: str, extra: str = "server") -> None:
    """Say how to install what is missing, before anything is begun."""
    if any(find_spec(module) is None for module in modules):
        raise SettingError(f"This needs more than the core of crowdrank:  pip install 'crowdrank[{extra}]'")


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Show `what` with a spinner while it lasts; silent unless stderr is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(f"{what} …"):
        yield


@contextmanager
def counting(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """To be told what is done, how many of it and of how many; shows a bar and the time that is left, on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    watched = Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal, speed_estimate_period=600
    )
    with watched as progress:
        task = progress.add_task(what, total=None)
        yield lambda name, done, of: progress.update(task, description=f"{what}: {name}", completed=done, total=of)
