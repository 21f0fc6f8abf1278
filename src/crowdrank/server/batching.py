"""Answers on their way. Those that come while others are served wait, and are stored and answered together.

A thread for each would wait for the disk as often, and for the other threads besides: fifty people who answer at once
are served in a few milliseconds each by one thread that never waits for another.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, TypeVar

from crowdrank.server.projection import Person
from crowdrank.storage import Recorded

T = TypeVar("T")
Outcome = Literal["left", "right", "tie", "skip"]
Json = dict[str, Any]

AT_ONCE = 64
"""Turns that are taken together."""


class Said(NamedTuple):
    """To the question with a token."""

    token: str
    outcome: Outcome
    reason: str = ""
    milliseconds: int | None = None


class Turn:
    """One request: whose it is, what was stored, what comes next; or what went wrong on the way."""

    def __init__(self, knock: Callable[[], Person], said: Said | None = None) -> None:
        self.knock, self.said = knock, said
        """Finds out who it is (raises where nobody is to be let in), and what they said, if anything."""
        self.person: Person
        self.recorded: Recorded | None = None
        self.following: Json | None = None
        self._error: Exception | None = None

    @property
    def failed(self) -> bool:
        return self._error is not None

    @property
    def looks(self) -> bool:
        """Whether it is the question they hold that they want to see, if they hold one."""
        return self.recorded is None or self.recorded.replayed

    def let_in(self) -> None:
        self.person = self.knock()

    def step(self, work: Callable[[], T]) -> T | None:
        """What the work gives; where it fails this turn ends, and no other."""
        if self._error is None:
            try:
                return work()
            except Exception as error:  # told to who asked, and logged there
                self.fail(error)
        return None

    def fail(self, error: Exception) -> None:
        self._error = self._error or error

    def question(self) -> Json:
        """The next question; raises what went wrong."""
        if self._error is not None:
            raise self._error
        return self.following or {}

    def answer(self) -> Json:
        """What was stored, and the next question; raises what went wrong."""
        following, said = self.question(), self.recorded
        assert said is not None
        recorded = {"seq": said.seq, "outcome": said.outcome, "winner": said.winner, "at": said.at // 1000}
        return {"recorded": recorded, "replayed": said.replayed, "next": following}


class Queue:
    """Where turns wait for the one thread that takes them."""

    def __init__(self, take: Callable[[Sequence[Turn]], None]) -> None:
        self._take = take
        self._waiting: deque[tuple[Turn, asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._called = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    async def serve(self, turn: Turn) -> Turn:
        """Wait in line; the same turn, taken."""
        loop = asyncio.get_running_loop()
        taken = loop.create_future()
        with self._called:
            self._waiting.append((turn, loop, taken))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="turns", daemon=True)
                self._thread.start()
            self._called.notify()
        await taken
        return turn

    def stop(self) -> None:
        """Those who wait are still served."""
        with self._called:
            thread, self._stopping = self._thread, True
            self._called.notify()
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._called:
                self._called.wait_for(lambda: self._waiting or self._stopping)
                if not self._waiting:
                    return
                now = [self._waiting.popleft() for _ in range(min(len(self._waiting), AT_ONCE))]
            self._serve_all([turn for turn, _, _ in now])
            for loop in {loop for _, loop, _ in now}:
                with suppress(RuntimeError):  # closed meanwhile: nobody waits there any more
                    loop.call_soon_threadsafe(_tell, [taken for _, its, taken in now if its is loop])

    def _serve_all(self, turns: list[Turn]) -> None:
        try:
            self._take(turns)
        except Exception as error:  # the database is away, or worse: each of them is told
            for turn in turns:
                turn.fail(error)


def _tell(taken: list[asyncio.Future[None]]) -> None:
    for one in taken:
        if not one.done():  # who asked may have gone
            one.set_result(None)
