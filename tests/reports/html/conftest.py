"""Findings to make pages of."""

from __future__ import annotations

from typing import Any

import pytest

from crowdrank.models.conversion import convert_for
from crowdrank.reports import Findings
from crowdrank.simulation import mixed_crowd
from tests.browser import browser  # noqa: F401  (a fixture)


def found(judgments: Any, model: Any, **others: Any) -> Findings:
    """What a model makes of judgments, as the command line would put it together."""
    readable, rule = convert_for(model, judgments)
    ranking = model.fit(readable)
    return Findings(
        ranking=ranking, judgments=judgments, model=model, read_as=readable, rule=rule, notes=ranking.notes, **others
    )


@pytest.fixture(scope="session")
def crowd() -> Any:
    """A crowd with some of every kind."""
    kinds = {"good": 8, "noisy": 2, "random": 1, "reversed": 2, "left": 1}
    return mixed_crowd(items=10, kinds=kinds, votes_each=45, seed=3)


@pytest.fixture(scope="session")
def votes(crowd: Any) -> Any:
    return crowd.judgments
