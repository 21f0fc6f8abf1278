"""Convergence of Markov chains: TPP on perturbed simulated crowds, bayesian-crowd-bt on real judgments.

python benchmarks/mixing.py             100 perturbations of each fit, written to results/mixing.md
python benchmarks/mixing.py --fits 5    fewer; printed only
python benchmarks/mixing.py --only real what is known of the other parts is kept

A perturbation leaves one judgment out, permutes the names of queries and annotators, and changes the seed. Real
judgments are read from CROWDRANK_DATA or ../shared/data.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
import polars as pl
from machine import made, record
from scipy.optimize import linear_sum_assignment

from crowdrank import TPP, BayesianCrowdBT, Comparisons, Ranking, read
from crowdrank.errors import ConvergenceWarning
from crowdrank.simulation import domain_crowd
from crowdrank.simulation.domains import named_domain_crowd

_RESULTS = Path(__file__).parent / "results"
_ROWS = _RESULTS / "mixing.csv"
SHOWS = {"tpp": TPP(), "bayesian-crowd-bt": BayesianCrowdBT()}
LIMIT = 1.05
PAPER_SETS = ("DOC5SR0.5DEMO1", "DOC5SR0.5DEMO2", "DOC5SR0.5DEMO3")
PAPER_SEEDS = 5
"""The perturbations of a data set of the paper are spread over so many simulated crowds."""
MOST_JUDGMENTS = 13_000
PARTS = {
    "guide": "tpp, the guide's fit and update, perturbed",
    "paper": "tpp, the paper's data sets, perturbed",
    "real": "bayesian-crowd-bt, real judgments",
}
COLUMNS = ("part", "name", "converged", "r_hat", "same_domains", "kept", "seconds", "commit", "date")
HEAD = [
    "",
    f"R̂ at most {LIMIT}",
    "largest R̂",
    "same domains",
    "fewest queries kept",
    "processor seconds: median, longest",
]
NOTES = """# Convergence of Markov chains

Default settings. A perturbation leaves one judgment out, permutes the names of queries and annotators, and changes the
seed. *Same domains*: as many domains as in the unperturbed fit, and after matching them one to one, every query whose
domain is clear (membership of at least 0.9 in both fits) is in the same one. *Fewest queries kept*: the smallest share
of all queries that stayed in the matched domain, with those that lie between two domains. The data sets of the paper
are simulated with seeds 300 to 304. Seconds are processor time, of all threads. mixing.csv gives the commit and date of
each row.
"""
CLEAR = 0.9
"""Membership from which on the domain of a query is clear."""


@dataclass
class Row:
    """Fits of one kind."""

    name: str
    r_hats: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """Processor time, of all threads: it depends less on other load than the time on the clock."""
    same: list[bool] = field(default_factory=list)
    """Whether the domains are those of the unperturbed fit."""
    kept: list[float] = field(default_factory=list)
    """Share of queries in the domain that matches theirs in the unperturbed fit."""

    def cells(self) -> list[str]:
        met = sum(r_hat <= LIMIT for r_hat in self.r_hats)
        same = f"{sum(self.same)} of {len(self.same)}" if self.same else ""
        least = f"{min(self.kept):.2f}" if self.kept else ""
        times = f"{np.median(self.seconds):.2f}, {max(self.seconds):.2f}"
        return [self.name, f"{met} of {len(self.r_hats)}", f"{max(self.r_hats):.3f}", same, least, times]


def perturbed(table: pl.DataFrame, rng: np.random.Generator) -> tuple[pl.DataFrame, dict[str, str]]:
    """Leave one row out and permute the names; also return the original name of each query."""
    kept = table.with_row_index().filter(pl.col("index") != int(rng.integers(len(table)))).drop("index")
    renamed = {}
    for column in ("query", "annotator"):
        names = kept[column].unique(maintain_order=True).to_list()
        renamed[column] = dict(zip(names, [names[n] for n in rng.permutation(len(names))], strict=True))
    kept = kept.with_columns(pl.col(column).replace_strict(names) for column, names in renamed.items())
    return kept.sample(fraction=1, shuffle=True, seed=int(rng.integers(2**31))), {
        new: old for old, new in renamed["query"].items()
    }


@dataclass(frozen=True)
class Partition:
    """The most probable domain of each query, by its original name, and whether it is clear."""

    domain: dict[str, int]
    clear: dict[str, bool]

    @classmethod
    def of(cls, ranking: Ranking, original: dict[str, str] | None = None) -> Partition:
        names = [original[q] if original else q for q in ranking.items.queries.tolist()]
        clear = ranking.domains.membership.max(axis=1) >= CLEAR
        return cls(
            dict(zip(names, ranking.domains.domain.tolist(), strict=True)),
            dict(zip(names, clear.tolist(), strict=True)),
        )

    def compare(self, other: Partition, row: Row) -> None:
        """Match the domains of two fits one to one, and append to `row` what stayed the same."""
        names = sorted(self.domain.keys() & other.domain.keys())
        first, second = (_numbered([found[name] for name in names]) for found in (self.domain, other.domain))
        shared = np.zeros((first.max() + 1, second.max() + 1), int)
        np.add.at(shared, (first, second), 1)
        matched = dict(zip(*(index.tolist() for index in linear_sum_assignment(-shared)), strict=True))
        stayed = np.array([matched.get(a) == b for a, b in zip(first.tolist(), second.tolist(), strict=True)])
        clear = np.array([self.clear[name] and other.clear[name] for name in names])
        row.same.append(shared.shape[0] == shared.shape[1] and bool(stayed[clear].all()))
        row.kept.append(float(stayed.mean()))


def _numbered(domains: list[int]) -> npt.NDArray[np.int64]:
    """Number domains from 0, without gaps."""
    return np.unique(domains, return_inverse=True)[1]


def timed(fit: Callable[[], Ranking], row: Row) -> Ranking:
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ranking = fit()
    row.seconds.append(time.process_time() - begun)
    row.r_hats.append(float(ranking.parameters["r_hat"]))
    return ranking


def comparisons(table: pl.DataFrame) -> Comparisons:
    judgments = read(table)
    assert isinstance(judgments, Comparisons)
    return judgments


def guide(fits: int) -> Iterator[Row]:
    """The fit and the update of docs/guides/domains.md."""
    crowd = domain_crowd(queries=40, items=6, annotators=8, domains=2, sparsity=0.4, even_domains=True, seed=8)
    table = crowd.judgments.to_frame()
    is_later = pl.col("query") > "query30"
    chosen = pl.col("annotator").is_in(["annotator1", "annotator3", "annotator4", "annotator5"])
    first, later = table.filter(~is_later), table.filter(is_later & chosen)
    base = TPP().fit(comparisons(first))
    updated = Partition.of(TPP().update(base, comparisons(later)))
    domains = Partition.of(base)
    fitted, update = Row("guide, fit"), Row("guide, update")
    for n in range(fits):
        rng = np.random.default_rng(n)
        rows, original = perturbed(first, rng)
        found = timed(lambda rows=rows, n=n: TPP(seed=n).fit(comparisons(rows)), fitted)
        domains.compare(Partition.of(found, original), fitted)
        # The names of annotators link the update to the first fit, so only one judgment and the seed change.
        left_out = later.with_row_index().filter(pl.col("index") != int(rng.integers(len(later)))).drop("index")
        found = timed(lambda rows=left_out, n=n: TPP(seed=n).update(base, comparisons(rows)), update)
        updated.compare(Partition.of(found), update)
    yield fitted
    yield update


def paper_sets(fits: int) -> Iterator[Row]:
    for name in PAPER_SETS:
        row = Row(name)
        for seed in range(300, 300 + PAPER_SEEDS):
            table = named_domain_crowd(name, seed).judgments.to_frame()
            base = Partition.of(TPP().fit(comparisons(table)))
            for n in range(-(-fits // PAPER_SEEDS)):
                rows, original = perturbed(table, np.random.default_rng([seed, n]))
                found = timed(lambda rows=rows, n=n: TPP(seed=n).fit(comparisons(rows)), row)
                base.compare(Partition.of(found, original), row)
        yield row


def real_sets(folder: Path) -> Iterator[Row]:
    """bayesian-crowd-bt on every pairwise set with annotators of up to 13,000 judgments."""
    for file in sorted(folder.glob("*/*.csv")) + sorted(folder.glob("*/*.csv.gz")):
        head = pl.read_csv(file, n_rows=5, infer_schema=False).columns
        if not {"worker", "left", "right", "winner"} <= set(head):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            judgments = read(file)
        if isinstance(judgments, Comparisons) and len(judgments) <= MOST_JUDGMENTS and len(judgments.annotators):
            row = Row(f"{file.parent.name}/{file.name.partition('.')[0]}, {len(judgments):,} judgments")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                timed(lambda judgments=judgments: BayesianCrowdBT().fit(judgments), row)
            yield row


def kept() -> dict[str, dict[str, str]]:
    """The rows of earlier runs, by name."""
    if not _ROWS.exists():
        return {}
    with _ROWS.open(encoding="utf-8", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file)}


def keep(part: str, rows: Iterator[Row]) -> None:
    """Print each row when its fits are done, and keep it beside those of earlier runs."""
    for row in rows:
        print(*row.cells(), sep=" | ", flush=True)
        found = kept() | {row.name: dict(zip(COLUMNS, (part, *row.cells(), made().commit, made().date), strict=True))}
        with _ROWS.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(found.values())


def page(rows: Iterable[dict[str, str]]) -> str:
    rows, parts = list(rows), [NOTES]
    for part, title in PARTS.items():
        lines = [HEAD, ["---"] * len(HEAD)]
        lines += [[row[column] for column in COLUMNS[1:7]] for row in rows if row["part"] == part]
        parts.append(f"## {title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")
    return "\n".join([*parts, f"{made()}\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=100, help="perturbations of each fit (100)")
    parser.add_argument("--only", choices=PARTS, nargs="+", default=list(PARTS), help="parts to measure now")
    given = parser.parse_args()
    made()
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CROWDRANK_DATA") or beside)
    TPP(max_sweeps=20, r_hat=10).fit(named_domain_crowd(PAPER_SETS[0]).judgments)  # compile
    measured = {"guide": guide(given.fits), "paper": paper_sets(given.fits), "real": real_sets(folder)}
    for part in given.only:
        if given.fits >= 100:
            keep(part, measured[part])
        else:
            for row in measured[part]:
                print(*row.cells(), sep=" | ", flush=True)
    if given.fits >= 100:
        (_RESULTS / "mixing.md").write_text(page(kept().values()), encoding="utf-8", newline="\n")
        record(Path(__file__), _RESULTS, "mixing")


if __name__ == "__main__":
    main()
