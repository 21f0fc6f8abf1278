"""Print the tables of docs/benchmarks.md from the results of the last run.

python benchmarks/tables.py            from benchmarks/results/
python benchmarks/tables.py FOLDER     from what was written elsewhere with --out
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

_RESULTS = Path(__file__).parent / "results"
Record = dict[str, str]

FITS = {
    "**crowdrank**": ("crowdrank BradleyTerry",),
    "scikit-learn, best solver": ("scikit-learn lbfgs", "scikit-learn newton-cg"),
    "NumPy and L-BFGS": ("numpy L-BFGS",),
    "arena-rank, as it comes": ("arena-rank BradleyTerry",),
    "arena-rank, the same votes compiled before": ("arena-rank BradleyTerry, compiled before",),
    "evalica, given lists": ("evalica bradley_terry, lists",),
    "evalica, given codes and their index": ("evalica bradley_terry, codes",),
    "choix, `ilsr_pairwise`": ("choix ilsr_pairwise",),
    "crowd-kit": ("crowd-kit BradleyTerry",),
}
CROWDS = {
    "**crowdrank**": ("crowdrank CrowdBT",),
    "NumPy and L-BFGS": ("numpy L-BFGS",),
    "crowd-kit, `NoisyBradleyTerry`": ("crowd-kit NoisyBradleyTerry",),
}


def read(path: Path) -> list[Record]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def rounded(seconds: float) -> str:
    """Two figures: 1.2 ms, 0.38 s, 41 s."""
    if seconds < 0.1:
        return f"{float(f'{seconds * 1e3:.2g}'):g} ms"
    return f"{float(f'{seconds:.2g}'):g} s"


def grid(records: Sequence[Record], lines: dict[str, tuple[str, ...]], cell: Callable[[Record], str]) -> str:
    """A row a line, a column a size; of several records for a cell, the fastest."""
    sizes = sorted({(int(r["items"]), int(r["rows"])) for r in records}, key=lambda size: (size[1], size[0]))
    text = ["| | " + " | ".join(f"{items:,} items, {rows:,}" for items, rows in sizes) + " |"]
    text.append("|---" * (1 + len(sizes)) + "|")
    for line, names in lines.items():
        cells = []
        for size in sizes:
            here = [r for r in records if (int(r["items"]), int(r["rows"])) == size and _name(r) in names]
            here.sort(key=lambda r: float(r["seconds"] or "inf"))
            cells.append((cell(here[0]) if here[0]["seconds"] else here[0]["status"]) if here else "")
        text.append(f"| {line} | " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def _name(record: Record) -> str:
    return record["who"] if "who" in record else f"{record['family']} {record['way']}"


def took(record: Record) -> str:
    return rounded(float(record["seconds"]) + float(record.get("build_seconds") or 0))


def right(record: Record) -> str:
    return f"{float(record['accuracy']):.3f}" if record.get("accuracy") else ""


def memory(record: Record) -> str:
    return f"{float(record['peak_megabytes']):,.0f} MB" if record.get("peak_megabytes") else ""


def online(records: Sequence[Record]) -> dict[str, tuple[str, ...]]:
    return {name: (name,) for name in dict.fromkeys(r["who"] for r in records)}


def main(folder: Path) -> None:
    fits, crowds, passes = (read(folder / f"{name}.csv") for name in ("bradley_terry", "crowd_bt", "online"))
    for title, records, lines in (
        ("Bradley-Terry", fits, FITS),
        ("Crowd-BT", crowds, CROWDS),
        ("Online", passes, online(passes)),
    ):
        if records and "items" in records[0]:
            for what, cell in (("time", took), ("peak memory", memory), ("pairs in their true order", right)):
                print(f"## {title}: {what}\n\n{grid(records, lines, cell)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else _RESULTS)
