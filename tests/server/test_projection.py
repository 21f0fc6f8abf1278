"""The projection of the log: processes that have read the same rows agree to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from crowdrank.server.choice import choose_pair
from crowdrank.server.projection import Projection
from crowdrank.storage import Collection


@pytest.fixture
def collection(tmp_path):
    with Collection.open(tmp_path / "c.db", durable=False) as opened:
        yield opened


def played_collection(collection, votes, seed=0, annotators=6):
    """Play a collection with all kinds of votes, withdrawals, exclusions and late items."""
    rng = np.random.default_rng(seed)
    items = collection.items.add([f"i{n}" for n in range(12)], actor="test")
    people = collection.annotators.add([f"p{n}" for n in range(annotators)], actor="test")
    projection = Projection(collection).catch_up()
    seqs = []
    for n in range(votes):
        who = people[int(rng.integers(len(people)))]
        chosen = choose_pair(projection, projection.annotators[who], collection.assignments.pending(), rng)
        asked = collection.assignments.create(
            who, chosen.left, chosen.right, policy=chosen.policy, probability=chosen.probability
        )
        answer = ["left", "right", "tie", "skip"][int(rng.choice(4, p=[0.5, 0.3, 0.1, 0.1]))]
        seqs.append(collection.votes.record(asked.token, answer, annotator=who, response_ms=900).seq)
        if n % 11 == 10:
            collection.votes.undo(who, seqs.pop())
            collection.assignments.release(who)
        if n % 17 == 16:
            collection.votes.void([seqs[int(rng.integers(len(seqs)))]], actor="test")
        if n % 23 == 22:
            collection.annotators.exclude(people[0], actor="test", quarantine=True)
        if n % 29 == 28:
            collection.annotators.include(people[0], actor="test")
        if n == votes // 2:
            collection.items.add(["late"], actor="test")
            collection.items.hide(items[3], actor="test")
        projection.catch_up()
    return projection


def same(one, other):
    for name in ("mean", "variance"):
        np.testing.assert_array_equal(one.beliefs.item_columns[name], other.beliefs.item_columns[name])
    for name in one.beliefs.annotator_columns:
        np.testing.assert_array_equal(one.beliefs.annotator_columns[name], other.beliefs.annotator_columns[name])
    np.testing.assert_array_equal(one.appearances, other.appearances)
    np.testing.assert_array_equal(one.votes.counts, other.votes.counts)
    assert one.vote_policies == other.vote_policies
    assert one.state == other.state
    assert {n: p.left_surplus for n, p in one.annotators.items()} == {
        n: p.left_surplus for n, p in other.annotators.items()
    }
    assert one.open_assignments == other.open_assignments


def test_a_replay_is_identical_to_following_along(collection):
    projection = played_collection(collection, 120)
    assert projection.n_counted > 60
    same(projection, Projection(collection).catch_up())


def test_the_size_of_batches_makes_no_difference(collection):
    projection = played_collection(collection, 60)
    step, other = Projection(collection), np.random.default_rng(1)
    while step.seq < projection.seq:
        step.catch_up(up_to=min(projection.seq, step.seq + int(other.integers(1, 9))))
        step.beliefs  # noqa: B018  folded so far
    same(projection, step)


def test_the_log_can_be_replayed_up_to_any_row(collection):
    projection = played_collection(collection, 40)
    half = Projection(collection).catch_up(up_to=projection.seq // 2)
    assert half.seq == projection.seq // 2
    same(half.catch_up(), projection)


def test_the_projection_and_storage_agree_on_what_counts(collection):
    projection = played_collection(collection, 80)
    assert projection.n_counted == len(collection.log.judgments())
    for annotator in projection.annotators.values():
        progress = collection.assignments.progress(annotator.id)
        assert (annotator.decided, annotator.skipped) == (progress.decided, progress.skipped)


def test_withdrawing_an_early_vote_replays_the_later_ones(collection, monkeypatch):
    monkeypatch.setattr("crowdrank.server.records.SNAPSHOT_INTERVAL", 8)
    projection = played_collection(collection, 60)
    projection.beliefs  # noqa: B018
    (first,) = projection.vote_seqs[:1]
    collection.votes.void([first], actor="test")
    projection.catch_up()
    fresh = Projection(collection).catch_up()
    same(projection, fresh)


def test_open_assignments_are_tracked_until_answered_or_replaced(collection):
    projection = played_collection(collection, 10)
    who = next(iter(projection.annotators))
    collection.assignments.release(who)
    chosen = choose_pair(projection, projection.annotators[who], [], np.random.default_rng(0))
    asked = collection.assignments.create(who, chosen.left, chosen.right, policy="random", probability=0.5)
    projection.catch_up()
    now = projection.open_assignments[who].at + 1
    assert [one.items for one in projection.pending(now) if one.annotator == who] == [(asked.left, asked.right)]
    assert not projection.pending(now + projection.settings.questions.lease_seconds * 1_000_000)
    collection.votes.record(asked.token, "left", annotator=who)
    assert who not in projection.catch_up().open_assignments


def test_notes_and_assignments_do_not_change_the_board(collection):
    projection = played_collection(collection, 10)
    before = projection.board_seq
    collection.log.note("nothing", actor="test")
    assert projection.catch_up().board_seq == before
    assert projection.seq > before
