"""What an organiser may set."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from crowdrank.errors import CrowdrankError, SettingError
from crowdrank.server.settings import Settings, read_settings

WHOLE = """
title = "Posters"
question = "Which poster is clearer?"
gold = [["sun", "moon"]]
skip_reasons = ["Cannot tell"]

[asking]
policy = "adaptive"
random_share = 0.3

[budget]
votes = 500
money = 20
decision = "top 3"

[joining]
open = false
panel_parameters = ["PID"]

[[webhooks]]
url = "https://example.org/hook"
secret = "s"
"""


def test_a_file_sets_what_it_names_and_leaves_the_rest(tmp_path):
    path = tmp_path / "collection.toml"
    path.write_text(WHOLE)
    found = read_settings(path)
    assert found.gold == (("sun", "moon"),)
    assert found.asking.random_share == 0.3
    assert found.budget.money == 20.0
    assert found.joining.panel_parameters == ("PID",)
    assert found.webhooks[0].events == ("vote", "milestone")
    assert found.ties


def test_settings_come_back_from_json_as_they_were(tmp_path):
    path = tmp_path / "collection.toml"
    path.write_text(WHOLE)
    found = read_settings(path)
    assert Settings.of(json.loads(json.dumps(found.as_dict()))) == found


def test_a_change_touches_only_what_it_names():
    changed = Settings(title="A").changed({"asking": {"floor": 5}})
    assert (changed.title, changed.asking.floor, changed.asking.random_share) == ("A", 5, 0.2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"titel": "x"}, "titel is not a setting"),
        ({"asking": {"polcy": "gain"}}, "asking.polcy is not a setting"),
        ({"asking": {"policy": "gian"}}, "gain"),
        ({"asking": {"random_share": 1.5}}, "asking.random_share must lie between 0 and 1"),
        ({"asking": {"random_share": "half"}}, "asking.random_share must be float"),
        ({"asking": 3}, "asking must be a table"),
        ({"asking": {"repeat_share": 0.4, "gold_share": 0.4}}, "more than half"),
        ({"ties": "yes"}, "ties must be bool"),
        ({"gold": "a,b"}, "gold must be a list"),
        ({"gold": [["a"]]}, r"gold\[0\] must hold 2 values"),
        ({"budget": {"votes": True}}, "budget.votes must be int"),
        ({"budget": {"votes": -1}}, "budget.votes must lie between"),
        ({"budget": {"decision": "best of all"}}, "best of all"),
        ({"skip_reasons": []}, "skip_reasons"),
        ({"webhooks": [{"url": "ftp://x", "secret": "s"}]}, "not a web address"),
        ({"webhooks": [{"url": "https://x"}]}, r"webhooks\[0\].*secret"),
        ({"webhooks": [{"url": "https://x", "secret": ""}]}, "needs a secret"),
        ({"webhooks": [{"url": "https://x", "secret": "s", "events": ["votes"]}]}, "vote and milestone, got votes"),
        ({"webhooks": [{"url": "https://x", "secret": "s", "events": []}]}, "got nothing"),
    ],
)
def test_what_means_nothing_is_refused_by_name(given, words):
    with pytest.raises(CrowdrankError, match=words):
        Settings.of(given)


LIMITS = {"votes": 50, "per_annotator": 5, "money": 20.0, "decision": "top 3"}


@pytest.fixture
def organiser(start):
    """A page of settings, with limits set: `organiser.send(name=text)` fills it in."""
    played = start(settings={"budget": LIMITS, "joining": {"completion_code": "C", "completion_url": "https://x"}})
    browser = played.enter(played.secret, "admin")
    csrf = re.search(r'name="csrf" value="([^"]+)"', browser.get("/admin/settings").text)[1]

    def send(**fields):
        data = {name.replace("__", "."): text for name, text in fields.items()}
        return browser.post("/admin/settings", data={**data, "csrf": csrf}, follow_redirects=False)

    return SimpleNamespace(played=played, send=send, of=lambda: played.service.live.catch_up().settings)


@pytest.mark.parametrize("name", ["votes", "per_annotator", "money", "decision"])
def test_a_limit_that_is_emptied_on_the_page_is_none(organiser, name):
    assert organiser.send(**{f"budget__{name}": " "}).status_code == 303
    assert asdict(organiser.of().budget) == {**asdict(Settings().budget), **LIMITS, name: None}
    assert organiser.send(**{f"budget__{name}": str(LIMITS[name])}).status_code == 303
    assert asdict(organiser.of().budget) == {**asdict(Settings().budget), **LIMITS}


@pytest.mark.parametrize("name", ["votes", "per_annotator", "money", "decision"])
def test_a_limit_that_is_null_by_the_api_is_none(organiser, name):
    played = organiser.played
    answer = played.client.patch("/api/v1/settings", json={"budget": {name: None}}, headers=played.admin)
    assert answer.status_code == 200, answer.text
    assert answer.json()["budget"][name] is None
    assert asdict(organiser.of().budget) == {**asdict(Settings().budget), **LIMITS, name: None}


def test_what_was_closed_by_a_limit_goes_on_without_it(start):
    played = start(settings={"budget": {"per_annotator": 1}})
    (ann,) = played.join("ann")
    assert played.play(ann, ["left"])["reason"] == "quota"
    played.client.patch("/api/v1/settings", json={"budget": {"per_annotator": None}}, headers=played.admin)
    assert "assignment" in played.question(ann)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"asking__floor": ""}, "asking.floor must be a whole number"),
        ({"asking__random_share": ""}, "asking.random_share must be a number"),
        ({"budget__votes": "many"}, "budget.votes must be a whole number"),
        ({"budget__level": "nan"}, "budget.level must lie between"),
        ({"title": "A", "title__b": "x"}, "title.b is not a setting"),
        ({"asking__policy": ""}, "policy"),
    ],
)
def test_what_a_page_cannot_save_it_says_and_changes_nothing(organiser, fields, words):
    before = organiser.of()
    answer = organiser.send(**fields)
    assert answer.status_code == 422
    assert words in answer.text
    assert "Nothing was changed." in answer.text
    assert organiser.of() == before


def test_completion_is_text_even_where_it_looks_like_a_number(organiser):
    organiser.send(joining__completion_code="007", joining__completion_url="")
    assert (organiser.of().joining.completion_code, organiser.of().joining.completion_url) == ("007", None)


def test_a_file_that_is_no_toml_is_named(tmp_path):
    path = tmp_path / "collection.toml"
    path.write_text("title = ")
    with pytest.raises(SettingError, match=r"collection\.toml is not TOML"):
        read_settings(path)
