"""Browsers of annotators and admins, and a server started with `crowdrank serve`."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.browser import STILL, Opened, browser  # noqa: F401  (a fixture)
from tests.serving import serving

DESK, PHONE = {"width": 1100, "height": 760}, {"width": 375, "height": 740}
LOOKS = {
    "light": {"viewport": DESK, "color_scheme": "light"},
    "phone": {"viewport": PHONE, "color_scheme": "light", "has_touch": True, "is_mobile": True},
    "phone dark": {"viewport": PHONE, "color_scheme": "dark", "has_touch": True, "is_mobile": True},
}
ITEMS = "item,text\n" + "".join(f"stone {n},A stone of {n} kg.\n" for n in range(1, 9))
CONFIG = """
title = "Stones"
question = "Which stone is heavier?"
instructions = "Read **both**."
board_public = true
[budget]
per_annotator = 14
[joining]
completion_code = "STONE-7"
"""
TOKEN = 'input[name="token"]'


@pytest.fixture(scope="module")
def stones(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("stones"), ITEMS, CONFIG, ["--allow-internal-webhooks"]) as served:
        yield served


@pytest.fixture
def enter(browser):  # noqa: F811
    """Open a link in a new browser context: `enter(url, "phone")`; closed afterwards."""
    opened = []

    def come(address, look="light", **how):
        context = browser.new_context(**STILL, **LOOKS[look], **how)
        made = Opened(context.new_page(), address)
        opened.append(context)
        return made

    yield come
    for context in opened:
        context.close()


@pytest.fixture
def photograph():
    """Save a screenshot of a page in CROWDRANK_SCREENSHOTS, if that is set: `photograph(page, "board")`."""
    folder = os.environ.get("CROWDRANK_SCREENSHOTS")

    def take(page, name, **how):
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(folder) / f"{name}.png", **how)

    return take


def new_people(served, *names):
    made = served.ask("POST", "/annotators", json={"annotators": [{"name": name} for name in names]})
    return [one["token"] for one in made["annotators"]]


def link_of(served, token):
    return f"{served.base}/join/{token}"


def judge(served, enter, name, look="light", **how):
    """Add an annotator and open their link; return the page and the token."""
    (token,) = new_people(served, name)
    opened = enter(link_of(served, token), look, **how)
    assert opened.page.url == f"{served.base}/judge"
    return opened, token


def weights(page):
    said = [page.locator(f"#{side} .shown").inner_text() for side in ("left", "right")]
    return [int(re.search(r"(\d+) kg", one)[1]) for one in said]


def then(page, deed):
    """Run an action and wait for the next pair, after the minimum response time."""
    page.wait_for_timeout(270)
    before = page.locator(TOKEN).first.input_value()
    deed()
    page.wait_for_function(
        f"t => location.pathname === '/finished' || document.querySelector('{TOKEN}')?.value !== t", arg=before
    )


def press(page, key):
    then(page, lambda: page.keyboard.press(key))


def honest_key(page):
    left, right = weights(page)
    return "ArrowLeft" if left > right else "ArrowRight"


def play(served, token, answer, most):
    """Answer questions through the API and return how many were answered."""
    question = served.ask("GET", "/question", token)
    labels = {item["id"]: item["label"] for item in served.ask("GET", "/items")["items"]}
    for done in range(most):
        if "assignment" not in question:
            return done
        asked = question["assignment"]
        left, right = (int(re.search(r"(\d+)", labels[asked[side]["id"]])[1]) for side in ("left", "right"))
        said = {"token": asked["token"], "outcome": answer(left, right), "response_ms": 4000 + 311 * done}
        question = served.ask("POST", "/votes", token, json=said)["next"]
    return most


def honest(left, right):
    return "left" if left > right else "right"


def contrary(left, right):
    return "right" if left > right else "left"


def votes_of(served, name):
    found = served.ask("GET", "/votes", params={"limit": 1000})["votes"]
    return [vote for vote in found if vote["annotator"] == name]


def outcomes_of(served, name):
    """Return the outcomes of an annotator's votes that count."""
    standing = [vote for vote in votes_of(served, name) if vote["status"] == "counts"]
    return [{vote["left"]: "left", vote["right"]: "right"}.get(vote["winner"], vote["winner"]) for vote in standing]


def served_number(served, name):
    return next(one["id"] for one in served.ask("GET", "/annotators")["annotators"] if one["name"] == name)
