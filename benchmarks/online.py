"""Online models: one pass over the answers, crowdrank compared with trueskill, openskill and evalica's Elo.

python benchmarks/online.py            all of it, written to benchmarks/results/
python benchmarks/online.py --quick    ten thousand answers, printed only
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from pathlib import Path

import figures
import machine
import numpy as np
from measuring import measure
from online_peers import CONTENDERS, OnePass
from report import verdict, write_csv
from votes import pairs_right, truth

from crowdrank.online import CrowdBT, Elo, Glicko2, TrueSkill

_RESULTS = Path(__file__).parent / "results"
SHOWS = {"crowd-bt": CrowdBT(), "elo": Elo(), "glicko2": Glicko2(), "trueskill": TrueSkill()}
SIZES = ((100, 10_000), (1_000, 100_000), (10_000, 1_000_000), (10_000, 10_000_000))
TWINS = {"trueskill rate_1vs1": "crowdrank TrueSkill", "evalica elo, codes": "crowdrank Elo"}
"""The same model with the same settings: who answers as who."""
_ONE_BY_ONE = "crowdrank TrueSkill, a call a judgment"
RIVALS = (
    *((ours, peer) for peer, ours in TWINS.items()),
    (_ONE_BY_ONE, "trueskill rate_1vs1"),
    (_ONE_BY_ONE, "openskill BradleyTerryFull"),
)
"""Who should be quicker than whom: all in one call, and, as these two libraries work, a call a judgment."""
_FIGURE = {
    "crowdrank CrowdBT": "crowdrank, Crowd-BT",
    "crowdrank TrueSkill": "crowdrank, TrueSkill",
    "crowdrank Elo": "crowdrank, Elo",
    _ONE_BY_ONE: "crowdrank, TrueSkill, a call each",
    "trueskill rate_1vs1": "trueskill",
    "openskill BradleyTerryFull": "openskill",
    "evalica elo, codes": "evalica, Elo",
}
_SAME = 1e-3
_LONGEST_REPEATED = 10.0
_SEED = 0


@dataclass(frozen=True)
class Entry:
    """One contender at one size."""

    items: int
    rows: int
    who: str
    status: str
    seconds: float = nan
    microseconds: float = nan
    """A judgment."""
    peak_megabytes: float = nan
    """Beside the answers."""
    accuracy: float = nan
    """Share of pairs of items in their true order."""
    apart: float = nan
    """Largest difference of a score from the twin's, as a share of the scores' standard deviation."""

    @property
    def finished(self) -> bool:
        return not isnan(self.seconds)


class Field:
    """All contenders at one size."""

    def __init__(self, size: tuple[int, int], limit: float):
        self.size, self.limit = size, limit
        self.scores: dict[str, np.ndarray] = {}

    def enter(self, contender: OnePass) -> Entry:
        """Twice where it is short, the faster of the two."""
        entry = self.run(contender)
        if entry.finished and entry.seconds < _LONGEST_REPEATED:
            again = self.run(contender)
            entry = again if again.seconds < entry.seconds else entry
        return entry

    def run(self, contender: OnePass) -> Entry:
        items, rows = self.size
        found = measure(contender, self.size, _SEED, 0.0, self.limit, among="online_peers")
        entry = Entry(items, rows, contender.name, found.status)
        if found.scores is None:
            return entry
        self.scores[contender.name] = found.scores
        return replace(
            entry,
            seconds=found.seconds,
            microseconds=1e6 * found.seconds / rows,
            peak_megabytes=found.peak_megabytes,
            accuracy=pairs_right(found.scores, truth(items, _SEED)),
            apart=self._apart(contender.name),
        )

    def _apart(self, who: str) -> float:
        twin = self.scores.get(TWINS.get(who, ""))
        if twin is None:
            return nan
        return float(np.abs(self.scores[who] - twin).max() / twin.std())


def race(sizes: Sequence[tuple[int, int]], limit: float) -> list[Entry]:
    """Every contender at every size; who should need longer than the limit, by what fewer took, is not asked."""
    found: list[Entry] = []
    known: dict[str, Entry] = {}
    for size in sizes:
        field = Field(size, limit)
        for contender in CONTENDERS:
            before = known.get(contender.name)
            if size[1] > contender.most_rows or (before is not None and not before.finished):
                entry = Entry(*size, contender.name, "not run at this size")
            elif before is not None and before.microseconds * 1e-6 * size[1] > limit:
                entry = Entry(*size, contender.name, f"not run: {before.microseconds * 1e-6 * size[1]:.0f} s to expect")
            else:
                entry = field.enter(contender)
            known[contender.name] = entry
            found.append(entry)
            told = f"{entry.microseconds:.3f} µs a judgment" if entry.finished else entry.status
            print(f"{size[1]:12,}  {entry.who:<40} {told}", flush=True)
    return found


def verdicts(entries: Sequence[Entry]) -> list[str]:
    """Ours is the quicker, and twins answer alike."""
    found = []
    for size in sorted({e.rows for e in entries}):
        here = {e.who: e for e in entries if e.rows == size and e.finished}
        for ours, peer in RIVALS:
            if peer in here and ours in here:
                times = here[peer].seconds / here[ours].seconds
                found.append(verdict(times >= 1, f"{size:,} answers: {ours} beside {peer}: {times:,.2f}× as fast"))
        for peer in (peer for peer in TWINS if peer in here and not isnan(here[peer].apart)):
            apart = here[peer].apart
            told = f"{size:,} answers: {TWINS[peer]} answers as {peer}: scores within {apart:.0e} of their spread"
            found.append(verdict(apart <= _SAME, f"{told} (aim {_SAME:g})"))
    return found


def exponents(entries: Sequence[Entry]) -> dict[str, float]:
    """How the time of a pass grows with answers, of those measured at three sizes or more."""
    points = {c.name: [(e.rows, e.seconds) for e in entries if e.who == c.name and e.finished] for c in CONTENDERS}
    return {who: figures.exponent(of) for who, of in points.items() if len(of) > 2}


def table(entries: Sequence[Entry]) -> str:
    lines = [
        "| answers | items | | a judgment | all | peak memory | pairs right | from its twin |",
        "| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for e in entries:
        start = f"| {e.rows:,} | {e.items:,} | {e.who} | "
        if not e.finished:
            lines.append(start + e.status + " |" * 5)
            continue
        twin = "" if isnan(e.apart) else f"{e.apart:.0e}"
        took = f"{e.microseconds:.3f} µs | {e.seconds:.3f} s | {e.peak_megabytes:,.1f} MB"
        lines.append(start + f"{took} | {e.accuracy:.4f} | {twin} |")
    return "\n".join(lines) + "\n"


def page(entries: Sequence[Entry], told: Sequence[str], described: str, limit: float) -> str:
    grown = "\n".join(f"| {who} | {power:.2f} |" for who, power in exponents(entries).items())
    return (
        f"# Online models, one pass\n\n{described}\n\nTimes are the best of several; a pass may take {limit:.0f} s. "
        "../README.md describes the method.\n\n## Verdicts\n\n```\n"
        + "\n".join(told)
        + "\n```\n\n## Passes\n\n"
        + table(entries)
        + "\n## Growth\n\nTime grows as this power of the answers:\n\n| | power |\n| --- | ---: |\n"
        + grown
        + "\n"
    )


def draw_figure(entries: Sequence[Entry], folder: Path) -> None:
    lines = {
        line: [(e.rows, e.seconds) for e in entries if e.who == who and e.finished] for who, line in _FIGURE.items()
    }
    panel = figures.Panel("One pass over the answers", lines, "answers")
    figures.draw([panel], folder / "online-growth.svg", width=430, height=300)


def write(entries: Sequence[Entry], text: str, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_csv(entries, out / "online.csv")
    (out / "online.md").write_text(text, encoding="utf-8")
    machine.record(Path(__file__), out, "online")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the smallest size only, printed only")
    parser.add_argument("--most-rows", type=float, default=1e9, help="sizes with no more answers than this")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a contender may take for one pass")
    parser.add_argument("--out", type=Path, help="where to write; benchmarks/results for a full run")
    options = parser.parse_args()
    sizes = [size for size in (SIZES[:1] if options.quick else SIZES) if size[1] <= options.most_rows]
    out = options.out or (_RESULTS if sizes == list(SIZES) else None)
    described = machine.sentence(machine.describe())
    entries = race(sizes, options.limit)
    told = verdicts(entries)
    print("\n" + table(entries) + "\n" + "\n".join(told))
    if out is not None:
        write(entries, page(entries, told, described, options.limit), out)
        draw_figure(entries, out if options.out else figures.IMAGES)


if __name__ == "__main__":
    main()
