"""Does it help to weight annotators? Models on real judgments, evaluated on held-out answers.

python benchmarks/real_data.py             everything, written to benchmarks/results/
python benchmarks/real_data.py --only country_population                 printed only
python benchmarks/real_data.py --only country_population --out FOLDER    what was there of other sets is kept

The data are read from CROWDRANK_DATA, or from ../shared/data next to the checkout. They are not part of the project.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from machine import made, record

import crowdrank as cr
from crowdrank.models.cross_validation import CANDIDATES, assign_folds, log_probabilities

Vector = npt.NDArray[np.float64]

_FOLDS = 5
_SEED = 0
_LEAST = 8
"""How many of the least believed annotators are shown."""
_SAMPLED_BELOW = 15_000
"""Judgments beyond which the posterior is not sampled here: five fits of it would take minutes."""
_HERE = Path(__file__).resolve().parent
PLAIN = "bradley-terry"
PRIORS = (*CANDIDATES["quality_prior"], (30.0, 1.0))
"""What "auto" tries, and beyond it a belief that nearly everyone is nearly perfect."""
# Scores and qualities estimated together, as in the paper; the prior of quality by cross-validation unless given.
JOINT: dict[str, Any] = {"estimation": "joint", "prior_scale": 3.0, "ties": "drop"}
BINS = ((1, 5), (6, 20), (21, 50), (51, 200), (201, 1_000_000))
"""By how much their annotators answered, answers are looked at apart."""


@dataclass(frozen=True)
class Source:
    """One set of comparisons."""

    name: str
    file: str
    sides: bool = False
    """Whether left and right are the sides of the screen, and pairs were shown both ways."""


SOURCES = (
    Source("country_population", "country_population/pairwise.csv"),
    Source("mirex2005", "mirex2005/pairwise.csv"),
    Source("ukp_convarg", "ukp_convarg/pairwise.csv"),
    Source("llmfao", "llmfao/pairwise.csv", sides=True),
    Source("pwcmp lightfield", "pwcmp/lightfield_pairwise.csv", sides=True),
    Source("pwcmp tmo", "pwcmp/tmo_pairwise.csv", sides=True),
    Source("xu age", "xu_crowdrank/age_pairwise.csv"),
    Source("xu college", "xu_crowdrank/college_pairwise.csv"),
    Source("xu iqa", "xu_crowdrank/iqa_ref1_pairwise.csv"),
)


@dataclass(frozen=True)
class Facts:
    """What the set is like."""

    judgments: int
    ties: int
    items: int
    annotators: int
    usual_answers: float
    """Decided answers of the median annotator."""
    behind_an_answer: float
    """Decided answers of the annotator behind the median answer."""
    spread: float
    """Standard deviation of quality between annotators, beyond what chance makes of it."""


@dataclass(frozen=True)
class Gain:
    """Mean log chance of an answer held out, and how much more that is than Bradley-Terry's."""

    mean: float
    difference: float
    std_error: float
    """Of the difference, judgments taken as independent."""
    std_error_by_annotator: float
    """The same, annotators taken as independent."""
    seconds: float
    """Of all folds."""


def contenders(source: Source, judgments: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        PLAIN: cr.BradleyTerry(),
        "crowd-bt": cr.CrowdBT(),
        "crowd-bt auto": cr.CrowdBT(**JOINT),
        "variance-bt": cr.VarianceBT(),
    }
    if source.sides:
        found["factor-bt"] = cr.FactorBT()
    if judgments < _SAMPLED_BELOW:
        found["bayesian-crowd-bt"] = cr.BayesianCrowdBT(chains=2, draws=150)
    return found


def log_scores(model: Any, votes: cr.Comparisons) -> tuple[Vector, float]:
    """Log probability of each decided judgment by a fit without it, in the order of the rows."""
    fold = assign_folds(votes, _FOLDS, "judgment", np.random.default_rng(_SEED))
    found = np.full(len(votes), np.nan)
    began = time.perf_counter()
    for n in range(_FOLDS):
        rows = np.flatnonzero(fold == n)
        unseen = votes.take(rows)
        ranking = model.fit(votes.take(np.flatnonzero(fold != n)))
        found[rows[unseen.outcome != 0]] = log_probabilities(model, ranking, unseen)
    return found[votes.outcome != 0], time.perf_counter() - began


SHOWS = {
    **contenders(Source("", "", sides=True), 0),
    **{f"crowd-bt, prior {p}": cr.CrowdBT(**(JOINT | {"quality_prior": p})) for p in PRIORS},
}
Foretold = dict[str, tuple[Vector, float]]


def foretold(models: dict[str, Any], votes: cr.Comparisons) -> Foretold:
    """Log chances by every model, and the seconds it took."""
    found = {}
    for name, model in models.items():
        found[name] = log_scores(model, votes)
        print(f"  {name:<18} {found[name][0].mean():.4f}", flush=True)
    return found


def gains(found: Foretold, votes: cr.Comparisons) -> dict[str, dict[str, float]]:
    """Of each model, against Bradley-Terry on the same answers."""
    plain, who = found[PLAIN][0], votes.annotator[votes.outcome != 0]
    return {name: asdict(compared(values, plain, who, seconds)) for name, (values, seconds) in found.items()}


def compared(found: Vector, plain: Vector, who: npt.NDArray[Any], seconds: float) -> Gain:
    gain = found - plain
    people = np.bincount(who, gain - gain.mean())
    by_annotator = float(np.sqrt(np.sum(people**2))) / len(gain)
    error = float(gain.std() / np.sqrt(len(gain)))
    return Gain(float(found.mean()), float(gain.mean()), error, by_annotator, round(seconds, 1))


def by_answers(found: Foretold, votes: cr.Comparisons, name: str) -> list[dict[str, float]]:
    """The gain of a model on answers of annotators who gave few, and of those who gave many."""
    answers = np.bincount(votes.annotator)[votes.annotator]
    gain, rows = found[name][0] - found[PLAIN][0], []
    for low, high in BINS:
        own = gain[(answers >= low) & (answers <= high)]
        if len(own) > 1:
            error = float(own.std() / np.sqrt(len(own)))
            rows.append(
                {"from": low, "share": len(own) / len(gain), "difference": float(own.mean()), "std_error": error}
            )
    return rows


def decided(votes: cr.Comparisons) -> cr.Comparisons:
    return votes.take(np.flatnonzero(votes.outcome != 0))


def spread_of_quality(votes: cr.Comparisons) -> float:
    """How much annotators differ, by DerSimonian and Laird's estimate of the variance between them.

    An answer (±1) has mean trust · expected by scores that have not seen it; trust is 2η − 1.
    """
    fold, model = assign_folds(votes, _FOLDS, "judgment", np.random.default_rng(_SEED)), cr.BradleyTerry()
    expected = np.zeros(len(votes))
    for n in range(_FOLDS):
        rows = np.flatnonzero(fold == n)
        chance = model.predict(model.fit(votes.take(np.flatnonzero(fold != n))), votes.take(rows))
        expected[rows] = chance[:, 0] - chance[:, 2]
    weight = np.bincount(votes.annotator, expected**2)
    trust = np.bincount(votes.annotator, expected * votes.outcome) / np.maximum(weight, 1e-12)
    known = weight > 0
    weight, trust = weight[known], trust[known]
    average = np.average(trust, weights=weight)
    noise = np.bincount(votes.annotator, expected**2 * (1 - (average * expected) ** 2))[known] / weight
    between = np.sum(weight * (trust - average) ** 2) - np.sum(noise) + np.sum(weight * noise) / np.sum(weight)
    between /= np.sum(weight) - np.sum(weight**2) / np.sum(weight)
    return float(np.sqrt(max(between, 0.0)) / 2)


def facts_of(votes: cr.Comparisons) -> Facts:
    clear = decided(votes)
    answers = np.bincount(clear.annotator)
    answers = answers[answers > 0]
    behind = float(np.median(np.repeat(answers, answers)))
    return Facts(
        len(votes),
        votes.ties,
        len(votes.items),
        len(votes.annotators),
        float(np.median(answers)),
        behind,
        spread_of_quality(clear),
    )


def study(source: Source, votes: cr.Comparisons) -> dict[str, Any]:
    """Every model on the decided answers; the quick ones once more, fitted to the ties as well."""
    clear = decided(votes)
    entered = contenders(source, len(clear))
    found = foretold(entered, clear)
    result: dict[str, Any] = {"set": source.name, "facts": asdict(facts_of(votes)), "decided": gains(found, clear)}
    result["crowd_bt_by_answers"] = by_answers(found, clear, "crowd-bt")
    if votes.ties:
        quick = {PLAIN: entered[PLAIN], "crowd-bt": cr.CrowdBT(), "variance-bt": entered["variance-bt"]}
        result["fitted_to_ties_too"] = gains(foretold(quick, votes), votes)
    priors = {f"Beta{prior}": cr.CrowdBT(**(JOINT | {"quality_prior": prior})) for prior in PRIORS}
    result["quality_priors"] = gains(foretold({PLAIN: cr.BradleyTerry(), **priors}, clear), clear)
    return result


def against_gold(source: Source, votes: cr.Comparisons, gold_file: Path) -> dict[str, Any]:
    """The one set whose truth is known independently: accuracy, the order, and who is taken in reverse."""
    known = cr.read_gold(gold_file)
    gold = cr.Gold.of(known.item, known.value)
    graded = {}
    for name, model in contenders(source, len(votes)).items():
        ranking = model.fit(votes)
        grade = cr.evaluate(ranking, gold)
        graded[name] = {"accuracy": grade.accuracy, "kendall_distance": grade.kendall_distance}
    ranking = cr.CrowdBT().fit(votes)
    people = ranking.annotators.frame()
    judged = cr.verdicts(votes)
    told = judged.frame().select("annotator", "verdict", "decided", "agreed")
    least = people.tail(_LEAST).join(told, on="annotator", how="left", maintain_order="left")
    truth = dict(zip(map(str, known.item), known.value.tolist(), strict=True))
    table = ranking.to_polars().select("rank", "item", "score", "std_error", "rank_low", "rank_high").to_dicts()
    return {
        "against_gold": graded,
        "ranking": [row | {"gold": truth[row["item"]]} for row in table],
        "taken_in_reverse": ranking.annotators.reversed,
        "least_believed": least.to_dicts(),
        "verdicts": dict(judged.counts),
    }


def signed(gain: dict[str, float] | None) -> str:
    if gain is None:
        return ""
    other = f" ({gain['std_error_by_annotator']:.4f})" if "std_error_by_annotator" in gain else ""
    return f"{gain['difference']:+.4f} ± {gain['std_error']:.4f}{other}"


def line(cells: Sequence[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def table(results: Sequence[dict[str, Any]], part: str, names: Sequence[str]) -> str:
    rows = [line(["", PLAIN, *names]), line(["---"] * (2 + len(names)))]
    for result in (r for r in results if part in r):
        found = result[part]
        rows.append(line([result["set"], f"{found[PLAIN]['mean']:.4f}", *(signed(found.get(name)) for name in names)]))
    return "\n".join(rows)


def facts_table(results: Sequence[dict[str, Any]]) -> str:
    head = [
        "",
        "judgments",
        "ties",
        "items",
        "annotators",
        "answers of the median annotator",
        "answers of who gave the median answer",
        "spread of quality",
    ]
    rows = [line(head), line(["---"] * len(head))]
    for result in results:
        f = Facts(**result["facts"])
        counts = [f"{n:,}" for n in (f.judgments, f.ties, f.items, f.annotators)]
        counts += [f"{f.usual_answers:g}", f"{f.behind_an_answer:g}", f"{f.spread:.2f}"]
        rows.append(line([result["set"], *counts]))
    return "\n".join(rows)


def answers_table(results: Sequence[dict[str, Any]]) -> str:
    spans = [f"{low} to {high}" for low, high in BINS[:-1]] + [f"{BINS[-1][0]} and more"]
    rows = [line(["", *spans]), line(["---"] * (1 + len(spans)))]
    for result in results:
        cells = {row["from"]: f"{signed(row)} ({row['share']:.0%})" for row in result["crowd_bt_by_answers"]}
        rows.append(line([result["set"], *(cells.get(low, "") for low, _ in BINS)]))
    return "\n".join(rows)


def gold_part(result: dict[str, Any]) -> str:
    rows = [line(["", "accuracy", "pairs the wrong way round"]), line(["---"] * 3)]
    for name, grade in result["against_gold"].items():
        rows.append(line([name, f"{grade['accuracy']:.3f}", f"{grade['kendall_distance']:g} of 105"]))
    rows += ["", line(["rank", "item", "gold", "score", "± error", "ranks (95 %)"]), line(["---"] * 6)]
    for r in result["ranking"]:
        ranks = f"{r['rank_low']}–{r['rank_high']}"
        rows.append(line([r["rank"], r["item"], f"{r['gold']:g}", f"{r['score']:.2f}", f"{r['std_error']:.2f}", ranks]))
    rows += ["", line(["least believed", "quality", "between", "agreed", "verdict"]), line(["---"] * 5)]
    for r in result["least_believed"]:
        between = f"{r['quality_low']:.2f}–{r['quality_high']:.2f}"
        agreed = f"{r['agreed']} of {r['decided']}"
        rows.append(line([r["annotator"], f"{r['quality']:.2f}", between, agreed, r["verdict"]]))
    told = ", ".join(f"{count} {word}" for word, count in result["verdicts"].items())
    turned = ", ".join(result["taken_in_reverse"]) or "nobody"
    return "\n".join(rows) + f"\n\nTaken in reverse by crowd-bt: {turned}. Verdicts: {told}."


def page(results: Sequence[dict[str, Any]]) -> str:
    models = ["crowd-bt", "crowd-bt auto", "variance-bt", "factor-bt", "bayesian-crowd-bt"]
    priors = [f"Beta{prior}" for prior in PRIORS]
    parts = [
        "# Models on real judgments",
        f"Mean log probability of a held-out decided answer ({_FOLDS} folds), in nats, for {PLAIN}; then the gain of "
        "the other models, ± the standard error of the paired difference (in brackets: annotators, not answers, "
        "treated as independent). ../README.md describes the method.",
        "## The sets",
        facts_table(results),
        "## Decided answers only",
        table(results, "decided", models),
        "## Fitted to the ties as well",
        table(results, "fitted_to_ties_too", ["crowd-bt", "variance-bt"]),
        "## crowd-bt by its prior on quality",
        table(results, "quality_priors", priors),
    ]
    parts += ["## crowd-bt by how much the annotator answered, with the share of answers", answers_table(results)]
    for result in (r for r in results if "against_gold" in r):
        parts += [f"## {result['set']} against gold", gold_part(result)]
    return "\n\n".join(parts) + "\n"


def folder() -> Path:
    told = os.environ.get("CROWDRANK_DATA")
    found = Path(told) if told else _HERE.parents[1] / "shared" / "data"
    if not found.is_dir():
        sys.exit(f"There is no data folder {found}: set CROWDRANK_DATA. Nothing was measured.")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", default="", help="sets, separated by commas; printed only, unless told where to write"
    )
    parser.add_argument("--out", type=Path, help="where to write; benchmarks/results for a full run")
    options = parser.parse_args()
    chosen = [s for s in SOURCES if not options.only or s.name in options.only.split(",")]
    out = options.out or (None if options.only else _HERE / "results")
    data, results = folder(), []
    warnings.simplefilter("ignore", cr.errors.CrowdrankWarning)  # islands within a fold
    for source in chosen:
        votes = cr.read(data / source.file)
        print(f"\n{source.name}: {votes}", flush=True)
        result = study(source, votes)
        if source.name == "country_population":
            result |= against_gold(source, votes, data / "country_population" / "gold.csv")
        results.append(result)
    print("\n" + page(results))
    if out is not None:
        write(results, out)


def write(results: Sequence[dict[str, Any]], out: Path) -> None:
    """The sets measured now, beside those measured before."""
    out.mkdir(parents=True, exist_ok=True)
    file = out / "real-data.json"
    known = {result["set"]: result for result in json.loads(file.read_text())} if file.exists() else {}
    known |= {result["set"]: result for result in results}
    whole = [known[source.name] for source in SOURCES if source.name in known]
    file.write_text(json.dumps(whole, indent=2) + "\n")
    (out / "real-data.md").write_text(f"{page(whole)}\n{made()}\n")
    record(Path(__file__), out, "real-data")


if __name__ == "__main__":
    main()
