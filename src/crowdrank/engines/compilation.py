"""Numba functions that are compiled on first use, so that small data never wait for the compiler."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

# From this many rows on, loading the compiler pays off. A fixed number, not a measured time: the same data must take
# the same code path on every machine, so that results agree to the last bit.
COMPILE_MIN_ROWS = 100_000

_lock = threading.Lock()


class Compiled:
    """A function that Numba compiles when first called; `uses` are the plain Python functions that it calls."""

    def __init__(self, function: Callable[..., Any], uses: Sequence[Callable[..., Any]] = ()):
        self.function = function
        self.uses = uses
        self._compiled: Callable[..., Any] | None = None
        self.__doc__ = function.__doc__

    def __call__(self, *arguments: Any) -> Any:
        if self._compiled is None:
            with _lock:
                if self._compiled is None:
                    self._compiled = self._compile()
        return self._compiled(*arguments)

    def _compile(self) -> Callable[..., Any]:
        import numba
        from numba.extending import register_jitable

        for helper in self.uses:
            register_jitable(helper)
        function: Callable[..., Any] = numba.njit(nogil=True, cache=True, error_model="numpy")(self.function)
        return function


def preload_compiler(rows: int) -> None:
    """Import Numba before memory is measured, if a table of this size will need it."""
    if rows >= COMPILE_MIN_ROWS:
        import numba  # noqa: F401


def compiled(*uses: Callable[..., Any]) -> Callable[[Callable[..., Any]], Compiled]:
    """Decorator: `@compiled(helper, …)`."""
    return lambda function: Compiled(function, uses)
