"""Answers that come together: stored together, each with an outcome of its own."""

from __future__ import annotations

import asyncio
import threading

import pytest

from crowdrank.server.batching import Queue, Said, Turn
from crowdrank.server.errors import Problem
from crowdrank.storage import ContradictionError, UnavailableError, UnknownTokenError


def nobody():
    raise Problem(401, "Who are you?")


@pytest.fixture(params=["sqlite", "postgresql"])
def crowd(request, start):
    """Six people who hold a question each."""
    played = start(request.param, items=[f"item {n}" for n in range(12)])
    tokens = played.join(*"abcdef")
    questions = [played.question(token)["assignment"]["token"] for token in tokens]
    people = list(played.service.live.people.values())
    return played.service, people, questions


def turn_of(person, token, outcome="left"):
    return Turn(lambda: person, Said(token, outcome))


def test_what_many_say_at_once_is_stored_together_and_all_are_asked_on(crowd):
    service, people, questions = crowd
    turns = [turn_of(person, token) for person, token in zip(people, questions, strict=True)]
    before = service.collection.log.head()
    service.desk.take(turns)
    answers = [turn.answer() for turn in turns]
    assert [one["recorded"]["seq"] for one in answers] == list(range(before + 1, before + 7))
    assert service.collection.log.head() == before + 12
    asked = [one["next"]["assignment"] for one in answers]
    pairs = [frozenset((one["left"]["id"], one["right"]["id"])) for one in asked]
    assert len(set(pairs)) == 6, "nobody is sent what another of them was sent"
    assert service.live.catch_up().decided == 6


def test_one_that_fails_takes_no_other_with_it(crowd):
    service, people, questions = crowd
    turns = [
        turn_of(people[0], questions[0]),
        turn_of(people[1], questions[0]),
        Turn(nobody, Said(questions[2], "left")),
        turn_of(people[3], questions[3], "right"),
        turn_of(people[4], questions[4], "no such answer"),
    ]
    service.desk.take(turns)
    assert turns[0].answer()["recorded"]["outcome"] == "left"
    assert turns[3].answer()["recorded"]["outcome"] == "right"
    for turn, error in ((turns[1], UnknownTokenError), (turns[2], Problem), (turns[4], Exception)):
        with pytest.raises(error):
            turn.answer()
    assert service.live.catch_up().decided == 2


def test_two_tabs_of_one_person_in_one_batch_store_one_answer(crowd):
    service, people, questions = crowd
    same, again, other = (turn_of(people[0], questions[0], said) for said in ("left", "left", "right"))
    service.desk.take([same, again, other])
    assert not same.answer()["replayed"]
    assert again.answer()["replayed"]
    assert again.answer()["recorded"] == same.answer()["recorded"]
    assert again.answer()["next"]["assignment"]["token"] == same.answer()["next"]["assignment"]["token"]
    with pytest.raises(ContradictionError):
        other.answer()
    assert service.live.catch_up().decided == 1


def test_a_budget_is_not_overrun_by_those_who_come_together(start):
    played = start(items=[f"item {n}" for n in range(12)], settings={"budget": {"votes": 8}})
    tokens = played.join(*"abcdef")
    questions = [played.question(token)["assignment"]["token"] for token in tokens]
    service = played.service
    people = list(service.live.people.values())
    turns = [turn_of(person, token) for person, token in zip(people, questions, strict=True)]
    service.desk.take(turns)
    assert sum("assignment" in turn.question() for turn in turns) == 2
    assert sum(turn.question().get("reason") == "budget" for turn in turns) == 4


def test_who_looks_again_is_shown_what_they_hold_and_others_are_asked_anew(crowd):
    service, people, questions = crowd
    voting, looking = turn_of(people[0], questions[0]), Turn(lambda: people[1])
    service.desk.take([voting, looking])
    assert looking.question()["assignment"]["token"] == questions[1]
    assert voting.question()["assignment"]["token"] not in questions


def test_a_collection_that_is_closed_asks_nobody_and_still_takes_what_was_on_its_way(crowd):
    service, people, questions = crowd
    service.collection.settings.close(actor="test")
    voting, looking = turn_of(people[0], questions[0]), Turn(lambda: people[1])
    service.desk.take([voting, looking])
    assert looking.question()["reason"] == "closed"
    assert voting.answer()["recorded"]["outcome"] == "left"
    assert voting.question()["reason"] == "closed"


def put(queue, turns):
    """Each of them, taken."""

    async def everyone():
        return await asyncio.gather(*(queue.serve(turn) for turn in turns))

    return asyncio.run(everyone())


def test_who_comes_while_others_are_served_is_served_with_those_who_wait():
    first, served = threading.Event(), []

    def take(turns):
        served.append(len(turns))
        first.wait(5)

    async def everyone():
        waiting = [asyncio.create_task(queue.serve(Turn(nobody)))]
        while not served:
            await asyncio.sleep(0.001)
        waiting += [asyncio.create_task(queue.serve(Turn(nobody))) for _ in range(7)]
        await asyncio.sleep(0)
        first.set()
        await asyncio.gather(*waiting)

    queue = Queue(take)
    asyncio.run(everyone())
    queue.stop()
    assert served == [1, 7]


def test_where_nothing_can_be_stored_each_is_told():
    def take(turns):
        raise UnavailableError("The database is away.")

    queue = Queue(take)
    for turn in put(queue, [Turn(nobody) for _ in range(3)]):
        with pytest.raises(UnavailableError, match="away"):
            turn.question()
    queue.stop()


def test_who_has_gone_away_stops_nobody():
    held = threading.Event()

    async def everyone():
        gone = asyncio.create_task(queue.serve(Turn(nobody)))
        await asyncio.sleep(0.01)
        gone.cancel()
        held.set()
        return await queue.serve(Turn(nobody))

    queue = Queue(lambda turns: held.wait(5))
    assert not asyncio.run(everyone()).failed
    queue.stop()


def test_a_queue_that_is_stopped_serves_those_who_wait_first():
    held, served = threading.Event(), []

    def take(turns):
        held.wait(5)
        served.extend(turns)

    async def everyone():
        waiting = [asyncio.create_task(queue.serve(Turn(nobody))) for _ in range(3)]
        await asyncio.sleep(0.01)
        stopping = asyncio.create_task(asyncio.to_thread(queue.stop))
        await asyncio.sleep(0.01)
        held.set()
        await asyncio.gather(stopping, *waiting)

    queue = Queue(take)
    asyncio.run(everyone())
    assert len(served) == 3


def test_a_loop_that_was_closed_meanwhile_ends_nothing():
    served, held = threading.Event(), threading.Event()

    def take(turns):
        served.set()
        held.wait(5)

    async def leave():
        gone = asyncio.create_task(queue.serve(Turn(nobody)))
        await asyncio.to_thread(served.wait, 5)
        gone.cancel()

    queue = Queue(take)
    asyncio.run(leave())
    held.set()
    assert not put(queue, [Turn(nobody)])[0].failed
    queue.stop()
