"""Chromium for tests of pages: one browser per module, and accessibility checks with axe."""

from __future__ import annotations

import shutil
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE = 120_000
"""Timeout in milliseconds; machines that run tests are busy."""

STILL: Any = {"reduced_motion": "reduce"}
"""For new contexts: on a busy machine axe would otherwise measure the contrast of colours that are still changing."""


def find_chromium() -> str:
    """Return the path of Chromium. If it is missing, tests fail instead of being skipped."""
    for name in _NAMES:
        if found := shutil.which(name):
            return found
    raise FileNotFoundError("These tests need Chromium: sudo apt-get install chromium.")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser per module: while it runs, nothing else in this thread can run an event loop."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"], timeout=_PATIENCE)
        yield started
        started.close()


class Opened:
    """A page with its console messages, errors and network requests."""

    def __init__(self, page: Page, address: str):
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = page
        self.page.set_default_timeout(_PATIENCE)
        self.page.on("console", lambda said: self.complaints.append(f"{said.type}: {said.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)

    @property
    def scrolls_sideways(self) -> bool:
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return bool(self.page.evaluate(wide))

    def violations(self, impacts: Container[str] = ("minor", "moderate", "serious", "critical")) -> list[str]:
        """Return the violations of these impacts that axe finds, each with its first occurrence."""
        found = Axe().run(self.page, options={"resultTypes": ["violations"]}).response["violations"]
        return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found if v["impact"] in impacts]


def open_file(browser: Browser, path: Path, **looks: Any) -> Opened:
    return Opened(browser.new_page(**STILL, **looks), path.resolve().as_uri())
