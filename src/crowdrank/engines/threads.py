"""Small matrices are worked on by one thread: on a busy machine several wait for each other, a thousand times longer
than the work takes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

# Beyond this many rows a matrix repays more threads than one.
_SMALL = 500

_lock = threading.Lock()
_inside = 0
_limits = ExitStack()


@contextmanager
def limit_blas_threads(size: int) -> Iterator[None]:
    """Linear algebra on matrices of this size, in one thread if they are small; who leaves last lifts the limit."""
    global _inside
    if size > _SMALL:
        yield
        return
    with _lock:
        if _inside == 0:
            _limits.enter_context(_libraries().limit(limits=1, user_api="blas"))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _limits.close()


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
