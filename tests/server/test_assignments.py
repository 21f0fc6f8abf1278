"""Requests that are handled together: stored in one transaction, each with its own result."""

from __future__ import annotations

import asyncio
import threading

import pytest

from crowdrank.server.assignments import Answer, JudgingRequest
from crowdrank.server.errors import RequestError
from crowdrank.server.service import RequestBatcher
from crowdrank.storage import ConflictError, StudyClosedError, UnavailableError, UnknownTokenError


def unauthenticated():
    raise RequestError(401, "Please sign in.")


@pytest.fixture(params=["sqlite", "postgresql"])
def crowd(request, start):
    """Six annotators who hold one question each."""
    played = start(request.param, items=[f"item {n}" for n in range(12)])
    tokens = played.join(*"abcdef")
    questions = [played.question(token)["assignment"]["token"] for token in tokens]
    annotators = list(played.service.projection.annotators.values())
    return played.service, annotators, questions


def vote_request(annotator, token, outcome="left"):
    return JudgingRequest(lambda: annotator, Answer(token, outcome))


def test_a_batch_of_votes_is_stored_together_and_everyone_gets_a_question(crowd):
    service, annotators, questions = crowd
    requests = [vote_request(annotator, token) for annotator, token in zip(annotators, questions, strict=True)]
    before = service.collection.log.head()
    service.assignments.handle(requests)
    answers = [request.result() for request in requests]
    assert [one["recorded"]["seq"] for one in answers] == list(range(before + 1, before + 7))
    assert service.collection.log.head() == before + 12
    asked = [one["next"]["assignment"] for one in answers]
    pairs = [frozenset((one["left"]["id"], one["right"]["id"])) for one in asked]
    assert len(set(pairs)) == 6, "nobody gets the pair of someone else"
    assert service.projection.catch_up().n_counted == 6


def test_a_failed_request_does_not_affect_the_others(crowd):
    service, annotators, questions = crowd
    requests = [
        vote_request(annotators[0], questions[0]),
        vote_request(annotators[1], questions[0]),
        JudgingRequest(unauthenticated, Answer(questions[2], "left")),
        vote_request(annotators[3], questions[3], "right"),
        vote_request(annotators[4], questions[4], "no such answer"),
    ]
    service.assignments.handle(requests)
    assert requests[0].result()["recorded"]["outcome"] == "left"
    assert requests[3].result()["recorded"]["outcome"] == "right"
    for request, error in ((requests[1], UnknownTokenError), (requests[2], RequestError), (requests[4], Exception)):
        with pytest.raises(error):
            request.result()
    assert service.projection.catch_up().n_counted == 2


def test_two_tabs_of_one_annotator_in_one_batch_store_one_vote(crowd):
    service, annotators, questions = crowd
    same, again, other = (vote_request(annotators[0], questions[0], outcome) for outcome in ("left", "left", "right"))
    service.assignments.handle([same, again, other])
    assert not same.result()["replayed"]
    assert again.result()["replayed"]
    assert again.result()["recorded"] == same.result()["recorded"]
    assert again.result()["next"]["assignment"]["token"] == same.result()["next"]["assignment"]["token"]
    with pytest.raises(ConflictError):
        other.result()
    assert service.projection.catch_up().n_counted == 1


def test_a_batch_does_not_exceed_the_budget(start):
    played = start(items=[f"item {n}" for n in range(12)], settings={"budget": {"votes": 8}})
    tokens = played.join(*"abcdef")
    questions = [played.question(token)["assignment"]["token"] for token in tokens]
    service = played.service
    annotators = list(service.projection.annotators.values())
    requests = [vote_request(annotator, token) for annotator, token in zip(annotators, questions, strict=True)]
    service.assignments.handle(requests)
    assert sum("assignment" in request.question() for request in requests) == 2
    assert sum(request.question().get("reason") == "budget" for request in requests) == 4


def test_a_reload_returns_the_open_question_and_a_vote_a_new_one(crowd):
    service, annotators, questions = crowd
    voting, reloading = vote_request(annotators[0], questions[0]), JudgingRequest(lambda: annotators[1])
    service.assignments.handle([voting, reloading])
    assert reloading.question()["assignment"]["token"] == questions[1]
    assert voting.question()["assignment"]["token"] not in questions


def test_a_closed_study_asks_nothing_and_accepts_nothing(crowd):
    service, annotators, questions = crowd
    service.collection.settings.close(actor="test")
    voting, reloading = vote_request(annotators[0], questions[0]), JudgingRequest(lambda: annotators[1])
    service.assignments.handle([voting, reloading])
    assert reloading.question()["reason"] == "closed"
    with pytest.raises(StudyClosedError):
        voting.result()


def submit_all(batcher, requests):
    """Submit requests at the same time and return them when handled."""

    async def main():
        return await asyncio.gather(*(batcher.submit(request) for request in requests))

    return asyncio.run(main())


def test_requests_that_arrive_during_a_batch_form_the_next_batch():
    first, served = threading.Event(), []

    def handle(requests):
        served.append(len(requests))
        first.wait(60)

    async def main():
        waiting = [asyncio.create_task(batcher.submit(JudgingRequest(unauthenticated)))]
        while not served:
            await asyncio.sleep(0.001)
        waiting += [asyncio.create_task(batcher.submit(JudgingRequest(unauthenticated))) for _ in range(7)]
        await asyncio.sleep(0)
        first.set()
        await asyncio.gather(*waiting)

    batcher = RequestBatcher(handle)
    asyncio.run(main())
    batcher.stop()
    assert served == [1, 7]


def test_every_request_of_a_failed_batch_gets_the_error():
    def handle(requests):
        raise UnavailableError("The database is unreachable.")

    batcher = RequestBatcher(handle)
    for request in submit_all(batcher, [JudgingRequest(unauthenticated) for _ in range(3)]):
        with pytest.raises(UnavailableError, match="unreachable"):
            request.question()
    batcher.stop()


def test_a_disconnected_client_does_not_block_the_others():
    held = threading.Event()

    async def main():
        gone = asyncio.create_task(batcher.submit(JudgingRequest(unauthenticated)))
        await asyncio.sleep(0.01)
        gone.cancel()
        held.set()
        return await batcher.submit(JudgingRequest(unauthenticated))

    batcher = RequestBatcher(lambda requests: held.wait(60))
    assert not asyncio.run(main()).failed
    batcher.stop()


def test_a_stopped_batcher_handles_what_is_queued():
    held, served = threading.Event(), []

    def handle(requests):
        held.wait(60)
        served.extend(requests)

    async def main():
        waiting = [asyncio.create_task(batcher.submit(JudgingRequest(unauthenticated))) for _ in range(3)]
        await asyncio.sleep(0.01)
        stopping = asyncio.create_task(asyncio.to_thread(batcher.stop))
        await asyncio.sleep(0.01)
        held.set()
        await asyncio.gather(stopping, *waiting)

    batcher = RequestBatcher(handle)
    asyncio.run(main())
    assert len(served) == 3


def test_a_closed_event_loop_does_not_stop_the_batcher():
    served, held = threading.Event(), threading.Event()

    def handle(requests):
        served.set()
        held.wait(60)

    async def leave():
        gone = asyncio.create_task(batcher.submit(JudgingRequest(unauthenticated)))
        await asyncio.to_thread(served.wait, 60)
        gone.cancel()

    batcher = RequestBatcher(handle)
    asyncio.run(leave())
    held.set()
    assert not submit_all(batcher, [JudgingRequest(unauthenticated)])[0].failed
    batcher.stop()
