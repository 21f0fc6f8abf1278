"""Every page on every kind of screen: open to everyone, and what is shown on it stays what it is."""

from __future__ import annotations

import struct
import zlib

import pytest

from tests.server.browsing import honest, judge, new_people, play, press, served_number, votes_of
from tests.serving import serving

HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=1</script>'


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Pictures of one query, long texts of another, and items that mean harm."""
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "media").mkdir()
    for n in range(2):
        (folder / "media" / f"{n}.png").write_bytes(_picture(600, 400, 90 * n))
    long = "A sentence that goes on for a while. " * 120
    rows = [
        ("picture 0", "0.png", "pictures"), ("picture 1", "1.png", "pictures"), ("text 0", long, "texts"),
        ("text 1", long, "texts"), (HOSTILE, HOSTILE.replace('"', "'"), "harm"),
        ("javascript:alert(1)", HOSTILE, "harm"),
    ]  # fmt: skip
    table = "item,body,query\n" + "".join(",".join(_quoted(cell) for cell in row) + "\n" for row in rows)
    with serving(folder, table, options=["--media", "media"]) as served:
        yield served


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


PAGES = ("/", "/join", "/admin", "/admin/annotators", "/admin/items", "/admin/links", "/admin/settings", "/admin/audit")


@pytest.mark.parametrize("look", ["light", "phone dark"])
def test_every_page_is_sound_and_open_to_everyone(stones, enter, look, pictures):
    (token,) = new_people(stones, f"Someone in {look}")
    play(stones, token, honest, 5)
    opened = enter(stones.admin_link, look)
    page = opened.page
    number = served_number(stones, f"Someone in {look}")
    for path in (*PAGES, f"/admin/annotators/{number}"):
        page.goto(stones.base + path)
        page.evaluate("document.querySelectorAll('main details').forEach(fold => fold.open = true)")
        page.screenshot(path=pictures / f"{path.strip('/').replace('/', '-') or 'board'}-{look}.png", full_page=True)
        assert opened.violations() == [], path
        assert not opened.scrolls_sideways, path
    assert opened.complaints == []
    judging, _ = judge(stones, enter, f"Judge in {look}", look)
    press(judging.page, "ArrowLeft")
    for state in ("plain", "skipping"):
        judging.page.screenshot(path=pictures / f"judge-{state}-{look}.png")
        assert judging.violations() == [], state
        assert not judging.scrolls_sideways
        judging.page.locator("#skip summary").click()
    assert judging.complaints == []
    assert {request.split("/")[2] for request in opened.requests + judging.requests} == {stones.base.split("/")[2]}


def test_what_is_touched_is_large_enough_for_a_thumb(stones, enter):
    opened, _ = judge(stones, enter, "Thumbs", "phone")
    small = """[...document.querySelectorAll('#answers button, #answers summary')].filter(one =>
        one.offsetParent && (one.offsetHeight < 40 || one.offsetWidth < 40)).map(one => one.textContent)"""
    assert opened.page.evaluate(small) == []


def _until(page, query):
    """Skip on to a pair of this query."""
    for _ in range(6):
        if page.locator("#context").inner_text().strip() == query:
            return
        page.wait_for_timeout(270)
        page.keyboard.press("s")
        press(page, "1")
    raise AssertionError(f"No pair of {query}.")


def test_pictures_zoom_and_move_together(mixed, enter):
    opened, _ = judge(mixed, enter, "Painter")
    page = opened.page
    _until(page, "pictures")
    assert page.locator("#zoom").is_visible()
    fits = page.evaluate("[...document.querySelectorAll('.shown img')].map(i => [i.clientWidth, i.clientHeight])")
    assert all(wide / high == pytest.approx(1.5, abs=0.02) for wide, high in fits)
    page.keyboard.press("+")
    page.get_by_role("button", name="Larger").click()
    assert page.locator("#zoom-is").inner_text() == "200 %"
    page.locator("#left .body").evaluate("body => body.scrollTo(60, 40)")
    page.wait_for_function("() => document.querySelector('#right .body').scrollLeft === 60")
    assert page.locator("#right .body").evaluate("body => body.scrollTop") == 40
    page.get_by_role("button", name="Fit").click()
    assert (
        page.evaluate("[...document.querySelectorAll('.shown img')].map(i => [i.clientWidth, i.clientHeight])") == fits
    )
    assert opened.complaints == []


def test_long_texts_scroll_by_themselves_and_keep_their_arrows(mixed, enter):
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


def test_items_that_mean_harm_are_only_read(mixed, enter):
    opened, _ = judge(mixed, enter, "Careful")
    page = opened.page
    _until(page, "harm")
    assert "<script>" in page.locator("#pair").inner_text()
    press(page, "ArrowLeft")
    organiser = enter(mixed.admin_link)
    for path in ("/", "/admin", "/admin/items", "/admin/audit", f"/admin/annotators/{served_number(mixed, 'Careful')}"):
        organiser.page.goto(mixed.base + path)
        assert organiser.page.title() != "1"
    assert page.title() != "1"
    assert opened.complaints == organiser.complaints == []
