"""A word on what is going on, where somebody is watching."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


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
