"""The projection of the log: whoever reads as far knows the same, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank.server.choice import choose
from crowdrank.server.projection import Live
from crowdrank.storage import Collection


@pytest.fixture
def collection(tmp_path):
    with Collection.open(tmp_path / "c.db", durable=False) as opened:
        yield opened


def lively(collection, votes, seed=0, annotators=6):
    """A collection with answers of all kinds, undone, void, people excluded and items that come late."""
    rng = np.random.default_rng(seed)
    items = collection.items.add([f"i{n}" for n in range(12)], actor="test")
    people = collection.annotators.add([f"p{n}" for n in range(annotators)], actor="test")
    live = Live(collection).catch_up()
    seqs = []
    for n in range(votes):
        who = people[int(rng.integers(len(people)))]
        chosen = choose(live, live.people[who], collection.questions.pending(), rng)
        asked = collection.questions.assign(
            who, chosen.left, chosen.right, policy=chosen.policy, probability=chosen.probability
        )
        answer = ["left", "right", "tie", "skip"][int(rng.choice(4, p=[0.5, 0.3, 0.1, 0.1]))]
        seqs.append(collection.questions.vote(asked.token, answer, annotator=who, response_ms=900).seq)
        if n % 11 == 10:
            collection.questions.undo(who, seqs.pop())
            collection.questions.release(who)
        if n % 17 == 16:
            collection.questions.void([seqs[int(rng.integers(len(seqs)))]], actor="test")
        if n % 23 == 22:
            collection.annotators.exclude(people[0], actor="test")
        if n % 29 == 28:
            collection.annotators.include(people[0], actor="test")
        if n == votes // 2:
            collection.items.add(["late"], actor="test")
            collection.items.hide(items[3], actor="test")
        live.catch_up()
    return live


def same(one, other):
    for name in ("mean", "variance"):
        np.testing.assert_array_equal(one.beliefs.item_columns[name], other.beliefs.item_columns[name])
    for name in one.beliefs.annotator_columns:
        np.testing.assert_array_equal(one.beliefs.annotator_columns[name], other.beliefs.annotator_columns[name])
    np.testing.assert_array_equal(one.seen, other.seen)
    np.testing.assert_array_equal(one.folding.counts, other.folding.counts)
    assert one.policies == other.policies
    assert one.state == other.state
    assert {n: p.leaning for n, p in one.people.items()} == {n: p.leaning for n, p in other.people.items()}
    assert one.open == other.open


def test_a_replay_equals_what_followed_along_to_the_last_bit(collection):
    live = lively(collection, 120)
    assert live.decided > 60
    same(live, Live(collection).catch_up())


def test_where_reading_was_interrupted_makes_no_difference(collection):
    live = lively(collection, 60)
    step, other = Live(collection), np.random.default_rng(1)
    while step.seq < live.seq:
        step.catch_up(up_to=min(live.seq, step.seq + int(other.integers(1, 9))))
        step.beliefs  # noqa: B018  folded so far
    same(live, step)


def test_it_can_be_replayed_up_to_any_row(collection):
    live = lively(collection, 40)
    half = Live(collection).catch_up(up_to=live.seq // 2)
    assert half.seq == live.seq // 2
    same(half.catch_up(), live)


def test_what_counts_is_what_storage_says_counts(collection):
    live = lively(collection, 80)
    assert live.decided == len(collection.log.judgments())
    for person in live.people.values():
        progress = collection.questions.progress(person.id)
        assert live.answered(person) == (progress.decided, progress.skipped)


def test_many_votes_taken_back_far_in_the_past_are_folded_anew(collection, monkeypatch):
    monkeypatch.setattr("crowdrank.server.beliefs._KEPT_EVERY", 8)
    live = lively(collection, 60)
    live.beliefs  # noqa: B018
    (first,) = live.vote_seq[:1]
    collection.questions.void([first], actor="test")
    live.catch_up()
    fresh = Live(collection).catch_up()
    same(live, fresh)


def test_open_questions_are_known_until_answered_or_replaced(collection):
    live = lively(collection, 10)
    who = next(iter(live.people))
    collection.questions.release(who)
    chosen = choose(live, live.people[who], [], np.random.default_rng(0))
    asked = collection.questions.assign(who, chosen.left, chosen.right, policy="random", probability=0.5)
    live.catch_up()
    now = live.open[who].at + 1
    assert [one for one in live.pending(now) if one.annotator == who] == [(who, asked.left, asked.right)]
    assert not live.pending(now + live.settings.asking.lease_seconds * 1_000_000)
    collection.questions.vote(asked.token, "left", annotator=who)
    assert who not in live.catch_up().open


def test_notes_and_questions_touch_no_board(collection):
    live = lively(collection, 10)
    before = live.touched
    collection.log.note("nothing", actor="test")
    assert live.catch_up().touched == before
    assert live.seq > before
