"""How often the ranking of a jury of language models is right on LLMBar, with gold answers and without.

python benchmarks/juries.py                           everything, written to results/juries.md
python benchmarks/juries.py --only gold --draws 3     one section, printed only

65 language models with prompts judge 207 instances of two answers with an objective truth, in both orders. Sections:

gold       all judges, with gold answers drawn at random; they are not counted
resamples  all judges without gold, on bootstrap resamples of the instances
prompting  one prompt for all language models, each prompt in turn, without gold
mixed      a prompt of its own for every language model, drawn at random, without gold

The data are read from CROWDRANK_DATA, or from ../shared/data next to the checkout. They are not part of the project.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from gold_questions import comparisons, gold_pairs, read
from machine import made, record

import crowdrank as cr
from crowdrank.errors import CrowdrankWarning
from crowdrank.evaluation import verdicts

_HERE = Path(__file__).resolve().parent
_OUT = _HERE / "results" / "juries.md"
_DRAWS = 20
_GOLD = (5, 10, 20, 50)
_ADVERSE = 0.02
"""How much worse than a majority counts as worse."""


def right(votes: cr.Comparisons, ranking: cr.Ranking, truth: dict[str, str], known: Sequence[str] = ()) -> float:
    """Share of instances whose better answer has the higher score, of those that are not gold; a tie is half."""
    shares = []
    for code, query in enumerate(map(str, votes.items.queries)):
        if query in known:
            continue
        own = votes.items.of_query(code)
        scores = dict(zip(map(str, votes.items.labels[own]), ranking.scores[own], strict=True))
        better = truth[query.split("#")[0]]
        shares.append(0.5 + 0.5 * float(np.sign(scores[better] - scores["2" if better == "1" else "1"])))
    return float(np.mean(shares))


def resample(votes: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Instances drawn with replacement; an instance that is drawn again has a name of its own, with a # in it."""
    queries = votes["query"].unique().sort()
    drawn = pl.DataFrame({"query": queries.gather(rng.integers(len(queries), size=len(queries)))})
    drawn = drawn.with_columns(again=pl.int_range(pl.len()).over("query"))
    named = pl.when(pl.col("again") > 0).then(pl.col("query") + "#" + pl.col("again").cast(str)).otherwise("query")
    return votes.join(drawn, on="query").with_columns(query=named)


def truth_of(votes: pl.DataFrame) -> dict[str, str]:
    return dict(votes.select("query", "gold").unique().sort("query").iter_rows())


def warns(ranking: cr.Ranking) -> bool:
    return any("share errors" in note for note in ranking.notes)


def believed_wrongly(votes: cr.Comparisons, accuracy: dict[str, float], gold: cr.Comparisons | None) -> int:
    """Number of judges that are called reliable, but are right on less than half of the instances."""
    found = verdicts(votes, side_information=cr.SideInformation(gold=gold))
    called = zip(map(str, found.annotators), found.verdict, strict=True)
    return sum(verdict == "reliable" and accuracy[name] < 0.5 for name, verdict in called)


def accuracies(votes: pl.DataFrame) -> dict[str, float]:
    """Share of right answers of each judge; a tie is half."""
    share = pl.when(pl.col("winner") == "tie").then(0.5).otherwise((pl.col("winner") == pl.col("gold")).cast(float))
    return dict(votes.group_by("worker").agg(share.mean()).iter_rows())


def mean(values: Sequence[float]) -> str:
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{np.mean(values):.3f} ± {error:.3f} | {np.min(values):.3f}"


def gold(votes: pl.DataFrame, seeds: range) -> list[str]:
    everything, truth, accuracy = comparisons(votes), truth_of(votes), accuracies(votes)
    lines = [
        "| gold answers | right | lowest | warned | unreliable judges called reliable |",
        "|---:|---:|---:|---:|---:|",
    ]
    for count in _GOLD:
        found, warned, wrong = [], 0, 0
        for seed in seeds:
            order = np.random.default_rng(seed).permutation(len(truth))
            known = [sorted(truth)[n] for n in order[:count]]
            pairs = gold_pairs(truth, known)
            ranking = cr.rank(everything, gold_pairs=pairs, uncertainty="none")
            found.append(right(everything, ranking, truth, known))
            warned += warns(ranking)
            wrong += believed_wrongly(everything, accuracy, pairs)
        lines.append(f"| {count} | {mean(found)} | {warned} of {len(seeds)} | {wrong} |")
    return lines


def resamples(votes: pl.DataFrame, seeds: range) -> list[str]:
    truth, found, warned, wrong = truth_of(votes), [], 0, 0
    for seed in seeds:
        drawn = resample(votes, np.random.default_rng(seed))
        judged = comparisons(drawn)
        ranking = cr.rank(judged, uncertainty="none")
        found.append(right(judged, ranking, truth))
        warned += warns(ranking)
        wrong += believed_wrongly(judged, accuracies(drawn), None)
    head = ["| right | lowest | warned | unreliable judges called reliable |", "|---:|---:|---:|---:|"]
    return [*head, f"| {mean(found)} | {warned} of {len(seeds)} | {wrong} |"]


def _against_majority(votes: pl.DataFrame, truth: dict[str, str]) -> tuple[float, float]:
    """Share of right orders of the default model, and of the majority."""
    judged = comparisons(votes)
    ranking = cr.rank(judged, uncertainty="none")
    majority = cr.rank(judged, model="win-rate", uncertainty="none")
    return right(judged, ranking, truth), right(judged, majority, truth)


def _below(found: np.ndarray[Any, np.dtype[np.float64]]) -> str:
    worse = int(np.sum(found[:, 0] < found[:, 1] - _ADVERSE))
    return f"More than {_ADVERSE} below the majority: {worse} of {len(found)}."


def prompting(votes: pl.DataFrame, seeds: range) -> list[str]:
    truth, lines = truth_of(votes), ["| prompt of all judges | judges | right | majority |", "|---|---:|---:|---:|"]
    found = []
    for prompt in votes["prompting"].unique().sort():
        own = votes.filter(pl.col("prompting") == prompt)
        judges = own["judge"].n_unique()
        if judges < 5:
            continue
        found.append(_against_majority(own, truth))
        lines.append(f"| {prompt} | {judges} | {found[-1][0]:.3f} | {found[-1][1]:.3f} |")
    return [*lines, "", _below(np.array(found))]


def mixed(votes: pl.DataFrame, seeds: range) -> list[str]:
    truth, found = truth_of(votes), []
    prompts = votes.group_by("judge").agg(pl.col("prompting").unique().sort()).sort("judge")
    for seed in seeds:
        rng = np.random.default_rng(seed)
        workers = [f"{judge}/{given[int(rng.integers(len(given)))]}" for judge, given in prompts.iter_rows()]
        found.append(_against_majority(votes.filter(pl.col("worker").is_in(workers)), truth))
    values = np.array(found)
    lines = ["| method | right | lowest |", "|---|---:|---:|"]
    lines += [f"| {name} | {mean(column)} |" for name, column in zip(("default", "majority"), values.T, strict=True)]
    return [*lines, "", _below(values)]


SECTIONS: dict[str, tuple[str, Callable[[pl.DataFrame, range], list[str]]]] = {
    "gold": ("All judges, with gold answers drawn at random", gold),
    "resamples": ("All judges without gold, on bootstrap resamples of the instances", resamples),
    "prompting": ("One prompt for all language models, without gold", prompting),
    "mixed": ("A prompt of its own for each language model, drawn at random, without gold", mixed),
}
SHOWS = {"jury": cr.Jury()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", choices=SECTIONS)
    options.add_argument("--draws", type=int, default=_DRAWS)
    options.add_argument("--first-seed", type=int, default=0)
    given = options.parse_args()
    warnings.simplefilter("ignore", CrowdrankWarning)
    begin, when, votes = time.monotonic(), made(), read()
    seeds = range(given.first_seed, given.first_seed + given.draws)
    chosen = [given.only] if given.only else list(SECTIONS)
    text = "# Juries of language models on LLMBar\n"
    for name in chosen:
        title, section = SECTIONS[name]
        text += "\n".join(["", f"## {title}", "", *section(votes, seeds), ""])
    text += (
        "\nShare of instances in the right order, of 207 with an objective truth, less those that are gold; mean ± "
        f"standard error over {given.draws} draws (seeds {seeds[0]} to {seeds[-1]}), and the lowest. *Unreliable "
        "judges* are right on less than half of the instances; their number is the sum over draws. "
        f"Made by `benchmarks/juries.py` in {time.monotonic() - begin:.0f} s.\n"
    )
    print(text)
    if not given.only and not given.first_seed and given.draws == _DRAWS:
        _OUT.write_text(f"{text}\n{when}\n", encoding="utf-8")
        record(Path(__file__), _OUT.parent, _OUT.stem, when=when)


if __name__ == "__main__":
    main()
