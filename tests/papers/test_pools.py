"""Shared code of the scripts on choosing questions."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from crowdrank.active import InformationGain, Rules
from crowdrank.active.collection import SimulatedCollection
from crowdrank.online import CrowdBT
from crowdrank.simulation import crowd_bt

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "papers")]

from pools import AREA, PoolGain, Recorded, area, beside, curve, differences, signed  # noqa: E402

VOTES = crowd_bt(items=8, annotators=6, pairs=15, votes=3, seed=4).judgments


def played(policy):
    model = CrowdBT()
    run = SimulatedCollection(policy=policy, model=model, rules=Rules(pool=VOTES))
    *_, last = run.run(Recorded(VOTES), model.start(VOTES.items, VOTES.annotators), 45, np.random.default_rng(2))
    return [(q.left, q.right, q.annotator, q.probability) for q in last.log.questions], last.log.comparisons()


@pytest.mark.parametrize("exploration", [0.0, 1.0, 30.0])
def test_remembering_what_was_scored_changes_no_question(exploration):
    assert played(PoolGain(exploration))[0] == played(InformationGain(exploration=exploration))[0]


def test_it_halves_when_the_library_does():
    halving = InformationGain(exploration=30.0, halve_every=0.25, budget=44)
    assert played(PoolGain(30.0, halve_every=11))[0] == played(halving)[0]
    assert played(PoolGain(30.0, halve_every=11))[0] != played(PoolGain(30.0))[0]


def answers(votes):
    names, people = votes.items.labels, votes.annotators
    first = np.where(votes.outcome > 0, votes.left, votes.right)
    second = np.where(votes.outcome > 0, votes.right, votes.left)
    return sorted(zip(names[first], names[second], people[votes.annotator], strict=True))


def test_every_vote_of_the_pool_is_given_once_as_it_was_said():
    assert answers(played(PoolGain(1.0))[1]) == answers(VOTES)


def test_a_curve_ends_with_the_last_vote():
    model = CrowdBT()
    points = curve("random", VOTES, model, model.start(VOTES.items, VOTES.annotators), len, seed=0, every=20)
    assert points == {20: 8, 40: 8, 45: 8}


def test_the_area_is_the_mean_accuracy():
    assert area({10: 0.5, 20: 0.7}) == pytest.approx(0.6)


def test_differences_are_trial_by_trial():
    found = {("γ=1", AREA): [0.8, 0.7], ("random", AREA): [0.7, 0.5]}
    assert differences(found, "γ=1", AREA) == pytest.approx([0.1, 0.2])
    assert beside(found, "less random").rows == ["γ=1"]
    assert signed([0.1, 0.2]) == "+.150 ± .050"
    assert signed([-0.1, -0.2]).startswith("−.150")
