"""List the results whose models have changed since they were made.

python tools/stale_results.py            print the list
python tools/stale_results.py --strict   print the list, and fail if it is not empty
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

from fingerprints import Block, Fingerprint, differ
from provenance import FILE, ROOT, fingerprints_of

FOLDERS = ("papers/*/results", "benchmarks/results")
NOT_JUDGED = (FILE, "machine.json")


def folders(root: Path) -> list[Path]:
    return sorted(folder for pattern in FOLDERS for folder in root.glob(pattern))


def stale(folder: Path, root: Path) -> Iterator[str]:
    """Yield one line per result that is out of date or has no recorded provenance."""
    place = folder / FILE
    kept: dict[str, Any] = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {}
    made = {file.stem for file in folder.iterdir() if file.name not in NOT_JUDGED}
    for name in sorted(made - kept.keys()):
        yield f"{(folder / name).relative_to(root)}: no provenance is recorded"
    for name, entry in kept.items():
        if reason := why_stale(entry, root):
            yield f"{(folder / name).relative_to(root)} (commit {entry['commit']}, {entry['date']}): {reason}"


def why_stale(entry: Mapping[str, Any], root: Path) -> str:
    """Describe the changes since the result was made; empty if there are none."""
    script = root / entry["script"]
    if not script.exists():
        return f"{entry['script']} no longer exists"
    if "shows" not in entry:
        return ""  # times and sizes have a date only; `make bench-check` reports what became slower
    if not entry["shows"]:
        return "its models are not recorded"
    before = {name: _from_json(found) for name, found in entry["shows"].items()}
    now = fingerprints_of(script)
    changed = [name for name in before if name in now and differ(before[name], now[name])]
    parts = {"changed": changed, "new": now.keys() - before.keys(), "no longer shown": before.keys() - now.keys()}
    return " — ".join(f"{what}: {'; '.join(sorted(names))}" for what, names in parts.items() if names)


def _from_json(kept: Mapping[str, Any]) -> Fingerprint:
    return {kind: Block.from_json(block) for kind, block in kept.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strict", action="store_true", help="fail if any result is out of date")
    parser.add_argument("folder", type=Path, nargs="*", help="folders of results (all)")
    given = parser.parse_args()
    found = [line for folder in given.folder or folders(ROOT) for line in stale(folder.resolve(), ROOT)]
    for line in found:
        print(line)
    print(f"{len(found)} results are out of date: run their scripts again." if found else "All results are up to date.")
    return 1 if given.strict and found else 0


if __name__ == "__main__":
    sys.exit(main())
