"""A question is answered once, by whom it was put to; what was said can be taken back, and stays in the log."""

import pytest

from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage import ContradictionError, ExpiredError, NewItem, Pending, QuotaReachedError, UnknownTokenError


def test_the_same_vote_again_is_the_vote_that_was_stored(collection, ask, crowd, clock):
    asked = ask()
    first = collection.questions.vote(asked.token, asked.left, annotator=crowd.ann, response_ms=1500)
    clock.pass_seconds(5000)
    again = collection.questions.vote(asked.token, asked.left, annotator=crowd.ann, response_ms=1700)
    assert (first.seq, first.at, first.outcome, first.winner) == (again.seq, again.at, again.outcome, again.winner)
    assert (first.replayed, again.replayed) == (False, True)
    assert len(collection.log.judgments()) == 1


def test_another_answer_to_the_same_question_is_refused(collection, ask, crowd):
    asked = ask()
    collection.questions.vote(asked.token, asked.left, annotator=crowd.ann)
    for other in (asked.right, "tie", "skip"):
        with pytest.raises(ContradictionError, match="'left'"):
            collection.questions.vote(asked.token, other, annotator=crowd.ann)


def test_a_question_is_answered_only_by_whom_it_was_put_to(collection, ask, crowd):
    asked = ask()
    for token, who in ((asked.token, crowd.bob), ("guessed", crowd.ann), ("", crowd.ann), ("\ud800", crowd.ann)):
        with pytest.raises(UnknownTokenError):
            collection.questions.vote(token, asked.left, annotator=who)


@pytest.mark.parametrize(("side", "which"), [("left", 2), ("right", 3)])
def test_a_side_stands_for_the_item_that_was_shown_on_it(collection, ask, crowd, side, which):
    asked = ask(left=2, right=3)
    said = collection.questions.vote(asked.token, side, annotator=crowd.ann)
    assert (said.outcome, said.winner) == (side, crowd.items[which])


@pytest.mark.parametrize("answer", [0, 99, -1, True, "above", "", None, 1.5])
def test_an_answer_names_one_of_the_two_or_neither(collection, ask, crowd, answer):
    asked = ask(left=2, right=3)
    with pytest.raises(DataError, match="'tie' or 'skip'"):
        collection.questions.vote(asked.token, answer, annotator=crowd.ann)
    assert collection.questions.held(crowd.ann).seq == asked.seq


def test_sides_are_kept_apart_from_who_won(collection, ask, crowd):
    for left, right in ((0, 1), (1, 0)):
        asked = ask(left=left, right=right)
        collection.questions.vote(asked.token, crowd.items[1], annotator=crowd.ann)
    frame = collection.log.judgments().to_frame()
    assert frame["left"].to_list() == ["a", "b"]
    assert frame["winner"].to_list() == ["b", "b"]


def test_a_question_that_is_held_is_given_back(collection, ask, crowd):
    first, again = ask(left=0, right=1), ask(left=2, right=3)
    assert (again.seq, again.token, again.left) == (first.seq, first.token, first.left)
    assert again.given_back
    assert not first.given_back
    assert collection.questions.held(crowd.ann) == again
    assert collection.questions.held(crowd.bob) is None
    assert collection.questions.pending() == [Pending(crowd.ann, first.left, first.right)]


def test_after_its_time_another_question_takes_its_place(collection, ask, crowd, clock):
    first = ask(seconds=60)
    clock.pass_seconds(61)
    assert collection.questions.pending() == []
    assert collection.questions.held(crowd.ann) is None
    second = ask(left=2, right=3)
    assert second.seq != first.seq
    with pytest.raises(ExpiredError):
        collection.questions.vote(first.token, first.left, annotator=crowd.ann)
    collection.questions.vote(second.token, second.left, annotator=crowd.ann)


def test_a_late_answer_counts_as_long_as_nothing_took_its_place(collection, ask, crowd, clock):
    asked = ask(seconds=60)
    clock.pass_seconds(3600)
    assert not collection.questions.vote(asked.token, "tie", annotator=crowd.ann).replayed


def test_a_question_that_was_taken_back_is_not_answered(collection, ask, crowd):
    asked = ask()
    collection.questions.release(crowd.ann)
    with pytest.raises(ExpiredError):
        collection.questions.vote(asked.token, asked.left, annotator=crowd.ann)


def test_undo_puts_the_same_question_again(collection, ask, crowd):
    asked = ask(policy="gain", probability=0.25, gold=crowd.items[0])
    vote = collection.questions.vote(asked.token, asked.left, annotator=crowd.ann)
    ask(left=2, right=3)
    again = collection.questions.undo(crowd.ann, vote.seq)
    retried = collection.questions.undo(crowd.ann, vote.seq)
    assert (again.left, again.right, again.policy, again.probability, again.gold) == (
        asked.left,
        asked.right,
        "gain",
        0.25,
        asked.gold,
    )
    assert again.token != asked.token
    assert (retried.seq, retried.token) == (again.seq, again.token)
    collection.questions.vote(again.token, again.right, annotator=crowd.ann)
    assert collection.log.judgments().to_frame()["winner"].to_list() == ["b"]
    with pytest.raises(ContradictionError, match="taken back before"):
        collection.questions.undo(crowd.ann, vote.seq)


def test_only_the_last_vote_and_ones_own_is_undone(collection, ask, crowd):
    asked = ask()
    first = collection.questions.vote(asked.token, asked.left, annotator=crowd.ann)
    asked = ask(left=2, right=3)
    last = collection.questions.vote(asked.token, "skip", annotator=crowd.ann, reason="item broken")
    assert collection.questions.last_vote(crowd.ann) == last.seq
    with pytest.raises(ContradictionError, match=f"which is {last.seq}"):
        collection.questions.undo(crowd.ann, first.seq)
    with pytest.raises(UnknownNameError):
        collection.questions.undo(crowd.bob, last.seq)
    collection.questions.undo(crowd.ann, last.seq)
    assert collection.questions.last_vote(crowd.ann) == first.seq


def test_void_votes_count_no_longer_and_stay_to_be_seen(collection, ask, crowd):
    votes = []
    for who, left in ((crowd.ann, 0), (crowd.ann, 1), (crowd.bob, 2)):
        asked = ask(who, left, 3)
        votes.append(collection.questions.vote(asked.token, asked.left, annotator=who).seq)
    before = collection.log.head()
    assert collection.questions.void(votes[:1], actor="admin", reason="a mistake") == votes[:1]
    assert collection.questions.void(votes[:1], actor="admin") == []
    assert collection.questions.void_all(crowd.ann, actor="admin") == [votes[1]]
    assert collection.log.judgments().to_frame()["left"].to_list() == ["c"]
    assert len(collection.log.judgments(up_to=before)) == 3
    assert [row["status"] for row in collection.log.votes()] == ["void", "void", "counts"]
    assert [row["status"] for row in collection.log.votes(up_to=before)] == ["counts"] * 3
    with pytest.raises(UnknownNameError):
        collection.questions.void([1], actor="admin")


def test_nobody_is_asked_beyond_their_quota(collection, ask, crowd):
    for answer in ("tie", "skip"):
        collection.questions.vote(ask(quota=2).token, answer, annotator=crowd.ann)
    with pytest.raises(QuotaReachedError, match="all 2"):
        ask(quota=2)
    assert ask(quota=3).left == crowd.items[0]
    progress = collection.questions.progress(crowd.ann, 3)
    assert (progress.decided, progress.skipped, progress.remaining) == (1, 1, 1)


def test_questions_that_cannot_be_put_are_refused(collection, ask, crowd):
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
        collection.questions.assign(crowd.ann, crowd.items[0], elsewhere, **told)
    with pytest.raises(UnknownNameError, match="item"):
        collection.questions.assign(crowd.ann, crowd.items[0], 10**6, **told)
    with pytest.raises(UnknownNameError, match="annotator"):
        collection.questions.assign(10**6, *crowd.items[:2], **told)
    for wrong in ({"response_ms": -1}, {"response_ms": 2**63}, {"response_ms": "fast"}, {"reason": "\x00"}):
        with pytest.raises(DataError):
            collection.questions.vote(ask().token, "tie", annotator=crowd.ann, **wrong)


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


def test_text_comes_out_as_it_went_in(collection):
    items = collection.items.add(
        [NewItem(label=one, content={"text": "\x00\ud800" + one}) for one in HOSTILE], actor="'"
    )
    people = collection.annotators.add(HOSTILE, actor="admin", about={one: {one: one} for one in HOSTILE})
    for place, (text, who) in enumerate(zip(HOSTILE, people, strict=True)):
        told = {"policy": text, "probability": 1.0}
        asked = collection.questions.assign(who, items[place], items[place - 1], **told)
        collection.questions.vote(asked.token, asked.left, annotator=who, reason=text)
    rows = list(collection.log.votes())
    for column in ("annotator", "left", "winner", "reason", "policy"):
        assert [row[column] for row in rows] == HOSTILE
    assert [one.content["text"] for one in collection.items.all().values()] == ["\x00\ud800" + one for one in HOSTILE]
    assert sorted(collection.log.judgments().items.labels) == sorted(HOSTILE)


@pytest.mark.parametrize("label", ["", "x" * 301, "a\x00b", "\ud800", "tie", "skip", 7, None])
def test_names_that_cannot_be_kept_or_told_apart_are_refused(collection, label):
    with pytest.raises(DataError):
        collection.items.add([NewItem(label=label)], actor="admin")
    assert collection.log.head() == 0
