"""Loops compiled on first use, so that small data never wait for a compiler."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

# From this many rows on, a compiled loop repays loading the compiler. A fixed number, not a measured one:
# the same data must take the same road on every machine, to the last bit.
COMPILE_MIN_ROWS = 100_000

_lock = threading.Lock()


class Compiled:
    """A function that Numba compiles when first called; `uses` are plain functions it calls."""

    def __init__(self, function: Callable[..., Any], uses: Sequence[Callable[..., Any]] = ()):
        self.function = function
        self.uses = uses
        self._fast: Callable[..., Any] | None = None
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Any:
        if self._fast is None:
            with _lock:
                if self._fast is None:
                    self._fast = self._compile()
        return self._fast(*arguments)

    def _compile(self) -> Callable[..., Any]:
        import numba
        from numba.extending import register_jitable

        for helper in self.uses:
            register_jitable(helper)
        fast: Callable[..., Any] = numba.njit(nogil=True, cache=True, error_model="numpy")(self.function)
        return fast


def load_compiler(rows: int) -> None:
    """Ahead of its first use, where so many rows will need it: what is left of memory is known only then."""
    if rows >= COMPILE_MIN_ROWS:
        import numba  # noqa: F401


def compiled(*uses: Callable[..., Any]) -> Callable[[Callable[..., Any]], Compiled]:
    """Decorator: `@compiled(helper, …)`."""
    return lambda function: Compiled(function, uses)
