"""Rankings from unreliable judges with independent truth: all methods on all data sets, in one table.

python benchmarks/unreliable_judges.py                          everything, written to results/unreliable_judges.md
python benchmarks/unreliable_judges.py --add                    what results/unreliable_judges.csv does not have yet
python benchmarks/unreliable_judges.py --add --draws 0          only write the table of the values that are there
python benchmarks/unreliable_judges.py --draws 3 --only mtbench_human --methods jury,crowd-bt      printed only

The values of each draw are in results/unreliable_judges.csv, written after every draw. With --add they are kept: a new
method or data set is measured alone, and a run that was stopped is continued.

A data set is a function that draws a `Problem`, listed in `DATA`; a method is a function from a problem to a ranking,
listed in `METHODS`. To add one, write the function and add a line. The data are read from CROWDRANK_DATA, or from
../shared/data next to the checkout. They are not part of the project; sets that are not there are left out.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from machine import made, record

import crowdrank as cr
from crowdrank.errors import CrowdrankError, CrowdrankWarning

Vector = npt.NDArray[np.float64]
_HERE = Path(__file__).resolve().parent
_OUT = _HERE / "results" / "unreliable_judges.md"
_VALUES = _OUT.with_suffix(".csv")
_DRAWS = 10


@dataclass(frozen=True, eq=False)
class Problem:
    """Votes to rank, and the truth that a ranking is compared with."""

    votes: cr.Comparisons
    truth: Mapping[tuple[str, str], float]
    """The true value by query and label. The items of a query are compared with each other."""
    people: Mapping[str, cr.AnnotatorDetails] = field(default_factory=dict)
    gold: cr.Comparisons | None = None
    """Pairs whose answer is known to the method. Their queries are not in the truth."""


@dataclass(frozen=True)
class DataSet:
    """A data set: how to draw problems from it. The score of a draw is the mean over its problems."""

    name: str
    path: str
    """The file or folder without which it is left out."""
    draw: Callable[[Path, np.random.Generator], Sequence[Problem]]
    about: str


@dataclass(frozen=True)
class Method:
    """A method: a ranking for a problem, or None where it cannot be used."""

    name: str
    rank: Callable[[Problem], cr.Ranking | None]
    about: str = ""


# ---- data sets


@cache
def _read(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema_length=0)


def _comparisons(frame: pl.DataFrame, annotator: str = "worker") -> cr.Comparisons:
    frame = frame.filter(pl.col("left") != pl.col("right"))
    columns = {name: frame[name] for name in ("left", "right", "winner", "query") if name in frame.columns}
    found = cr.Comparisons.of(**columns, annotator=frame[annotator])
    return replace(found, both_bad=None)


def _draw_annotators(frame: pl.DataFrame, rng: np.random.Generator, share: float = 0.8) -> pl.DataFrame:
    """The votes of a random share of the annotators: those left out differ from draw to draw."""
    names = frame["worker"].unique().sort()
    chosen = names.gather(rng.permutation(len(names))[: max(2, round(share * len(names)))])
    return frame.filter(pl.col("worker").is_in(chosen.implode()))


def llmbar(n_gold: int) -> Callable[[Path, np.random.Generator], list[Problem]]:
    """Language models on adversarial pairs of answers; half of the instances in each draw."""

    def draw(path: Path, rng: np.random.Generator) -> list[Problem]:
        frame = (
            _read(path)
            .filter(pl.col("subset").str.starts_with("LLMBar"))
            .with_columns(
                query=pl.col("subset") + "/" + pl.col("instance"),
                worker=pl.col("judge") + "/" + pl.col("prompting"),
                winner=pl.col("winner").fill_null("tie"),
            )
        )
        answers = frame.select("query", "gold").unique().sort("query")
        answers = answers[rng.permutation(len(answers))[: len(answers) // 2]]
        known, rest = answers[:n_gold], answers[n_gold:]
        truth = {(query, label): float(label == best) for query, best in rest.iter_rows() for label in ("1", "2")}
        votes = _comparisons(frame.filter(pl.col("query").is_in(answers["query"].implode())))
        people = {str(name): cr.AnnotatorDetails(kind="llm") for name in votes.annotators}
        if not n_gold:
            return [Problem(votes, truth, people)]
        worse = known["gold"].replace_strict({"1": "2", "2": "1"})
        gold = cr.Comparisons.of(known["gold"], worse, known["gold"], query=known["query"])
        return [Problem(votes, truth, people, gold)]

    return draw


def humans_and_models(judges: Sequence[str], count: int) -> Callable[[Path, np.random.Generator], list[Problem]]:
    """A few votes of humans and all votes of language models; the truth are all other votes of the humans."""

    def draw(path: Path, rng: np.random.Generator) -> list[Problem]:
        frame = _read(path).drop("query").with_columns(pl.col("winner").replace({"both_bad": "tie"}))
        is_model = pl.col("worker").is_in(list(judges))
        humans = frame.filter(~is_model)
        humans = humans[rng.permutation(len(humans))]
        votes = _comparisons(pl.concat([humans[:count], frame.filter(is_model)]))
        held_out = cr.BradleyTerry().fit(_comparisons(humans[count:]))
        truth = {
            ("", str(label)): float(score) for label, score in zip(held_out.items.labels, held_out.scores, strict=True)
        }
        kinds = {str(name): "llm" if str(name) in judges else "human" for name in votes.annotators}
        return [Problem(votes, truth, {name: cr.AnnotatorDetails(kind=kind) for name, kind in kinds.items()})]

    return draw


def reading_difficulty(path: Path, rng: np.random.Generator) -> list[Problem]:
    """A crowd that compares how hard texts are to read; the truth is the grade level of the text."""
    votes = _comparisons(_draw_annotators(_read(path / "pairwise.csv"), rng))
    levels = _read(path / "gold.csv")
    return [Problem(votes, {("", item): float(label) for item, label in levels.iter_rows()})]


def comparative_judgement(path: Path, rng: np.random.Generator) -> list[Problem]:
    """Teachers, experts and students who compare scripts; the truth is the first criterion, such as a test mark."""
    found = []
    for file in sorted(path.glob("*_votes.csv")):
        votes = _comparisons(_draw_annotators(_read(file), rng))
        marks = _read(path / file.name.replace("_votes", "_criterion"))
        values = marks[:, 1].cast(pl.Float64, strict=False)
        known = zip(marks["item"].to_list(), values.to_list(), strict=True)
        found.append(Problem(votes, {("", item): value for item, value in known if value is not None}))
    return found


_ARENA_JUDGES = ("gpt-4-0125-preview", "claude-3-opus-20240229", "gpt-3.5-turbo")
DATA = (
    DataSet(
        "llmbar_judges",
        "llmbar_judges/votes.csv.gz",
        llmbar(0),
        "65 language models on pairs of answers, in both orders; the truth is objective",
    ),
    DataSet("llmbar_judges, 10 gold", "llmbar_judges/votes.csv.gz", llmbar(10), "the same, with 10 answers known"),
    DataSet(
        "arena27k",
        "arena27k_humans_llms/votes.csv.gz",
        humans_and_models(_ARENA_JUDGES, 1000),
        "1,000 votes of humans and 13,495 of each of three language models; the truth are 12,495 other human votes",
    ),
    DataSet(
        "mtbench_human",
        "mtbench_human/votes_human_and_gpt4.csv",
        humans_and_models(("gpt4_pair",), 200),
        "200 votes of experts and 2,400 of GPT-4; the truth are 3,155 other votes of experts",
    ),
    DataSet(
        "reading_difficulty",
        "reading_difficulty",
        reading_difficulty,
        "624 crowd workers on 490 texts; the truth is the grade level",
    ),
    DataSet(
        "cj_with_criterion",
        "cj_with_criterion",
        comparative_judgement,
        "8 studies of comparative judgement; the truth is a test mark or grade, and has noise of its own",
    ),
)


# ---- methods


def by_model(name: str, **settings: Any) -> Callable[[Problem], cr.Ranking | None]:
    """The model of this name, with the gold pairs if there are any; None if it cannot use them."""

    def rank(problem: Problem) -> cr.Ranking | None:
        if problem.gold is not None and not cr.models.REGISTRY[name].accepts_side_information:
            return None
        return cr.rank(problem.votes, model=name, gold_pairs=problem.gold, uncertainty="none", **settings)

    return rank


def by_default(problem: Problem) -> cr.Ranking:
    """What `cr.rank` does by itself, knowing who is human."""
    return cr.rank(problem.votes, people=problem.people, gold_pairs=problem.gold, uncertainty="none")


def commensurate(problem: Problem) -> cr.Ranking | None:
    kinds = {who.kind for who in problem.people.values()}
    if kinds != {"human", "llm"}:
        return None
    return cr.CommensurateBT().fit(problem.votes, side_information=cr.SideInformation(people=problem.people))


def humans_only(problem: Problem) -> cr.Ranking | None:
    """Bradley-Terry on the votes of the humans, where some are not."""
    human = np.array(
        [problem.people.get(str(n), cr.AnnotatorDetails()).kind == "human" for n in problem.votes.annotators]
    )
    if not human.any() or human.all():
        return None
    return cr.BradleyTerry().fit(problem.votes.take(human[problem.votes.annotator]))


METHODS = (
    Method("default of `rank`", by_default, "the model that crowdrank chooses"),
    Method("win-rate", by_model("win-rate"), "share of votes won: the majority, for pairs"),
    Method("bradley-terry", by_model("bradley-terry")),
    Method("bradley-terry, humans only", humans_only),
    Method("rank-centrality", by_model("rank-centrality")),
    Method("crowd-bt", by_model("crowd-bt")),
    Method("variance-bt", by_model("variance-bt")),
    Method("factor-bt", by_model("factor-bt")),
    Method("pairwise-hits", by_model("pairwise-hits")),
    Method("majority-bt", by_model("majority-bt")),
    Method("jury", by_model("jury")),
    Method("commensurate-bt", commensurate, "where humans and language models judge together"),
)


# ---- measurement


def share_in_order(ranking: cr.Ranking, truth: Mapping[tuple[str, str], float]) -> float:
    """Share of pairs of items with different true values that the scores order rightly; equal scores are half."""
    items = ranking.items
    queries = [str(items.queries[code]) for code in items.query]
    values = np.array([truth.get((q, str(label)), np.nan) for q, label in zip(queries, items.labels, strict=True)])
    right = total = 0.0
    for code in range(len(items.queries)):
        of_query = items.of_query(code)
        true, score = values[of_query], ranking.scores[of_query]
        known = np.isfinite(true)
        true, score = true[known], score[known]
        greater = true[:, None] > true
        right += float(np.sum(greater * (0.5 + 0.5 * np.sign(score[:, None] - score))))
        total += float(np.sum(greater))
    return right / total


def measure(method: Method, problems: Sequence[Problem]) -> float:
    """The mean share in order over problems; NaN if the method cannot be used."""
    shares = []
    for problem in problems:
        try:
            ranking = method.rank(problem)
        except CrowdrankError as error:
            print(f"    {method.name}: {error}", file=sys.stderr)
            return float("nan")
        if ranking is None:
            return float("nan")
        shares.append(share_in_order(ranking, problem.truth))
    return float(np.mean(shares))


def cell(values: Sequence[float]) -> str:
    if not len(values) or np.isnan(values).any():
        return ""
    error = np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else float("nan")
    return f"{np.mean(values):.3f} ± {error:.3f}"


def page(found: Mapping[str, Mapping[str, Sequence[float]]], sets: Sequence[DataSet]) -> str:
    """The table, best methods of each data set in bold, and what the data sets are."""
    best = {
        name: max(
            (np.mean(values) for values in of_methods.values() if len(values) and not np.isnan(values).any()),
            default=0.0,
        )
        for name, of_methods in found.items()
    }
    methods = list(next(iter(found.values())))
    lines = ["| method | " + " | ".join(found) + " |", "| --- " + "| ---: " * len(found) + "|"]
    for method in methods:
        cells = []
        for name, of_methods in found.items():
            text = cell(of_methods[method])
            cells.append(f"**{text}**" if text and np.mean(of_methods[method]) == best[name] else text)
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    draws = [str(max(map(len, of_methods.values()))) for of_methods in found.values()]
    lines.append(f"| *draws* | {' | '.join(draws)} |")
    lines += ["", *(f"- *{one.name}*: {one.about}." for one in sets), ""]
    lines.append(
        "Share of pairs of items in the true order, mean ± standard error over draws. A draw is half of the "
        "instances (llmbar_judges), other votes of humans (arena27k, mtbench_human), or 80 % of the annotators. Empty: "
        "the method cannot be used there. The best in bold."
    )
    return "\n".join(lines) + "\n"


def folder() -> Path:
    told = os.environ.get("CROWDRANK_DATA")
    return Path(told) if told else _HERE.parents[1] / "shared" / "data"


def small_problem() -> Vector:
    """Methods on simulated votes, to notice when a model changes."""
    votes = cr.simulation.crowd_bt(items=8, annotators=3, pairs=28, votes=3, labels="logistic", seed=1).judgments
    people = {
        str(n): cr.AnnotatorDetails(kind=k) for n, k in zip(votes.annotators, ("human", "llm", "llm"), strict=True)
    }
    return by_default(Problem(votes, {}, people)).scores


SHOWS = {"default of `rank`": small_problem, "crowd-bt": cr.CrowdBT(), "jury": cr.Jury()}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--only", help="names of data sets, separated by commas")
    options.add_argument("--methods", help="names of methods, separated by commas")
    options.add_argument("--draws", type=int, default=_DRAWS)
    options.add_argument("--add", action="store_true", help="keep the values of earlier runs")
    given = options.parse_args()
    warnings.simplefilter("ignore", CrowdrankWarning)
    begin, when, data = time.monotonic(), made(), folder()
    # a name may hold a comma
    only = [given.only] if given.only in [one.name for one in DATA] else (given.only or "").split(",")
    sets = [one for one in DATA if given.only is None or one.name in only]
    for missing in [one for one in sets if not (data / one.path).exists()]:
        print(f"{missing.name} is left out: there is no {missing.path} in the data folder.", file=sys.stderr)
        sets.remove(missing)
    if not sets:
        sys.exit("There are no data: set CROWDRANK_DATA. Nothing was measured.")
    methods = [one for one in METHODS if given.methods is None or one.name in given.methods.split(",")]
    written = given.only is None and given.methods is None and len(sets) == len(DATA)
    values = read_values() if given.add else {}
    for one in sets:
        for seed in range(given.draws):
            missing = [method for method in methods if (one.name, method.name, seed) not in values]
            problems = one.draw(data / one.path, np.random.default_rng(seed)) if missing else []
            for method in missing:
                # a method that cannot be used is not tried again
                first = values.get((one.name, method.name, 0), 0.0)
                values[one.name, method.name, seed] = first if np.isnan(first) else measure(method, problems)
            if missing and written:
                write_values(values)
        shown = ", ".join(f"{m.name} {cell(of(values, one, m))}" for m in methods)
        print(f"{one.name}, after {time.monotonic() - begin:.0f} s: {shown}", file=sys.stderr, flush=True)
    found = {one.name: {method.name: of(values, one, method) for method in methods} for one in sets}
    text = "# Rankings from unreliable judges\n\n" + page(found, sets)
    print(text)
    if written and given.draws != 1:
        text += f"\n{when}\n"
        _OUT.write_text(text, encoding="utf-8")
        record(Path(__file__), _OUT.parent, _OUT.stem, when=when)


Values = dict[tuple[str, str, int], float]
"""The share in order by data set, method and seed."""


def of(values: Values, data: DataSet, method: Method) -> list[float]:
    """The values of a method, by seed."""
    return [share for (name, by, _), share in sorted(values.items()) if (name, by) == (data.name, method.name)]


def read_values() -> Values:
    if not _VALUES.exists():
        return {}
    rows = pl.read_csv(_VALUES, schema_overrides={"share": pl.Float64}).iter_rows()
    return {(data, method, seed): float("nan") if share is None else share for data, method, seed, share in rows}


def write_values(values: Values) -> None:
    """Write the value of each draw; empty where a method cannot be used."""
    rows = [(*key, None if np.isnan(share) else round(share, 6)) for key, share in sorted(values.items())]
    pl.DataFrame(rows, {"data": str, "method": str, "seed": int, "share": float}, orient="row").write_csv(_VALUES)


if __name__ == "__main__":
    main()
