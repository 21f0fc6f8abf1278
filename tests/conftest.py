"""Fixtures and settings for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import typer.main
import typer.testing
from hypothesis import settings

# The same examples every time, so that a failure means a change in the code; `make explore` draws new ones.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# Tests that may depend on the last bit of a floating-point number; `make test-other-cpu` runs them again.
ARITHMETIC = (
    "active/test_gain_bounds.py",
    "active/test_gain_formulas.py",
    "conformance/test_last_bit.py",
    "conformance/test_optimum.py",
    "docs/test_docstrings.py",
    "docs/test_examples.py",
    "golden",
    "inference",
    "ltr/test_list_posterior.py",
    "ltr/test_top_k_posterior.py",
    "models/crowd/test_answer_counts.py",
    "models/crowd/test_crowd_bt_kernel.py",
    "models/crowd/test_likelihood.py",
    "models/crowd/test_mpm_likelihood.py",
    "models/crowd/test_sampler.py",
    "models/crowd/test_rank_distributions.py",
    "models/lists",
    "models/pairwise/test_likelihood.py",
    "models/ratings",
    "models/test_score_priors.py",
    "models/thurstonian",
    "online/test_moments.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """In the run for another processor each worker has one core, so that code that counts cores finds one."""
    works = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    if works and "CROWDRANK_OTHER_CPU" in os.environ and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        os.sched_setaffinity(0, {cores[worker % len(cores)]})


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name no test by bytes: those of a compressed file hold the time, and all workers must collect the same names."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = [Path(__file__).parent / place for place in ARITHMETIC]
    for item in items:
        # The frozen numbers belong to one processor, and are slow to compute.
        if item.path.name != "test_frozen.py" and any(item.path.is_relative_to(place) for place in places):
            item.add_marker(pytest.mark.arithmetic)


@pytest.fixture(scope="session", autouse=True)
def commands_built_once() -> Iterator[None]:
    """Build the commands once: Typer rebuilds them for every run, which takes longer than running most of them."""
    with pytest.MonkeyPatch.context() as patch:
        built = cache(typer.main.get_command)
        patch.setattr(typer.main, "get_command", built)
        patch.setattr(typer.testing, "_get_command", built)
        yield


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real judgments: CROWDRANK_DATA, or ../shared/data next to the checkout."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CROWDRANK_DATA") or beside)
    if not folder.is_dir():
        pytest.skip("Needs the real judgments: set CROWDRANK_DATA to their folder.")
    return folder
