"""The page of a leaderboard in Chromium: it sorts and filters, and anybody can use it."""

import pytest

import crowdrank as cr
from crowdrank.reports import Leaderboard, write_leaderboard
from tests.browser import browser, open_file  # noqa: F401  (a fixture)
from tests.pipeline.arenas import arena_by_category, styled_arena


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "board"
    votes = styled_arena(1, votes=800)
    ranking = cr.rank(votes, score_scale="elo", min_comparisons=int(cr.rank(votes).n_judgments.min()) + 1)
    write_leaderboard(Leaderboard(ranking=ranking, title="Arena", notes=["A note."]), folder)
    return folder / "index.html"


def shown(opened):
    rows = opened.page.locator("table.sortable >> nth=0").locator("tbody tr:not([hidden])")
    return rows.evaluate_all("rows => rows.map(row => row.dataset.item)")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_sound_and_open_to_everyone(browser, page, scheme):  # noqa: F811
    opened = open_file(browser, page, viewport={"width": 400, "height": 800}, color_scheme=scheme)
    assert opened.violations() == []
    assert opened.complaints == []
    assert opened.requests == [page.as_uri()]
    assert not opened.scrolls_sideways


def test_the_page_sorts_and_finds(browser, page):  # noqa: F811
    opened = open_file(browser, page)
    ranked = shown(opened)
    opened.page.get_by_role("button", name="item").first.click()
    assert shown(opened) == sorted(ranked)
    opened.page.get_by_role("button", name="score").first.click()
    assert shown(opened) == ranked
    opened.page.get_by_role("button", name="score").first.click()
    assert shown(opened) == ranked[::-1]
    opened.page.get_by_label("Find").fill(ranked[0].upper())
    assert shown(opened) == [ranked[0]]
    opened.page.screenshot(path=page.with_name("page.png"), full_page=True)


def test_the_page_of_categories_opens_with_the_overall(browser, tmp_path):  # noqa: F811
    columns, _ = arena_by_category(1, votes=600)
    write_leaderboard(Leaderboard(ranking=cr.rank(columns, by="topic"), title="Arena"), tmp_path)
    opened = open_file(browser, tmp_path / "index.html")
    assert opened.violations() == []
    assert opened.complaints == []
    assert len(shown(opened)) == 8
    opened.page.get_by_label("Category").select_option("topic 1")
    assert len(shown(opened)) == 8
    opened.page.get_by_label("Category").select_option("all")
    assert len(shown(opened)) == 5 * 8
