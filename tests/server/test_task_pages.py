"""A whole study of each task in Chromium, on a desktop and on a phone; accessible in light, dark and right-to-left."""

from __future__ import annotations

import re

import pytest

from tests.server.browser_helpers import TOKEN, judge, new_people, votes_of

ITEMS = "item,query,markdown,context\n" + "".join(
    f'stone {n},beach,"# Stone\n\nA stone of {n} kg.","# Weights\n\nThey lie on a beach."\n' for n in range(1, 9)
)
CONFIG = """
title = "Stones"
question = "Which stone is heavier?"
instructions = "# How\\n\\nRead **all** of them."
comments = true
[task]
type = "{task}"
{more}
[budget]
per_annotator = 4
[joining]
completion_code = "STONE-7"
"""
STUDIES = {
    "rating": 'scale = ["light", "middling", "heavy"]\ncriteria = ["How round is it?"]',
    "ranking": "size = 4",
    "best-worst": "size = 4",
    "choice": 'size = 3\ncriteria = ["Which one is the roundest?"]',
    "pair": 'criteria = ["Which one is rounder?"]',
}


@pytest.fixture(scope="module", params=list(STUDIES))
def study(request, studies):
    """A study of each task."""
    config = CONFIG.format(task=request.param, more=STUDIES[request.param])
    with studies.create(f"task-{request.param}", ITEMS, config) as made:
        made.task = request.param
        yield made


@pytest.fixture
def enter(enter_again):
    return enter_again


def cards(page, where="#set .item"):
    """The cards with their weights, the heaviest first."""
    found = [(int(re.search(r"(\d+) kg", card.inner_text())[1]), card) for card in page.locator(where).all()]
    return [card for _, card in sorted(found, key=lambda one: -one[0])]


def fill_in(page, task, touch):
    """Answer all questions of a task as someone who knows the weights."""
    press = (lambda target: target.tap()) if touch else (lambda target: target.click())
    heaviest, lightest = cards(page)[0], cards(page)[-1]
    if task == "rating":
        press(page.locator(".grade", has_text="middling").first)
    elif task == "choice":
        press(heaviest.locator(".shown"))
    elif task == "best-worst":
        press(heaviest.locator(".grade").first)
        press(lightest.locator(".grade").last)
    elif task == "pair":
        press(heaviest.locator(".shown"))
    else:
        letters = [card.get_attribute("data-letter") for card in cards(page)]
        for letter in letters:
            press(page.get_by_role("button", name=f"Add {letter}"))
    for field in page.locator(".scale[data-name^=criterion]").all():
        press(field.locator(".grade").first)


def submit(page, deed):
    page.wait_for_timeout(270)
    before = page.locator(TOKEN).first.input_value()
    deed()
    page.wait_for_function(
        f"t => location.pathname === '/finished' || document.querySelector('{TOKEN}')?.value !== t", arg=before
    )


@pytest.mark.parametrize("look", ["light", "phone"])
def test_a_whole_study_of_each_task(study, enter, photograph, look):
    opened, _ = judge(study, enter, f"Ann {look}", look)
    page = opened.page
    assert page.locator("input:checked").count() == 1  # the shortcuts, nothing else
    page.wait_for_load_state("load")
    page.get_by_role("button", name="Submit").click()
    page.get_by_text("Answer every question").wait_for()
    photograph(page, f"{study.task}-{look}", full_page=True)
    while "/judge" in page.url:
        fill_in(page, study.task, touch=look == "phone")
        page.locator("#comment").fill("Sure.")
        assert not opened.scrolls_sideways
        submit(page, lambda: page.get_by_role("button", name="Submit").click())
    assert "STONE-7" in page.locator("main").inner_text()
    rows = votes_of(study, f"Ann {look}")
    assert len({row["seq"] for row in rows}) == 4
    assert {row["comment"] for row in rows} == {"Sure."}
    assert all(row["response_ms"] > 200 for row in rows)
    for row in (row for row in rows if row["criterion"] is None):
        weights = [int(one["item"].split()[1]) for one in rows if one["seq"] == row["seq"] and "rank" in one]
        if study.task == "rating":
            assert row["grade"] == 2
        elif study.task == "pair":
            assert row["winner"] == max(row["left"], row["right"])
        elif int(row["item"].split()[1]) == max(weights):
            assert row["rank"] == 1
        else:
            assert row["rank"] > 1
    assert opened.complaints == []


def test_the_keyboard_is_enough(study, enter):
    opened, _ = judge(study, enter, "Keys")
    page = opened.page
    page.wait_for_timeout(270)
    keys = {"rating": "32", "ranking": "2143", "best-worst": "31", "choice": "21", "pair": "12"}[study.task]
    letters = [card.get_attribute("data-letter") for card in page.locator("#set .item").all()]
    ids = dict(zip(letters, [card.get_attribute("data-id") for card in page.locator("#set .item").all()], strict=True))
    for key in keys:
        page.keyboard.press(key)
    submit(page, lambda: page.keyboard.press("Enter"))
    rows = [row for row in votes_of(study, "Keys") if row["criterion"] is None]
    labels = {str(item["id"]): item["label"] for item in study.ask("GET", "/items")["items"]}
    best = {"rating": "A", "ranking": "B", "best-worst": "C", "choice": "B", "pair": "A"}[study.task]
    top = [row for row in rows if row.get("rank") == 1 or "grade" in row] or rows
    assert top[0].get("item", top[0].get("winner")) == labels[ids[best]]
    # Skip with a reason, undo it, and see the same question again.
    token = page.locator(TOKEN).first.input_value()
    shown = page.locator("#set").inner_text()
    page.wait_for_timeout(270)
    page.keyboard.press("s")
    page.keyboard.press("1")
    page.wait_for_function(f"t => document.querySelector('{TOKEN}')?.value !== t", arg=token)
    page.wait_for_timeout(270)
    page.keyboard.press("u")
    page.get_by_text("Undone").wait_for()
    assert page.locator("#set").inner_text() == shown


def test_tasks_work_without_javascript(study, enter):
    opened, _ = judge(study, enter, "No Scripts", java_script_enabled=False)
    page = opened.page
    if study.task == "ranking":
        for place, card in enumerate(cards(page), 1):
            card.locator("select").select_option(str(place))
    else:
        for name in {"rating": ("answer",), "best-worst": ("best",), "pair": ("outcome",)}.get(study.task, ("answer",)):
            page.locator(f"input[name={name}]").first.check()
        if study.task == "best-worst":
            page.locator("input[name=worst]").last.check()
        for field in page.locator(".scale[data-name^=criterion]").all():
            field.locator("input").first.check()
    page.get_by_role("button", name="Submit").click()
    assert page.locator(".notice").inner_text() == "Saved."
    assert len({row["seq"] for row in votes_of(study, "No Scripts")}) == 1


# Directions and colours do not depend on each other, so two of the four combinations show all of them.
@pytest.mark.parametrize(("look", "language"), [("light", "en"), ("phone dark", "ar")])
def test_pages_of_tasks_are_accessible(study, enter, photograph, look, language):
    study.ask("PATCH", "/settings", json={"language": language})
    try:
        (token,) = new_people(study, f"Seen {look} {language}")
        opened = enter(f"{study.base}/join/{token}", look)
        page = opened.page
        assert page.locator("html").get_attribute("dir") == {"en": "ltr", "ar": "rtl"}[language]
        assert opened.violations() == []
        if study.task == "ranking":
            for n in range(2):
                page.locator("#set .item").nth(n).locator("[data-move=add]").click()
        else:
            page.locator(".grade").first.click()
        photograph(page, f"{study.task}-{look}-{language}", full_page=True)
        assert opened.violations() == []
        assert not opened.scrolls_sideways
    finally:
        study.ask("PATCH", "/settings", json={"language": "en"})


def test_items_are_dragged_with_the_pointer(study, enter):
    if study.task != "ranking":
        pytest.skip("only rankings are dragged")
    opened, _ = judge(study, enter, "Dragger")
    page = opened.page
    for letter in "ABCD":
        page.get_by_role("button", name=f"Add {letter}").click()
    order = lambda: [card.get_attribute("data-letter") for card in page.locator("#order .item").all()]  # noqa: E731
    assert order() == ["A", "B", "C", "D"]
    page.get_by_role("button", name="Drag D").hover()
    page.mouse.down()
    box = page.locator("#order .item").first.bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + box["height"] + 20, steps=4)
    page.mouse.move(box["x"] + 5, box["y"] + 2, steps=4)
    page.mouse.up()
    assert order() == ["D", "A", "B", "C"]
    page.get_by_role("button", name="Drag D").press("ArrowDown")
    assert order() == ["A", "D", "B", "C"]
    page.get_by_role("button", name="Move C up").click()
    page.get_by_role("button", name="Remove B").click()
    assert order() == ["A", "D", "C"]
