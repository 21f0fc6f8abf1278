"""Tokens, sessions and rate limits."""

import pytest
from sqlalchemy import inspect, text

from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.storage import Collection, Principal, UnknownTokenError
from crowdrank.storage.database import hash_token


def test_a_token_identifies_its_holder(collection, crowd):
    ann, bob = collection.access.issue([crowd.ann, crowd.bob], actor="admin")
    admin = collection.access.issue_role("admin", actor="system")
    assert collection.access.find_token(ann)[:2] == ("annotator", crowd.ann)
    assert collection.access.find_token(bob)[:2] == ("annotator", crowd.bob)
    assert collection.access.find_token(admin)[:2] == ("admin", None)
    assert isinstance(collection.access.find_token(admin), Principal)
    assert collection.access.find_token("guessed") is None
    with pytest.raises(UnknownNameError):
        collection.access.issue([10**6], actor="admin")


def test_a_session_ends_when_it_expires_or_its_token_is_revoked(collection, crowd, clock):
    token = collection.access.issue([crowd.ann], actor="admin")[0]
    laptop = collection.access.open_session(token, seconds=3600)
    phone = collection.access.open_session(token, seconds=7200)
    assert (
        collection.access.find_session(laptop)
        == collection.access.find_session(phone)
        == collection.access.find_token(token)
    )
    assert collection.access.find_session(token) is None
    clock.pass_seconds(3601)
    assert collection.access.find_session(laptop) is None
    collection.access.revoke(collection.access.find_session(phone).token, actor="admin")
    assert collection.access.find_session(phone) is None
    assert collection.access.find_token(token) is None
    with pytest.raises(UnknownTokenError):
        collection.access.open_session(token, seconds=60)


def test_revoking_all_tokens_of_one_annotator_spares_the_others(collection, crowd):
    first, other = collection.access.issue([crowd.ann, crowd.bob], actor="admin")
    second = collection.access.issue([crowd.ann], actor="admin")[0]
    assert collection.access.revoke_all(crowd.ann, actor="admin") == 2
    assert collection.access.revoke_all(crowd.ann, actor="admin") == 0
    assert [collection.access.find_token(one) is None for one in (first, second, other)] == [True, True, False]
    with pytest.raises(UnknownNameError):
        collection.access.revoke(1, actor="admin")


def test_a_closed_session_is_no_longer_valid(collection):
    session = collection.access.open_session(collection.access.issue_role("admin", actor="system"), seconds=60)
    collection.access.close_session(session)
    assert collection.access.find_session(session) is None


def test_rate_limits_are_shared_by_all_processes(location, collection, clock):
    with Collection.open(location, clock=clock) as other:
        sides = [collection, other] * 3
        waits = [one.access.throttle("address 1", times=3, seconds=60) for one in sides]
        assert waits[:3] == [0, 0, 0]
        assert all(18 < wait <= 20 for wait in waits[3:])
        assert collection.access.throttle("address 2", times=3, seconds=60) == 0
        clock.pass_seconds(waits[3])
        assert other.access.throttle("address 1", times=3, seconds=60) == 0
        assert other.access.throttle("address 1", times=3, seconds=60) > 0
        clock.pass_seconds(61)
        collection.access.delete_expired()
        assert [other.access.throttle("address 1", times=3, seconds=60) == 0 for _ in range(4)] == [True] * 3 + [False]
    with pytest.raises(SettingError):
        collection.access.throttle("address", times=0, seconds=1)


def test_secrets_are_not_stored(collection, crowd):
    token = collection.access.issue([crowd.ann], actor="admin")[0]
    session = collection.access.open_session(token, seconds=60)
    collection.access.throttle("198.51.100.7", times=3, seconds=60)
    with collection._database.reading() as connection:
        tables = inspect(connection).get_table_names()
        stored = repr([connection.execute(text(f"SELECT * FROM {table}")).all() for table in tables])
    for secret in (token, session, "198.51.100.7"):
        assert len(secret) >= 12
        assert secret not in stored


def test_a_clock_that_is_set_back_locks_nobody_out(collection, clock):
    for _ in range(3):
        assert collection.access.throttle("address 1", times=3, seconds=60) == 0
    clock.pass_seconds(-3600)
    waits = [collection.access.throttle("address 1", times=3, seconds=60) for _ in range(4)]
    assert waits[:3] == [0, 0, 0]
    assert 0 < waits[3] <= 60


def test_addresses_are_hashed_with_a_key_and_forgotten(collection, crowd, clock):
    collection.access.remember_address(crowd.ann, "198.51.100.7", seconds=3600)
    collection.access.remember_address(crowd.bob, "198.51.100.7", seconds=3600)
    collection.access.throttle("198.51.100.7", times=3, seconds=60)
    assert list(collection.access.shared_addresses().values()) == [[crowd.ann, crowd.bob]]
    guesses = [hash_token(f"{prefix}198.51.100.7") for prefix in ("", "address ", "visit ")]
    with collection._database.reading() as connection:
        stored = [row[0] for row in connection.execute(text("SELECT address FROM visit"))]
        stored += [row[0] for row in connection.execute(text("SELECT key_hash FROM rate_limit"))]
    assert not set(map(bytes, stored)) & set(guesses)
    clock.pass_seconds(3601)
    assert collection.access.shared_addresses() == {}
    collection.access.delete_expired()
    with collection._database.reading() as connection:
        assert connection.scalar(text("SELECT count(*) FROM visit")) == 0
        assert connection.scalar(text("SELECT count(*) FROM rate_limit")) == 0
