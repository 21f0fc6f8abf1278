"""The log is the source of truth: its rows never change, and the past can be reproduced."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from crowdrank.active.reliability import _RECORDED
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.storage import SKIPPED, Collection, NewItem
from crowdrank.storage.collection import _without_password
from crowdrank.storage.database import parse_url
from crowdrank.storage.schema import SCHEMA_VERSION


@pytest.fixture
def voted(collection, ask, crowd, clock):
    """Six votes: one undone, one void, one skipped; bob's count until he is excluded."""
    answers = [(crowd.ann, 0), (crowd.ann, "skip"), (crowd.bob, "tie"), (crowd.ann, 1), (crowd.bob, 1)]
    for n, (who, answer) in enumerate(answers):
        clock.pass_seconds(1)
        asked = ask(who, n % 3, 3, policy="gain" if n % 2 else "random", probability=0.25)
        winner = [asked.left, asked.right][answer] if isinstance(answer, int) else answer
        vote = collection.votes.record(asked.token, winner, annotator=who, response_ms=100 * n)
    asked = collection.votes.undo(crowd.bob, vote.seq)
    clock.pass_seconds(1)
    collection.votes.record(asked.token, asked.left, annotator=crowd.bob, response_ms=700)
    return collection


def same(one, other):
    assert one.to_frame().equals(other.to_frame())


def test_judgments_are_the_votes_that_count(voted):
    frame = voted.log.judgments().to_frame()
    assert frame.columns[-2:] == list(_RECORDED)
    assert frame["annotator"].to_list() == ["ann", "bob", "ann", "bob"]
    assert frame["winner"].to_list() == ["a", "tie", "d", "b"]
    assert frame["policy"].to_list() == ["random", "random", "gain", "random"]
    assert frame["duration"].to_list() == [0.0, 0.2, 0.3, 0.7]
    assert np.diff(frame["time"].to_numpy()).min() > 0


def test_the_judgments_of_any_earlier_row_can_be_reproduced(voted, crowd):
    head = voted.log.head()
    boards = [voted.log.judgments(up_to=seq) for seq in range(head + 1)]
    voted.annotators.exclude(crowd.bob, actor="admin", reason="hasty")
    voted.votes.void_all(crowd.ann, actor="admin")
    assert len(voted.log.judgments()) == 0
    voted.annotators.include(crowd.bob, actor="admin")
    assert len(voted.log.judgments()) == 2
    for seq, board in enumerate(boards):
        same(voted.log.judgments(up_to=seq), board)
    assert {len(board) for board in boards} == {0, 1, 2, 3, 4}


def test_rows_are_read_in_batches_of_columns(voted, crowd):
    whole = voted.log.after(0)
    assert whole.last == len(whole) == voted.log.head()
    assert whole.votes.outcome.tolist() == [1, SKIPPED, 0, -1, -1, 1]
    assert set(whole.votes.annotator.tolist()) == {crowd.ann, crowd.bob}
    assert [event.kind for event in whole.events][-1] == "undo"
    parts, last = [], 0
    while len(part := voted.log.after(last, limit=4)):
        parts.append(part)
        last = part.last
    assert np.concatenate([part.votes.seq for part in parts]).tolist() == whole.votes.seq.tolist()
    assert [event for part in parts for event in part.events] == whole.events
    assert voted.log.after(last).last == last


def test_an_export_has_every_vote_and_no_token(voted, ask, crowd):
    token = voted.access.issue([crowd.ann], actor="admin")[0]
    asked = ask()
    rows = list(voted.log.vote_rows())
    assert [row["winner"] for row in rows] == ["a", "skip", "tie", "d", "d", "b"]
    assert [row["status"] for row in rows] == ["counts"] * 4 + ["undo", "counts"]
    assert rows[0]["time"] == "2023-11-14T22:13:21.000000Z"
    questions = list(voted.log.assignment_rows())
    assert len(questions) == 7
    assert questions[-1]["vote"] is None
    exported = repr((rows, questions, voted.log.events(), voted.log.after(0)))
    assert token not in exported
    assert asked.token not in exported


def test_an_export_is_read_page_by_page(voted, monkeypatch):
    whole = list(voted.log.vote_rows())
    monkeypatch.setattr("crowdrank.storage.log.PAGE_SIZE", 2)
    assert list(voted.log.vote_rows()) == whole


def test_time_does_not_go_backwards_when_the_clock_does(collection, clock):
    collection.settings.pause(actor="admin")
    clock.pass_seconds(-100)
    collection.settings.resume(actor="admin")
    first, second = collection.log.events()
    assert first.at == second.at


def test_an_empty_log_can_be_read(collection):
    assert len(collection.log.after(0)) == collection.log.head() == 0
    assert len(collection.log.judgments()) == 0
    assert list(collection.log.vote_rows()) == []


def test_items_are_added_once_and_changed_by_events(collection):
    first = collection.items.add(["a", NewItem(label="a", query="q", content={"text": "long"})], actor="admin")
    assert collection.items.add(["b", "a"], actor="admin")[1] == first[0]
    with pytest.raises(DataError, match="other content"):
        collection.items.add([NewItem(label="a", content={"text": "new"})], actor="admin")
    with pytest.raises(DataError, match="twice"):
        collection.items.add(["c", "c"], actor="admin")
    with pytest.raises(DataError, match="JSON"):
        collection.items.add([NewItem(label="c", content={"text": {1, 2}})], actor="admin")
    before = collection.log.head()
    collection.items.edit(first[1], {"text": "short"}, actor="admin")
    hidden = collection.items.hide(first[0], actor="admin", reason="broken")
    now, then = collection.items.all(), collection.items.all(up_to=before)
    assert (now[first[1]].content, then[first[1]].content) == ({"text": "short"}, {"text": "long"})
    assert (now[first[0]].hidden, now[first[0]].changed, then[first[0]].hidden) == (True, hidden, False)
    collection.items.show(first[0], actor="admin")
    assert not collection.items.all()[first[0]].hidden
    with pytest.raises(UnknownNameError):
        collection.items.hide(10**6, actor="admin")


def test_annotators_are_added_once_and_changed_by_events(collection):
    ann, bob = collection.annotators.add(["ann", "bob"], actor="admin", metadata={"ann": {"price": 0.1}})
    assert collection.annotators.add(["cat", "ann"], actor="join")[1] == ann
    collection.annotators.edit(ann, {"price": 0.2}, actor="admin")
    collection.annotators.exclude(bob, actor="admin")
    found = collection.annotators.all()
    assert [one.name for one in found.values()] == ["ann", "bob", "cat"]
    assert (found[ann].metadata, found[bob].excluded, found[ann].excluded) == ({"price": 0.2}, True, False)
    with pytest.raises(DataError, match="twice"):
        collection.annotators.add(["dan", "dan"], actor="admin")
    with pytest.raises(UnknownNameError):
        collection.annotators.exclude(10**6, actor="admin")


def test_settings_are_the_sum_of_their_changes(collection):
    assert collection.settings.state() == "open"
    first = collection.settings.change({"policy": "gain", "ties": True}, actor="admin")
    collection.settings.change({"policy": "random", "ties": None}, actor="admin")
    collection.settings.pause(actor="admin")
    assert collection.settings.all() == {"policy": "random"}
    assert collection.settings.all(up_to=first) == {"policy": "gain", "ties": True}
    assert collection.settings.state() == "paused"
    collection.settings.resume(actor="admin")
    collection.settings.close(actor="admin")
    assert collection.settings.state() == "closed"
    assert collection.settings.state(up_to=first) == "open"
    collection.log.note("exported", actor="admin", detail={"rows": 3})
    assert collection.log.events()[-1].detail == {"text": "exported", "rows": 3}


def test_a_backup_is_a_complete_copy(voted, tmp_path, location):
    copy = tmp_path / "copy.db"
    if "postgresql" in location:
        with pytest.raises(SettingError, match="pg_dump"):
            voted.backup(copy)
        return
    voted.backup(copy)
    before = voted.log.judgments()
    voted.settings.close(actor="admin")
    with Collection.open(copy) as restored:
        same(restored.log.judgments(), before)
        assert restored.settings.state() == "open"
    voted.backup(copy)  # replaces the old one
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with pytest.raises(SettingError, match="itself"):
        voted.backup(location)


def test_health_names_the_database_and_its_schema(collection, location):
    kind = "postgresql" if "postgresql" in location else "sqlite"
    assert collection.health() == {"database": kind, "schema": SCHEMA_VERSION, "seq": 0}
    assert "Collection(" in repr(collection)


def test_invalid_locations_are_refused_and_passwords_are_hidden():
    for location in (":memory:", "sqlite://", "mysql://localhost/x", "://", "sqlite:///:memory:"):
        with pytest.raises(SettingError):
            Collection.open(location)
    assert "secret" not in _without_password(parse_url("postgres://me:secret@host/db?options=-csearch_path=x"))
