"""Few human votes and many of language models: how close does each method come to the held-out humans?

python benchmarks/humans_and_judges.py                    everything, written to results/humans_and_judges.md
python benchmarks/humans_and_judges.py --draws 3 --votes 200 1000 --only arena27k          printed only
python benchmarks/humans_and_judges.py --first-seed 1000  other draws, for tuning, printed only

The data are read from CROWDRANK_DATA, or from ../shared/data next to the checkout. They are not part of the project.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from machine import made, record

import crowdrank as cr
from crowdrank.errors import CrowdrankWarning
from crowdrank.evaluation.metrics import kendall_correlation

Vector = npt.NDArray[np.float64]
_HERE = Path(__file__).resolve().parent
_OUT = _HERE / "results" / "humans_and_judges.md"
_DRAWS = 20
_LEVEL = 1.645
_HAND = 2_000
"""Votes that the mean with a weight set by hand, n / (n + 2,000), takes the judge for."""
ALONE, PRIOR, POOLED, MEAN, JUDGE = "humans alone", "commensurate-bt", "crowd-bt, pooled", "mean by hand", "judge alone"
COINS = "coin tosses"


def small_crowd() -> Vector:
    """The model on simulated votes: two humans and a judge."""
    votes = cr.simulation.crowd_bt(items=8, annotators=3, pairs=28, votes=3, labels="logistic", seed=1).judgments
    names = [str(name) for name in votes.annotators]
    kinds = dict(zip(names, ("human", "human", "llm"), strict=True))
    people = {name: cr.AnnotatorDetails(kind=kind) for name, kind in kinds.items()}
    ranking = cr.CommensurateBT().fit(votes, side_information=cr.SideInformation(people=people))
    return np.concatenate((ranking.scores, ranking.uncertainty.std_error))


SHOWS = {
    PRIOR: small_crowd,
    ALONE: cr.BradleyTerry(),
    POOLED: cr.CrowdBT(),
}


@dataclass(frozen=True)
class Source:
    """Votes of humans and of judges on the same items."""

    name: str
    file: str
    judges: tuple[str, ...]
    votes: tuple[int, ...]
    """Numbers of human votes that are drawn."""


SOURCES = (
    Source(
        "arena27k",
        "arena27k_humans_llms/votes.csv.gz",
        ("gpt-4-0125-preview", "claude-3-opus-20240229", "gpt-3.5-turbo"),
        (200, 500, 1000, 2000, 5000),
    ),
    Source("mtbench_human", "mtbench_human/votes_human_and_gpt4.csv", ("gpt4_pair",), (50, 100, 200, 500, 1000)),
)


@dataclass(frozen=True)
class Entry:
    """One method on one draw."""

    judge: str
    method: str
    votes: int
    tau: float
    gain: float
    """Over the humans alone, on the same draw."""
    inside: float = float("nan")
    """Share of 90 % intervals of scores that hold the held-out humans' scores."""
    covered: float = float("nan")
    """The same with the standard error of the held-out humans' scores added to the interval."""
    worth: float = float("nan")


def read(source: Source, folder: Path) -> tuple[cr.Comparisons, dict[str, cr.Comparisons]]:
    """The humans' votes, and those of each judge; and one who answers in reverse, and who may toss coins."""
    found = cr.read(folder / source.file, columns={"query": None})
    assert isinstance(found, cr.Comparisons)
    who = found.annotators[found.annotator]
    judges = {name: found.take(who == name) for name in source.judges}
    first = judges[source.judges[0]]
    judges[COINS] = first
    judges[f"{source.judges[0]}, reversed"] = replace(first, outcome=-first.outcome)
    return found.take(~np.isin(who, source.judges)), judges


def combine(humans: cr.Comparisons, judges: Mapping[str, cr.Comparisons]) -> tuple[cr.Comparisons, cr.SideInformation]:
    """One table of votes: one annotator "humans", and one for each judge."""
    parts = [humans, *judges.values()]
    names = np.array(["humans", *judges], object)
    votes = replace(
        humans.take(slice(0, 0)),
        left=np.concatenate([part.left for part in parts]),
        right=np.concatenate([part.right for part in parts]),
        outcome=np.concatenate([part.outcome for part in parts]),
        annotators=names,
        annotator=np.repeat(np.arange(len(parts), dtype=np.int32), [len(part) for part in parts]),
        both_bad=None,
    )
    kinds = {name: cr.AnnotatorDetails(kind="human" if name == "humans" else "llm") for name in names}
    return votes, cr.SideInformation(people=kinds)


def measure(
    humans: cr.Comparisons, judges: Mapping[str, cr.Comparisons], count: int, seed: int, pooled: bool
) -> list[Entry]:
    """All methods on one draw of human votes."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(humans))
    tosses = rng.choice(np.array([1, 1, -1, -1, 0], np.int8), len(judges[COINS]))
    judges = {**judges, COINS: replace(judges[COINS], outcome=tosses, both_bad=None)}
    drawn, rest = humans.take(order[:count]), cr.BradleyTerry().fit(humans.take(order[count:]))
    alone = cr.BradleyTerry().fit(drawn)
    reference = kendall_correlation(alone.scores, rest.scores)

    def entry(judge: str, method: str, ranking: cr.Ranking | None, scores: Vector) -> Entry:
        tau = kendall_correlation(scores, rest.scores)
        if ranking is None:
            return Entry(judge, method, count, tau, tau - reference)
        off, own = np.abs(scores - rest.scores), ranking.uncertainty.std_error
        both = np.sqrt(own**2 + rest.uncertainty.std_error**2)
        inside, covered = (float(np.mean(off < _LEVEL * error)) for error in (own, both))
        worth = next((v for k, v in ranking.parameters.items() if k.startswith("worth[")), 0.0)
        return Entry(judge, method, count, tau, tau - reference, inside, covered, worth)

    found = [entry("", ALONE, alone, alone.scores)]
    for name, chosen in {**{name: {name: votes} for name, votes in judges.items()}, "all": real(judges)}.items():
        if name == "all" and len(chosen) < 2:
            continue
        votes, people = combine(drawn, chosen)
        ranking = cr.CommensurateBT().fit(votes, side_information=people)
        found.append(entry(name, PRIOR, ranking, ranking.scores))
        if name not in real(judges):
            continue
        judge = cr.BradleyTerry().fit(chosen[name]).scores
        found.append(entry(name, JUDGE, None, judge))
        share = count / (count + _HAND)
        found.append(entry(name, MEAN, None, share * alone.scores + (1 - share) * judge))
        if pooled:
            found.append(entry(name, POOLED, None, cr.CrowdBT().fit(votes).scores))
    return found


_WEIGHTS = np.linspace(0, 1, 101)
_DISCREPANCIES = (0.05, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5)


def hindsight(humans: cr.Comparisons, name: str, judge: cr.Comparisons, counts: Sequence[int], seeds: range) -> str:
    """How well any fixed weight of a judge could do: chosen with the held-out votes, which nobody has in practice."""
    own = cr.BradleyTerry().fit(judge).scores
    table: dict[str, list[str]] = {}
    for count in counts:
        learnt, means, fixed = [], [], []
        for seed in seeds:
            order = np.random.default_rng(seed).permutation(len(humans))
            drawn, rest = humans.take(order[:count]), cr.BradleyTerry().fit(humans.take(order[count:])).scores
            alone = cr.BradleyTerry().fit(drawn).scores
            votes, people = combine(drawn, {name: judge})

            def tau(scores: Vector, rest: Vector = rest) -> float:
                return kendall_correlation(scores, rest)

            fits = [
                cr.CommensurateBT(discrepancy=value).fit(votes, side_information=people).scores
                for value in ("auto", *_DISCREPANCIES)
            ]
            learnt.append(tau(fits[0]))
            fixed.append([tau(scores) for scores in fits[1:]])
            means.append([tau(weight * alone + (1 - weight) * own) for weight in _WEIGHTS])
        by_weight, by_discrepancy = np.array(means), np.array(fixed)
        best, closest = int(by_weight.mean(axis=0).argmax()), int(by_discrepancy.mean(axis=0).argmax())
        share = int(np.argmin(np.abs(_WEIGHTS - count / (count + _HAND))))
        cells = {
            PRIOR: mean(learnt),
            "the same, best fixed discrepancy": mean(by_discrepancy[:, closest]),
            f"mean, weight n / (n + {_HAND:,})": mean(by_weight[:, share]),
            "mean, best fixed weight": mean(by_weight[:, best]),
            "mean, best weight of each draw": mean(by_weight.max(axis=1)),
        }
        for line, cell in cells.items():
            table.setdefault(line, []).append(cell)
    text = [f"Kendall's τ with {name}, compared with weights that are chosen with the held-out votes:", ""]
    return "\n".join([*text, *head("method", counts), *(row((line, ""), found) for line, found in table.items())])


def real(judges: Mapping[str, cr.Comparisons]) -> dict[str, cr.Comparisons]:
    return {name: votes for name, votes in judges.items() if name != COINS and not name.endswith("reversed")}


def mean(values: Sequence[float]) -> str:
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{np.mean(values):.3f} ± {error:.3f}"


def page(name: str, entries: Sequence[Entry]) -> str:
    """Tables of τ, of the gain over humans alone, of coverage and of worth."""
    counts = sorted({entry.votes for entry in entries})
    lines = list(dict.fromkeys((entry.judge, entry.method) for entry in entries))
    text = [f"## {name}", "", "Kendall's τ with the held-out humans:", "", *head("judge, method", counts)]

    def cells(line: tuple[str, str], field: str) -> list[str]:
        found = []
        for count in counts:
            here = [getattr(e, field) for e in entries if (e.judge, e.method) == line and e.votes == count]
            found.append(mean(here) if not np.isnan(here).any() else "")
        return found

    text += [row(line, cells(line, "tau")) for line in lines]
    text += ["", "Gain over humans alone on the same draws:", "", *head("judge", counts)]
    priors = [line for line in lines if line[1] == PRIOR]
    text += [row(line, cells(line, "gain")) for line in priors]
    text += ["", "Share of 90 % intervals that hold the held-out humans' scores:", "", *head("judge", counts)]
    text += [row(line, cells(line, "inside")) for line in ((lines[0]), *priors)]
    text += [
        "",
        "The same, with the standard error of the held-out scores in the interval:",
        "",
        *head("judge", counts),
    ]
    text += [row(line, cells(line, "covered")) for line in ((lines[0]), *priors)]
    text += ["", "Human votes that the judge's votes count for (mean over draws):", "", *head("judge", counts)]
    for line in priors:
        worth = [np.mean([e.worth for e in entries if (e.judge, e.method) == line and e.votes == n]) for n in counts]
        text.append(row(line, [f"{value:,.0f}" for value in worth]))
    return "\n".join(text) + "\n"


def head(first: str, counts: Sequence[int]) -> list[str]:
    return [f"| {first} | " + " | ".join(f"{n:,}" for n in counts) + " |", "| --- " + "| ---: " * len(counts) + "|"]


def row(line: tuple[str, str], cells: Sequence[str]) -> str:
    return f"| {', '.join(filter(None, line))} | " + " | ".join(cells) + " |"


def folder() -> Path:
    told = os.environ.get("CROWDRANK_DATA")
    found = Path(told) if told else _HERE.parents[1] / "shared" / "data"
    if not found.is_dir():
        sys.exit(f"There is no data folder {found}: set CROWDRANK_DATA. Nothing was measured.")
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", help="name of a data set")
    options.add_argument("--draws", type=int, default=_DRAWS, help="draws of human votes")
    options.add_argument("--votes", type=int, nargs="+", help="numbers of human votes")
    options.add_argument("--first-seed", type=int, default=0, help="seed of the first draw")
    options.add_argument("--pooled", action="store_true", help="crowd-bt on all votes too, which takes longest")
    given = options.parse_args()
    warnings.simplefilter("ignore", CrowdrankWarning)
    begin, when, data = time.monotonic(), made(), folder()
    parts = []
    for source in SOURCES:
        if given.only in (None, source.name):
            humans, judges = read(source, data)
            entries = [
                entry
                for count in given.votes or source.votes
                for seed in range(given.first_seed, given.first_seed + given.draws)
                for entry in measure(humans, judges, count, seed, given.pooled)
            ]
            parts.append(page(source.name, entries))
            first, seeds = source.judges[0], range(given.first_seed, given.first_seed + given.draws)
            parts.append(hindsight(humans, first, judges[first], given.votes or source.votes, seeds) + "\n")
    text = "# Humans and judges\n\n" + "\n".join(parts)
    text += (
        f"\nColumns are numbers of human votes, drawn at random {given.draws} times (seeds {given.first_seed} to "
        f"{given.first_seed + given.draws - 1}); all votes of a judge are known. All other human votes, fitted by "
        "bradley-terry, are the held-out humans. Means ± standard errors over draws. *Mean by hand*: the mean of the "
        f"scores of both, with the weight n / (n + {_HAND:,}) for the humans'. *Coin tosses* are new in every draw. "
        f"Made by `benchmarks/humans_and_judges.py` in {time.monotonic() - begin:.0f} s.\n"
    )
    print(text)
    whole = given.only is None and given.votes is None and not given.first_seed
    if whole and given.draws == _DRAWS:
        _OUT.write_text(f"{text}\n{when}\n", encoding="utf-8")
        record(Path(__file__), _OUT.parent, _OUT.stem, when=when)


if __name__ == "__main__":
    main()
