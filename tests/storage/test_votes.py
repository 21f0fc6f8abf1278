"""An assignment takes one vote, from its annotator only. Votes can be withdrawn and stay in the log."""

import pytest

from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage import ConflictError, ExpiredError, NewItem, PendingPair, QuotaReachedError, UnknownTokenError


def test_repeating_a_vote_returns_the_stored_one(collection, ask, crowd, clock):
    asked = ask()
    first = collection.votes.record(asked.token, asked.left, annotator=crowd.ann, response_ms=1500)
    clock.pass_seconds(5000)
    again = collection.votes.record(asked.token, asked.left, annotator=crowd.ann, response_ms=1700)
    assert (first.seq, first.at, first.outcome, first.winner) == (again.seq, again.at, again.outcome, again.winner)
    assert (first.replayed, again.replayed) == (False, True)
    assert len(collection.log.judgments()) == 1


def test_a_different_answer_to_the_same_question_is_refused(collection, ask, crowd):
    asked = ask()
    collection.votes.record(asked.token, asked.left, annotator=crowd.ann)
    for other in (asked.right, "tie", "skip"):
        with pytest.raises(ConflictError, match="'left'"):
            collection.votes.record(asked.token, other, annotator=crowd.ann)


def test_only_the_assigned_annotator_can_vote(collection, ask, crowd):
    asked = ask()
    for token, who in ((asked.token, crowd.bob), ("guessed", crowd.ann), ("", crowd.ann), ("\ud800", crowd.ann)):
        with pytest.raises(UnknownTokenError):
            collection.votes.record(token, asked.left, annotator=who)


@pytest.mark.parametrize(("side", "which"), [("left", 2), ("right", 3)])
def test_a_side_means_the_item_shown_on_it(collection, ask, crowd, side, which):
    asked = ask(left=2, right=3)
    said = collection.votes.record(asked.token, side, annotator=crowd.ann)
    assert (said.outcome, said.winner) == (side, crowd.items[which])


@pytest.mark.parametrize("answer", [0, 99, -1, True, "above", "", None, 1.5])
def test_an_answer_must_be_one_of_the_two_items_a_tie_or_a_skip(collection, ask, crowd, answer):
    asked = ask(left=2, right=3)
    with pytest.raises(DataError, match="'tie' or 'skip'"):
        collection.votes.record(asked.token, answer, annotator=crowd.ann)
    assert collection.assignments.held(crowd.ann).seq == asked.seq


def test_the_side_is_stored_separately_from_the_winner(collection, ask, crowd):
    for left, right in ((0, 1), (1, 0)):
        asked = ask(left=left, right=right)
        collection.votes.record(asked.token, crowd.items[1], annotator=crowd.ann)
    frame = collection.log.judgments().to_frame()
    assert frame["left"].to_list() == ["a", "b"]
    assert frame["winner"].to_list() == ["b", "b"]


def test_a_question_that_is_held_is_already_held(collection, ask, crowd):
    first, again = ask(left=0, right=1), ask(left=2, right=3)
    assert (again.seq, again.token, again.left) == (first.seq, first.token, first.left)
    assert again.already_held
    assert not first.already_held
    assert collection.assignments.held(crowd.ann) == again
    assert collection.assignments.held(crowd.bob) is None
    assert collection.assignments.pending() == [PendingPair(crowd.ann, first.left, first.right)]


def test_an_expired_assignment_is_replaced(collection, ask, crowd, clock):
    first = ask(seconds=60)
    clock.pass_seconds(61)
    assert collection.assignments.pending() == []
    assert collection.assignments.held(crowd.ann) is None
    second = ask(left=2, right=3)
    assert second.seq != first.seq
    with pytest.raises(ExpiredError):
        collection.votes.record(first.token, first.left, annotator=crowd.ann)
    collection.votes.record(second.token, second.left, annotator=crowd.ann)


def test_a_late_vote_counts_until_the_assignment_is_replaced(collection, ask, crowd, clock):
    asked = ask(seconds=60)
    clock.pass_seconds(3600)
    assert not collection.votes.record(asked.token, "tie", annotator=crowd.ann).replayed


def test_a_released_assignment_cannot_be_answered(collection, ask, crowd):
    asked = ask()
    collection.assignments.release(crowd.ann)
    with pytest.raises(ExpiredError):
        collection.votes.record(asked.token, asked.left, annotator=crowd.ann)


def test_undo_assigns_the_same_pair_again(collection, ask, crowd):
    asked = ask(policy="gain", probability=0.25, gold=crowd.items[0])
    vote = collection.votes.record(asked.token, asked.left, annotator=crowd.ann)
    ask(left=2, right=3)
    again = collection.votes.undo(crowd.ann, vote.seq)
    retried = collection.votes.undo(crowd.ann, vote.seq)
    assert (again.left, again.right, again.policy, again.probability, again.gold) == (
        asked.left,
        asked.right,
        "gain",
        0.25,
        asked.gold,
    )
    assert again.token != asked.token
    assert (retried.seq, retried.token) == (again.seq, again.token)
    collection.votes.record(again.token, again.right, annotator=crowd.ann)
    assert collection.log.judgments().to_frame()["winner"].to_list() == ["b"]
    with pytest.raises(ConflictError, match="already withdrawn"):
        collection.votes.undo(crowd.ann, vote.seq)


def test_annotators_can_undo_only_their_own_last_vote(collection, ask, crowd):
    asked = ask()
    first = collection.votes.record(asked.token, asked.left, annotator=crowd.ann)
    asked = ask(left=2, right=3)
    last = collection.votes.record(asked.token, "skip", annotator=crowd.ann, reason="item broken")
    assert collection.votes.last(crowd.ann) == last.seq
    with pytest.raises(ConflictError, match=f"which is {last.seq}"):
        collection.votes.undo(crowd.ann, first.seq)
    with pytest.raises(UnknownNameError):
        collection.votes.undo(crowd.bob, last.seq)
    collection.votes.undo(crowd.ann, last.seq)
    assert collection.votes.last(crowd.ann) == first.seq


def test_void_votes_stop_counting_and_stay_in_the_export(collection, ask, crowd):
    votes = []
    for who, left in ((crowd.ann, 0), (crowd.ann, 1), (crowd.bob, 2)):
        asked = ask(who, left, 3)
        votes.append(collection.votes.record(asked.token, asked.left, annotator=who).seq)
    before = collection.log.head()
    assert collection.votes.void(votes[:1], actor="admin", reason="a mistake") == votes[:1]
    assert collection.votes.void(votes[:1], actor="admin") == []
    assert collection.votes.void_all(crowd.ann, actor="admin") == [votes[1]]
    assert collection.log.judgments().to_frame()["left"].to_list() == ["c"]
    assert len(collection.log.judgments(up_to=before)) == 3
    assert [row["status"] for row in collection.log.vote_rows()] == ["void", "void", "counts"]
    assert [row["status"] for row in collection.log.vote_rows(up_to=before)] == ["counts"] * 3
    with pytest.raises(UnknownNameError):
        collection.votes.void([1], actor="admin")


def test_the_quota_limits_assignments(collection, ask, crowd):
    for answer in ("tie", "skip"):
        collection.votes.record(ask(quota=2).token, answer, annotator=crowd.ann)
    with pytest.raises(QuotaReachedError, match="all 2"):
        ask(quota=2)
    assert ask(quota=3).left == crowd.items[0]
    progress = collection.assignments.progress(crowd.ann, 3)
    assert (progress.decided, progress.skipped, progress.remaining) == (1, 1, 1)


def test_invalid_assignments_and_votes_are_refused(collection, ask, crowd):
    elsewhere = collection.items.add([NewItem(label="a", query="other")], actor="admin")[0]
    for wrong in (
        {"probability": 0},
        {"probability": 1.1},
        {"probability": float("nan")},
        {"policy": ""},
        {"gold": 99},
    ):
        with pytest.raises(DataError):
            ask(**wrong)
    with pytest.raises(DataError, match="itself"):
        ask(left=1, right=1)
    told = {"policy": "random", "probability": 0.5}
    with pytest.raises(DataError, match="different queries"):
        collection.assignments.create(crowd.ann, crowd.items[0], elsewhere, **told)
    with pytest.raises(UnknownNameError, match="item"):
        collection.assignments.create(crowd.ann, crowd.items[0], 10**6, **told)
    with pytest.raises(UnknownNameError, match="annotator"):
        collection.assignments.create(10**6, *crowd.items[:2], **told)
    for wrong in ({"response_ms": -1}, {"response_ms": 2**63}, {"response_ms": "fast"}, {"reason": "\x00"}):
        with pytest.raises(DataError):
            collection.votes.record(ask().token, "tie", annotator=crowd.ann, **wrong)


HOSTILE = [
    "'; DROP TABLE vote; --",
    '"',
    "\\",
    "%s",
    "%(seq)s",
    ":seq",
    "{0}",
    "$1",
    "?",
    "\n",
    "\t ",
    " ",
    "\x01\x7f",
    "=1+1",
    "<script>alert(1)</script>",
    "null",
    "NaN",
    "Ünïcødé",
    "Unicode",
    "unicode",
    "שלום",
    "\u202e",
    "👩‍👩‍👧",
    "\U0010ffff",
    "e\u0301",
    "é",
    "x" * 300,
    "👍" * 300,
]


def test_text_is_stored_unchanged(collection):
    items = collection.items.add(
        [NewItem(label=one, content={"text": "\x00\ud800" + one}) for one in HOSTILE], actor="'"
    )
    people = collection.annotators.add(HOSTILE, actor="admin", metadata={one: {one: one} for one in HOSTILE})
    for n, (text, who) in enumerate(zip(HOSTILE, people, strict=True)):
        told = {"policy": text, "probability": 1.0}
        asked = collection.assignments.create(who, items[n], items[n - 1], **told)
        collection.votes.record(asked.token, asked.left, annotator=who, reason=text)
    rows = list(collection.log.vote_rows())
    for column in ("annotator", "left", "winner", "reason", "policy"):
        assert [row[column] for row in rows] == HOSTILE
    assert [one.content["text"] for one in collection.items.all().values()] == ["\x00\ud800" + one for one in HOSTILE]
    assert sorted(collection.log.judgments().items.labels) == sorted(HOSTILE)


@pytest.mark.parametrize("label", ["", "x" * 301, "a\x00b", "\ud800", "tie", "skip", 7, None])
def test_invalid_labels_are_refused(collection, label):
    with pytest.raises(DataError):
        collection.items.add([NewItem(label=label)], actor="admin")
    assert collection.log.head() == 0
