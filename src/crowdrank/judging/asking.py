"""The loop that asks: bounded concurrency, retries, and every request in the journal before it is sent."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from crowdrank.errors import CrowdrankError, EndpointError, SettingError
from crowdrank.judging.endpoint import Dialect, Endpoint, RefusedError, Reply, TransientError
from crowdrank.judging.journal import Budget, Journal, Prices, RateLimit, most_tokens, pause
from crowdrank.judging.prompts import Pair, parse_answer

ShowProgress = Callable[[int, int, str], None]

_LONGEST_BACKOFF = 60.0
_LONGEST_WAIT = 600.0
# So many questions in a row that fail after all retries mean that the endpoint is down.
_MAX_FAILED_IN_A_ROW = 3
_MAX_TEXT_KEPT = 4_000


@dataclass(kw_only=True)
class LLMJudge:
    """A language model, its prices, and what its endpoint was found to understand.

    Parameters
    ----------
    model : str
        Its name at the endpoint.
    annotator : str
        Its name in the votes.
    prices : Prices
        Its prices.
    """

    model: str
    annotator: str
    prices: Prices
    dialect: Dialect = field(default_factory=Dialect)
    proven: bool = False
    """Whether the endpoint has answered. Until then, one request is sent at a time."""
    largest_cost: float = 0.0
    """The most that a request has cost."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A prompt about a pair, for one language model.

    Parameters
    ----------
    judge : LLMJudge
        The model that is asked.
    pair : Pair
        The items, as shown.
    request : mapping
        The body of the request, in the usual dialect.
    key : str
        A hash of everything that is sent. The journal finds the answer by it.
    """

    judge: LLMJudge
    pair: Pair
    request: Mapping[str, Any]
    key: str

    @property
    def prompt(self) -> str:
        text: str = self.request["messages"][0]["content"]
        return text

    @property
    def most_cost(self) -> float:
        """What the request can cost, if the endpoint honours the limit of tokens."""
        return self.judge.prices.of(most_tokens(self.prompt), self.request["max_tokens"])


def make_question(
    judge: LLMJudge, pair: Pair, prompt: str, url: str, settings: Mapping[str, Any], form: Mapping[str, Any]
) -> Question:
    """A question whose key is a hash of the endpoint, the model, the prompt, the settings and the form of answer."""
    request = {"model": judge.model, "messages": [{"role": "user", "content": prompt}], **settings}
    address = url.partition("?")[0].rstrip("/")
    content = json.dumps([address, request, form], sort_keys=True, ensure_ascii=False).encode()
    return Question(judge=judge, pair=pair, request=request, key=hashlib.sha256(content).hexdigest()[:32])


@dataclass(frozen=True, kw_only=True)
class AskingRules:
    """How questions are asked.

    Parameters
    ----------
    ties : bool
        Whether a tie is a valid answer.
    schema : mapping
        The form of the answer as a JSON schema.
    concurrency : int
        The most requests in flight.
    asks : int
        How often to ask a question before giving up on a valid answer.
    retries : int
        How often to send a request again after an error.
    backoff : float
        The seconds before the first retry. They double with each retry.
    """

    ties: bool
    schema: Mapping[str, Any]
    concurrency: int
    asks: int
    retries: int
    backoff: float

    def __post_init__(self) -> None:
        check_at_least(
            concurrency=(self.concurrency, 1),
            asks=(self.asks, 1),
            retries=(self.retries, 0),
            backoff=(self.backoff, 0),
        )


def check_at_least(**numbers: tuple[float, float]) -> None:
    """Raise an error for a number below its minimum."""
    for name, (number, minimum) in numbers.items():
        if not number >= minimum:
            raise SettingError(f"{name} must be at least {minimum:g}, got {number}.")


class Asker:
    """Asks questions and writes the answers to the journal.

    Parameters
    ----------
    endpoint : Endpoint
        Where to ask.
    journal : Journal
        The open journal.
    budget : Budget
        The money left.
    rate : RateLimit
        The rate of requests.
    rules : AskingRules
        How to ask.
    on_progress : callable
        Called with the number of questions done, their total, and a detail.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        journal: Journal,
        budget: Budget,
        rate: RateLimit,
        rules: AskingRules,
        on_progress: ShowProgress,
    ):
        self.endpoint, self.journal, self.budget, self.rate, self.rules = endpoint, journal, budget, rate, rules
        self.on_progress = on_progress
        self.stop = asyncio.Event()
        self.error: CrowdrankError | None = None
        self.interrupted = False
        self.out_of_budget = False
        self.problems: dict[str, int] = {}
        self.n_answers = self.n_cut = 0
        self._failed_in_a_row = 0
        self._first = asyncio.Lock()
        self._random = random.Random()

    async def run(self, questions: Iterable[Question], total: int) -> None:
        """Ask until all questions are done, the budget is used up, or the endpoint fails.

        When the run stops early, requests in flight are waited for, because they are paid for.
        """
        waiting = iter(questions)
        done = 0
        asked: set[str] = set()

        async def work() -> None:
            nonlocal done
            for question in waiting:
                if self.stop.is_set():
                    return
                if question.key in asked:  # two items with the same text
                    continue
                asked.add(question.key)
                await self.ask(question)
                done += 1
                self.on_progress(done, total, f"cost {self.budget.spent:.4f}" if self.budget.spent else "")

        with self.finishing_on_interrupt():
            async with self.endpoint, asyncio.TaskGroup() as group:
                for _ in range(self.rules.concurrency):
                    group.create_task(work())

    async def ask(self, question: Question) -> None:
        """Ask a question whose answer is not in the journal yet. An error is kept, and stops the run."""
        try:
            await self._ask(question)
        except CrowdrankError as error:
            self.error = self.error or error
            self.stop.set()

    @contextmanager
    def finishing_on_interrupt(self) -> Iterator[None]:
        """At the first Ctrl-C, wait for the requests in flight; at the second, stop at once."""
        loop = asyncio.get_running_loop()
        main = asyncio.current_task()

        def interrupt() -> None:
            if self.interrupted and main is not None:
                main.cancel()
            self.interrupted = True
            self.stop.set()

        handled = threading.current_thread() is threading.main_thread()
        if handled:
            try:
                loop.add_signal_handler(signal.SIGINT, interrupt)
            except NotImplementedError:  # Windows
                handled = False
        try:
            yield
        finally:
            if handled:
                loop.remove_signal_handler(signal.SIGINT)

    async def _ask(self, question: Question) -> None:
        if question.judge.proven:
            await self._ask_until_understood(question)
            return
        async with self._first:
            if not question.judge.proven and not self.stop.is_set():
                await self._ask_until_understood(question)
                return
        await self._ask_until_understood(question)

    async def _ask_until_understood(self, question: Question) -> None:
        while not self.stop.is_set() and self.journal.unreadable.get(question.key, 0) < self.rules.asks:
            if not await self._ask_with_retries(question) or question.key in self.journal.answers:
                return

    async def _ask_with_retries(self, question: Question) -> bool:
        """Send a request until it is answered; returns whether it was."""
        dialect, attempt = question.judge.dialect, 0
        while not self.stop.is_set():
            try:
                answered = await self._send(question, dialect)
            except RefusedError as error:
                simpler = dialect.simpler(str(error))
                if simpler is None:
                    self._give_up(str(error), None if question.judge.proven else _MAX_FAILED_IN_A_ROW)
                    return False
                dialect = simpler
                continue
            except TransientError as error:
                attempt += 1
                if attempt > self.rules.retries or error.wait > _LONGEST_WAIT:
                    asks = f", and asks to wait {error.wait:,.0f} s" if error.wait > _LONGEST_WAIT else ""
                    self._give_up(error.reason + asks, _MAX_FAILED_IN_A_ROW if self.n_answers else 1)
                    return False
                if error.wait:
                    self.rate.hold(error.wait)
                else:
                    await pause(self._backoff(attempt), self.stop)
                continue
            if answered:
                # Only what has worked is kept: one refused prompt does not change how the others are sent.
                question.judge.dialect, question.judge.proven = dialect, True
            return answered
        return False

    def _backoff(self, attempt: int) -> float:
        longest = min(self.rules.backoff * 2.0 ** (attempt - 1), _LONGEST_BACKOFF)
        return longest * self._random.uniform(0.5, 1.0)

    def _give_up(self, reason: str, most_in_a_row: int | None) -> None:
        """Count a question that could not be asked, and stop after so many in a row; None if it alone is at fault."""
        self.problems[reason] = self.problems.get(reason, 0) + 1
        if most_in_a_row is None:
            return
        self._failed_in_a_row += 1
        if self._failed_in_a_row >= most_in_a_row:
            raise EndpointError(f"The endpoint does not answer: {reason.rstrip('.')}.")

    async def _send(self, question: Question, dialect: Dialect) -> bool:
        """Send one request; returns False if the run stops before."""
        reserved = max(question.most_cost, question.judge.largest_cost)
        ticket = await self.budget.reserve(reserved)
        if ticket is None:
            self.out_of_budget = True
            self.stop.set()
            return False
        await self.rate.wait(self.stop)
        if self.stop.is_set():
            await self.budget.settle(ticket, 0.0)
            return False
        cost = reserved
        number = self.journal.sent(question.key, reserved)
        try:
            reply = await self.endpoint.send(dialect.body(question.request, self.rules.schema))
            cost = _cost(reply, question)
            self._record(question, number, reply, cost)
        except (TransientError, RefusedError, EndpointError) as error:
            cost = reserved if isinstance(error, TransientError) and error.may_cost else 0.0
            self.journal.failed(question.key, number, cost, self.endpoint.redact(str(error)))
            raise
        finally:
            await self.budget.settle(ticket, cost)
        return True

    def _record(self, question: Question, number: int, reply: Reply, cost: float) -> None:
        self._failed_in_a_row = 0
        self.n_answers += 1
        self.n_cut += reply.cut
        question.judge.largest_cost = max(question.judge.largest_cost, cost)
        verdict = parse_answer(reply.text, ties=self.rules.ties)
        text = self.endpoint.redact(reply.text or "")[:_MAX_TEXT_KEPT]
        pair = question.pair
        self.journal.answered(
            question.key,
            number,
            cost,
            None if verdict is None else verdict.winner,
            annotator=question.judge.annotator,
            query=pair.query,
            left=pair.left,
            right=pair.right,
            reason="" if verdict is None else self.endpoint.redact(verdict.reason),
            text=text,
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
        )


def _cost(reply: Reply, question: Question) -> float:
    """What a request cost: as reported, or by its tokens; tokens that are not reported are estimated."""
    if reply.cost is not None:
        return reply.cost
    tokens_in = most_tokens(question.prompt) if reply.tokens_in is None else reply.tokens_in
    tokens_out = most_tokens(reply.text or "") if reply.tokens_out is None else reply.tokens_out
    return question.judge.prices.of(tokens_in, tokens_out)
