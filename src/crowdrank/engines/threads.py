"""Limit BLAS to one thread for small matrices.

On a busy machine several threads wait for each other up to a thousand times longer than a small operation takes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

# From this many rows on, several threads pay off.
_MAX_SINGLE_THREADED = 500

_lock = threading.Lock()
_users = 0
_limits = ExitStack()


@contextmanager
def limit_blas_threads(size: int) -> Iterator[None]:
    """Run BLAS single-threaded if matrices have at most 500 rows. The last user to leave lifts the limit."""
    global _users
    if size > _MAX_SINGLE_THREADED:
        yield
        return
    with _lock:
        if _users == 0:
            _limits.enter_context(_libraries().limit(limits=1, user_api="blas"))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limits.close()


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
