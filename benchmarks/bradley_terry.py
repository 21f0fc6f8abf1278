"""Bradley-Terry by maximum likelihood: crowdrank and other libraries on the same votes, in one run.

python benchmarks/bradley_terry.py             everything, written to benchmarks/results/
python benchmarks/bradley_terry.py --quick     the three small sizes, printed only
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import door
import figures
import machine
import numpy as np
import report
from measuring import Measured, keep_compiled, measure
from peers import CONTENDERS, OURS, Contender, rungs
from report import Row
from votes import Scores, Votes, centre, draw, log_likelihood, pairs_right, truth

from crowdrank import BradleyTerry

SIZES = ((100, 4_000), (100, 10_000), (1_000, 100_000), (10_000, 1_000_000), (10_000, 10_000_000))
SHOWS = {"bradley-terry": BradleyTerry(prior_scale=None)}
FIGURE = {
    "crowdrank": ("crowdrank BradleyTerry",),
    "choix": ("choix ilsr_pairwise",),
    "crowd-kit": ("crowd-kit BradleyTerry",),
    "evalica": ("evalica bradley_terry, codes",),
    "arena-rank": ("arena-rank BradleyTerry",),
    "NumPy, L-BFGS": ("numpy L-BFGS",),
    "scikit-learn": ("scikit-learn lbfgs", "scikit-learn newton-cg"),
}
"""Lines of the figures, and which contenders each is the fastest of."""
# A fit longer than this is not repeated, because noise is relatively small.
_LONGEST_REPEATED = 10.0
_SEED = 0


class Field:
    """All libraries at one size, with the highest log-likelihood that any of them reached."""

    def __init__(self, votes: Votes, limit: float):
        self.votes, self.limit = votes, limit
        self.highest = -np.inf
        self.rows: dict[str, Row] = {}
        self.ours: Scores | None = None

    def enter(self, contender: Contender, before: Row | None) -> Row:
        """Tighten the tolerance until the library reaches the optimum; keep the first that does, or the closest."""
        best: Row | None = None
        took = before.setting if before is not None and before.finished else None
        for setting in rungs(contender.settings_for(self.votes.items), took):
            row = self.run(contender, setting)
            if best is None or row.reached > best.reached:
                best = row
            if not row.finished or row.gap(self.highest) <= report.BAR:
                break
        assert best is not None
        self.rows[contender.name] = best
        return best

    def again(self, contender: Contender) -> None:
        """Run once more with the tolerance found, in turn with the others; the faster of the two runs counts."""
        before = self.rows[contender.name]
        if before.finished and before.seconds < _LONGEST_REPEATED:
            self.rows[contender.name] = before.faster(self.run(contender, before.setting))

    def run(self, contender: Contender, setting: float) -> Row:
        found = measure(contender, (self.votes.items, len(self.votes)), _SEED, setting, self.limit)
        return self._row(contender, setting, found)

    def _row(self, contender: Contender, setting: float, found: Measured) -> Row:
        row = Row(len(self.votes), self.votes.items, contender.family, contender.way, setting, found.status)
        if found.scores is None:
            return row
        scores = centre(found.scores)
        if contender.family == OURS:
            self.ours = scores
        reached = log_likelihood(scores, self.votes)
        self.highest = max(self.highest, reached)
        apart = agreement = float("nan")
        if self.ours is not None:
            apart = float(np.abs(scores - self.ours).max())
            agreement = float(np.corrcoef(scores, self.ours)[0, 1])
        return row.with_result(
            seconds=found.seconds,
            build_seconds=found.build_seconds,
            peak_megabytes=found.peak_megabytes,
            reached=reached,
            apart=apart,
            agreement=agreement,
            accuracy=pairs_right(scores, truth(self.votes.items, _SEED)),
        )

    def judged(self) -> list[Row]:
        return [row.judged(self.highest) for row in self.rows.values()]


def race(contenders: Sequence[Contender], sizes: Sequence[tuple[int, int]], limit: float, turns: int) -> Iterator[Row]:
    """Run every library at every size, smallest first, in turns."""
    known: dict[str, Row] = {}  # how each contender fared at the size before
    for items, rows in sizes:
        print(f"\n{items:,} items, {rows:,} votes", flush=True)
        field = Field(draw(items, rows, _SEED), limit)
        entered = [c for c in contenders if rows <= c.most_rows and not too_slow(known.get(c.name), items, rows, limit)]
        for contender in entered:
            row = field.enter(contender, known.get(contender.name))
            print(f"  {row.progress(field.highest)}", flush=True)
            known[contender.name] = row
        for turn in range(2, turns + 1):
            print(f"  turn {turn} of {turns} …", flush=True)
            for contender in entered:
                field.again(contender)
        yield from field.judged()
        for contender in contenders:
            if contender not in entered:
                why = "not run: too slow with fewer votes" if rows <= contender.most_rows else "not run at this size"
                yield Row(rows, items, contender.family, contender.way, float("nan"), why)


def too_slow(before: Row | None, items: int, rows: int, limit: float) -> bool:
    """Whether more votes on the same items would exceed the limit: fewer votes did not finish, or took most of it."""
    if before is None or before.items != items:
        return False
    return not before.finished or before.seconds * rows / before.rows > 5 * limit


def draw_figures(rows: Sequence[Row], folder: Path) -> None:
    """Plot time (including preparation) and memory against votes: 100 votes per item, up to 10,000 items."""
    took, held = _lines(rows, lambda row: row.whole_seconds), _lines(rows, lambda row: max(row.peak_megabytes, 0.1))
    for panel, name in (
        (figures.Panel("Time of a fit", took, "votes"), "time"),
        (figures.Panel("Peak memory beside the votes", held, "votes", "megabytes"), "memory"),
    ):
        figures.draw([panel], folder / f"bradley-terry-{name}.svg", width=430, height=300)


def _lines(rows: Sequence[Row], cost: Callable[[Row], float]) -> dict[str, list[tuple[float, float]]]:
    """Cost of a library's fastest function at each size."""
    shown = [row for row in rows if row.converged and row.rows >= 100 * row.items]
    lines: dict[str, list[tuple[float, float]]] = {}
    for line, ways in FIGURE.items():
        for size in sorted({row.rows for row in shown}):
            if here := [r for r in shown if r.rows == size and f"{r.family} {r.way}" in ways]:
                lines.setdefault(line, []).append((size, cost(min(here, key=lambda r: r.whole_seconds))))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the three small sizes only, printed only")
    parser.add_argument("--rows", type=float, help="the size with this many votes only")
    parser.add_argument("--only", default="", help="libraries to run besides crowdrank, separated by commas")
    parser.add_argument("--limit", type=float, default=120.0, help="time limit of one fit, in seconds")
    parser.add_argument("--turns", type=int, help="number of turns of each library (default 2)")
    parser.add_argument("--out", type=Path, help="where to write; benchmarks/results for a full run")
    options = parser.parse_args()

    sizes = [size for size in SIZES if options.rows in (None, size[1]) and not (options.quick and size[1] > 100_000)]
    families = {OURS, *options.only.split(",")} if options.only else {c.family for c in CONTENDERS}
    contenders = [c for c in CONTENDERS if c.family in families]
    whole = sizes == list(SIZES) and contenders == list(CONTENDERS)
    out = options.out or (Path(__file__).parent / "results" if whole else None)

    described = machine.describe()
    print(machine.sentence(described))
    with tempfile.TemporaryDirectory() as folder:
        keep_compiled(folder)
        rows = list(race(contenders, sizes, options.limit, options.turns or 2))
    entries = door.measure(quick=options.quick) if options.quick or whole else []
    verdicts = report.verdicts(rows, options.limit) + door.verdicts(entries)
    print("\n" + report.tables(rows) + "\n" + door.table(entries) + "\n\n" + "\n".join(verdicts))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        report.write_csv(rows, out / "bradley_terry.csv")
        text = report.page(rows, verdicts, door.table(entries), machine.sentence(described), options.limit)
        (out / "bradley_terry.md").write_text(text)
        if entries:
            report.write_csv(entries, out / "door.csv")
        machine.write(described, out / "machine.json")
        machine.record(Path(__file__), out, "bradley_terry", *(["door"] if entries else []))
        draw_figures(rows, out if options.out else figures.IMAGES)


if __name__ == "__main__":
    main()
