"""Crowd-BT compared with crowd-kit's noisy Bradley-Terry and with a short NumPy program.

python benchmarks/crowd_bt.py            all of it, written to benchmarks/results/
python benchmarks/crowd_bt.py --quick    the two smallest sizes, crowd-kit at the first only; printed only
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from pathlib import Path
from typing import Any

import figures
import machine
import numpy as np
from crowd_peers import CONTENDERS, JOINT, Drawn, NumPy, OfCrowds, draw
from measuring import Measured, measure
from peers import OURS, rungs
from report import BAR, duration, verdict, write_csv
from votes import pairs_right, truth

__all__ = ["JOINT", "NumPy", "clock", "draw"]

_RESULTS = Path(__file__).parent / "results"
SHOWS = {"crowd-bt": JOINT}
SIZES = (
    (100, 100, 4_000),
    (100, 100, 10_000),
    (1_000, 1_000, 100_000),
    (10_000, 10_000, 1_000_000),
    (10_000, 10_000, 10_000_000),
)
_MOST_GRADIENTS, _LINEAR = 60.0, 1.1
# A fit longer than this is not repeated.
_LONGEST_REPEATED = 10.0
_SEED = 0


@dataclass(frozen=True)
class Entry:
    """One library at one size."""

    items: int
    annotators: int
    rows: int
    who: str
    setting: float
    status: str
    seconds: float = nan
    times_ours: float = nan
    peak_megabytes: float = nan
    """Peak memory in addition to the answers."""
    log_likelihood: float = nan
    """Log-likelihood of the training answers under its own model."""
    objective: float = nan
    """The objective with Crowd-BT's priors; nan for other models."""
    shortfall: float = nan
    """Relative difference from the highest objective that was reached."""
    held_out: float = nan
    """Mean log probability of held-out answers."""
    accuracy: float = nan
    """Share of pairs of items in their true order."""
    gradients: float = nan
    """Time of the fit divided by the time of one pass for value and gradient."""
    processor_gradients: float = nan
    """The same in processor time."""
    passes: float = nan

    @property
    def finished(self) -> bool:
        return not isnan(self.seconds)


def clock(fit: Callable[[], Any], repetitions: int = 5) -> tuple[float, Any]:
    """The best time of several runs, and the result."""
    best, found = np.inf, None
    for _ in range(repetitions):
        begun = time.perf_counter()
        found = fit()
        best = min(best, time.perf_counter() - begun)
    return best, found


class Field:
    """All libraries at one size, with the highest objective that any of them reached."""

    def __init__(self, size: tuple[int, int, int], limit: float):
        self.size, self.limit = size, limit
        self.drawn: Drawn = draw(*size, _SEED)
        self.scale = NumPy(self.drawn[0])
        self.highest = -np.inf
        self.ours = nan

    def enter(self, contender: OfCrowds, before: Entry | None) -> Entry:
        """Run twice with the loosest tolerance that gets near the highest objective, or with the closest one."""
        took = before.setting if before is not None and before.finished else None
        best: Entry | None = None
        for setting in rungs(contender.settings, took):
            entry = self.run(contender, setting)
            if best is None or not entry.objective <= best.objective:
                best = entry
            if not entry.finished or not entry.objective < self.highest - BAR * abs(self.highest):
                break
        assert best is not None
        if best.finished and best.seconds < _LONGEST_REPEATED:
            again = self.run(contender, best.setting)
            best = again if again.seconds < best.seconds else best
        if contender.family == OURS:
            self.ours = best.seconds
        return replace(best, times_ours=best.seconds / self.ours)

    def run(self, contender: OfCrowds, setting: float) -> Entry:
        found = measure(contender, self.size, _SEED, setting, self.limit, among="crowd_peers")
        entry = Entry(*self.size, contender.name, setting, found.status)
        return entry if found.scores is None else self._graded(entry, contender, found)

    def _graded(self, entry: Entry, contender: OfCrowds, found: Measured) -> Entry:
        assert found.scores is not None
        items, annotators, _ = self.size
        chance = contender.chance(found.scores, items, annotators)
        objective = nan if contender.has_bias else -self.scale.objective(found.scores)[0]
        self.highest = max(self.highest, objective) if not isnan(objective) else self.highest
        gradient = found.aside.get("gradient_seconds", nan)
        return replace(
            entry,
            seconds=found.seconds,
            peak_megabytes=found.peak_megabytes,
            objective=objective,
            log_likelihood=_log_chance(chance(self.drawn[0])).sum(),
            held_out=_log_chance(chance(self.drawn[1])).mean(),
            accuracy=pairs_right(found.scores[:items], truth(items, _SEED)),
            gradients=found.seconds / gradient,
            processor_gradients=found.aside.get("processor_gradients", nan),
            passes=found.aside.get("passes", nan),
        )

    def judged(self, entries: Sequence[Entry]) -> list[Entry]:
        return [replace(e, shortfall=(self.highest - e.objective) / abs(self.highest)) for e in entries]


def _log_chance(chance: Any) -> Any:
    return np.log(np.maximum(chance, 1e-300))


def race(sizes: Sequence[tuple[int, int, int]], limit: float, kit_rows: int) -> list[Entry]:
    """Run every library at every size; one that did not finish with fewer answers is not run again."""
    found: list[Entry] = []
    known: dict[str, Entry] = {}
    for size in sizes:
        field, here = Field(size, limit), []
        for contender in CONTENDERS:
            before = known.get(contender.name)
            if contender.family == "crowd-kit" and size[-1] > kit_rows:
                entry = Entry(*size, contender.name, nan, "not run at this size")
            elif before is not None and not before.finished:
                entry = Entry(*size, contender.name, nan, before.status if "not inst" in before.status else "not run")
            else:
                entry = field.enter(contender, before)
            known[contender.name] = entry
            here.append(entry)
            print(f"{size[-1]:12,}  {entry.who:<32} {duration(entry.seconds) or entry.status}", flush=True)
        found += field.judged(here)
    return found


def of_growth(entries: Sequence[Entry], who: str) -> list[tuple[float, float]]:
    return [(e.rows, e.seconds) for e in entries if e.who == who and e.finished]


def verdicts(entries: Sequence[Entry], limit: float) -> list[str]:
    """The targets: reaching the optimum, few gradients, linear growth, and whether crowd-kit finishes."""
    ours = [e for e in entries if e.who.startswith(OURS)]
    found = []
    for e in ours:
        met = e.shortfall <= BAR if e.finished else False
        found.append(verdict(met, f"{e.rows:,} answers: {e.shortfall:.0e} below the highest objective (aim {BAR:g})"))
    large = [e for e in ours if e.rows == 10_000_000]
    for e in (e for e in large if e.finished):
        told = (
            f"{e.rows:,} answers: the time of {e.gradients:.0f} gradients, {e.processor_gradients:.0f} by the processor"
        )
        met = e.gradients <= _MOST_GRADIENTS
        found.append(verdict(met, f"{told}, {e.passes:.0f} passes (aim {_MOST_GRADIENTS:g} gradients)"))
    if large and ours[0].finished:
        slope = figures.exponent([p for p in of_growth(entries, ours[0].who) if p[0] >= 100_000])
        what = f"from 100,000 to 10,000,000 answers time grows as their power {slope:.2f} (aim {_LINEAR:g})"
        found.append(verdict(slope <= _LINEAR, what))
    for e in (e for e in entries if e.who.startswith("crowd-kit") and e.rows == 1_000_000):
        told = f"{duration(e.seconds)}" if e.finished else f"{e.status}, {limit:.0f} s allowed"
        ended = {"did not finish": True, "ok": False}.get(e.status)
        found.append(verdict(ended, f"{e.rows:,} answers: crowd-kit does not finish ({told})"))
    return found


def table(entries: Sequence[Entry]) -> str:
    lines = [
        "| answers | items, annotators | | time | times ours | peak memory | log-likelihood | below the summit "
        "| held-out log chance | pairs right | gradients | by the processor | passes |",
        "| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for e in entries:
        start = f"| {e.rows:,} | {e.items:,} | {e.who} | "
        if not e.finished:
            lines.append(start + e.status + " |" * 10)
            continue
        short = "another objective" if isnan(e.shortfall) else f"{e.shortfall:.0e}"
        counted = " | | "
        if not isnan(e.gradients):
            counted = f"{e.gradients:.0f} | {e.processor_gradients:.0f} | {e.passes:.0f}"
        lines.append(
            start + f"{duration(e.seconds)} | {e.times_ours:.1f} | {e.peak_megabytes:,.1f} MB | {e.log_likelihood:.3f} "
            f"| {short} | {e.held_out:.4f} | {e.accuracy:.4f} | {counted} |"
        )
    return "\n".join(lines) + "\n"


def page(entries: Sequence[Entry], told: Sequence[str], described: str, limit: float) -> str:
    return (
        f"# Crowd-BT compared with other libraries\n\n{described}\n\nTimes are the best of several; "
        f"a fit may take {limit:.0f} s. ../README.md describes the method.\n\n## Verdicts\n\n```\n"
        + "\n".join(told)
        + "\n```\n\n## Fits\n\n"
        + table(entries)
    )


def draw_figure(entries: Sequence[Entry], folder: Path) -> None:
    names = {"crowdrank CrowdBT": "crowdrank", "numpy L-BFGS": "NumPy, L-BFGS", CONTENDERS[-1].name: "crowd-kit"}
    shown = [e for e in entries if e.finished and e.rows >= 100 * e.items]
    took = {line: [(e.rows, e.seconds) for e in shown if e.who == who] for who, line in names.items()}
    held = {line: [(e.rows, max(e.peak_megabytes, 0.1)) for e in shown if e.who == who] for who, line in names.items()}
    panels = [
        figures.Panel("Time of a fit", took, "answers"),
        figures.Panel("Peak memory beside the answers", held, "answers", "megabytes"),
    ]
    figures.draw(panels, folder / "crowd-bt-growth.svg")


def write(entries: Sequence[Entry], text: str, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_csv(entries, out / "crowd_bt.csv")
    (out / "crowd_bt.md").write_text(text, encoding="utf-8")
    machine.record(Path(__file__), out, "crowd_bt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the two smallest sizes, printed only")
    parser.add_argument("--most-rows", type=float, default=1e9, help="sizes with no more answers than this")
    parser.add_argument("--kit-rows", type=float, default=1e6, help="maximum number of answers for crowd-kit")
    parser.add_argument("--limit", type=float, default=300.0, help="time limit of one fit, in seconds")
    parser.add_argument("--out", type=Path, help="where to write; benchmarks/results for a full run")
    options = parser.parse_args()
    sizes = [size for size in (SIZES[:2] if options.quick else SIZES) if size[-1] <= options.most_rows]
    out = options.out or (_RESULTS if sizes == list(SIZES) else None)
    warnings.simplefilter("ignore", RuntimeWarning)  # of a peer's logarithms
    described = machine.sentence(machine.describe())
    entries = race(sizes, options.limit, int(4_000 if options.quick else options.kit_rows))
    told = verdicts(entries, options.limit)
    print("\n" + table(entries) + "\n" + "\n".join(told))
    if out is not None:
        write(entries, page(entries, told, described, options.limit), out)
        draw_figure(entries, out if options.out else figures.IMAGES)


if __name__ == "__main__":
    main()
