"""The journal of a run: what was sent and what came back, so that nothing that was paid for is lost or asked twice.

A file of JSON lines, only ever appended to and forced to disk line by line:

- ``{"sent": KEY, "n": 7, "reserved": 0.002}`` before a request is sent,
- ``{"answer": KEY, "n": 7, "cost": 0.001, …}`` when an answer has come, understood or not,
- ``{"failed": KEY, "n": 7, "cost": 0, "why": "HTTP 503"}`` when none has.

A request without an answer and without a failure was in flight when the program was killed. It may have been paid
for, so its reservation counts as spent, and its question is asked again.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from crowdrank.errors import CrowdrankError, FormatError, SettingError

# Limits: the money that requests may cost, and how many are sent per minute.

# Most tokenizers make a token of 4 to 5 bytes of English, and of about 3 bytes of other languages and of code.
_BYTES_PER_TOKEN, _FEWEST_BYTES_PER_TOKEN = 4.5, 3.0
_TOKENS_AROUND_A_PROMPT = 20
_PER_PRICE = 1e6


@dataclass(frozen=True)
class Prices:
    """Prices of a language model.

    Parameters
    ----------
    tokens_in, tokens_out : float
        The price of a million tokens of the prompt and of the answer.

    Examples
    --------
    >>> Prices(2.5, 10.0).of(400, 20)
    0.0012
    """

    tokens_in: float = 0.0
    tokens_out: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.tokens_in < float("inf") and 0 <= self.tokens_out < float("inf")):
            raise SettingError(f"Prices must be 0 or more, got {self.tokens_in} and {self.tokens_out}.")

    def __bool__(self) -> bool:
        return bool(self.tokens_in or self.tokens_out)

    def of(self, tokens_in: float, tokens_out: float) -> float:
        """The price of one request."""
        return (tokens_in * self.tokens_in + tokens_out * self.tokens_out) / _PER_PRICE


def expected_tokens(prompt: str) -> float:
    """About how many tokens a prompt has."""
    return len(prompt.encode()) / _BYTES_PER_TOKEN + _TOKENS_AROUND_A_PROMPT


def most_tokens(prompt: str) -> float:
    """How many tokens a prompt has at most, with nearly all tokenizers."""
    return len(prompt.encode()) / _FEWEST_BYTES_PER_TOKEN + _TOKENS_AROUND_A_PROMPT


class Budget:
    """Money that may be spent. A request reserves what it may cost at most before it is sent.

    Parameters
    ----------
    limit : float or None
        The most that may be spent; None for no limit.
    spent : float, default 0.0
        What was spent before.
    """

    def __init__(self, limit: float | None, spent: float = 0.0):
        if limit is not None and not limit > 0:
            raise SettingError(f"The budget must be positive, got {limit}.")
        self.limit, self.spent = limit, spent
        self._held: dict[int, float] = {}
        self._tickets = 0
        self._changed = asyncio.Condition()

    async def reserve(self, amount: float) -> int | None:
        """Reserve an amount and return a ticket; None if it does not fit, even after all requests in flight."""
        async with self._changed:
            while self.limit is not None and self.spent + sum(self._held.values()) + amount > self.limit:
                if not self._held:
                    return None
                await self._changed.wait()
            self._tickets += 1
            self._held[self._tickets] = amount
            return self._tickets

    async def settle(self, ticket: int, cost: float) -> None:
        """Replace a reservation by the real cost."""
        async with self._changed:
            del self._held[ticket]
            self.spent += cost
            self._changed.notify_all()


class RateLimit:
    """Spreads requests evenly over time, and holds all of them back when the endpoint asks for it.

    Parameters
    ----------
    per_minute : float or None
        The most requests per minute; None for no limit.
    """

    def __init__(self, per_minute: float | None):
        if per_minute is not None and not per_minute > 0:
            raise SettingError(f"The rate must be positive, got {per_minute}.")
        self._interval = 0.0 if per_minute is None else 60.0 / per_minute
        self._next = 0.0
        self._held_until = 0.0

    def hold(self, seconds: float) -> None:
        """Send nothing for this time."""
        self._held_until = max(self._held_until, asyncio.get_running_loop().time() + seconds)

    async def wait(self, stop: asyncio.Event) -> None:
        """Wait until the next request may be sent, or until the run stops."""
        clock = asyncio.get_running_loop().time
        slot = max(clock(), self._next)
        self._next = slot + self._interval
        while (delay := max(slot, self._held_until) - clock()) > 0 and not stop.is_set():
            await pause(delay, stop)


async def pause(seconds: float, stop: asyncio.Event) -> None:
    """Sleep, but not beyond the moment when the run stops."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return


_HEADER = b'{"crowdrank": "journal of judge", "version": 1}'


class Journal:
    """The answers so far, and the file to which more are appended.

    Parameters
    ----------
    path : Path or None
        The file, which is created when the journal is opened. None for an empty journal that cannot be opened.

    Attributes
    ----------
    answers : dict of str to dict
        The understood answer of each request, by key.
    unreadable : dict of str to int
        The number of answers that were not understood, by key.
    spent : float
        What all requests cost, including those whose fate is unknown.
    """

    def __init__(self, path: Path | None):
        self.path = path
        self._file: IO[bytes] | None = None
        self._load()

    def _load(self) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self.unreadable: dict[str, int] = {}
        self.spent = 0.0
        self._open: dict[int, float] = {}
        self._last = 0
        header, *lines = self.path.read_bytes().split(b"\n") if self.path is not None and self.path.exists() else [b""]
        if not _HEADER.startswith(header):
            raise FormatError(f"{self.path}: not a journal of `crowdrank judge`.", remedy="Choose another file.")
        # A line that was cut when the program was killed is not valid JSON: its request stays in flight.
        for line in lines:
            if (entry := _parse(line)) is not None:
                self._apply(entry)
        self.spent += sum(self._open.values())
        self._open.clear()

    def _apply(self, entry: Mapping[str, Any]) -> None:
        number = entry["n"]
        self._last = max(self._last, number)
        if "sent" in entry:
            self._open[number] = entry["reserved"]
            return
        self._open.pop(number, None)
        self.spent += entry["cost"]
        if "answer" not in entry:
            return
        if entry["winner"] is None:
            self.unreadable[entry["answer"]] = self.unreadable.get(entry["answer"], 0) + 1
        else:
            self.answers[entry["answer"]] = dict(entry)

    def __enter__(self) -> Self:
        """Open the file for appending, by this process alone."""
        if self.path is None:
            raise SettingError("This journal has no file.")
        try:
            self._file = self.path.open("ab+")
        except OSError as error:
            raise FormatError(f"{self.path}: the journal cannot be written ({error.strerror}).") from error
        try:
            _lock(self._file, self.path)
            self._load()
        except CrowdrankError:
            self._file.close()
            raise
        size = self._file.seek(0, os.SEEK_END)
        if size <= len(_HEADER):  # new, or killed while the first line was written
            self._file.truncate(0)
            self._write(_HEADER + b"\n")
        else:
            self._file.seek(size - 1)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def sent(self, key: str, reserved: float) -> int:
        """Record that a request will now be sent; returns its number."""
        self._last += 1
        self._record({"sent": key, "n": self._last, "reserved": reserved})
        return self._last

    def answered(self, key: str, number: int, cost: float, winner: str | None, **details: Any) -> None:
        """Record an answer; `winner` is None if it was not understood."""
        self._record({"answer": key, "n": number, "cost": cost, "winner": winner, **details})

    def failed(self, key: str, number: int, cost: float, why: str) -> None:
        """Record that no answer came."""
        self._record({"failed": key, "n": number, "cost": cost, "why": why})

    def largest_cost(self, annotator: str) -> float:
        """The most that an understood answer of an annotator has cost."""
        return max(
            (answer["cost"] for answer in self.answers.values() if answer["annotator"] == annotator), default=0.0
        )

    def _record(self, entry: Mapping[str, Any]) -> None:
        self._write(json.dumps(entry).encode() + b"\n")
        self._apply(entry)

    def _write(self, line: bytes) -> None:
        assert self._file is not None, "the journal is not open"
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _lock(file: IO[bytes], path: Path) -> None:
    """Two runs on one journal would ask everything twice."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise SettingError(f"{path}: another run is using this journal.", remedy="Wait for it, or stop it.") from error
