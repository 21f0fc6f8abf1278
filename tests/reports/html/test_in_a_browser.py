"""The page as people see it: in Chromium, light and dark, on a phone and on paper."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from crowdrank import CrowdBT
from crowdrank.reports import write_report
from tests.browser import open_file
from tests.reports.html.conftest import findings_of

DESK, PHONE = {"width": 1100, "height": 900}, {"width": 360, "height": 740}
LOOKS = {
    "light": {"viewport": DESK, "color_scheme": "light"},
    "dark": {"viewport": DESK, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light"},
}


@pytest.fixture(scope="module")
def path(votes, tmp_path_factory):
    target = tmp_path_factory.mktemp("report") / "report.html"
    write_report(findings_of(votes, CrowdBT(), title="votes.csv", reproduce={"in Python": "import crowdrank"}), target)
    return target


@pytest.fixture
def screenshots(tmp_path):
    """The folder for screenshots: CROWDRANK_SCREENSHOTS, if it is set."""
    folder = Path(os.environ.get("CROWDRANK_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("look", LOOKS)
def test_the_page_is_sound_and_open_to_everyone(browser, path, look, screenshots):
    opened = open_file(browser, path, **LOOKS[look])
    opened.page.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    assert opened.violations() == []
    assert opened.complaints == []
    assert opened.requests == [path.as_uri()]
    assert not opened.scrolls_sideways
    opened.page.screenshot(path=screenshots / f"{look}.png", full_page=True)
    assert (screenshots / f"{look}.png").stat().st_size > 20_000


def test_dark_is_dark_and_light_is_light(browser, path):
    paper = "getComputedStyle(document.body).backgroundColor"
    shades = [open_file(browser, path, **LOOKS[look]).page.evaluate(paper) for look in ("light", "dark")]
    bright, dim = (sum(int(part) for part in shade[4:-1].split(",")) for shade in shades)
    assert bright > 600
    assert dim < 120


def test_on_paper_what_is_folded_away_stays_away(browser, path, screenshots):
    page = open_file(browser, path, **LOOKS["dark"]).page
    page.pdf(path=screenshots / "print.pdf", prefer_css_page_size=True)
    assert (screenshots / "print.pdf").read_bytes().startswith(b"%PDF")
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert not page.locator("details:not([open])").first.is_visible()
    assert page.locator("table.order").first.is_visible()


def test_a_page_that_is_not_sound_is_noticed(browser, tmp_path):
    """Negative control: the checks of the tests above detect violations."""
    bad = tmp_path / "bad.html"
    bad.write_text('<html><body style="width:3000px"><img src="x.png"><script>throw Error("no")</script></body></html>')
    opened = open_file(browser, bad, **LOOKS["phone"])
    assert any("image-alt" in violation for violation in opened.violations())
    assert any("no" in complaint for complaint in opened.complaints)
    assert opened.scrolls_sideways
