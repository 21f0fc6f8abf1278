"""What every test may ask for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.main
import typer.testing
from hypothesis import settings

# The same examples every time, so that a red run means a change, not a draw; `make explore` draws others.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


@pytest.fixture(scope="session", autouse=True)
def commands_built_once() -> Iterator[None]:
    """Typer builds every command anew each time one is run, which takes longer than running most of them."""
    with pytest.MonkeyPatch.context() as patch:
        built = cache(typer.main.get_command)
        patch.setattr(typer.main, "get_command", built)
        patch.setattr(typer.testing, "_get_command", built)
        yield


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real judgments: CROWDRANK_DATA, or ../shared/data beside the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CROWDRANK_DATA") or beside)
    if not folder.is_dir():
        pytest.skip("Needs the real judgments: set CROWDRANK_DATA to their folder.")
    return folder
