"""Who is let in, and how often they may try."""

import pytest
from sqlalchemy import inspect, text

from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.storage import Collection, UnknownTokenError, Visitor


def test_tokens_let_in_whom_they_were_issued_to(collection, crowd):
    ann, bob = collection.access.issue([crowd.ann, crowd.bob], actor="admin")
    admin = collection.access.issue_role("admin", actor="system")
    assert collection.access.bearer(ann)[:2] == ("annotator", crowd.ann)
    assert collection.access.bearer(bob)[:2] == ("annotator", crowd.bob)
    assert collection.access.bearer(admin)[:2] == ("admin", None)
    assert isinstance(collection.access.bearer(admin), Visitor)
    assert collection.access.bearer("guessed") is None
    with pytest.raises(UnknownNameError):
        collection.access.issue([10**6], actor="admin")


def test_a_session_lasts_until_its_time_or_its_token_ends(collection, crowd, clock):
    token = collection.access.issue([crowd.ann], actor="admin")[0]
    desk = collection.access.open_session(token, seconds=3600)
    phone = collection.access.open_session(token, seconds=7200)
    assert collection.access.visitor(desk) == collection.access.visitor(phone) == collection.access.bearer(token)
    assert collection.access.visitor(token) is None
    clock.pass_seconds(3601)
    assert collection.access.visitor(desk) is None
    collection.access.revoke(collection.access.visitor(phone).token, actor="admin")
    assert collection.access.visitor(phone) is None
    assert collection.access.bearer(token) is None
    with pytest.raises(UnknownTokenError):
        collection.access.open_session(token, seconds=60)


def test_all_tokens_of_one_are_revoked_and_of_nobody_else(collection, crowd):
    first, other = collection.access.issue([crowd.ann, crowd.bob], actor="admin")
    second = collection.access.issue([crowd.ann], actor="admin")[0]
    assert collection.access.revoke_all(crowd.ann, actor="admin") == 2
    assert collection.access.revoke_all(crowd.ann, actor="admin") == 0
    assert [collection.access.bearer(one) is None for one in (first, second, other)] == [True, True, False]
    with pytest.raises(UnknownNameError):
        collection.access.revoke(1, actor="admin")


def test_a_closed_session_is_closed(collection):
    session = collection.access.open_session(collection.access.issue_role("admin", actor="system"), seconds=60)
    collection.access.close_session(session)
    assert collection.access.visitor(session) is None


def test_a_limit_holds_in_all_processes(place, collection, clock):
    with Collection.open(place, clock=clock) as other:
        sides = [collection, other] * 3
        waits = [one.access.wait("address 1", times=3, seconds=60) for one in sides]
        assert waits[:3] == [0, 0, 0]
        assert all(18 < wait <= 20 for wait in waits[3:])
        assert collection.access.wait("address 2", times=3, seconds=60) == 0
        clock.pass_seconds(waits[3])
        assert other.access.wait("address 1", times=3, seconds=60) == 0
        assert other.access.wait("address 1", times=3, seconds=60) > 0
        clock.pass_seconds(61)
        collection.access.forget()
        assert [other.access.wait("address 1", times=3, seconds=60) == 0 for _ in range(4)] == [True] * 3 + [False]
    with pytest.raises(SettingError):
        collection.access.wait("address", times=0, seconds=1)


def test_nothing_that_was_given_away_is_stored(collection, crowd):
    token = collection.access.issue([crowd.ann], actor="admin")[0]
    session = collection.access.open_session(token, seconds=60)
    collection.access.wait("198.51.100.7", times=3, seconds=60)
    with collection._database.reading() as connection:
        tables = inspect(connection).get_table_names()
        stored = repr([connection.execute(text(f"SELECT * FROM {table}")).all() for table in tables])
    for secret in (token, session, "198.51.100.7"):
        assert len(secret) >= 12
        assert secret not in stored
