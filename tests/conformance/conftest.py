"""Bootstraps short enough to run over every model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crowdrank.models import bootstrap


@pytest.fixture(scope="module")
def few_replicates() -> Iterator[None]:
    """Twenty in place of two hundred: for tests of whether there are errors, not of how large they are."""
    with pytest.MonkeyPatch.context() as patch:
        for function in (bootstrap.bootstrap, bootstrap.bootstrap_counts, bootstrap.bootstrap_weights):
            patch.setitem(function.__kwdefaults__, "replicates", 20)
        yield
