"""Concurrent writes: from threads, from processes, and while processes are killed."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from crowdrank.errors import DataError
from crowdrank.storage import Collection, ConflictError, UnavailableError
from crowdrank.storage.database import Database
from crowdrank.storage.writer import Task, Writer, microseconds
from tests.postgres import running
from tests.storage.voter import Voter

ODDS = {"policy": "random", "probability": 1.0}


def at_once(times, work):
    """Run `work` in many threads at the same moment; return what each returned or raised."""
    barrier = threading.Barrier(times)

    def run(n):
        barrier.wait()
        try:
            return work(n)
        except Exception as error:
            return error

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(run, range(times)))


def test_one_token_used_at_once_stores_one_vote(collection, ask, crowd):
    asked = ask()
    found = at_once(8, lambda _: collection.votes.record(asked.token, asked.left, annotator=crowd.ann))
    assert len({vote.seq for vote in found}) == 1
    assert sorted(vote.replayed for vote in found) == [False] + [True] * 7


def test_of_two_different_answers_at_once_one_is_refused(collection, ask, crowd):
    asked = ask()
    answers = [asked.left, asked.right] * 4
    found = at_once(8, lambda n: collection.votes.record(asked.token, answers[n], annotator=crowd.ann))
    refused = [isinstance(one, ConflictError) for one in found]
    assert sum(refused) == 4
    assert {one.outcome for one, gone in zip(found, refused, strict=True) if not gone} in ({"left"}, {"right"})


def test_an_annotator_holds_one_assignment_however_many_are_requested(location, collection, crowd, clock):
    with Collection.open(location, clock=clock) as other:  # as another process would
        sides = (collection, other)
        found = at_once(
            8, lambda n: sides[n % 2].assignments.create(crowd.ann, crowd.items[n % 2], crowd.items[2 + n % 2], **ODDS)
        )
    assert len({one.seq for one in found}) == 1
    assert len(collection.log.after(0).assignments) == 1


def test_every_writer_gets_its_own_result(collection, crowd):
    """Votes, rejected votes and other writes in one transaction."""
    people = collection.annotators.add([f"p{n}" for n in range(12)], actor="admin")

    def work(n):
        if n % 3 == 0:
            return collection.votes.record("guessed", "tie", annotator=people[n])
        if n % 3 == 1:
            return collection.items.hide(crowd.items[0], actor=f"admin {n}")
        asked = collection.assignments.create(people[n], *crowd.items[:2], **ODDS)
        return collection.votes.record(asked.token, asked.right, annotator=people[n])

    found = at_once(12, work)
    assert all(type(found[n]).__name__ == "UnknownTokenError" for n in range(0, 12, 3))
    rows = {event.seq: event.actor for event in collection.log.events()}
    assert all(rows[found[n]] == f"admin {n}" for n in range(1, 12, 3))
    assert {found[n].assignment for n in range(2, 12, 3)} == set(collection.log.after(0).assignments.seq.tolist())


@pytest.fixture
def writer(location, collection):
    database = Database(location, timeout=30, durable=False)
    yield Writer(database, microseconds)
    database.close()


def test_a_failed_write_does_not_affect_the_others(writer, collection):
    hold, waiting = threading.Event(), threading.Event()

    def slow(transaction):
        waiting.set()
        hold.wait(60)
        return transaction.append("paused", "admin")

    def half(transaction):
        transaction.append("closed", "admin")
        raise DataError("half done")

    works = [lambda transaction: transaction.append("noted", "admin"), half, lambda transaction: 1 / 0]
    works += [
        lambda transaction: transaction.append("undo", "admin", 10**6),
        lambda transaction: transaction.append("noted", "admin"),
    ]
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(writer.run, slow)
        waiting.wait(60)
        queued = [pool.submit(writer.run, work) for work in works]
        while len(writer._queue) < len(works):
            time.sleep(0.001)
        hold.set()
        assert first.result() == 1
        assert sorted((queued[0].result(), queued[4].result())) == [2, 3]
        errors = [type(queued[n].exception()).__name__ for n in (1, 2, 3)]
    assert errors == ["DataError", "ZeroDivisionError", "IntegrityError"]
    assert [event.kind for event in collection.log.events()] == ["paused", "noted", "noted"]


def test_tasks_of_one_annotator_see_each_others_rows(writer):
    """In one transaction, the second task reads the rows that the first wrote."""
    seen = []

    def read(connection, keys):
        return dict.fromkeys(keys, connection.exec_driver_sql("SELECT count(*) FROM log").scalar())

    def task(who):
        return Task(
            who, read, who, lambda found, transaction: (seen.append(found), transaction.append("noted", "admin"))
        )

    def run(work):
        return threading.Thread(target=writer.run, args=(work,))

    hold = threading.Event()
    threads = [run(lambda _: hold.wait(60)), run(task(1)), run(task(1)), run(task(2))]
    for n, thread in enumerate(threads):
        thread.start()
        while n and len(writer._queue) < n:
            time.sleep(0.001)
    hold.set()
    for thread in threads:
        thread.join()
    assert seen == [0, 1, 1]


def test_a_database_that_stays_locked_is_reported(location, collection, crowd, ask):
    database = Database(location, timeout=5, durable=False)
    with Collection.open(location, timeout=0.3) as other:
        asked = ask()
        with database.writing(), pytest.raises(UnavailableError, match="try again"):
            other.votes.record(asked.token, "tie", annotator=crowd.ann)
        assert not other.votes.record(asked.token, "tie", annotator=crowd.ann).replayed
    database.close()


def test_concurrent_processes_leave_no_gaps_and_keep_the_order(location, collection, crowd):
    """A concurrent reader sees every row once and in order."""
    voters = [Voter(location, f"voter {n}", 20) for n in range(2)]
    followed, last = [], 0
    while any(voter.is_alive() for voter in voters) or last < collection.log.head():
        batch = collection.log.after(last, limit=7)
        rows = [*batch.votes.seq, *batch.assignments.seq, *(event.seq for event in batch.events)]
        assert len(rows) == len(batch) == batch.last - last
        followed += sorted(int(row) for row in rows)
        last = batch.last
        time.sleep(0.002)
    told = [seq for voter in voters for seq in voter.reported()]
    assert followed == list(range(1, collection.log.head() + 1))
    assert sorted(told) == collection.log.after(0).votes.seq.tolist()
    assert len(told) == 40


def test_acknowledged_votes_survive_a_killed_process(location, collection, crowd):
    for n in range(3):
        voter = Voter(location, f"voter {n}", 10_000)
        told = [voter.receiver.recv() for _ in range(3 + 4 * n)]
        voter.kill()
        told += voter.reported()
        stored = [seq for seq in collection.log.after(0).votes.seq.tolist() if seq >= told[0]]
        assert stored[: len(told)] == told
        assert len(stored) - len(told) in (0, 1)  # the last vote may have been stored but not reported in time
    assert len(collection.log.after(0)) == collection.log.head()


def test_the_connection_recovers_after_postgresql_crashed():
    with running() as server, Collection.open(server.url()) as collection, ThreadPoolExecutor(1) as pool:
        items = collection.items.add(["a", "b"], actor="admin")
        who = collection.annotators.add(["ann"], actor="admin")[0]
        asked = collection.assignments.create(who, *items, **ODDS)
        first = collection.votes.record(asked.token, asked.left, annotator=who)
        asked = collection.assignments.create(who, *items, **ODDS)
        server.stop("immediate")
        late = pool.submit(collection.votes.record, asked.token, asked.left, annotator=who)
        server.start()
        assert not late.result().replayed
        assert collection.log.after(0).votes.seq.tolist() == [first.seq, late.result().seq]


@pytest.mark.parametrize("durable", [True, False])
def test_only_durable_transactions_wait_for_the_disk(tmp_path, durable):
    with Collection.open(tmp_path / "c.db") as made:
        read = made.writer.run_all(
            [lambda transaction: transaction.connection.exec_driver_sql("PRAGMA synchronous").scalar()],
            durable=durable,
        )
        assert read[0].result() == (2 if durable else 1)
