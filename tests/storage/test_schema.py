"""The database itself keeps the log append-only and consistent, whatever writes to it."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.exc import IntegrityError

import crowdrank.storage.migrations
from crowdrank.errors import SettingError
from crowdrank.storage import Collection, NewItem
from crowdrank.storage.database import Database
from crowdrank.storage.schema import APPEND_ONLY, KINDS, SCHEMA_VERSION, SUBJECTS, metadata


@pytest.fixture
def database(location):
    Collection.open(location).close()
    opened = Database(location, timeout=2, durable=True)
    yield opened
    opened.close()


def described(connection):
    """Everything that SQLAlchemy can inspect, by table, including checks and indexes."""
    look = inspect(connection)
    return {
        name: {
            "columns": [(c["name"], str(c["type"]), c["nullable"], c["default"]) for c in look.get_columns(name)],
            "primary key": look.get_pk_constraint(name)["constrained_columns"],
            "foreign keys": sorted(
                (k["constrained_columns"], k["referred_table"], k["referred_columns"])
                for k in look.get_foreign_keys(name)
            ),
            "unique": sorted(tuple(u["column_names"]) for u in look.get_unique_constraints(name)),
            "checks": sorted((c["name"], " ".join(c["sqltext"].split())) for c in look.get_check_constraints(name)),
            "indexes": sorted((i["name"], str(i["column_names"]), str(i["unique"])) for i in look.get_indexes(name)),
        }
        for name in look.get_table_names()
        if name != "alembic_version"
    }


def test_the_migrations_create_the_tables_of_the_schema(database, new_location):
    other = Database(new_location(), timeout=2, durable=True)
    with other.upgrading() as connection:
        metadata.create_all(connection)
    with database.reading() as migrated, other.reading() as created:
        assert compare_metadata(MigrationContext.configure(migrated), metadata) == []
        assert described(migrated) == described(created)
    other.close()


def test_the_last_migration_is_the_schema_version():
    config = Config()
    config.set_main_option("script_location", crowdrank.storage.migrations.__path__[0])
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_current_head() == SCHEMA_VERSION


def test_a_database_is_upgraded_only_once(location, collection):
    collection.items.add(["a"], actor="admin")
    with Collection.open(location) as again:
        assert [one.label for one in again.items.all().values()] == ["a"]
        assert again.health()["schema"] == SCHEMA_VERSION


def test_a_database_with_a_newer_schema_is_refused(location, database):
    with database.upgrading() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SettingError, match="version 9999"):
        Collection.open(location)


def test_the_database_refuses_updates_and_deletes(database, collection, ask, crowd):
    first = ask()
    vote = collection.votes.record(first.token, first.left, annotator=crowd.ann)
    collection.votes.undo(crowd.ann, vote.seq)
    collection.access.issue([crowd.ann], actor="admin")
    for table in (table.name for table in APPEND_ONLY):
        key = "id" if table in ("item", "annotator") else "seq"
        for change in (f"DELETE FROM {table}", f"UPDATE {table} SET {key} = {key} + 1000"):
            with pytest.raises(IntegrityError, match=f"{table}: rows cannot be changed or deleted"):
                write(database, change)
        with database.reading() as connection:
            assert connection.scalar(text(f"SELECT count(*) FROM {table}")) > 0


def write(database, statement, **values):
    with database.writing() as connection:
        connection.execute(text(statement), values)


LOG = "INSERT INTO log (seq, at, kind, actor, subject) VALUES (:seq, :at, :kind, 'admin', :subject)"


def test_the_log_accepts_only_valid_rows_in_order(database, collection, crowd, clock):
    good = {"seq": 7, "at": clock(), "kind": "paused", "subject": None}
    wrong = [
        ({"seq": 8}, "without gaps"),
        ({"seq": 6}, "without gaps"),
        ({"at": 1}, "go backwards"),
        ({"kind": "vandalised"}, "ck_log_kind"),
        ({"kind": "undo"}, "ck_log_subject"),
        ({"kind": "undo", "subject": 1}, "must be a vote"),
        ({"kind": "item_hidden", "subject": 5}, "must be an item"),
        ({"kind": "annotator_excluded", "subject": 1}, "must be an annotator"),
        ({"kind": "token_revoked", "subject": 1}, "must be a token"),
    ]
    for row, complaint in wrong:
        with pytest.raises(IntegrityError, match=complaint):
            write(database, LOG, **{**good, **row})
    write(database, LOG, **good)
    assert collection.log.head() == 7


VOTE = (
    "INSERT INTO vote (seq, at, assignment, annotator, left_item, right_item, outcome, winner_item) "
    "VALUES (:seq, :at, :assignment, :annotator, :left, :right, :outcome, :winner)"
)


def test_the_winner_must_be_one_of_the_two_items_shown(database, ask, crowd, clock):
    asked = ask()
    good = {
        "seq": 8,
        "at": clock(),
        "assignment": asked.seq,
        "annotator": crowd.ann,
        "left": 1,
        "right": 2,
        "outcome": "left",
        "winner": 1,
    }
    for wrong in (
        {"winner": 3},
        {"winner": 2},
        {"winner": None},
        {"outcome": "tie"},
        {"outcome": "skip"},
        {"outcome": "both"},
        {"right": 3},
        {"left": 2, "right": 1, "outcome": "right"},
        {"annotator": 6},
        {"assignment": 6},
    ):
        with pytest.raises(IntegrityError):
            write(database, VOTE, **{**good, **wrong})
    write(database, VOTE, **good)
    with pytest.raises(IntegrityError):  # one vote for a question
        write(database, VOTE, **{**good, "seq": 9})


def test_an_assignment_has_two_items_of_one_query(database, collection, crowd, clock):
    other = collection.items.add([NewItem(label="e", query="another")], actor="admin")[0]
    insertion = (
        "INSERT INTO assignment (seq, at, token_hash, annotator, query, left_item, right_item, policy, probability) "
        "VALUES (8, :at, :hash, :who, '', :left, :right, 'random', :probability)"
    )
    good = {"at": clock(), "hash": b"1" * 32, "who": crowd.ann, "left": 1, "right": 2, "probability": 0.5}
    for wrong in (
        {"right": other},
        {"right": 1},
        {"right": 99},
        {"probability": 0},
        {"probability": 2},
        {"hash": b"1"},
    ):
        with pytest.raises(IntegrityError):
            write(database, insertion, **{**good, **wrong})
    write(database, insertion, **good)


def test_event_kinds_are_unique():
    assert len(set(KINDS)) == len(KINDS)
    assert set(SUBJECTS) <= set(KINDS)
