"""Crowd-BT, Table 3: real judgments, by the regularisation λ.

Which of two passages is harder to read: 491 passages of known level, 624 annotators, 12,728 comparisons. Pass the
authors' file (wsdm_rankagg_2013_readability_crowdflower_data.csv), or any file of comparisons and one of gold.
Otherwise the reading_difficulty judgments are ranked if they are found, else those of country_population. Figure 4, the
estimated η of the annotators, is the second table.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the processes share the cores
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import polars as pl
from measure import Check, Key, Table, data_folder, decimals, options, report

from crowdrank import BradleyTerry, Comparisons, CrowdBT, Gold, MajorityBT, VarianceBT, read, read_gold
from crowdrank.errors import DataWarning, muted_warnings
from crowdrank.evaluation import evaluate_scores
from crowdrank.models import Model

WEIGHTS = (0.1, 0.5, 1.0, 10.0, 50.0)
PAPER = {
    "Bradley-Terry": (0.6760, 0.6796, 0.6815, 0.6802, 0.6629),
    "Majority-Vote-BT": (0.6686, 0.6700, 0.6688, 0.6483, 0.6409),
    "Variance-BT": (0.6790, 0.6835, 0.6862, 0.6828, 0.6658),
    "Crowd-BT": (0.6924, 0.6961, 0.6978, 0.6874, 0.6690),
}
BY_THE_PAPER = CrowdBT(
    estimation="joint",
    prior_scale=None,
    virtual_weight=0.5,
    quality_prior=None,
    ties="drop",
    start="one",
    solver="alternating",
    max_steps=1000,
)
NOTES = """
Crowd-BT is the paper's method: no prior on η, alternating optimisation of scores and η, starting from η = 1.
variance-bt has a normal prior on scores, with the variance 2/λ that matches λ at equal scores. The precision of its
annotators has a prior too, unlike in the paper.
"""

KNOWN = ("reading_difficulty", "country_population")
"""Folders with a file of comparisons and one of gold; the first is the paper's own data."""
# Figure 4's bins, which has no numbers; the text says that about half of the annotators are perfect.
BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
FIGURE4, PERFECT = "share of annotators", "η from 0.95 to 1"
ANSWER, GRADED = "please_decide_which_passage_is_more_difficult", ("label_level_a", "label_level_b")


def read_passages(file: Path) -> tuple[Comparisons, Gold]:
    """The authors' file: a row an answer, with the levels of both passages; those who could not decide are left out."""
    rows = pl.read_csv(file, infer_schema=False).filter(pl.col(ANSWER).str.contains("^Passage [AB]"))
    left, right = rows["passage_a"], rows["passage_b"]
    winner = rows.select(
        pl.when(pl.col(ANSWER).str.starts_with("Passage A")).then("passage_a").otherwise("passage_b")
    ).to_series()
    levels = (
        pl.concat(
            rows.select(item=passage, level=pl.col(level).cast(pl.Float64))
            for passage, level in zip(("passage_a", "passage_b"), GRADED, strict=True)
        )
        .drop_nulls()
        .unique("item", keep="first", maintain_order=True)
    )
    votes = Comparisons.of(left, right, winner, annotator=rows["_worker_id"])
    return votes, Gold.of(levels["item"], levels["level"], graded=False)


def judgments(
    votes: Path | None, gold: Path | None, known_folders: Sequence[str] = KNOWN
) -> tuple[str, Comparisons, Gold]:
    """What is ranked, what was said, and what is true."""
    if votes is not None and gold is None:
        return votes.name, *read_passages(votes)
    if votes is None:
        folder = data_folder()
        if folder is None:
            print("Nothing to rank: name the file of the reading levels, or set CROWDRANK_DATA.", file=sys.stderr)
            sys.exit()  # no failure: the other tables are not to wait for a file
        place = next((folder / name for name in known_folders if (folder / name).is_dir()), None)
        if place is None:
            print(
                f"Nothing to rank: {folder} has none of {', '.join(known_folders)}: set CROWDRANK_DATA.",
                file=sys.stderr,
            )
            sys.exit()
        votes, gold = place / "pairwise.csv", place / "gold.csv"
    known = read_gold(gold)
    with muted_warnings(DataWarning):  # two of the reading levels' rows compare a passage with itself
        said = read(votes, kind="comparisons")
    assert isinstance(said, Comparisons)
    return f"{votes.parent.name}/{votes.name}", said, Gold.of(known.item, known.value, graded=False)


def models(weight: float) -> dict[str, Model]:
    return {
        "Bradley-Terry": BradleyTerry(prior_scale=None, virtual_weight=weight, ties="drop"),
        "Majority-Vote-BT": MajorityBT(prior_scale=None, virtual_weight=weight),
        "Variance-BT": VarianceBT(prior_scale=float(np.sqrt(2 / weight))),
        "Crowd-BT": replace(BY_THE_PAPER, virtual_weight=weight),
    }


SHOWS = models(WEIGHTS[1])


def accuracies(votes: Comparisons, gold: Gold, weight: float) -> dict[str, float]:
    fits = {name: model.fit(votes).scores for name, model in models(weight).items()}
    return {name: evaluate_scores(scores, votes.items, gold).accuracy for name, scores in fits.items()}


def by_cell(found: Mapping[float, Mapping[str, float]]) -> dict[Key, list[float]]:
    names = next(iter(found.values()))
    return {(name, f"λ={weight:g}"): [found[weight][name]] for name in names for weight in found}


def shares_of_quality(votes: Comparisons, weight: float) -> dict[Key, list[float]]:
    """Figure 4: how many annotators have an estimated η in each bin."""
    quality = replace(BY_THE_PAPER, virtual_weight=weight).fit(votes).annotators.estimate("quality")
    counts, _ = np.histogram(quality, BINS)
    names = [f"η from {low:g} to {high:g}" for low, high in pairwise(BINS)]
    return {(FIGURE4, name): [count / len(quality)] for name, count in zip(names, counts, strict=True)}


def checks(found: Mapping[Key, list[float]], paper: Mapping[Key, float]) -> Iterator[Check]:
    """Each cell of the three methods whose settings the paper gives, to .001."""
    for (row, column), number in paper.items():
        if row != "Variance-BT":
            ours = found[row, column][0]
            yield Check(f"{row}, {column}", f"{decimals(number)} to .001", decimals(ours), abs(ours - number) < 0.00105)


if __name__ == "__main__":
    told = options(__file__, __doc__, "votes", "gold")
    name, votes, gold = judgments(told.votes, told.gold)
    found = by_cell({weight: accuracies(votes, gold, weight) for weight in WEIGHTS})
    passages = len(votes.items) in (490, 491)
    paper = {(row, f"λ={w:g}"): n for row, ns in PAPER.items() for w, n in zip(WEIGHTS, ns, strict=True)}
    half = {(FIGURE4, PERFECT): 0.5}
    which = (
        "" if passages else " These are not the passages of the paper: only the order of the methods can be compared."
    )
    report(
        told,
        f"{NOTES}\nRanked here: {name}, {votes!r}.{which}",
        [
            Table(found, paper, title="Table 3"),
            Table(shares_of_quality(votes, WEIGHTS[1]), half, title="Figure 4: estimated η of annotators, λ=0.5"),
        ],
        list(checks(found, paper)) if passages else [],
    )
