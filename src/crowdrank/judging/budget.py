"""Limits: the money that requests may cost, and how many are sent per minute."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from crowdrank.errors import SettingError

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
