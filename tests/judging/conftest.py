from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import crowdrank as cr
from tests.judging.fake_endpoint import FakeEndpoint

KEY = "sk-test-0123456789abcdef"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROWDRANK_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def endpoint():
    with FakeEndpoint() as running:
        yield running


@pytest.fixture
def ask(endpoint: FakeEndpoint, tmp_path: Path):
    """Judge four items at the fake endpoint, with short waits."""

    def run(**settings: Any) -> cr.judging.JudgeRun:
        items = settings.pop("items", {"item": ["a", "b", "c", "d"], "text": ["one", "two", "three", "four"]})
        usual = {"endpoint": endpoint.url, "llm": "m", "out": tmp_path / "votes.csv", "backoff": 0.01, "timeout": 60.0}
        return cr.judge(items, **{"question": "Which is longer?", **usual, **settings})

    return run
