"""Files of a collection: who can read them, and what is said when they cannot be used."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import closing

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import text

import crowdrank.storage.migrations
from crowdrank.errors import CrowdrankError, SettingError
from crowdrank.storage import Collection, UnavailableError
from crowdrank.storage.access import Keys
from crowdrank.storage.database import Database


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def test_only_the_owner_can_read_the_files_of_a_collection(tmp_path):
    before = os.umask(0)
    try:
        with Collection.open(tmp_path / "c.db") as collection:
            collection.items.add(["a"], actor="test")
            collection.backup(tmp_path / "copy.db")
            files = sorted(tmp_path.iterdir())
            assert {path.name for path in files} >= {"c.db", "c.db-wal", "c.db.key", "copy.db"}
            assert {mode(path) for path in files} == {0o600}
    finally:
        os.umask(before)


def test_open_tokens_are_not_readable_in_the_database(collection, ask):
    asked = ask()
    assert collection.assignments.held(asked.annotator).token == asked.token
    with collection._database.reading() as connection:
        tables = ("lease", "assignment", "log")
        stored = repr([connection.execute(text(f"SELECT * FROM {table}")).all() for table in tables])
    assert asked.token not in stored


def test_a_copy_without_the_key_asks_again(tmp_path):
    with Collection.open(tmp_path / "c.db") as collection:
        left, right = collection.items.add(["a", "b"], actor="test")
        (ann,) = collection.annotators.add(["ann"], actor="test")
        collection.assignments.create(ann, left, right, policy="random", probability=1.0)
        collection.backup(tmp_path / "copy.db")
    with Collection.open(tmp_path / "copy.db") as copy:
        assert copy.assignments.held(ann) is None
        asked = copy.assignments.create(ann, left, right, policy="random", probability=1.0)
        assert not asked.already_held
        copy.votes.record(asked.token, "left", annotator=ann)


def test_the_key_can_come_from_the_environment(location, monkeypatch):
    monkeypatch.setenv("CROWDRANK_KEY", "k" * 20)
    with Collection.open(location) as one, Collection.open(location) as other:
        sealed = one.keys.seal("a webhook's secret")
        assert "webhook" not in sealed
        assert other.keys.open(sealed) == "a webhook's secret"
    assert not os.path.exists(f"{location}.key")
    monkeypatch.setenv("CROWDRANK_KEY", "short")
    with pytest.raises(SettingError, match="at least 16 characters"):
        Collection.open(location)


def test_sealed_secrets_open_with_their_key_only():
    keys = Keys(b"1" * 32)
    for secret in ("", "s", "ä" * 200):
        sealed = keys.seal(secret)
        assert keys.open(sealed) == secret
        assert keys.seal(sealed) == sealed
        assert Keys(b"2" * 32).open(sealed) is None
        assert keys.open(sealed[:-6] + "AAAAA=") is None
    assert keys.seal("s") != keys.seal("s")


def damage(path):
    content = bytearray(path.read_bytes())
    content[4096 : 3 * 4096] = b"\xff" * (2 * 4096)
    path.write_bytes(content)


def test_a_damaged_file_is_reported_in_a_sentence(tmp_path):
    with Collection.open(tmp_path / "c.db") as collection:
        collection.items.add([f"item {n}" for n in range(300)], actor="test")
        collection.backup(tmp_path / "copy.db")
    damage(tmp_path / "copy.db")
    with pytest.raises(UnavailableError, match="damaged"), Collection.open(tmp_path / "copy.db") as damaged:
        damaged.check_integrity()


def test_a_file_that_is_not_a_database_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("These are notes. " * 100)
    with pytest.raises(CrowdrankError, match="not an SQLite database"):
        Collection.open(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text().startswith("These are notes")


def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path):
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.execute("CREATE TABLE invoices (id INTEGER)")
    with pytest.raises(SettingError, match="'invoices'"):
        Collection.open(tmp_path / "other.db")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("invoices",)]


@pytest.mark.parametrize(
    ("pragma", "said"), [("query_only = ON", "cannot be written"), ("max_page_count = 1", "disk is full")]
)
def test_a_write_that_fails_says_why(tmp_path, pragma, said):
    with Collection.open(tmp_path / "c.db") as collection:
        collection.items.add(["a", "b"], actor="test")
        for engine in (collection._database._writer, collection._database._temporary):
            with engine.connect() as connection:
                connection.exec_driver_sql(f"PRAGMA {pragma}")
                connection.rollback()
        with pytest.raises(UnavailableError, match=said):
            collection.items.add([f"item {n} {'x' * 200}" for n in range(200)], actor="test")
        if pragma.startswith("query_only"):
            with pytest.raises(UnavailableError, match=said):
                collection.health()


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(SettingError, match=r"no/c\.db cannot be created"):
        Collection.open(tmp_path / "no" / "c.db")


def test_a_database_of_the_first_version_is_upgraded(location):
    database = Database(location, timeout=2, durable=True)
    with database.upgrading() as connection:
        config = Config()
        config.set_main_option("script_location", crowdrank.storage.migrations.__path__[0])
        config.set_main_option("path_separator", "os")
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        connection.execute(text("INSERT INTO log (seq, at, kind, actor) VALUES (1, 1, 'paused', 'admin')"))
    database.close()
    if "://" not in location:
        os.chmod(location, 0o644)
    with Collection.open(location) as collection:
        assert collection.settings.state() == "paused"
        assert len(collection.id) == 32
    if "://" not in location:
        assert mode(location) == 0o600


def test_a_connection_in_use_is_closed_when_it_is_handed_back(location):
    database = Database(location, timeout=2, durable=True)
    with database.reading() as connection:
        driver = connection.connection.driver_connection
        database.close()
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1  # whoever is using it can finish
    late = database.read(lambda connection: connection.connection.driver_connection)
    for left in (driver, late):
        with pytest.raises((sqlite3.ProgrammingError, psycopg.OperationalError), match="closed"):
            left.execute("SELECT 1")
