"""Fixtures with the content of reports."""

from __future__ import annotations

from typing import Any

import pytest

from crowdrank.models.selection import convert_for
from crowdrank.reports import Findings
from crowdrank.simulation import mixed_crowd
from tests.browser import browser  # noqa: F401  (a fixture)


def findings_of(judgments: Any, model: Any, **others: Any) -> Findings:
    """Fit a model and collect the content of its report, as the command line does."""
    fitted, conversion = convert_for(model, judgments)
    ranking = model.fit(fitted)
    return Findings(
        ranking=ranking,
        judgments=judgments,
        model=model,
        fitted_judgments=fitted,
        conversion=conversion,
        notes=ranking.notes,
        **others,
    )


@pytest.fixture(scope="session")
def crowd() -> Any:
    """A crowd with annotators of every kind."""
    kinds = {"good": 8, "noisy": 2, "random": 1, "reversed": 2, "left": 1}
    return mixed_crowd(items=10, kinds=kinds, votes_each=45, seed=3)


@pytest.fixture(scope="session")
def votes(crowd: Any) -> Any:
    return crowd.judgments
