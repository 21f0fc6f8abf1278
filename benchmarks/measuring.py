"""Run one library in its own process, so that its peak memory, threads and compiled code are separate.

A field is a module with `CONTENDERS` and with `draw(*size, seed)`, which makes what each of them loads.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from peers import Contender
from votes import Scores

# A repetition costs little where a fit is short: go on until this many were made or this many seconds spent.
_MOST_REPETITIONS, _ENOUGH_SECONDS = 30, 2.0
# Seconds to import, warm up and load: not measured, but not without end either.
_LONGEST_PREPARATION = 900.0
_WARM_SEED = 1_000_003


@dataclass(frozen=True)
class Measured:
    """What one process reports; without scores where it did not get that far."""

    status: str
    """ok, did not finish, not installed, or what went wrong."""
    seconds: float = float("nan")
    build_seconds: float = float("nan")
    peak_megabytes: float = float("nan")
    aside: dict[str, float] = field(default_factory=dict)
    """What the contender tells of itself, off the clock."""
    scores: Scores | None = None


def measure(
    contender: Contender, size: Sequence[int], seed: int, setting: float, limit: float, among: str = "peers"
) -> Measured:
    """Start the process, wait until it has its data, then give it `limit` seconds; `among` names its field."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        job = [among, contender.name, json.dumps(list(size)), str(seed), str(setting), folder]
        with (out / "errors").open("w") as errors:
            process = subprocess.Popen([sys.executable, __file__, *job], stdout=subprocess.PIPE, stderr=errors)
            status = _wait(process, limit)
        if status != "ok":
            return Measured(status)
        told = json.loads((out / "measured.json").read_text())
        if told["status"] != "ok":
            return Measured(told["status"])
        return Measured(**told, scores=np.load(out / "scores.npy"))


def _wait(process: subprocess.Popen[bytes], limit: float) -> str:
    assert process.stdout is not None
    patience = threading.Timer(_LONGEST_PREPARATION, process.kill)
    patience.start()
    try:
        with process.stdout as pipe:
            pipe.readline()  # "ready", or nothing if it has ended
        patience.cancel()
        code = process.wait(limit)
    except subprocess.TimeoutExpired:
        return "did not finish"
    finally:
        patience.cancel()
        process.kill()
        process.wait()
    return "ok" if code == 0 else f"failed: exit status {code}"


def keep_compiled(folder: str) -> None:
    """Where JAX may keep what it compiled, for the contender that asks it to."""
    os.environ["JAX_COMPILATION_CACHE_DIR"] = folder
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"


def _memory(field: str) -> float:
    """Megabytes: `VmRSS` now, `VmHWM` at most. Where the system cannot say, the most since the start."""
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(rf"{field}:\s+(\d+) kB", status.read_text())):
        return int(found[1]) / 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1024 if sys.platform != "darwin" else most / 1024**2


def _forget_peak() -> None:
    file = Path("/proc/self/clear_refs")
    if file.exists():
        file.write_text("5")


def _give_back() -> None:
    """Return freed memory to the system: what the warm-up left lying about would hide what the fit needs."""
    gc.collect()
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)


def _run(contender: Contender, draw: Any, size: list[int], seed: int, setting: float) -> tuple[dict[str, Any], Any]:
    for small in contender.warm:
        contender.fit(contender.build(contender.load(draw(*small, _WARM_SEED))), setting)
    native = contender.load(draw(*size, seed))
    if contender.rehearses:
        contender.fit(contender.build(native), setting)
    _give_back()
    print("ready", flush=True)

    before = _memory("VmRSS")
    _forget_peak()
    builds: list[float] = []
    fits: list[float] = []
    peak = float("nan")
    while not fits or (len(fits) < _MOST_REPETITIONS and sum(builds) + sum(fits) < _ENOUGH_SECONDS):
        given = contender.fresh(native)
        start = time.perf_counter()
        built = contender.build(given)
        middle = time.perf_counter()
        found = contender.fit(built, setting)
        end = time.perf_counter()
        if not fits:
            peak = _memory("VmHWM") - before
        builds.append(middle - start)
        fits.append(end - middle)
        del built
    told = {
        "status": "ok",
        "seconds": min(fits),
        "build_seconds": min(builds) if contender.builds else 0.0,
        "peak_megabytes": max(peak, 0.0),
        "aside": contender.aside(native),
    }
    return told, np.asarray(contender.scores(found, size[0]), dtype=np.float64)


def _main() -> None:
    among, name, size, seed, setting, folder = sys.argv[1:]
    entered = importlib.import_module(among)
    contender = next(c for c in entered.CONTENDERS if c.name == name)
    out = Path(folder)
    warnings.simplefilter("ignore")  # a contender that stops short is found out by its log-likelihood
    try:
        importlib.import_module(contender.module)
    except ImportError:
        told: dict[str, Any] = {"status": "not installed"}
    else:
        try:
            told, scores = _run(contender, entered.draw, json.loads(size), int(seed), float(setting))
            np.save(out / "scores.npy", scores)
        except Exception as error:
            told = {"status": f"failed: {type(error).__name__}: {str(error)[:80]}"}
    (out / "measured.json").write_text(json.dumps(told))


if __name__ == "__main__":
    _main()
