"""Crowd-BT beside crowd-kit's noisy Bradley-Terry and the few lines of NumPy one would otherwise write.

python benchmarks/crowd_bt.py            all of it
python benchmarks/crowd_bt.py --quick    the smallest size only
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from report import duration
from scipy.special import expit, log_expit

import crowdrank as cr
from crowdrank.judgments import Comparisons, Items

_RESULTS = Path(__file__).parent / "results"
_SIZES = ((100, 100, 4_000), (1_000, 1_000, 100_000), (10_000, 10_000, 1_000_000))
_REPETITIONS = 5
_HELD_OUT = 0.1
Scores = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Entry:
    """One contender at one size."""

    who: str
    rows: int
    seconds: float
    shortfall: float
    """How far below the highest objective reached, relatively; nan where the objective is another."""
    held_out: float
    """Mean log chance of answers it has not seen."""
    times_ours: float


@dataclass(frozen=True)
class Fit:
    """What a contender concluded: the chance it gives each answer, and where it stands."""

    chance: Callable[[Comparisons], Scores]
    parameters: Scores | None


def draw(items: int, annotators: int, rows: int, seed: int = 0) -> tuple[Comparisons, Comparisons]:
    """Scores from N(0,1), qualities from Beta(5,1), logistic answers; those to learn from, and those held out."""
    rng = np.random.default_rng(seed)
    scores, quality = rng.normal(size=items), rng.beta(5, 1, size=annotators)
    total = int(rows * (1 + _HELD_OUT))
    left = rng.integers(items, size=total).astype(np.int32)
    right = ((left + rng.integers(1, items, size=total)) % items).astype(np.int32)
    who = rng.integers(annotators, size=total).astype(np.int32)
    truth = rng.random(total) < expit(scores[left] - scores[right])
    outcome = np.where(truth == (rng.random(total) < quality[who]), 1, -1).astype(np.int8)
    votes = Comparisons(
        items=Items.plain([f"item {n:05d}" for n in range(items)]), left=left, right=right, outcome=outcome,
        annotators=np.array([f"annotator {n:05d}" for n in range(annotators)], dtype=object), annotator=who,
    )  # fmt: skip
    return votes.take(slice(0, rows)), votes.take(slice(rows, total))


def winners(votes: Comparisons) -> tuple[Any, Any, Any]:
    won = np.where(votes.outcome > 0, votes.left, votes.right)
    return won, np.where(votes.outcome > 0, votes.right, votes.left), votes.annotator


class NumPy:
    """The same objective written out in NumPy, climbed by SciPy's L-BFGS, at the loosest tolerance that suffices."""

    name = "NumPy and SciPy's L-BFGS"

    def __init__(self, votes: Comparisons):
        self.won, self.lost, self.who = winners(votes)
        self.items, self.people = len(votes.items), len(votes.annotators)

    def objective(self, x: Scores) -> tuple[float, Scores]:
        model = cr.CrowdBT()
        scores, gates = x[: self.items], x[self.items :]
        truths, lies = model.quality_prior
        margin, eta = scores[self.won] - scores[self.lost], expit(gates)
        p, e = expit(margin), eta[self.who]
        chance = e * p + (1 - e) * (1 - p)
        by_margin = (2 * e - 1) * p * (1 - p) / chance
        by_gate = e * (1 - e) * (2 * p - 1) / chance
        slope = np.bincount(self.won, by_margin, self.items) - np.bincount(self.lost, by_margin, self.items)
        value = np.log(chance).sum() - 0.5 * scores @ scores / model.prior_scale**2
        value += np.sum(truths * log_expit(gates) + lies * log_expit(-gates))
        of_gates = np.bincount(self.who, by_gate, self.people) + truths * (1 - eta) - lies * eta
        return -value, -np.concatenate((slope - scores / model.prior_scale**2, of_gates))

    def fit(self, ftol: float) -> Scores:
        from scipy.optimize import minimize

        start = np.concatenate((np.zeros(self.items), np.full(self.people, 1.5)))
        options = {"ftol": ftol, "gtol": 0.0, "maxiter": 2_000, "maxfun": 4_000}
        return np.asarray(minimize(self.objective, start, jac=True, method="L-BFGS-B", options=options).x)

    def loosest(self, best: float) -> float:
        """The tolerance that comes within 1e-8 of the highest objective, relatively."""
        for ftol in 10.0 ** -np.arange(6, 14):
            if -self.objective(self.fit(float(ftol)))[0] >= best - 1e-8 * abs(best):
                return float(ftol)
        return 1e-14


def chance_of(scores: Scores, quality: Scores, bias: Scores | None = None) -> Callable[[Comparisons], Scores]:
    """Of an answer, by Crowd-BT; with a bias, by the noisy Bradley-Terry that draws the careless to the left."""

    def chance(votes: Comparisons) -> Scores:
        won, lost, who = winners(votes)
        p = expit(scores[won] - scores[lost])
        q = quality[who]
        if bias is None:
            return np.asarray(q * p + (1 - q) * (1 - p))
        side = np.where(votes.outcome > 0, bias[who], 1 - bias[who])
        return np.asarray(q * p + (1 - q) * side)

    return chance


def crowdkit(votes: Comparisons) -> Callable[[Comparisons], Scores]:
    import pandas as pd
    from crowdkit.aggregation import NoisyBradleyTerry

    frame = votes.to_frame().rename({"annotator": "worker", "winner": "label"}).to_dict(as_series=False)
    model = NoisyBradleyTerry().fit(pd.DataFrame(frame))
    found = np.clip(model.scores_.reindex(votes.items.labels).to_numpy(), 1e-12, 1 - 1e-12)
    skill, bias = (series.reindex(votes.annotators).to_numpy() for series in (model.skills_, model.biases_))
    return chance_of(np.log(found) - np.log1p(-found), skill, bias)


def clock(fit: Callable[[], Any], repetitions: int = _REPETITIONS) -> tuple[float, Any]:
    """The best of several, and what came out."""
    best, found = np.inf, None
    for _ in range(repetitions):
        begun = time.perf_counter()
        found = fit()
        best = min(best, time.perf_counter() - begun)
    return best, found


def compare(items: int, annotators: int, rows: int) -> list[Entry]:
    votes, unseen = draw(items, annotators, rows)
    rival = NumPy(votes)
    cr.CrowdBT().fit(votes)  # imports and compilation come before the clock
    ours, ranking = clock(lambda: cr.CrowdBT().fit(votes))
    quality = ranking.annotators["quality"]
    here = np.concatenate((ranking.scores, np.log(quality / (1 - quality))))
    best = -rival.objective(here)[0]
    ftol = rival.loosest(best)
    theirs, there = clock(lambda: rival.fit(ftol), 3)
    reached = -rival.objective(there)[0]
    top = max(best, reached)
    entries = [
        Entry("crowdrank", rows, ours, (top - best) / abs(top), _told(ranking.scores, quality, unseen), 1.0),
        Entry(
            rival.name, rows, theirs, (top - reached) / abs(top),
            _told(there[:items], expit(there[items:]), unseen), theirs / ours,
        ),
    ]  # fmt: skip
    if rows <= 100_000:
        try:
            seconds, chance = clock(lambda: crowdkit(votes), 1)
        except ImportError:
            print("crowd-kit is not installed: left out")
        else:
            told = float(np.mean(np.log(chance(unseen))))
            entries.append(Entry("crowd-kit NoisyBradleyTerry", rows, seconds, float("nan"), told, seconds / ours))
    return entries


def _told(scores: Scores, quality: Scores, unseen: Comparisons) -> float:
    return float(np.mean(np.log(chance_of(scores, quality)(unseen))))


def table(entries: list[Entry]) -> str:
    lines = [
        "| answers | | time | times ours | below the summit | held-out log chance |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for entry in entries:
        short = "another objective" if np.isnan(entry.shortfall) else f"{entry.shortfall:.0e}"
        lines.append(
            f"| {entry.rows:,} | {entry.who} | {duration(entry.seconds)} | {entry.times_ours:.1f} | {short} "
            f"| {entry.held_out:.4f} |"
        )
    return "\n".join(lines) + "\n"


def write(entries: list[Entry]) -> None:
    names = [field.name for field in fields(Entry)]
    rows = [",".join(str(asdict(entry)[name]) for name in names) for entry in entries]
    (_RESULTS / "crowd_bt.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    (_RESULTS / "crowd_bt.md").write_text(table(entries))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the smallest size only, printed only")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore", RuntimeWarning)  # of a peer's logarithms
    entries: list[Entry] = []
    for size in _SIZES[:1] if quick else _SIZES:
        entries += compare(*size)
        print(table(entries), flush=True)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")
    if not quick:
        write(entries)


if __name__ == "__main__":
    main()
