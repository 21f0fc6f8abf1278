"""Leaderboards by category: does partial pooling predict held-out votes better than one board, or a board each?

python benchmarks/categories.py                     everything, written to results/categories.md
python benchmarks/categories.py --draws 3 --only mtbench_human                             printed only
python benchmarks/categories.py --first-seed 1000   other splits and simulations, for tuning, printed only

Also the negative log-likelihood of the votes of an arena by models of ties, next to the published ones of leaderbot.
The data are read from CROWDRANK_DATA, or from ../shared/data next to the checkout. They are not part of the project.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from machine import made, record

import crowdrank as cr
from crowdrank.data import Items
from crowdrank.errors import CrowdrankWarning

Vector = npt.NDArray[np.float64]
_HERE = Path(__file__).resolve().parent
_OUT = _HERE / "results" / "categories.md"
_DRAWS = 20
_SHARES = (0.1, 0.25, 0.5)
ONE, EACH, POOLED = "one board for all", "a board each", "partial pooling"
SHARED = "a board each, with common spread and ties"


def by_category() -> Vector:
    """The model on simulated votes."""
    ranking = cr.BradleyTerry(pooling="partial").fit(simulate(0.5, 6, 200, seed=1))
    return np.concatenate((ranking.scores, ranking.uncertainty.std_error))


SHOWS = {ONE: cr.BradleyTerry(), POOLED: by_category}


@dataclass(frozen=True)
class Source:
    """Votes whose queries are categories, and which of them belong together in a split."""

    name: str
    read: Callable[[Path, int], cr.Comparisons]
    """Of the data folder and the seed of a draw."""
    shares: tuple[float, ...] = _SHARES


MTBENCH = ("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")


def mtbench(data: Path, seed: int) -> cr.Comparisons:
    """Eight categories of ten questions each, numbered from 81."""
    rows = pl.read_csv(data / "mtbench_human" / "votes_human.csv")
    number = rows["query"].str.split("t").list.first().cast(pl.Int64).to_numpy()
    kind = [MTBENCH[(n - 81) // 10] for n in number]
    return with_group(rows["left"], rows["right"], rows["winner"], kind, np.arange(len(rows)))


def wmt_lists(data: Path) -> Iterator[tuple[str, pl.DataFrame]]:
    """Language pair and lists; a system is named without its number and language."""
    for file in sorted((data / "wmt15_16").glob("*.lists.csv.gz")):
        rows = pl.read_csv(file).with_columns(pl.col("item").str.split(".").list.first())
        yield file.name.split(".")[1], rows


def wmt_languages(data: Path, seed: int) -> cr.Comparisons:
    """Systems by language pair: few of them took part in several."""
    return from_lists([rows.with_columns(category=pl.lit(name)) for name, rows in wmt_lists(data)])


def wmt_language_pairs(data: Path, seed: int) -> cr.Comparisons:
    return one_of_each(wmt_languages(data, seed), seed)


def wmt_judges(language: str) -> Callable[[Path, int], cr.Comparisons]:
    """Systems of one language pair by judge."""

    def read(data: Path, seed: int) -> cr.Comparisons:
        rows = dict(wmt_lists(data))[language]
        return one_of_each(from_lists([rows.with_columns(category=pl.col("worker"))]), seed)

    return read


def one_of_each(votes: cr.Comparisons, seed: int) -> cr.Comparisons:
    """One comparison of each list: those of one list are not independent."""
    order = np.random.default_rng([seed, 11]).permutation(len(votes))
    _, first = np.unique(votes.features["group"][order], return_index=True)
    return votes.take(np.sort(order[first]))


def from_lists(parts: Sequence[pl.DataFrame]) -> cr.Comparisons:
    """All pairs of each list; a list is in one part of a split only."""
    rows = pl.concat(parts).with_columns(group=pl.concat_str("category", "list", separator="/"))
    rows = rows.with_columns(place=pl.int_range(pl.len()).over("group"))
    pairs = rows.join(rows, on="group").filter(pl.col("place") < pl.col("place_right"))
    pairs = pairs.filter(pl.col("item") != pl.col("item_right"))
    winner = (
        pl.when(pl.col("rank") < pl.col("rank_right"))
        .then("item")
        .when(pl.col("rank") > pl.col("rank_right"))
        .then("item_right")
        .otherwise(pl.lit("tie"))
    )
    pairs = pairs.with_columns(winner=winner)
    group = pairs["group"].rank("dense").to_numpy()
    return with_group(pairs["item"], pairs["item_right"], pairs["winner"], pairs["category"], group)


def with_group(left: object, right: object, winner: object, category: object, group: object) -> cr.Comparisons:
    return cr.Comparisons.of(left, right, winner, query=category, features={"group": np.asarray(group)})


def simulate(spread: float, categories: int, votes: int, seed: int, items: int = 10) -> cr.Comparisons:
    """Scores N(0, 1), deviations N(0, spread²), categories of unequal size, and a tie rate of each category."""
    rng = np.random.default_rng(seed)
    names = np.array([f"model {n}" for n in range(items)])
    scores = rng.normal(0, 1, items) + rng.normal(0, spread, (categories, items))
    share = rng.dirichlet(np.ones(categories))
    kind = rng.choice(categories, votes * categories, p=share)
    left = rng.integers(items, size=len(kind))
    right = (left + rng.integers(1, items, size=len(kind))) % items
    d, tie = scores[kind, left] - scores[kind, right], rng.normal(-0.5, 0.3, categories)[kind]
    weight = np.exp(np.stack((d / 2, tie, -d / 2)))
    outcome = (rng.random(len(kind)) > np.cumsum(weight / weight.sum(axis=0), axis=0)[:2]).sum(axis=0)
    winner = np.choose(outcome, (names[left], np.full(len(kind), "tie"), names[right]))
    return with_group(names[left], names[right], winner, [f"category {k}" for k in kind], np.arange(len(kind)))


def simulated(spread: float) -> Source:
    def read(data: Path, seed: int) -> cr.Comparisons:
        return simulate(spread, 8, 150, seed)

    return Source(f"simulated, deviations of {spread}", read, (0.5,))


SOURCES = (
    Source("mtbench_human, by category", mtbench),
    Source("wmt15_16, by language pair", wmt_languages),
    Source("wmt15_16, by language pair, one pair of each list", wmt_language_pairs),
    Source("wmt16 ron-eng, by judge, one pair of each list", wmt_judges("ron-eng"), (0.25,)),
    *(simulated(spread) for spread in (0.0, 0.25, 0.5, 1.0)),
)


def split(votes: cr.Comparisons, share: float, seed: int) -> tuple[cr.Comparisons, cr.Comparisons]:
    """Votes to fit and votes to predict; the votes of a group stay together."""
    _, group = np.unique(votes.features["group"], return_inverse=True)
    chosen = np.random.default_rng([seed, 7]).random(group.max() + 1) < share
    return votes.take(np.flatnonzero(chosen[group])), votes.take(np.flatnonzero(~chosen[group]))


def log_likelihoods(ranking: cr.Ranking, held_out: cr.Comparisons) -> Vector:
    """Log-likelihood of each held-out vote."""
    probability = cr.BradleyTerry().predict(ranking, held_out)
    return np.log(np.maximum(probability[np.arange(len(held_out)), 1 - held_out.outcome], 1e-12))


def together(votes: cr.Comparisons) -> cr.Comparisons:
    """The votes without categories."""
    labels, code = np.unique(votes.items.labels.astype(str), return_inverse=True)
    code = code.astype(np.int32)
    return replace(votes, items=Items.of(labels.tolist()), left=code[votes.left], right=code[votes.right])


def measure(votes: cr.Comparisons, share: float, seed: int) -> dict[str, float]:
    """Mean log-likelihood of held-out votes by each method."""
    fitted, held_out = split(votes, share, seed)
    shared = cr.BradleyTerry().fit(fitted)
    return {
        ONE: float(log_likelihoods(cr.BradleyTerry().fit(together(fitted)), together(held_out)).mean()),
        POOLED: float(log_likelihoods(cr.BradleyTerry(pooling="partial").fit(fitted), held_out).mean()),
        SHARED: float(log_likelihoods(shared, held_out).mean()),
        EACH: separately(fitted, held_out, shared) / len(held_out),
    }


def separately(fitted: cr.Comparisons, held_out: cr.Comparisons, shared: cr.Ranking) -> float:
    """Log-likelihood by a fit to each category; without votes or ties of its own, one has the common tie rate."""
    total = 0.0
    for code in range(len(fitted.items.queries)):
        own, rest = (part.take(np.flatnonzero(part.items.query[part.left] == code)) for part in (fitted, held_out))
        if not len(rest):
            continue
        ranking = cr.BradleyTerry().fit(own) if len(own) else shared
        ranking = replace(ranking, parameters={**shared.parameters, **ranking.parameters})
        total += float(log_likelihoods(ranking, rest).sum())
    return total


def mean(values: Sequence[float]) -> str:
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{np.mean(values):+.5f} ± {error:.5f}"


def page(source: Source, found: dict[float, list[dict[str, float]]]) -> list[str]:
    lines = []
    for share, results in found.items():
        level = f"{np.mean([one[POOLED] for one in results]):.4f}"
        gains = [mean([one[POOLED] - one[other] for one in results]) for other in (ONE, EACH, SHARED)]
        lines.append(f"| {source.name} | {share:.0%} | {level} | {' | '.join(gains)} |")
    return lines


def arena(data: Path) -> list[str]:
    """Negative log-likelihood of the arena's votes by models of ties."""
    content = json.loads((data / "leaderbot_arena_20240814" / "chatbotarena_20240814.json").read_text("utf-8"))
    pairs, counts = np.array(content["X"], np.int32), np.array(content["Y"], np.float64)
    weight = counts.ravel()
    votes = cr.Comparisons(
        items=Items.of(content["models"]),
        left=np.repeat(pairs[:, 0], 4)[weight > 0],
        right=np.repeat(pairs[:, 1], 4)[weight > 0],
        outcome=np.tile(np.array([1, -1, 0, 0], np.int8), len(pairs))[weight > 0],
        both_bad=np.tile([False, False, False, True], len(pairs))[weight > 0],
        weight=weight[weight > 0],
        annotators=np.array([], object),
    )
    kept = votes.take(~votes.both_bad)
    lines = ["| model | negative log-likelihood | parameters |", "| --- | ---: | ---: |"]
    for model, extra in (
        (cr.BradleyTerry(both_bad="apart"), 1),
        (cr.BradleyTerry(both_bad="apart", ties="per-item"), 130),
        (cr.Thurstone(both_bad="apart"), 1),
        (cr.Thurstone(both_bad="apart", ties="per-item"), 130),
    ):
        probability = model.predict(model.fit(votes), kept)
        chosen = np.log(probability[np.arange(len(kept)), 1 - kept.outcome])
        loss = -float(kept.weights @ chosen / kept.weights.sum())
        kind = "" if model.ties != "per-item" else ', ties="per-item"'
        lines.append(f"| {type(model).__name__}{kind} | {loss:.5f} | {len(votes.items) + extra} |")
    return lines


def folder() -> Path:
    told = os.environ.get("CROWDRANK_DATA")
    found = Path(told) if told else _HERE.parents[1] / "shared" / "data"
    if not found.is_dir():
        sys.exit(f"There is no data folder {found}: set CROWDRANK_DATA. Nothing was measured.")
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", help="first word of the name of a source")
    options.add_argument("--draws", type=int, default=_DRAWS, help="splits, or simulations")
    options.add_argument("--first-seed", type=int, default=0, help="seed of the first split")
    given = options.parse_args()
    warnings.simplefilter("ignore", CrowdrankWarning)
    begin, when, data = time.monotonic(), made(), folder()
    seeds = range(given.first_seed, given.first_seed + given.draws)
    text = [
        "# Categories",
        "",
        f"| votes | fitted | {POOLED} | gain over {ONE} | gain over {EACH} | gain over {SHARED} |",
    ]
    text.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for source in SOURCES:
        if given.only is None or source.name.startswith(given.only):
            found = {
                share: [measure(source.read(data, seed), share, seed) for seed in seeds] for share in source.shares
            }
            text += page(source, found)
            print(*text[-len(found) :], sep="\n", flush=True)
    text += [
        "",
        "Mean log-likelihood per held-out vote (larger is better), and gains in it: means ± standard errors over "
        f"{given.draws} random splits or simulations (seeds {seeds[0]} to {seeds[-1]}). *Fitted* is the share of the "
        "votes that the models see; lists of five are split as a whole. *A board each* is a separate fit for each "
        "category, with its own spread and, if it has ties, its own tie rate. *One pair of each list*: the comparisons "
        "of a list of five are not independent, so one of them is drawn.",
    ]
    if given.only is None:
        text += ["", "## Ties of an arena", "", *arena(data), ""]
        text.append(
            "Per vote, on the 1,374,996 votes of leaderbot's Chatbot Arena of 2024-08-14 that do not say that both "
            "answers are bad. leaderbot publishes 1.0100 for Davidson's ties (130 parameters), 1.0095 for "
            "Rao-Kupper's (130), and 1.0075 for its best model (387). Models are fitted to all votes, as there."
        )
    text.append(f"\nMade by `benchmarks/categories.py` in {time.monotonic() - begin:.0f} s.")
    print(*text, sep="\n")
    if given.only is None and not given.first_seed and given.draws == _DRAWS:
        _OUT.write_text("\n".join([*text, "", str(when), ""]), encoding="utf-8")
        record(Path(__file__), _OUT.parent, _OUT.stem, when=when)


if __name__ == "__main__":
    main()
