"""Every page on every kind of screen: accessible, and safe against hostile content."""

from __future__ import annotations

import re
import struct
import zlib

import pytest

from tests.browser import Opened
from tests.server.browser_helpers import (
    honest,
    judge,
    new_people,
    play,
    press,
    served_number,
    then,
    votes_of,
)

HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=1</script>'


@pytest.fixture(scope="module")
def mixed(studies):
    """A query with images, a query with long texts, and hostile items."""
    long = "A sentence that goes on for a while. " * 120
    rows = [
        ("picture 0", "0.png", "pictures"),
        ("picture 1", "1.png", "pictures"),
        ("text 0", long, "texts"),
        ("text 1", f"{long}And this one ends in another way.", "texts"),
        (HOSTILE, HOSTILE.replace('"', "'"), "harm"),
        ("javascript:alert(1)", HOSTILE, "harm"),
    ]
    table = "item,body,query\n" + "".join(",".join(_quoted(cell) for cell in row) + "\n" for row in rows)
    pictures = {f"{n}.png": _picture(600, 400, 90 * n) for n in range(2)}
    with studies.create("mixed", table, media=pictures) as study:
        yield study


@pytest.fixture
def enter(enter_again):
    return enter_again


def _picture(wide, high, shade):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(
        b"\0" + bytes((shade, x % 256, y % 256)[c] for x in range(wide) for c in range(3)) for y in range(high)
    )
    head = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def _quoted(cell):
    return '"' + cell.replace('"', '""') + '"'


PAGES = (
    "/",
    "/join",
    "/admin",
    "/admin/annotators",
    "/admin/items",
    "/admin/links",
    "/admin/settings",
    "/admin/audit",
    "/api",
)


@pytest.mark.parametrize("look", ["light", "phone dark"])
def test_every_page_is_accessible(stones, enter, look, photograph):
    (token,) = new_people(stones, f"Someone in {look}")
    play(stones, token, honest, 5)
    opened = enter(stones.admin_link, look)
    page = opened.page
    number = served_number(stones, f"Someone in {look}")
    for path in (*PAGES, f"/admin/annotators/{number}"):
        page.goto(stones.base + path)
        page.evaluate("document.querySelectorAll('main details').forEach(fold => fold.open = true)")
        photograph(page, f"{path.strip('/').replace('/', '-') or 'board'}-{look}", full_page=True)
        _sound(opened, path)
    assert opened.complaints == []
    judging, _ = judge(stones, enter, f"Judge in {look}", look)
    press(judging.page, "ArrowLeft")
    for state in ("plain", "skipping"):
        photograph(judging.page, f"judge-{state}-{look}")
        _sound(judging, state)
        judging.page.locator("#skip summary").click()
    assert judging.complaints == []
    assert {request.split("/")[2] for request in opened.requests + judging.requests} == {stones.base.split("/")[2]}


def _sound(opened, what):
    """Check that a page is accessible, fits the screen, and mentions no command-line options."""
    assert opened.violations() == [], what
    assert not opened.scrolls_sideways, what
    assert not re.search(r"(?<!\S)--[a-z]", opened.page.locator("body").inner_text()), what


@pytest.fixture(params=["light", "phone dark"])
def look(request):
    return request.param


@pytest.fixture
def seen(photograph, look):
    """Check a page with axe and take a screenshot: `seen(opened, "finished")`."""

    def look_at(opened, what):
        photograph(opened.page, f"{what}-{look}", full_page=True)
        _sound(opened, what)

    return look_at


def test_the_finished_page_is_accessible(stones, enter, look, seen):
    opened, token = judge(stones, enter, f"Done in {look}", look)
    play(stones, token, honest, 14)
    opened.page.goto(f"{stones.base}/judge")
    assert opened.page.url == f"{stones.base}/finished"
    assert "STONE-7" in opened.page.locator("main").inner_text()
    seen(opened, "finished")
    assert opened.complaints == []


REFUSED = {
    "/nothing": "Not found",
    "/judge": "Please sign in",
    "/join/not-a-link": "Not found",
    "/admin": "Please sign in",
    "/admin/not-a-link": "Not found",
}


def test_error_pages_are_accessible(stones, enter, look, seen):
    opened = enter(f"{stones.base}/", look)
    for path, words in REFUSED.items():
        opened.page.goto(stones.base + path)
        assert opened.page.locator("h1").inner_text() == words
        seen(opened, f"error{path.replace('/', '-')}")


def test_the_page_of_a_private_board_is_accessible(mixed, enter, look, seen):
    opened = enter(f"{mixed.base}/", look)
    assert opened.page.locator("h1").inner_text() == "No access"
    seen(opened, "error-private")


@pytest.mark.parametrize("state", ["paused", "closed"])
def test_paused_and_closed_pages_are_accessible(stones, enter, look, seen, state):
    opened, _ = judge(stones, enter, f"{state} in {look}", look)
    admin = enter(stones.admin_link, look)
    stones.ask("POST", "/state", json={"state": state})
    try:
        for path in ("/judge", "/join", "/"):
            opened.page.goto(stones.base + path)
            seen(opened, f"{state}{path.replace('/', '-')}")
        admin.page.goto(f"{stones.base}/admin")
        assert admin.page.locator("h1").inner_text() == f"The study is {state}"
        seen(admin, f"{state}-admin")
    finally:
        stones.ask("POST", "/state", json={"state": "open"})
    assert opened.complaints == admin.complaints == []


def test_pages_after_admin_actions_are_accessible(stones, enter, look, seen):
    opened = enter(stones.admin_link, look)
    page, base = opened.page, stones.base
    page.goto(f"{base}/admin/links")
    page.get_by_label("Names, one per line").fill(f"Ann in {look}\nBob in {look}")
    page.get_by_role("button", name="Create links", exact=True).click()
    assert page.locator(".card.link .qr svg").count() == 2
    seen(opened, "links-made")
    number = served_number(stones, f"Ann in {look}")
    page.goto(f"{base}/admin/annotators/{number}")
    page.get_by_role("button", name="Exclude their votes").click()
    page.locator("summary", has_text="Void all votes").click()
    seen(opened, "annotator-excluded")
    page.goto(f"{base}/admin/links")
    page.get_by_role("button", name=f"Revoke the link of Ann in {look}").click()
    seen(opened, "links-revoked")
    page.goto(f"{base}/admin/items")
    page.get_by_role("button", name="Hide stone 3").click()
    seen(opened, "items-hidden")
    page.get_by_role("button", name="Show stone 3").click()
    page.goto(f"{base}/admin/settings")
    page.get_by_label("URL", exact=True).fill("http://127.0.0.1:9/hook")
    page.get_by_role("button", name="Add webhook").click()
    assert len(page.locator(".note code").inner_text()) >= 43
    seen(opened, "settings-webhook")
    page.get_by_role("button", name="Remove http://127.0.0.1:9/hook").click()
    assert page.get_by_role("status").inner_text() == "Removed."
    assert opened.complaints == []
    page.get_by_label("Confidence").fill("very")
    page.get_by_role("button", name="Save", exact=True).click()
    assert "budget.confidence must be a number" in page.get_by_role("alert").inner_text()
    seen(opened, "settings-refused")


def test_the_pages_of_the_server_and_of_what_is_set_aside_are_accessible(studies, stones, enter, look, seen):
    opened = enter(studies.admin_link, look)
    assert opened.page.locator("h1").inner_text() == "Studies"
    assert opened.page.locator("header .name").inner_text() == "crowdrank"
    seen(opened, "studies")
    (token,) = new_people(stones, f"Aside in {look}")
    play(stones, token, honest, 14)
    aside = [served_number(stones, f"Aside in {look}")]
    stones.ask("POST", "/quarantine", json={"annotators": aside})
    admin = enter(stones.admin_link, look)
    page = admin.page
    try:
        page.goto(f"{stones.base}/admin/annotators")
        page.get_by_text("The board without and with these votes").click()
        seen(admin, "annotators-aside")
    finally:
        stones.ask("POST", "/quarantine/release", json={})
    page.goto(f"{stones.base}/admin/links")
    page.get_by_role("button", name="Create a link", exact=True).click()
    link = page.locator("section", has=page.locator("#reading")).locator("code").inner_text()
    seen(admin, "links-board")
    page.get_by_role("button", name="Remove the link", exact=True).click()
    assert link.startswith(f"{stones.base}/board/")
    assert opened.complaints == admin.complaints == []


@pytest.mark.parametrize("query", ["pictures", "texts"])
def test_every_kind_of_item_is_accessible(mixed, enter, look, seen, query):
    opened, _ = judge(mixed, enter, f"{query} in {look}", look)
    _until(opened.page, query)
    seen(opened, f"judge-{query}")


def test_touch_targets_are_large_enough(stones, enter):
    opened, _ = judge(stones, enter, "Thumbs", "phone")
    small = """[...document.querySelectorAll('#answers button, #answers summary')].filter(one =>
        one.offsetParent && (one.offsetHeight < 40 || one.offsetWidth < 40)).map(one => one.textContent)"""
    assert opened.page.evaluate(small) == []


def _until(page, query):
    """Skip questions until a pair of this query comes up."""
    for _ in range(6):
        if page.locator("#context").inner_text().strip() == query:
            return
        page.wait_for_timeout(270)
        page.keyboard.press("s")
        press(page, "1")
    raise AssertionError(f"No pair of {query}.")


def test_images_zoom_and_scroll_together(mixed, enter):
    opened, _ = judge(mixed, enter, "Painter")
    page = opened.page
    _until(page, "pictures")
    assert page.locator("#zoom").is_visible()
    fits = page.evaluate("[...document.querySelectorAll('.shown img')].map(i => [i.clientWidth, i.clientHeight])")
    assert all(wide / high == pytest.approx(1.5, abs=0.02) for wide, high in fits)
    page.keyboard.press("+")
    page.get_by_role("button", name="Zoom in").click()
    assert page.locator("#zoom-level").inner_text() == "200 %"
    page.locator("#left .body").evaluate("body => body.scrollTo(60, 40)")
    page.wait_for_function("() => document.querySelector('#right .body').scrollLeft === 60")
    assert page.locator("#right .body").evaluate("body => body.scrollTop") == 40
    page.get_by_role("button", name="Fit").click()
    assert (
        page.evaluate("[...document.querySelectorAll('.shown img')].map(i => [i.clientWidth, i.clientHeight])") == fits
    )
    assert opened.complaints == []


def test_long_texts_scroll_separately_and_keep_their_arrow_keys(mixed, enter):
    opened, _ = judge(mixed, enter, "Reader")
    page = opened.page
    _until(page, "texts")
    before = len(votes_of(mixed, "Reader"))
    page.wait_for_timeout(270)
    page.locator("#left .body").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.querySelector('#left .body').scrollTop > 0")
    assert page.locator("#right .body").evaluate("body => body.scrollTop") == 0
    assert len(votes_of(mixed, "Reader")) == before
    press(page, "ArrowRight")
    assert len(votes_of(mixed, "Reader")) == before + 1


def test_long_texts_scroll_together_and_show_their_differences_if_wanted(mixed, enter):
    opened, _ = judge(mixed, enter, "Comparing", "phone")
    page = opened.page
    _until(page, "texts")
    left, right = page.locator("#left .body"), page.locator("#right .body")
    assert page.locator(".pair mark").count() == 0
    page.locator("#differences").click()
    assert page.locator(".pair mark").all_inner_texts() == ["And this one ends in another way."]
    page.locator("#together").click()
    right.hover()
    right.evaluate("body => body.scrollTo(0, body.scrollHeight)")
    at_the_end = "b => b.scrollTop > 0 && b.scrollTop + b.clientHeight > b.scrollHeight - 3"
    page.wait_for_function(f"() => ({at_the_end})(document.querySelector('#left .body'))")
    assert opened.violations() == []
    page.reload()  # both choices are remembered
    assert page.locator(".pair mark").count() == 1
    page.locator("#differences").click()
    assert page.locator(".pair mark").count() == 0
    page.locator("#together").click()
    right.evaluate("body => body.scrollTo(0, 40)")
    page.wait_for_timeout(150)
    assert left.evaluate("body => body.scrollTop") == 0
    assert opened.complaints == []


def test_hostile_items_are_shown_as_text(mixed, enter):
    opened, _ = judge(mixed, enter, "Careful")
    page = opened.page
    _until(page, "harm")
    assert "<script>" in page.locator("#pair").inner_text()
    press(page, "ArrowLeft")
    admin = enter(mixed.admin_link)
    for path in ("/", "/admin", "/admin/items", "/admin/audit", f"/admin/annotators/{served_number(mixed, 'Careful')}"):
        admin.page.goto(mixed.base + path)
        assert admin.page.title() != "1"
    assert page.title() != "1"
    assert opened.complaints == admin.complaints == []


@pytest.mark.parametrize(("width", "height"), [(375, 667), (360, 640), (740, 360)])
def test_both_items_are_above_the_buttons_on_the_first_question(stones, browser, width, height):
    (token,) = new_people(stones, f"Small {width}")
    context = browser.new_context(viewport={"width": width, "height": height}, has_touch=True, is_mobile=True)
    page = Opened(context.new_page(), f"{stones.base}/join/{token}").page
    assert page.locator("#instructions").get_attribute("open") is not None
    bar = page.locator("#answers").bounding_box()
    for side in ("left", "right"):
        box = page.locator(f"#{side}").bounding_box()
        assert box["y"] + box["height"] <= bar["y"] + 1
        assert box["height"] >= 60
    assert bar["y"] + bar["height"] <= height + 1
    context.close()


def test_a_click_on_a_card_chooses_it_unless_text_is_selected(stones, enter):
    opened, _ = judge(stones, enter, "Clicker")
    page = opened.page
    page.wait_for_timeout(270)
    box = page.locator("#left .shown p").bounding_box()
    page.mouse.move(box["x"] + 8, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2, steps=4)
    page.mouse.up()
    page.wait_for_timeout(200)
    assert votes_of(stones, "Clicker") == []
    page.evaluate("getSelection().removeAllRanges()")
    then(page, lambda: page.locator("#right .shown").click())
    (vote,) = votes_of(stones, "Clicker")
    assert vote["winner"] == vote["right"]


def test_the_page_says_that_it_is_sending(stones, enter):
    opened, _ = judge(stones, enter, "Slow")
    page = opened.page
    page.route("**/api/v1/votes", lambda route: (page.wait_for_timeout(300), route.continue_()))
    page.wait_for_timeout(270)
    page.keyboard.press("ArrowLeft")
    page.locator("#status", has_text="Sending…").wait_for()
    page.locator("#status", has_text="Saved").wait_for()
