"""What commands that play collections through share: policies in words, processes, and a bar while they go on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crowdrank.cli.options import parse_settings
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from rich.console import Console

    from crowdrank.active.policies import BasePolicy

_WIDEST = 100


def parse_policy(text: str) -> BasePolicy:
    """A policy and perhaps its settings: adaptive, or gain:exploration=5, or adaptive:epsilon=0.2:floor=5."""
    from crowdrank.active import by_name

    name, *settings = (part.strip() for part in text.split(":"))
    kind = by_name(name)
    if wrong := [pair for pair in settings if "=" not in pair]:
        raise SettingError(
            f"Settings of a policy are written like adaptive:epsilon=0.2:floor=5; got {wrong[0]!r} in {text!r}."
        )
    return kind(**parse_settings(kind, settings, None))


def processes_for(wish: int | None, trials: int) -> int:
    """As many as there are cores, unless told; never more than trials."""
    return max(1, min(os.cpu_count() or 1 if wish is None else wish, trials))


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """To be told how many are done, and of how many; silent unless stderr is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done, of: progress.update(task, completed=done, total=of)


def page() -> Console:
    """Where tables are printed, at most a hundred columns wide."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    console.width = min(console.width, _WIDEST)
    return console
