"""Tests for vote stuffing: what is stuffed is found, honest collections raise hardly any alarm."""

from __future__ import annotations

import json

import numpy as np
import pytest

from crowdrank import Comparisons
from crowdrank.errors import SettingError
from crowdrank.evaluation import find_stuffing

NAMES = np.array([f"m{n:02}" for n in range(12)])


def honest(seed: int, votes: int = 361, annotators: int = 19) -> dict[str, np.ndarray]:
    """Votes by annotators of different skill and taste, at random times."""
    rng = np.random.default_rng(seed)
    quality, taste = rng.normal(size=12), rng.normal(scale=0.4, size=(annotators, 12))
    skill = rng.choice((0.0, 0.5, 1.0, 2.0, -1.0), p=(0.1, 0.2, 0.4, 0.25, 0.05), size=annotators)
    who, left = rng.integers(annotators, size=votes), rng.integers(12, size=votes)
    right = (left + rng.integers(1, 12, size=votes)) % 12
    margin = skill[who] * (quality[left] - quality[right]) + taste[who, left] - taste[who, right]
    winner = np.where(rng.random(votes) < 1 / (1 + np.exp(-margin)), NAMES[left], NAMES[right])
    who = np.array([f"u{n}" for n in who])
    return {"left": NAMES[left], "right": NAMES[right], "winner": winner, "annotator": who, "time": rng.random(votes)}


def with_campaign(votes: dict[str, np.ndarray], seed: int, item: int = 4) -> Comparisons:
    """15 fresh names with 30 votes each, all for one item."""
    rng = np.random.default_rng(seed)
    other, on_left = (item + rng.integers(1, 12, size=450)) % 12, rng.random(450) < 0.5
    stuffed = {
        "left": np.where(on_left, NAMES[item], NAMES[other]),
        "right": np.where(on_left, NAMES[other], NAMES[item]),
        "winner": np.repeat(NAMES[item], 450),
        "annotator": np.repeat([f"fresh{n}" for n in range(15)], 30),
        "time": rng.random(450),
    }
    return Comparisons.of(**{name: np.append(votes[name], stuffed[name]) for name in votes})


@pytest.mark.parametrize("seed", range(5))
def test_a_campaign_of_fresh_names_is_found(seed):
    found = find_stuffing(with_campaign(honest(seed), seed))
    campaigns = [alarm for alarm in found.alarms if alarm.kind == "campaign"]
    assert [alarm.item for alarm in campaigns] == ["m04"]
    assert campaigns[0].annotators == tuple(sorted(f"fresh{n}" for n in range(15)))
    np.testing.assert_array_equal(campaigns[0].votes, 361 + np.arange(450))
    assert "voted for m04" in campaigns[0].reason
    assert "newcomers" not in {alarm.kind for alarm in found.alarms}, "the campaign explains them"


def test_honest_collections_raise_hardly_any_alarm():
    assert sum(bool(find_stuffing(Comparisons.of(**honest(100 + seed)))) for seed in range(20)) <= 1


def test_honest_annotators_who_were_given_one_item_raise_no_alarm():
    votes = honest(3)
    rng = np.random.default_rng(0)
    quality = np.random.default_rng(3).normal(size=12)
    best = int(np.argmax(quality))
    other = (best + rng.integers(1, 12, size=300)) % 12
    won = rng.random(300) < 1 / (1 + np.exp(quality[other] - quality[best]))
    given = {
        "left": np.repeat(NAMES[best], 300),
        "right": NAMES[other],
        "winner": np.where(won, NAMES[best], NAMES[other]),
        "annotator": np.repeat([f"fresh{n}" for n in range(15)], 20),
        "time": rng.random(300),
    }
    both = Comparisons.of(**{name: np.append(votes[name], given[name]) for name in votes})
    assert not [alarm for alarm in find_stuffing(both).alarms if alarm.kind == "campaign"]


def test_near_copies_are_found():
    rng = np.random.default_rng(1)
    quality = rng.normal(size=12)
    first, second = np.triu_indices(12, 1)
    columns: dict[str, list[str]] = {"left": [], "right": [], "winner": [], "annotator": []}
    answers = np.zeros(66, bool)
    for n in range(16):
        if n < 15:
            answers = rng.random(66) < 1 / (1 + np.exp(quality[second] - quality[first]))
        else:  # a copy of the one before, but for one answer
            answers = np.where(np.arange(66) == 7, ~answers, answers)
        columns["left"] += NAMES[first].tolist()
        columns["right"] += NAMES[second].tolist()
        columns["winner"] += np.where(answers, NAMES[first], NAMES[second]).tolist()
        columns["annotator"] += [f"u{n:02}"] * 66
    (alarm,) = find_stuffing(Comparisons.of(**columns)).alarms
    assert alarm.kind == "copies"
    assert alarm.annotators == ("u14", "u15")
    assert "65 of 66" in alarm.reason


def test_annotators_who_always_choose_one_side_are_no_copies():
    first, second = np.triu_indices(12, 1)
    votes = honest(5)
    extra = {
        "left": np.tile(NAMES[first], 4),
        "right": np.tile(NAMES[second], 4),
        "winner": np.tile(NAMES[first], 4),
        "annotator": np.repeat([f"lazy{n}" for n in range(4)], 66),
        "time": np.random.default_rng(0).random(264),
    }
    both = Comparisons.of(**{name: np.append(votes[name], extra[name]) for name in votes})
    assert not [alarm for alarm in find_stuffing(both).alarms if alarm.kind == "copies"]


@pytest.mark.parametrize("named", [True, False])
def test_a_burst_in_time_is_found(named):
    votes = honest(8, votes=900, annotators=60)
    # an item that wins seldom
    about = (votes["left"] == "m04") | (votes["right"] == "m04")
    burst = about & (votes["time"] > 0.4) & (votes["time"] < 0.6)
    votes["winner"] = np.where(burst, "m04", votes["winner"])
    if not named:
        votes["annotator"] = None
    alarms = [alarm for alarm in find_stuffing(Comparisons.of(**votes)).alarms if alarm.kind == "burst"]
    assert "m04" in [alarm.item for alarm in alarms]
    hit = next(alarm for alarm in alarms if alarm.item == "m04")
    assert np.mean(burst[hit.votes]) > 0.7
    assert bool(hit.annotators) == named


def one_after_another(votes: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """The votes as they come if everyone answers within a tenth of the time."""
    names, who = np.unique(votes["annotator"], return_inverse=True)
    rng = np.random.default_rng(seed)
    return {**votes, "time": rng.random(len(names))[who] + 0.1 * rng.random(len(who))}


def with_newcomers(seed: int) -> Comparisons:
    """15 fresh names who are asked about any items, as by a server, and choose m04 wherever it appears."""
    votes, rng = one_after_another(honest(seed), seed), np.random.default_rng(seed)
    left = rng.integers(12, size=450)
    right = (left + rng.integers(1, 12, size=450)) % 12
    winner = np.where((left == 4) | (right == 4), 4, np.where(rng.random(450) < 0.5, left, right))
    stuffed = {
        "left": NAMES[left],
        "right": NAMES[right],
        "winner": NAMES[winner],
        "annotator": np.repeat([f"fresh{n:02}" for n in range(15)], 30),
        "time": 2.0 + np.repeat(np.arange(15), 30) / 100 + rng.random(450),
    }
    return Comparisons.of(**{name: np.append(votes[name], stuffed[name]) for name in votes})


def test_newcomers_for_one_item_are_found_if_others_choose_what_they_are_asked():
    found = [alarm for seed in range(8) for alarm in find_stuffing(with_newcomers(seed)).alarms if alarm.item == "m04"]
    newcomers = [alarm for alarm in found if alarm.kind == "newcomers"]
    assert len(newcomers) >= 5
    for alarm in newcomers:
        assert sum(name.startswith("fresh") for name in alarm.annotators) >= 13
        assert len(alarm.annotators) <= 17
        assert "came one after another voted for m04" in alarm.reason


def test_honest_annotators_who_come_one_after_another_raise_hardly_any_alarm():
    collections = [Comparisons.of(**one_after_another(honest(200 + seed), seed)) for seed in range(20)]
    assert sum(bool(find_stuffing(votes)) for votes in collections) <= 1


def test_what_could_not_be_tested_is_said():
    found = find_stuffing(Comparisons.of(["a", "b"] * 20, ["b", "c"] * 20, ["a", "c"] * 20))
    assert set(found.skipped) == {"campaign", "copies", "burst", "newcomers"}
    assert not found
    json.dumps(found.as_dict())
    with pytest.raises(SettingError, match="between 0 and 1"):
        find_stuffing(Comparisons.of(["a"], ["b"], ["a"]), false_alarm_rate=0)
