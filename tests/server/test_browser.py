"""A whole study in Chromium, and failures that must not lose an answer."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crowdrank.cli import app
from tests.browser import Opened
from tests.server.browser_helpers import (
    TOKEN,
    contrary,
    honest,
    honest_key,
    judge,
    new_people,
    outcomes_of,
    play,
    press,
    then,
    votes_of,
    weights,
)


def crowdrank(*words):
    """Run a command and return what it prints."""
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_whole_study(stones, enter, photograph, monkeypatch):
    # The admin opens the printed link and creates links for two people.
    admin = enter(stones.admin_link)
    assert admin.page.url == f"{stones.base}/admin"
    admin.page.get_by_role("link", name="Links", exact=True).click()
    admin.page.get_by_label("Names, one per line").fill("Ada\nBen")
    admin.page.get_by_role("button", name="Create links", exact=True).click()
    links = dict(zip(("Ada", "Ben"), admin.page.locator(".card.link code").all_inner_texts(), strict=True))
    assert admin.page.locator(".card.link .qr svg").count() == 2
    board = enter(f"{stones.base}/")
    assert "No votes yet" in board.page.locator("#board").inner_text()

    # Ada uses the keyboard: she chooses, answers with a tie, skips with a reason, and undoes that.
    ada = enter(links["Ada"]).page
    assert ada.url == f"{stones.base}/judge"
    assert ada.locator("#progress-text").inner_text() == "0 of 14"
    assert ada.locator("[aria-pressed=true], .chosen").count() == 0
    for _ in range(3):
        press(ada, honest_key(ada))
    assert ada.locator("#status").inner_text().startswith("Saved")
    assert ada.evaluate("document.activeElement.id") == "question"
    press(ada, "ArrowDown")
    ada.keyboard.press("s")
    assert ada.evaluate("document.activeElement.value") == "I cannot decide"
    pair = weights(ada)
    press(ada, "2")
    assert "min left" in ada.locator("#progress-text").inner_text()
    press(ada, "u")
    assert weights(ada) == pair
    press(ada, honest_key(ada))

    # Ben uses a phone and taps until he is finished.
    ben = enter(links["Ben"], "phone").page
    photograph(ben, "judge-phone")
    while "/judge" in ben.url:
        left, right = weights(ben)
        then(
            ben,
            lambda left=left, right=right: ben.get_by_role(
                "button", name=f"Choose {'A' if left > right else 'B'}"
            ).tap(),
        )
    assert "STONE-7" in ben.locator("main").inner_text()

    # Cleo joins with the public link, loses the connection, and returns.
    cleo = enter(f"{stones.base}/join").page
    cleo.get_by_label("Your name").fill("Cleo")
    cleo.get_by_role("button", name="Start").click()
    cleo.wait_for_url("**/judge")
    cleo.wait_for_load_state()
    press(cleo, honest_key(cleo))
    cleo.context.set_offline(True)
    cleo.wait_for_timeout(300)
    before, key = cleo.locator(TOKEN).first.input_value(), honest_key(cleo)
    cleo.keyboard.press(key)
    cleo.get_by_text("No connection: your answer is kept").wait_for()
    assert cleo.locator(TOKEN).first.input_value() == before
    cleo.context.set_offline(False)
    cleo.wait_for_function(f"t => document.querySelector('{TOKEN}').value !== t", arg=before)
    assert cleo.locator("#status").inner_text().startswith("Saved")
    assert outcomes_of(stones, "Cleo")[1] == key.removeprefix("Arrow").lower()

    # The rest of Ada's questions, more annotators, and a reversed one, through the API.
    play(stones, links["Ada"].rsplit("/", 1)[1], honest, 20)
    dora, emil, rex = new_people(stones, "Dora", "Emil", "Rex")
    for token, answer in ((dora, honest), (emil, honest), (rex, contrary)):
        assert play(stones, token, answer, 20) == 14

    # The board updates automatically.
    board.page.wait_for_function("() => document.querySelector('#board dd').innerText === '72'", timeout=180_000)
    photograph(board.page, "board", full_page=True)
    assert board.complaints == []

    # Rex is flagged; without him the board is as good or better, and he can be included again.
    page = admin.page
    page.goto(f"{stones.base}/admin/annotators")
    row = page.get_by_role("row").filter(has_text="Rex")
    assert row.locator(".badge").inner_text() == "reversed"
    assert "reliable" in page.get_by_role("row").filter(has_text="Ben").inner_text()
    photograph(page, "annotators", full_page=True)
    row.get_by_role("button", name="Exclude").click()
    assert "Their votes no longer count" in page.locator("[role=status]").inner_text()
    page.get_by_role("row").filter(has_text="Rex").get_by_role("button", name="Include").click()
    assert admin.complaints == []

    # Ranking the exported votes reproduces the board.
    monkeypatch.chdir(stones.database.parent)
    said = crowdrank("export", stones.database.name, "--out", "votes.parquet")
    shown = stones.settled_board()
    command = said.partition("Rank them like the leaderboard:  crowdrank ")[2].split()
    assert command == ["rank", "votes.parquet", "--model", shown["model"]]
    crowdrank(*command, "--out", "ranked.jsonl")
    ranked = [json.loads(line) for line in Path("ranked.jsonl").read_text().splitlines()]
    assert [one["item"] for one in ranked] == [one["item"] for one in shown["items"]]
    assert [one["score"] for one in ranked] == pytest.approx([one["score"] for one in shown["items"]], abs=1e-5)
    assert shown["items"][0]["item"] == "stone 8"


def test_a_vote_whose_response_was_lost_counts_once(stones, enter):
    opened, _ = judge(stones, enter, "Lost Receipt")
    page, sent = opened.page, []

    def lose(route):
        sent.append(route.request.post_data_json)
        answer = route.fetch()
        route.abort() if len(sent) == 1 else route.fulfill(response=answer)

    page.route("**/api/v1/votes", lose)
    press(page, "ArrowLeft")
    assert len(sent) == 2
    assert sent[0] == sent[1]
    assert len(votes_of(stones, "Lost Receipt")) == 1


def test_an_unsent_vote_survives_closing_the_page(stones, enter):
    opened, _ = judge(stones, enter, "Closed Page")
    page = opened.page
    page.route("**/api/v1/votes", lambda route: route.abort())
    page.wait_for_timeout(270)
    page.keyboard.press("ArrowRight")
    page.get_by_text("No connection").wait_for()
    page.close()
    again = Opened(page.context.new_page(), f"{stones.base}/judge").page
    again.get_by_text("1 of 14").wait_for()
    assert outcomes_of(stones, "Closed Page") == ["right"]
    assert again.evaluate("localStorage.length") == 0


def test_the_second_of_two_tabs_gets_a_message_and_continues(stones, enter):
    opened, _ = judge(stones, enter, "Two Tabs")
    first, second = opened.page, Opened(opened.page.context.new_page(), f"{stones.base}/judge").page
    press(first, "ArrowLeft")
    press(second, "ArrowRight")
    second.get_by_text("already answered").wait_for()
    assert second.locator(TOKEN).first.input_value() == first.locator(TOKEN).first.input_value()
    assert len(votes_of(stones, "Two Tabs")) == 1


def test_shortcuts_can_be_switched_off_and_key_repeats_are_ignored(stones, enter):
    opened, _ = judge(stones, enter, "Switched Off")
    page = opened.page
    page.wait_for_timeout(270)
    page.evaluate("""() => { for (const repeat of [true, true])
        document.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft', repeat, bubbles: true})); }""")
    page.locator("#keys summary").click()
    page.get_by_label("Use keyboard shortcuts").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("s")
    page.wait_for_timeout(300)
    assert not page.locator("#skip").evaluate("menu => menu.open")
    assert votes_of(stones, "Switched Off") == []
    page.reload()
    assert not page.get_by_label("Use keyboard shortcuts").is_checked()
    then(page, lambda: page.get_by_role("button", name="Tie").press("Enter"))
    assert outcomes_of(stones, "Switched Off") == ["tie"]


def test_judging_works_without_javascript(stones, enter):
    opened, _ = judge(stones, enter, "No Scripts", java_script_enabled=False)
    page = opened.page
    page.get_by_role("button", name="Choose A").click()
    assert page.locator(".notice").inner_text() == "Saved."
    page.locator("#skip summary").click()
    page.get_by_role("button", name="I do not know these items").click()
    page.get_by_role("button", name="Undo").click()
    assert page.locator("#progress-text").inner_text() == "1 of 14"
    page.get_by_role("button", name="Tie").click()
    assert outcomes_of(stones, "No Scripts") == ["left", "tie"]


def test_a_pause_is_shown_and_ends_automatically(stones, enter):
    opened, _ = judge(stones, enter, "Paused")
    page = opened.page
    page.clock.install()
    page.reload()
    stones.ask("POST", "/state", json={"state": "paused"})
    try:
        page.wait_for_timeout(270)
        page.keyboard.press("ArrowLeft")
        page.get_by_role("heading", name="Paused", exact=True).wait_for()
        assert not page.locator("#pair").is_visible()
    finally:
        stones.ask("POST", "/state", json={"state": "open"})
    page.clock.fast_forward(11_000)
    page.locator("#status", has_text="Saved").wait_for()  # the answer was kept, and is sent when the study resumes
    assert page.locator("#pair").is_visible()
    assert len(votes_of(stones, "Paused")) == 1


def test_no_token_is_stored_in_the_database(stones):
    with closing(sqlite3.connect(stones.database)) as database:
        assert stones.secret not in "\n".join(database.iterdump())
