"""Description of the machine that the measurements were made on, without anything that identifies it."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))

from fingerprints import Sampled as Sampled
from fingerprints import StandardErrors as StandardErrors
from provenance import made
from provenance import record as record

_LIBRARIES = (
    "crowdrank",
    "numpy",
    "scipy",
    "numba",
    "polars",
    "narwhals",
    "arena-rank",
    "jax",
    "choix",
    "crowd-kit",
    "evalica",
    "openskill",
    "pandas",
    "scikit-learn",
    "trueskill",
)


def describe() -> dict[str, Any]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gigabytes": _memory(),
        "system": platform.system(),
        "made": str(made()),
        "load_at_start": [round(load, 2) for load in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in _LIBRARIES},
    }


def sentence(described: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in described["libraries"].items())
    return (
        f"{described['processor']}, {described['cores']} cores, {described['memory_gigabytes']} GB, "
        f"{described['system']}, Python {described['python']}; {versions}; load at start {described['load_at_start']}. "
        f"{described['made']}"
    )


def write(described: dict[str, Any], path: Path) -> None:
    path.write_text(json.dumps(described, indent=2) + "\n")


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists() and (found := re.search(r"model name\s*:\s*(.+)", listing.read_text())):
        return found[1].strip()
    return platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        import psutil
    except ImportError:
        return None
    return round(float(psutil.virtual_memory().total) / 1024**3, 1)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    print(json.dumps(describe(), indent=2))
