"""Money: what may be spent is never exceeded, over all runs of a journal."""

from __future__ import annotations

import asyncio
import json

import pytest

from crowdrank.judging.journal import Budget, Journal, Prices, most_tokens
from tests.judging.fake_endpoint import Response, completion, verdict

PRICE = {"price_in": 1000.0, "price_out": 1000.0}
# 100 + 10 tokens, as the fake endpoint reports by default.
COST = 0.11


def spend(ask, endpoint, **settings):
    """What the endpoint charged for, whether or not the client received it."""
    run = ask(both_orders=True, max_tokens=10, **PRICE, **settings)
    return run, COST * len(endpoint.answered)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_the_budget_is_kept_and_used(concurrency, ask, endpoint):
    run, charged = spend(ask, endpoint, budget=1.0, concurrency=concurrency)
    assert run.spent == pytest.approx(charged)
    assert 1.0 - 2.5 * COST < charged <= 1.0
    assert "Stopped at the budget" in run.notes[0]
    assert run.n_left == 12 - run.n_answered


def test_the_budget_counts_all_runs(ask, endpoint):
    for budget in (0.5, 0.5, 1.0, 1.0):
        run, charged = spend(ask, endpoint, budget=budget)
        assert run.spent == pytest.approx(charged)
        assert charged <= budget
    run, charged = spend(ask, endpoint, budget=100.0)
    assert (run.n_left, charged) == (0, pytest.approx(12 * COST))


def test_tokens_beyond_the_limit_cost_at_most_one_request(ask, endpoint):
    """An endpoint that ignores max_tokens: the first answer shows it, and the others are reserved for."""
    endpoint.behaviour = lambda number, body: verdict("A", tokens_in=100, tokens_out=400)
    for _ in range(3):
        ask(both_orders=True, max_tokens=10, llm=["m", "n"], **PRICE, budget=1.2)
        assert 0.5 * len(endpoint.answered) <= 1.2 + 0.5


def test_requests_whose_fate_is_unknown_count_as_spent(ask, endpoint):
    endpoint.behaviour = lambda number, body: Response(closes=True) if number == 0 else verdict("A")
    run, charged = spend(ask, endpoint)
    assert run.spent > charged + 0.5 * COST


def test_garbage_is_paid_for(ask, endpoint):
    endpoint.behaviour = lambda number, body: completion("?")
    run, charged = spend(ask, endpoint, budget=1.0, asks=100)
    assert run.spent == pytest.approx(charged)
    assert charged <= 1.0
    assert run.n_answered == 0


def test_a_budget_below_one_request_sends_nothing(ask, endpoint):
    run, _ = spend(ask, endpoint, budget=0.01)
    assert not endpoint.requests
    assert "Stopped at the budget" in run.notes[0]


def test_a_request_in_flight_at_the_end_of_a_journal_is_spent(tmp_path):
    path = tmp_path / "journal"
    with Journal(path) as journal:
        first, second = journal.sent("a", 0.5), journal.sent("b", 0.25)
        journal.answered("a", first, 0.125, "left", reason="")
        assert journal.spent == 0.125
    assert Journal(path).spent == 0.375
    with Journal(path) as journal:
        assert journal.sent("c", 1.0) == second + 1


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_that_was_cut_is_a_request_in_flight(cut, tmp_path):
    path = tmp_path / "journal"
    with Journal(path) as journal:
        journal.answered("a", journal.sent("a", 0.5), 0.125, "left", reason="")
        journal.answered("b", journal.sent("b", 0.5), 0.125, "right", reason="")
    path.write_bytes(path.read_bytes()[:-cut])
    for _ in range(2):  # the second time, lines follow the one that was cut
        with Journal(path) as journal:
            kept = cut == 1
            assert set(journal.answers) == ({"a", "b"} if kept else {"a"})
            assert journal.spent == (0.25 if kept else 0.625)
            journal.failed("c", journal.sent("c", 1.0), 0.0, "HTTP 500")


def test_a_journal_that_was_cut_in_its_first_line_is_new(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(b'{"crowdrank": "jou')
    with Journal(path) as journal:
        journal.failed("c", journal.sent("c", 1.0), 0.5, "HTTP 500")
    assert Journal(path).spent == 0.5
    assert all(isinstance(json.loads(line), dict) for line in path.read_text().splitlines())


def test_two_runs_cannot_share_a_journal(tmp_path, ask, endpoint):
    with Journal(tmp_path / "votes.csv.journal"), pytest.raises(ValueError, match="another run is using"):
        ask()
    assert not endpoint.requests


def test_a_reservation_waits_for_those_in_flight():
    async def run():
        budget = Budget(1.0)
        first = await budget.reserve(0.9)
        waiting = asyncio.create_task(budget.reserve(0.6))
        await asyncio.sleep(0)
        assert not waiting.done()
        await budget.settle(first, 0.1)
        second = await waiting
        assert await Budget(1.0, spent=0.5).reserve(0.6) is None
        await budget.settle(second, 0.6)
        return budget.spent

    assert asyncio.run(run()) == pytest.approx(0.7)


def test_prices_are_per_million_tokens():
    assert Prices(2.0, 8.0).of(1_000_000, 500_000) == 6.0
    assert most_tokens("word " * 300) > 300
