"""Options of crowdrank rank that are about leaderboards."""

from __future__ import annotations

from typing import Annotated

import typer

LEADERBOARD = "Leaderboard"

Features = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C",
        help="Features that should not matter: position, or columns. Needs --control or factor-bt.",
        rich_help_panel=LEADERBOARD,
    ),
]
Control = Annotated[
    bool,
    typer.Option(
        "--control",
        help="Remove the effect of --features from the ranking, and show it (bradley-terry, thurstone).",
        rich_help_panel=LEADERBOARD,
    ),
]
