"""What an organiser may set."""

from __future__ import annotations

import json

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
    ],
)
def test_what_means_nothing_is_refused_by_name(given, words):
    with pytest.raises(CrowdrankError, match=words):
        Settings.of(given)


def test_a_file_that_is_no_toml_is_named(tmp_path):
    path = tmp_path / "collection.toml"
    path.write_text("title = ")
    with pytest.raises(SettingError, match=r"collection\.toml is not TOML"):
        read_settings(path)
