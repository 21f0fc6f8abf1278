"""Asking at an endpoint that errs, stalls, answers garbage, limits the rate, closes connections and goes away."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

import crowdrank as cr
from crowdrank.errors import EndpointError, FormatError, SettingError
from tests.judging.fake_endpoint import FakeEndpoint, Response, completion, error, verdict


def by_length(number, body):
    """A judge without noise: the longer text wins."""
    left, right = (body["messages"][0]["content"].split(f"<{side}>\n")[1].split("\n")[0] for side in "AB")
    return verdict("tie" if len(left) == len(right) else "A" if len(left) > len(right) else "B")


def shows_one(body):
    """Whether the item with the text "one" is asked about: three of six pairs."""
    return "\none\n" in body["messages"][0]["content"]


def test_votes_can_be_ranked_without_options(ask, endpoint, tmp_path):
    endpoint.behaviour = by_length
    run = ask(both_orders=True, llm=["m", "n"])
    assert (run.n_questions, run.n_answered, run.n_left) == (24, 24, 0)
    votes = cr.read(tmp_path / "votes.csv")
    assert len(votes) == 24
    assert set(votes.annotators) == {"m", "n"}
    ranking = cr.rank(tmp_path / "votes.csv")
    assert ranking.items.labels[ranking.order[0]] == "c"
    assert (run.votes["winner"] == "tie").sum() == 4
    assert {request.body["model"] for request in endpoint.requests} == {"m", "n"}


def test_items_are_compared_within_their_query(ask, endpoint, tmp_path):
    items = {"item": ["a", "b", "a", "b"], "topic": ["x", "x", "y", "y"], "text": ["1", "2", "3", "4"]}
    run = ask(items=items)
    assert run.n_questions == 2
    assert set(run.votes["query"]) == {"x", "y"}
    assert all("<query>" in prompt for prompt in endpoint.prompts)
    assert len(cr.read(tmp_path / "votes.csv").items.queries) == 2


def test_an_item_called_tie_does_not_win_by_a_tie(ask, endpoint, tmp_path):
    endpoint.behaviour = lambda number, body: verdict("tie")
    ask(items={"item": ["tie", "b", "c"]})
    assert cr.read(tmp_path / "votes.csv").outcome.tolist() == [0, 0, 0]


def test_the_request_holds_what_was_asked_for(ask, endpoint):
    ask(llm="m", max_tokens=99, temperature=0.5, settings={"seed": 7}, pairs=2, ties=False, reasons=True)
    body = endpoint.requests[0].body
    assert (body["model"], body["max_tokens"], body["temperature"], body["seed"]) == ("m", 99, 0.5, 7)
    schema = body["response_format"]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["reason", "winner"]
    assert schema["properties"]["winner"]["enum"] == ["A", "B"]
    with pytest.raises(SettingError, match="'messages' of a request cannot be set"):
        ask(settings={"messages": []})


def test_a_reason_is_kept_and_is_no_formula(ask, endpoint):
    endpoint.behaviour = lambda number, body: completion('{"reason": "=1+1 \\ud800", "winner": "A"}')
    assert set(ask(reasons=True).votes["reason"]) == {"'=1+1 ?"}


@pytest.mark.parametrize(
    "trouble",
    [
        error(429, Retry_After="0"),
        error(408),
        error(409),
        error(500),
        error(503),
        Response(content=b"<html>not json"),
        Response(content=b'{"choices": []}'),
        Response(content=b"\xff\xfe\x00"),
        Response(closes=True),
    ],
    ids=["429", "408", "409", "500", "503", "html", "no choices", "bytes", "closed"],
)
def test_every_question_is_answered_in_spite_of(trouble, ask, endpoint):
    endpoint.behaviour = lambda number, body: trouble if number % 2 == 0 else by_length(number, body)
    run = ask(concurrency=1)
    assert (run.n_answered, run.n_left) == (6, 0)
    assert len(endpoint.requests) == 12


def test_an_endpoint_that_stalls_is_given_up_and_asked_again(ask, endpoint):
    slow = verdict("A")._replace(delay=60.0)
    endpoint.behaviour = lambda number, body: slow if number == 0 else verdict("A")
    start = time.monotonic()
    run = ask(timeout=1.0)
    assert time.monotonic() - start < 60.0
    assert (run.n_answered, len(endpoint.requests)) == (6, 7)


def test_an_endpoint_that_sends_without_end_is_given_up(ask, endpoint):
    huge = Response(content=b"x" * 5_000_000)
    endpoint.behaviour = lambda number, body: huge if number == 0 else verdict("A")
    assert ask().n_answered == 6


def test_retry_after_holds_all_requests_back(ask, endpoint):
    endpoint.behaviour = lambda number, body: error(429, Retry_After="1") if number == 0 else verdict("A")
    ask(concurrency=3)
    assert endpoint.requests[1].time - endpoint.requests[0].time > 0.95


def test_an_endpoint_that_asks_to_wait_for_hours_is_left(ask, endpoint):
    endpoint.behaviour = lambda number, body: error(429, Retry_After="7200")
    with pytest.raises(EndpointError, match=r"HTTP 429, and asks to wait 7,200 s\. 0 of 6 answers are kept"):
        ask()
    assert len(endpoint.requests) == 1


def test_garbage_is_asked_again_a_few_times_and_then_recorded(ask, endpoint):
    endpoint.behaviour = lambda number, body: completion("I like both.") if shows_one(body) else verdict("A")
    run = ask(asks=2)
    assert (run.n_answered, run.n_no_answer, run.n_left) == (3, 3, 0)
    assert len(endpoint.requests) == 3 + 3 * 2
    assert "3 questions got no answer that can be understood" in run.notes[0]
    assert len(ask(asks=2).votes) == 3
    assert len(endpoint.requests) == 9, "a question without an answer was asked again"
    assert ask(asks=3).n_no_answer == 3
    assert len(endpoint.requests) == 12, "one more ask was allowed"


def test_a_format_that_is_refused_is_left_out_from_then_on(ask, endpoint):
    def without_schema(number, body):
        asked_for = body.get("response_format", {}).get("type", "text")
        return verdict("A") if asked_for == "text" else error(400, f"{asked_for} is not supported")

    endpoint.behaviour = without_schema
    assert ask().n_answered == 6
    formats = [request.body.get("response_format", {}).get("type", "text") for request in endpoint.requests]
    assert formats == ["json_schema", "json_object"] + ["text"] * 6


def test_parameters_that_are_refused_are_replaced(ask, endpoint):
    def strict(number, body):
        if "max_tokens" in body:
            return error(400, "'max_tokens' is not supported: use 'max_completion_tokens'.")
        return error(400, "temperature must be 1") if "temperature" in body else verdict("A")

    endpoint.behaviour = strict
    assert ask().n_answered == 6
    assert endpoint.requests[-1].body["max_completion_tokens"] == 512
    assert "response_format" in endpoint.requests[-1].body
    assert len(endpoint.requests) == 8


def test_one_refused_prompt_does_not_change_how_the_others_are_sent(ask, endpoint):
    endpoint.behaviour = lambda number, body: error(400, "too long") if shows_one(body) else verdict("A")
    run = ask(concurrency=1)
    assert (run.n_answered, run.n_left) == (3, 3)
    assert "3 questions failed: HTTP 400: too long." in run.notes
    good = [request for request in endpoint.requests if not shows_one(request.body)]
    assert all(request.body["response_format"]["type"] == "json_schema" for request in good)


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (error(401, "bad key"), "HTTP 401: bad key Check the API key"),
        (error(403), "HTTP 403"),
        (error(404, "no such model"), "HTTP 404: no such model Check the address"),
        (error(402, "no money"), "HTTP 402: no money"),
        (error(307, location="http://example.org/v1"), "redirects to http://example.org/v1"),
        (Response(429, b'{"error": {"message": "no money", "code": "insufficient_quota"}}'), "insufficient_quota"),
    ],
    ids=["401", "403", "404", "402", "307", "quota"],
)
def test_an_endpoint_that_refuses_everything_is_asked_once(trouble, message, ask, endpoint):
    endpoint.behaviour = lambda number, body: trouble
    with pytest.raises(EndpointError, match=message):
        ask()
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_goes_away_loses_nothing(ask, endpoint, tmp_path):
    def leave(number, body):
        return verdict("A") if number < 3 else Response(closes=True)

    endpoint.behaviour = leave
    with pytest.raises(EndpointError, match=r"does not answer: the connection was closed\. 3 of 6 answers are kept"):
        ask(concurrency=1, retries=1)
    assert len(cr.read(tmp_path / "votes.csv")) == 3
    endpoint.behaviour = lambda number, body: verdict("A")
    run = ask()
    assert (run.n_from_journal, run.n_answered) == (3, 6)
    assert sorted(endpoint.answered) == sorted(set(endpoint.answered))


def test_nobody_there_is_said_at_once(ask, endpoint):
    endpoint.go_away()
    with pytest.raises(EndpointError, match=r"does not answer: cannot connect \(.*\)\. 0 of 6 answers are kept"):
        ask(retries=2)


def test_requests_in_flight_are_bounded(ask, endpoint):
    endpoint.behaviour = lambda number, body: verdict("A")._replace(delay=0.05)
    ask(both_orders=True, concurrency=3)
    assert endpoint.most_in_flight == 3


def test_the_rate_is_kept(ask, endpoint):
    start = time.monotonic()  # not when the first request arrives, which may be late on a busy machine
    ask(rate=300, concurrency=6)
    assert endpoint.requests[-1].time - start > 0.95 * 5 * 0.2


def test_two_items_with_one_text_are_asked_about_once(ask, endpoint):
    endpoint.behaviour = by_length
    run = ask(items={"item": ["a", "b", "c"], "text": ["same", "same", "longer"]}, both_orders=True)
    assert run.n_answered == 6
    assert sorted(endpoint.prompts) == sorted(set(endpoint.prompts))


def test_a_change_asks_again_only_what_it_changes(ask, endpoint):
    ask()
    assert ask().n_from_journal == 6
    assert len(endpoint.requests) == 6
    ask(temperature=0.7)
    ask(question="Which is nicer?")
    ask(ties=False)
    ask(llm="other")
    assert len(endpoint.requests) == 6 * 5
    ask(llm=["m", "other"])
    ask(items={"item": ["a", "b", "c", "d", "e"], "text": ["one", "two", "three", "four", "five"]})
    assert len(endpoint.requests) == 6 * 5 + 4, "only the pairs of the new item"


def test_works_where_a_loop_is_running(ask):
    async def notebook():
        return ask().n_answered

    assert asyncio.run(notebook()) == 6


def test_a_dry_run_sends_nothing(ask, endpoint, tmp_path):
    run = ask(dry_run=True, price_in=3.0, price_out=15.0)
    assert (run.n_left, run.n_questions, len(endpoint.requests)) == (6, 6, 0)
    assert 0 < run.expected_cost < run.most_cost
    assert run.prompt.startswith("Which is longer?")
    assert not list(tmp_path.iterdir())


def test_votes_of_others_are_not_overwritten(ask, endpoint, tmp_path):
    (tmp_path / "votes.csv").write_text("left,right,winner\nx,y,x\n")
    with pytest.raises(SettingError, match="exists, but its journal"):
        ask()
    assert not endpoint.requests
    with pytest.raises(FormatError, match="not a journal"):
        ask(journal=tmp_path / "votes.csv")
    assert (tmp_path / "votes.csv").read_text() == "left,right,winner\nx,y,x\n"


def test_people_are_written_with_their_price(ask, endpoint, tmp_path):
    ask(llm=["m", "n"], price_in=[1.0, 0.0], price_out=0.0, people_out=tmp_path / "people.csv")
    people = cr.read_annotators(tmp_path / "people.csv")
    assert people.price == {"m": pytest.approx(100e-6)}
    assert (tmp_path / "people.csv").read_text().splitlines()[2] == "n,llm,n,"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"llm": []}, "at least one model"),
        ({"llm": ["m", "m"]}, "named twice"),
        ({"llm": ["m", "n"], "annotator": "x"}, "cannot be one annotator"),
        ({"llm": ["m", "n"], "price_in": [1.0, 2.0, 3.0]}, "one price, or one per model"),
        ({"endpoint": "localhost:8000"}, "must be a URL"),
        ({"endpoint": "http://user:pass@host/v1"}, "must not hold a password"),
        ({"endpoint": "https://example.org/v1", "budget": 1.0}, "A budget needs prices"),
        ({"budget": -1.0, "price_in": 1.0}, "budget must be positive"),
        ({"rate": 0}, "rate must be positive"),
        ({"price_in": -1.0}, "Prices must be"),
        ({"concurrency": 0}, "concurrency must be at least 1"),
        ({"timeout": 0}, "timeout must be at least"),
        ({"out": None}, "must be kept"),
        ({"key_env": "NOT_SET_ANYWHERE"}, "NOT_SET_ANYWHERE is not set"),
    ],
)
def test_settings_are_checked_before_anything_is_sent(settings, message, ask, endpoint):
    with pytest.raises(SettingError, match=message):
        ask(**settings)
    assert not endpoint.requests


def test_a_response_without_usage_is_estimated(ask, endpoint):
    content = json.dumps({"choices": [{"message": {"content": '{"winner": "A"}'}}]}).encode()
    endpoint.behaviour = lambda number, body: Response(content=content)
    run = ask(price_in=10.0, price_out=10.0)
    prompts = sum(len(prompt) for prompt in endpoint.prompts)
    assert 0.5 < run.spent / (10e-6 * prompts / 3) < 3


def test_a_cost_that_the_endpoint_reports_is_used(ask):
    with FakeEndpoint() as reporting:
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25}
        reporting.behaviour = lambda number, body: completion('{"winner": "A"}', usage=usage)
        assert ask(endpoint=reporting.url).spent == pytest.approx(1.5)
