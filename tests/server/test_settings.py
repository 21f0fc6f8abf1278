"""Settings from files, pages and the API."""

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

[questions]
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


def test_a_file_overrides_only_what_it_sets(tmp_path):
    path = tmp_path / "collection.toml"
    path.write_text(WHOLE)
    found = read_settings(path)
    assert found.gold == (("sun", "moon"),)
    assert found.questions.random_share == 0.3
    assert found.budget.money == 20.0
    assert found.joining.panel_parameters == ("PID",)
    assert found.webhooks[0].events == ("vote", "milestone")
    assert found.ties


def test_settings_survive_a_json_round_trip(tmp_path):
    path = tmp_path / "collection.toml"
    path.write_text(WHOLE)
    found = read_settings(path)
    assert Settings.from_dict(json.loads(json.dumps(found.as_dict()))) == found


def test_a_change_affects_only_its_keys():
    changed = Settings(title="A").with_changes({"questions": {"min_appearances": 5}})
    assert (changed.title, changed.questions.min_appearances, changed.questions.random_share) == ("A", 5, 0.2)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"titel": "x"}, "titel is not a setting"),
        ({"questions": {"polcy": "gain"}}, "questions.polcy is not a setting"),
        ({"questions": {"policy": "gian"}}, "gain"),
        ({"questions": {"random_share": 1.5}}, "questions.random_share must be between 0 and 1"),
        ({"questions": {"random_share": "half"}}, "questions.random_share must be float"),
        ({"questions": 3}, "questions must be a table"),
        ({"questions": {"repeat_share": 0.4, "gold_share": 0.4}}, "more than half"),
        ({"ties": "yes"}, "ties must be bool"),
        ({"gold": "a,b"}, "gold must be a list"),
        ({"gold": [["a"]]}, r"gold\[0\] must have 2 values"),
        ({"budget": {"votes": True}}, "budget.votes must be int"),
        ({"budget": {"votes": -1}}, "budget.votes must be between"),
        ({"budget": {"decision": "best of all"}}, "best of all"),
        ({"skip_reasons": []}, "skip_reasons"),
        ({"webhooks": [{"url": "ftp://x", "secret": "s"}]}, "is not a URL"),
        ({"webhooks": [{"url": "https://x"}]}, r"webhooks\[0\].*secret"),
        ({"webhooks": [{"url": "https://x", "secret": ""}]}, "needs a secret"),
        ({"webhooks": [{"url": "https://x", "secret": "s", "events": ["votes"]}]}, "vote or milestone, got votes"),
        ({"webhooks": [{"url": "https://x", "secret": "s", "events": []}]}, "got nothing"),
    ],
)
def test_invalid_settings_are_refused_by_name(given, words):
    with pytest.raises(CrowdrankError, match=words):
        Settings.from_dict(given)


LIMITS = {"votes": 50, "per_annotator": 5, "money": 20.0, "decision": "top 3"}


@pytest.fixture
def admin(start):
    """The settings page with limits set: `admin.send(name=text)` submits it."""
    played = start(settings={"budget": LIMITS, "joining": {"completion_code": "C", "completion_url": "https://x"}})
    browser = played.enter(played.secret, "admin")
    csrf = re.search(r'name="csrf" value="([^"]+)"', browser.get("/admin/settings").text)[1]

    def send(**fields):
        data = {name.replace("__", "."): text for name, text in fields.items()}
        return browser.post("/admin/settings", data={**data, "csrf": csrf}, follow_redirects=False)

    return SimpleNamespace(played=played, send=send, of=lambda: played.service.projection.catch_up().settings)


@pytest.mark.parametrize("name", ["votes", "per_annotator", "money", "decision"])
def test_an_empty_field_removes_a_limit(admin, name):
    assert admin.send(**{f"budget__{name}": " "}).status_code == 303
    assert asdict(admin.of().budget) == {**asdict(Settings().budget), **LIMITS, name: None}
    assert admin.send(**{f"budget__{name}": str(LIMITS[name])}).status_code == 303
    assert asdict(admin.of().budget) == {**asdict(Settings().budget), **LIMITS}


@pytest.mark.parametrize("name", ["votes", "per_annotator", "money", "decision"])
def test_null_removes_a_limit(admin, name):
    played = admin.played
    answer = played.client.patch("/api/v1/settings", json={"budget": {name: None}}, headers=played.admin)
    assert answer.status_code == 200, answer.text
    assert answer.json()["budget"][name] is None
    assert asdict(admin.of().budget) == {**asdict(Settings().budget), **LIMITS, name: None}


def test_removing_a_limit_resumes_asking(start):
    played = start(settings={"budget": {"per_annotator": 1}})
    (ann,) = played.join("ann")
    assert played.play(ann, ["left"])["reason"] == "quota"
    played.client.patch("/api/v1/settings", json={"budget": {"per_annotator": None}}, headers=played.admin)
    assert "assignment" in played.question(ann)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"questions__min_appearances": ""}, "questions.min_appearances must be a whole number"),
        ({"questions__random_share": ""}, "questions.random_share must be a number"),
        ({"budget__votes": "many"}, "budget.votes must be a whole number"),
        ({"budget__confidence": "nan"}, "budget.confidence must be between"),
        ({"title": "A", "title__b": "x"}, "title.b is not a setting"),
        ({"questions__policy": ""}, "policy"),
    ],
)
def test_invalid_fields_are_reported_and_change_nothing(admin, fields, words):
    before = admin.of()
    answer = admin.send(**fields)
    assert answer.status_code == 422
    assert words in answer.text
    assert "Nothing was changed." in answer.text
    assert admin.of() == before


def test_a_numeric_completion_code_stays_text(admin):
    admin.send(joining__completion_code="007", joining__completion_url="")
    assert (admin.of().joining.completion_code, admin.of().joining.completion_url) == ("007", None)


def test_a_file_with_invalid_toml_is_named(tmp_path):
    path = tmp_path / "collection.toml"
    path.write_text("title = ")
    with pytest.raises(SettingError, match=r"collection\.toml is not valid TOML"):
        read_settings(path)
