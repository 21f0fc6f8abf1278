"""Bootstraps short enough to run for every model."""

from __future__ import annotations

import pytest

from crowdrank.models import bootstrap


@pytest.fixture
def few_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty replicates instead of two hundred: the tests check that there are errors, not how large they are."""
    for function in (bootstrap.bootstrap, bootstrap.bootstrap_counts, bootstrap.bootstrap_weights):
        monkeypatch.setitem(function.__kwdefaults__, "replicates", 20)
