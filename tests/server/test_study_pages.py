"""The pages of accounts, privacy, practice and return in Chromium: usable, accessible in light, dark, right to left."""

from __future__ import annotations

import base64
import time

import pytest

from crowdrank.server.sign_in import totp_code
from tests.server.browser_helpers import link_of, new_people
from tests.serving import serving

ITEMS = "item,html\n" + "".join(f"stone {n},<p style='color:navy'>A stone of {n} kg.</p>\n" for n in range(1, 7))
CONFIG = """
title = "Stones"
question = "Which stone is heavier?"
instructions = "# How\\n\\nRead **both**."
consent = "# Privacy\\n\\nYour answers are stored without your name."
{more}
[budget]
per_annotator = 4
[practice]
min_correct = 1
questions = [{{items = ["stone 1", "stone 6"], answer = "stone 6", feedback = "# Why\\n\\nSix is **more** than one."}}]
"""
PASSWORD = "correct horse battery"


@pytest.fixture(scope="module", params=["en", "ar"])
def study(request, tmp_path_factory):
    config = CONFIG.format(more=f'language = "{request.param}"')
    with serving(tmp_path_factory.mktemp("study"), ITEMS, config) as served:
        served.language = request.param
        yield served


def check(opened):
    assert opened.violations() == []
    assert not opened.scrolls_sideways


@pytest.mark.parametrize("look", ["light", "phone", "phone dark"])
def test_an_annotator_agrees_practises_and_comes_back(study, enter, photograph, look):
    (token,) = new_people(study, f"Ann {look}")
    opened = enter(link_of(study, token), look)
    page = opened.page
    assert page.url.endswith("/consent")
    check(opened)
    page.locator('input[name="agree"]').check()
    page.locator("main button.primary").click()
    page.wait_for_url("**/practice")
    frames = [page.frame_locator("iframe").nth(n).locator("p").inner_text() for n in range(2)]
    assert frames == ["A stone of 1 kg.", "A stone of 6 kg."]
    check(opened)
    photograph(page, f"practice-{study.language}-{look}", full_page=True)
    page.locator('input[value="stone 1"]').check()
    page.locator("main button.primary").click()
    page.get_by_text("Six is").wait_for()
    check(opened)
    photograph(page, f"feedback-{study.language}-{look}", full_page=True)
    page.locator("main a.primary").click()
    page.locator("main button.primary").click()  # too few were right: practise again
    page.locator('input[value="stone 6"]').check()
    page.locator("main button.primary").click()
    page.locator("main a.primary").click()
    page.wait_for_url("**/judge")
    page.frame_locator("#left iframe").locator("p").wait_for()
    check(opened)
    photograph(page, f"html-{study.language}-{look}")
    page.locator("#not-you").click()
    page.wait_for_url("**/join")
    assert f"Ann {look}" in page.locator("h1").inner_text()
    check(opened)
    photograph(page, f"return-{study.language}-{look}", full_page=True)
    page.locator("main button").click()
    page.locator('input[name="name"]').wait_for()
    check(opened)
    photograph(page, f"join-{study.language}-{look}", full_page=True)
    assert [said for said in opened.complaints if "sandbox" not in said] == []


@pytest.mark.parametrize("look", ["light", "phone dark"])
def test_an_annotator_waits_and_finishes(study, enter, photograph, look):
    (token,) = new_people(study, f"Ben {look}")
    opened = enter(link_of(study, token), look)
    page = opened.page
    page.locator('input[name="agree"]').check()
    page.locator("main button.primary").click()
    page.locator('input[value="stone 6"]').check()
    page.locator("main button.primary").click()
    page.locator("main a.primary").click()
    page.wait_for_url("**/judge")
    for state in ("paused", "closed"):
        study.ask("POST", "/state", json={"state": state})
        page.goto(f"{study.base}/judge")
        check(opened)
        photograph(page, f"{state}-{study.language}-{look}", full_page=True)
        stranger = enter(f"{study.base}/join", look)
        check(stranger)
        study.ask("POST", "/state", json={"state": "open"})
    for _ in range(4):
        asked = study.ask("GET", "/question", token)["assignment"]
        study.ask("POST", "/votes", token, json={"token": asked["token"], "outcome": "left"})
    page.goto(f"{study.base}/judge")
    page.wait_for_url("**/finished")
    check(opened)
    photograph(page, f"finished-{study.language}-{look}", full_page=True)
    stranger = enter(f"{study.base}/judge", look)
    assert stranger.page.locator("h1").inner_text() == "Please sign in"
    check(stranger)


def test_organisers_have_accounts(study, enter, photograph):
    if study.language != "en":
        pytest.skip("the pages of organisers are in English")
    owner = enter(study.admin_link)
    page = owner.page
    page.goto(f"{study.base}/admin/accounts")
    page.locator("#name").fill("Ann@example.org")
    page.locator("#role").select_option("owner")
    page.get_by_role("button", name="Add", exact=True).click()
    link = page.locator("code.code").first.inner_text()
    check(owner)
    photograph(page, "accounts", full_page=True)
    invited = enter(link, "phone")
    check(invited)
    photograph(invited.page, "invitation-phone", full_page=True)
    for name in ("password", "again"):
        invited.page.locator(f"#{name}").fill(PASSWORD)
    invited.page.locator("main button").click()
    invited.page.wait_for_url("**/admin/account")
    check(invited)
    photograph(invited.page, "account-phone", full_page=True)
    invited.page.get_by_role("button", name="Set up one-time codes").click()
    secret = base64.b32decode(invited.page.locator("code.code").inner_text())
    check(invited)
    photograph(invited.page, "codes-phone", full_page=True)
    invited.page.locator("#code").fill(totp_code(secret, int(time.time() // 30)))
    invited.page.get_by_role("button", name="Use one-time codes").click()
    invited.page.get_by_text("You need a code").wait_for()
    for look in ("light", "phone dark"):
        stranger = enter(f"{study.base}/admin/items", look)
        stranger.page.get_by_role("link", name="Sign in").click()
        stranger.page.locator("#name").fill("ann@example.org")
        stranger.page.locator("#password").fill(PASSWORD)
        stranger.page.get_by_role("button", name="Sign in").click()
        stranger.page.get_by_text("The name, the password or the code is wrong.").wait_for()
        check(stranger)
        photograph(stranger.page, f"sign-in-{look}", full_page=True)
    assert all("401" in said for said in stranger.complaints)


@pytest.mark.parametrize("look", ["light", "phone", "phone dark"])
def test_the_pages_of_organisers_are_accessible(study, enter, photograph, look):
    if study.language != "en":
        pytest.skip("the pages of organisers are in English")
    opened = enter(study.admin_link, look)
    for name in ("privacy", "accounts", "account", "audit", "items", "settings"):
        opened.page.goto(f"{study.base}/admin/{name}")
        check(opened)
        photograph(opened.page, f"{name}-{look}", full_page=True)
    opened.page.goto(f"{study.base}/admin")
    opened.page.get_by_role("button", name="Preview as annotator").click()
    opened.page.wait_for_url("**/consent")
