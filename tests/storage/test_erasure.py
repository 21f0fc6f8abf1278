"""Erasing a person: what identifies them is gone from every file, and the log says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from crowdrank.errors import DataError, UnknownNameError
from crowdrank.storage import Collection, NewItem, UnknownTokenError

NAME, PANEL, SKIPPED, COMMENT = "Wilhelmina Xaver", "5f3a9c77e1panel", "because of my knee", "I was born in Ypsheim"
ADMIN_TEXT = "called us from Zedtown"
SECRETS = (NAME, PANEL, SKIPPED, COMMENT, ADMIN_TEXT)


@pytest.fixture
def person(collection):
    """Someone who left traces everywhere, and someone who stays."""
    items = collection.items.add(
        [NewItem(label=label, content={"owner": NAME} if label == "d" else {}) for label in "abcd"], actor="admin"
    )
    ids = collection.annotators.add(
        [NAME, "bob"], actor="join", metadata={NAME: {"joined": "panel", "panel": {"PROLIFIC_PID": PANEL}}}
    )
    collection.annotators.edit(ids[0], {"panel": {"PROLIFIC_PID": PANEL}, "quota": 9}, actor="admin")
    secret, _ = collection.access.issue(ids, actor="admin")
    collection.access.open_session(secret, seconds=1e6)
    collection.access.remember_address(ids[0], "203.0.113.7", seconds=1e6)
    for n, answer in enumerate(("left", "skip", "right")):
        for who in ids:
            asked = collection.assignments.create(who, items[n], items[n + 1], policy="random", probability=1.0)
            mine = who == ids[0]
            vote = collection.votes.record(
                asked.token,
                answer,
                annotator=who,
                reason=SKIPPED if mine and answer == "skip" else "",
                comment=COMMENT if mine else "",
            )
            if mine and n == 2:
                collection.votes.void([vote.seq], actor="admin", reason=ADMIN_TEXT)
    collection.annotators.exclude(ids[0], actor="admin", reason=ADMIN_TEXT)
    collection.annotators.include(ids[0], actor="admin")
    collection.log.note("a talk", actor="admin", detail={"with": NAME})
    collection.assignments.create(ids[0], items[0], items[3], policy="random", probability=1.0)
    collection.person, collection.secret, collection.bob = ids[0], secret, ids[1]
    return collection


def everything(collection):
    """All rows of all tables as text."""
    with collection._database.reading() as connection:
        from crowdrank.storage.schema import metadata

        return repr([connection.execute(table.select()).all() for table in metadata.sorted_tables])


def test_nothing_that_identifies_a_person_is_left(person, location, tmp_path):
    before = everything(person)
    assert all(secret in before for secret in SECRETS)
    new = person.erase_annotator(person.person, actor="admin 1")
    after = everything(person)
    assert not [secret for secret in SECRETS if secret in after]
    assert person.annotators.all()[person.person].name == new
    if "://" in location:
        return
    person.backup(tmp_path / "later.db")
    for path in Path(location).parent.glob("*"):
        content = path.read_bytes()
        assert not [secret for secret in SECRETS if secret.encode() in content], path.name


def test_the_log_stays_complete_and_says_so(person):
    head, rows = person.log.head(), person.log.after(0)
    person.erase_annotator(person.person, actor="admin 1")
    assert len(person.log.after(0)) == person.log.head() > head
    assert person.log.after(0).votes.outcome.tolist() == rows.votes.outcome.tolist()
    last = person.log.events()[-1]
    assert (last.kind, last.subject, last.actor) == ("annotator_erased", person.person, "admin 1")
    assert last.detail["votes"] == 3
    with pytest.raises(DataError, match="already erased"):
        person.erase_annotator(person.person, actor="admin 1")
    with pytest.raises(UnknownNameError):
        person.erase_annotator(1, actor="admin 1")


@pytest.mark.parametrize("keep_votes", [False, True])
def test_votes_count_on_only_if_wanted(person, keep_votes):
    before = len(person.log.judgments())
    name = person.erase_annotator(person.person, actor="admin 1", keep_votes=keep_votes)
    judgments = person.log.judgments()
    assert len(judgments) == (before if keep_votes else before - 1)
    assert (name in judgments.annotators.tolist()) == keep_votes


def test_an_erased_person_cannot_return(person):
    held = person.assignments.held(person.person)
    person.erase_annotator(person.person, actor="admin 1", keep_votes=True)
    assert person.access.find_token(person.secret) is None
    assert person.assignments.held(person.person) is None
    with pytest.raises(Exception, match="replaced"):
        person.votes.record(held.token, "left", annotator=person.person)
    with pytest.raises(UnknownTokenError):
        person.access.open_session(person.secret, seconds=10)
    assert person.access.shared_addresses() == {}


def test_texts_cannot_be_changed_otherwise(person, location):
    def change(statement):
        with person._database.writing() as connection:
            connection.execute(text(statement))

    for statement in (
        "UPDATE vote SET comment = 'x'",
        "UPDATE annotator SET name = 'x' WHERE id = 5",
        "UPDATE log SET detail = '{}'",
    ):
        with pytest.raises(IntegrityError, match="cannot be changed"):
            change(statement)
    person.erase_annotator(person.person, actor="admin 1")
    for statement in (
        "UPDATE vote SET outcome = 'tie', winner_item = NULL",
        "UPDATE log SET actor = 'x'",
        "DELETE FROM vote",
    ):
        with pytest.raises(IntegrityError, match="cannot be changed"):
            change(statement)
    person.settings.pause(actor="admin 1")
    with pytest.raises(IntegrityError, match="cannot be changed"):
        change("UPDATE vote SET comment = 'x'")


def test_the_data_of_a_person_can_be_exported(person):
    data = person.data_about(person.person)
    assert data["name"] == NAME
    assert [vote["comment"] for vote in data["votes"]] == [COMMENT] * 3
    assert {"annotator_added", "annotator_edited", "token_issued"} <= {event["kind"] for event in data["events"]}
    assert len(data["sessions"]) == 1
    assert data["questions"] == 4
    assert data["address_hash_until"] is not None
    assert not person.data_about(person.bob)["votes"][0]["comment"]


def test_an_old_database_is_upgraded_with_its_votes(tmp_path):
    """A file of schema version 2, with votes: the upgrade keeps every row and its numbers."""
    from alembic import command
    from alembic.config import Config

    import crowdrank.storage.migrations
    from crowdrank.storage.database import Database

    path = tmp_path / "old.db"
    database = Database(path, timeout=2, durable=True)
    config = Config()
    config.set_main_option("script_location", crowdrank.storage.migrations.__path__[0])
    config.set_main_option("path_separator", "os")
    with database.upgrading() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0002")
        for statement in (
            "INSERT INTO log (seq, at, kind, actor, detail) VALUES "
            "(1, 1, 'item_added', 'x', '{\"label\": \"a\"}'), (2, 1, 'item_added', 'x', '{\"label\": \"b\"}'), "
            "(3, 1, 'annotator_added', 'x', '{\"name\": \"ann\"}')",
            "INSERT INTO item VALUES (1, '', 'a'), (2, '', 'b')",
            "INSERT INTO annotator VALUES (3, 'ann')",
            "INSERT INTO assignment (seq, at, token_hash, annotator, query, left_item, right_item, policy, "
            "probability) VALUES (4, 2, zeroblob(32), 3, '', 1, 2, 'random', 1.0)",
            "INSERT INTO vote (seq, at, assignment, annotator, left_item, right_item, outcome, winner_item) "
            "VALUES (5, 3, 4, 3, 1, 2, 'left', 1)",
        ):
            connection.exec_driver_sql(statement)
    database.close()
    with Collection.open(path) as upgraded:
        (row,) = upgraded.log.vote_rows()
        assert (row["seq"], row["winner"], row["comment"]) == (5, "a", "")
        assert upgraded.log.judgments().to_polars()["winner"].to_list() == ["a"]
        asked = upgraded.assignments.create(3, 1, 2, policy="random", probability=1.0)
        assert upgraded.votes.record(asked.token, "both_bad", annotator=3).seq == 7
