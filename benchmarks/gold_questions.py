"""How many gold answers does a jury need if they are chosen, and if they are drawn at random?

python benchmarks/gold_questions.py                            both settings, written to results/gold_questions.md
python benchmarks/gold_questions.py --draws 3 --setting one    printed only

65 language models judge the 207 instances of LLMBar with an objective truth. In each draw, gold answers come from a
random half of the instances, and the ranking is compared with the truth on the other half. Chosen ones are those that
`crowdrank next --ask gold` proposes from the votes on the first half, five at a time: the answers are added before
the next five are chosen. The data are read from CROWDRANK_DATA, or from ../shared/data next to the checkout.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from machine import made, record

import crowdrank as cr
from crowdrank.active import choose_answers
from crowdrank.models.jury.jury import JuryFit, fit_jury

_HERE = Path(__file__).resolve().parent
_OUT = _HERE / "results" / "gold_questions.md"
_DRAWS, _STEP, _MOST, _TARGET = 20, 5, 40, 0.87
SETTINGS = {
    "one": "every judge saw each pair in one order, drawn at random, so nothing tells whom to believe but gold",
    "both": "every judge saw each pair in both orders, so its consistency with itself counts, too",
}


def read() -> pl.DataFrame:
    told = os.environ.get("CROWDRANK_DATA")
    path = (Path(told) if told else _HERE.parents[1] / "shared" / "data") / "llmbar_judges" / "votes.csv.gz"
    if not path.is_file():
        sys.exit(f"There is no {path}: set CROWDRANK_DATA. Nothing was measured.")
    return (
        pl.read_csv(path, infer_schema_length=0)
        .filter(pl.col("subset").str.starts_with("LLMBar"))
        .with_columns(
            query=pl.col("subset") + "/" + pl.col("instance"),
            worker=pl.col("judge") + "/" + pl.col("prompting"),
            winner=pl.col("winner").fill_null("tie"),
        )
        .sort("query", "worker", "order")
    )


def comparisons(votes: pl.DataFrame) -> cr.Comparisons:
    return cr.Comparisons.of(
        votes["left"], votes["right"], votes["winner"], annotator=votes["worker"], query=votes["query"]
    )


def gold_pairs(truth: dict[str, str], queries: Sequence[str]) -> cr.Comparisons | None:
    if not queries:
        return None
    better = [truth[query] for query in queries]
    worse = ["2" if label == "1" else "1" for label in better]
    return cr.Comparisons.of(better, worse, better, query=list(queries))


def accuracy(fit: JuryFit, votes: cr.Comparisons, truth: dict[str, str], known: Sequence[str], test: set[str]) -> float:
    """Share of right orders on the other half. Only the direction of the truth depends on gold."""
    scores = fit.with_side_information(cr.SideInformation(gold=gold_pairs(truth, known)).encode(votes)).scores
    items = votes.items
    right = []
    for code, query in enumerate(map(str, items.queries)):
        if query in test:
            own = items.of_query(code)
            right.append(str(items.labels[own][int(np.argmax(scores[own]))]) == truth[query])
    return float(np.mean(right))


def measure(votes: pl.DataFrame, setting: str, seed: int) -> dict[tuple[str, int], float]:
    """Accuracy on the other half, by method and number of gold answers."""
    rng = np.random.default_rng(seed)
    if setting == "one":
        shuffled = votes.with_columns(place=pl.Series(rng.random(len(votes)))).sort("place")
        votes = shuffled.unique(["query", "worker"], keep="first", maintain_order=True).sort("query", "worker")
    truth = dict(votes.select("query", "gold").unique().sort("query").iter_rows())
    order = [sorted(truth)[n] for n in rng.permutation(len(truth))]
    pool, test = order[: len(order) // 2], set(order[len(order) // 2 :])
    everything = comparisons(votes)
    offered = comparisons(votes.filter(pl.col("query").is_in(pool)))
    fit = fit_jury(everything, cr.SideInformation().encode(everything))
    chosen: list[str] = []
    found = {}
    for count in range(0, _MOST + 1, _STEP):
        found["random", count] = accuracy(fit, everything, truth, pool[:count], test)
        found["chosen", count] = accuracy(fit, everything, truth, chosen, test)
        answers = choose_answers(offered, "gold", _STEP, gold=gold_pairs(truth, chosen), seed=seed)
        chosen += [str(answer.query) for answer in answers]
    return found


def page(setting: str, draws: Sequence[dict[tuple[str, int], float]]) -> str:
    counts = sorted({count for _, count in draws[0]})
    lines = [f"## {setting} order" if setting == "one" else "## both orders", "", f"Here {SETTINGS[setting]}.", ""]
    lines += ["| gold answers | " + " | ".join(map(str, counts)) + " |", "|---|" + "---:|" * len(counts)]
    for method in ("random", "chosen"):
        values = np.array([[draw[method, count] for count in counts] for draw in draws])
        errors = values.std(axis=0, ddof=1) / len(draws) ** 0.5
        cells = [f"{mean:.3f} ± {error:.3f}" for mean, error in zip(values.mean(axis=0), errors, strict=True)]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    first = {method: needed(draws, method, counts) for method in ("random", "chosen")}
    words = ", ".join(f"{method} {number:.0f}" for method, number in first.items())
    return "\n".join([*lines, "", f"Answers until the mean is {_TARGET}, interpolated: {words}.", ""])


def needed(draws: Sequence[dict[tuple[str, int], float]], method: str, counts: Sequence[int]) -> float:
    """The number of answers from which on the mean accuracy stays at the target."""
    mean = np.array([np.mean([draw[method, count] for draw in draws]) for count in counts])
    below = np.flatnonzero(mean < _TARGET)
    if not len(below):
        return 0.0
    last = int(below[-1])
    if last + 1 == len(counts):
        return float("inf")
    share = (_TARGET - mean[last]) / (mean[last + 1] - mean[last])
    return counts[last] + share * (counts[last + 1] - counts[last])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--draws", type=int, default=_DRAWS)
    options.add_argument("--first-seed", type=int, default=0)
    options.add_argument("--setting", choices=SETTINGS)
    given = options.parse_args()
    begin, when, votes = time.monotonic(), made(), read()
    seeds = range(given.first_seed, given.first_seed + given.draws)
    chosen = [given.setting] if given.setting else list(SETTINGS)
    parts = [page(setting, [measure(votes, setting, seed) for seed in seeds]) for setting in chosen]
    text = "# Gold answers, chosen and at random\n\n" + "\n".join(parts)
    text += (
        f"\nShare of right orders on the half of 207 LLMBar instances from which no gold answer came; jury, 65 judges; "
        f"means ± standard errors over {given.draws} draws of halves and orders (seeds {seeds[0]} to {seeds[-1]}). "
        f"Made by `benchmarks/gold_questions.py` in {time.monotonic() - begin:.0f} s.\n"
    )
    print(text)
    if not given.setting and not given.first_seed and given.draws == _DRAWS:
        _OUT.write_text(f"{text}\n{when}\n", encoding="utf-8")
        record(Path(__file__), _OUT.parent, _OUT.stem, when=when)


if __name__ == "__main__":
    main()
