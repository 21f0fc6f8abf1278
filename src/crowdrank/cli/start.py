"""crowdrank start: look at a file, ask what is unclear, and rank it."""

from __future__ import annotations

from pathlib import Path


def start(file: Path) -> None:
    """Look at a file, ask what is unclear, and rank it."""
