"""Provenance of results: date, commit, and fingerprints of the models that they show.

Each folder of results has a `provenance.json`. A script declares the contents of its results in a global `SHOWS`:
models, online models, policies and simulated crowds, by name. `stale_results.py` compares the stored fingerprints with
those of the current code.
"""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILE = "provenance.json"
CODE = ("src", "tools", "papers/*.py", "benchmarks/*.py")
"""Files whose uncommitted changes are marked in the provenance."""


@dataclass(frozen=True)
class Made:
    commit: str
    """Short hash, with "+changes" if there were uncommitted changes; empty without git."""
    date: str

    def __str__(self) -> str:
        where = f" at commit {self.commit}" if self.commit else ""
        return f"Made{where} on {self.date}."


@cache
def made() -> Made:
    """Commit and date of this process. Call it at the start, because the code may change while it runs."""
    commit = _git("rev-parse", "--short", "HEAD")
    changed = commit and _git("status", "--porcelain", "--", *CODE)
    return Made(commit + ("+changes" if changed else ""), datetime.now(UTC).date().isoformat())


def _git(*arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def record(script: Path, folder: Path, *names: str, when: Made | None = None) -> None:
    """Record when results were made and which models they show; `names` are their file names without suffix."""
    when, place = when or made(), folder / FILE
    kept = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    entry: dict[str, Any] = {"script": _relative(script), "commit": when.commit, "date": when.date}
    if prints := fingerprints_of(script):
        entry["shows"] = {name: {kind: b.to_json() for kind, b in found.items()} for name, found in prints.items()}
    kept |= dict.fromkeys(names, entry)
    text = ",\n".join(f'"{name}": {_one_line_each(kept[name])}' for name in sorted(kept))
    place.write_text(f"{{\n{text}\n}}\n", encoding="utf-8", newline="\n")


def _one_line_each(entry: Mapping[str, Any]) -> str:
    """Format with one line per model, so that a changed model is one changed line in a diff."""
    lines = [f'  "{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in entry.items() if key != "shows"]
    if "shows" in entry:
        shown = ",\n".join(
            f"    {json.dumps(n, ensure_ascii=False)}: {json.dumps(f)}" for n, f in entry["shows"].items()
        )
        lines.append(f'  "shows": {{\n{shown}\n  }}')
    return "{\n" + ",\n".join(lines) + "\n}"


def fingerprints_of(script: Path) -> dict[str, Any]:
    """Fingerprints of everything that a script's results show, by name."""
    from fingerprints import fingerprint

    found = {}
    with shows(script) as every:
        for name, shown in every.items():
            # equal settings are fitted once for all scripts; the key is the repr, because settings may not be hashable
            key = (type(shown).__module__, repr(shown))
            if not is_dataclass(shown) or key not in _FITTED:
                _FITTED[key] = fingerprint(shown)
            found[name] = _FITTED[key]
    return found


_FITTED: dict[tuple[str, str], Any] = {}


@contextmanager
def shows(script: Path) -> Iterator[Mapping[str, Any]]:
    """The global SHOWS of a script, which is loaded but not run; empty if its results are times only.

    The modules next to the script stay loaded until exit: Numba compiles and caches functions by their module.
    """
    path, modules = sys.path[:], set(sys.modules)
    sys.path[:0] = [str(script.resolve().parent), str(script.resolve().parents[1])]
    try:
        yield runpy.run_path(str(script), run_name="shown").get("SHOWS", {})
    finally:
        sys.path[:] = path
        # scripts in other folders have modules with the same names
        for name in set(sys.modules) - modules:
            if _beside(script, sys.modules[name]):
                del sys.modules[name]


def _beside(script: Path, module: Any) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).parent in (script.resolve().parent, script.resolve().parents[1])


def _relative(script: Path) -> str:
    script = script.resolve()
    return script.relative_to(ROOT).as_posix() if script.is_relative_to(ROOT) else script.as_posix()
