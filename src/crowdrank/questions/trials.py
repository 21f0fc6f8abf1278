"""Trials of a simulation, one after another or in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from crowdrank.errors import SettingError

Played = TypeVar("Played")


def play_all(play: Callable[[int], Played], trials: int, processes: int = 1) -> Iterator[Played]:
    """What comes of each trial, in their order, whatever the number of processes.

    More than one process can only be started from a program that guards its main part.
    """
    if processes < 1:
        raise SettingError(f"processes must be at least 1, got {processes}.")
    if min(processes, trials) == 1:
        yield from map(play, range(trials))
        return
    import signal
    from concurrent.futures import ProcessPoolExecutor
    from functools import partial
    from multiprocessing import get_context

    # an interrupted process ends at once, without a traceback of its own
    quietly = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    # threads of ours may hold locks that a forked process would wait for
    with ProcessPoolExecutor(min(processes, trials), get_context("spawn"), quietly) as pool:
        yield from pool.map(play, range(trials))
