"""Copying a collection between SQLite and PostgreSQL: the same log, export and board, and the same links."""

from __future__ import annotations

from itertools import count

import psycopg
import pytest

from crowdrank.errors import SettingError
from crowdrank.server.boards import build_board
from crowdrank.server.projection import Projection
from crowdrank.storage import Collection, NewItem, Question
from crowdrank.storage.transfer import transfer

_numbers = count()


def empty_schema(postgres):
    schema = f"transfer_{next(_numbers)}"
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    return f"{postgres.url()}&options=-csearch_path={schema}"


def played(path):
    """A collection with everything that a log can contain; returns the token of a link and of an open question."""
    with Collection.open(path) as collection:
        items = collection.items.add([NewItem(label=f"i{n}", content={"body": "é\u2028"}) for n in range(5)], actor="t")
        ann, bob, eve = collection.annotators.add(["ann", "bob", "eve"], actor="t")
        (link,) = collection.access.issue([ann], actor="t")
        collection.settings.change({"title": "Städte"}, actor="t")
        for n, outcome in enumerate(("left", "right", "tie", "skip", "both_bad", "left")):
            who = (ann, bob, eve)[n % 3]
            asked = collection.assignments.create(who, items[n % 5], items[(n + 1) % 5], policy="x", probability=1 / 3)
            collection.votes.record(asked.token, outcome, annotator=who, response_ms=n)
        question = Question(task="ranking", items=tuple(items[:3]))
        asked = collection.assignments.ask(ann, question, policy="x", probability=0.5)
        collection.votes.record(asked.token, list(items[:3]), annotator=ann, comment="fine")
        collection.votes.undo(ann, collection.votes.last(ann))
        collection.items.hide(items[4], actor="t")
        collection.annotators.exclude(bob, actor="t", reason="fast")
        collection.erase_annotator(eve, actor="t")
        asked = collection.assignments.create(bob, items[0], items[1], policy="x", probability=0.1)
        return link, asked.token


def contents(location):
    with Collection.open(location) as collection:
        projection = Projection(collection).catch_up()
        board = build_board(collection, projection, projection.board_seq).as_dict()
        board.pop("seconds", None)
        return list(collection.log.vote_rows()), list(collection.log.assignment_rows()), collection.log.events(), board


def test_there_and_back_everything_is_the_same(tmp_path, postgres):
    link, token = played(tmp_path / "a.db")
    middle = empty_schema(postgres)
    rows = transfer(tmp_path / "a.db", middle)
    assert transfer(middle, tmp_path / "b.db") == rows > 20
    first, between, last = (contents(place) for place in (tmp_path / "a.db", middle, tmp_path / "b.db"))
    assert first == between == last
    assert (tmp_path / "b.db.key").read_text() == (tmp_path / "a.db.key").read_text()
    for place in (middle, tmp_path / "b.db"):
        with Collection.open(place) as collection:
            principal = collection.access.find_token(link)
            assert principal is not None
            (bob,) = (id_ for id_, one in collection.annotators.all().items() if one.name == "bob")
            assert collection.assignments.held(bob).token == token


def test_the_target_must_be_empty_and_the_source_must_exist(tmp_path):
    played(tmp_path / "a.db")
    transfer(tmp_path / "a.db", tmp_path / "b.db")
    with pytest.raises(SettingError, match="not empty"):
        transfer(tmp_path / "a.db", tmp_path / "b.db")
    with pytest.raises(SettingError, match="no such collection"):
        transfer(tmp_path / "none.db", tmp_path / "c.db")
    assert not (tmp_path / "c.db").exists()


def test_a_row_that_was_copied_wrongly_is_noticed(tmp_path, monkeypatch):
    from crowdrank.storage import transfer as module

    played(tmp_path / "a.db")
    original = module._copy_table

    def spoil(reader, writer, table):
        original(reader, writer, table)
        if table.name == "lease":
            writer.exec_driver_sql("DROP TRIGGER vote_no_update")
            writer.exec_driver_sql("UPDATE vote SET response_ms = 77 WHERE seq = (SELECT min(seq) FROM vote)")

    monkeypatch.setattr(module, "_copy_table", spoil)
    with pytest.raises(module.UnavailableError, match="table vote differs"):
        transfer(tmp_path / "a.db", tmp_path / "b.db")


def test_accounts_and_their_sessions_move_along(tmp_path, postgres):
    with Collection.open(tmp_path / "a.db") as collection:
        id_, invitation = collection.accounts.add("ann", "owner", actor="t")
        collection.accounts.accept(invitation, "hash")
        collection.accounts.set_totp(id_, collection.keys.seal("secret"), actor="t")
        secret = collection.accounts.open_session(id_, client="Firefox", seconds=600)
        _, open_invitation = collection.accounts.add("bob", "viewer", actor="t")
        accounts = collection.accounts.all()
    middle = empty_schema(postgres)
    transfer(tmp_path / "a.db", middle)
    transfer(middle, tmp_path / "b.db")
    with Collection.open(tmp_path / "b.db") as copy:
        assert copy.accounts.all() == accounts
        assert copy.accounts.find_session(secret).name == "ann"
        assert copy.accounts.by_invitation(open_invitation).name == "bob"
        assert copy.keys.open(copy.accounts.get(id_).totp) == "secret"
