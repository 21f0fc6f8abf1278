"""Null simulation of the collection server: random answers under its default policy must not produce an order.

python benchmarks/null_board.py                 all of it, kept in results/null-board.md
python benchmarks/null_board.py --quick         two small collections of each size, printed only
python benchmarks/null_board.py --trials 100 --sizes 60x20x400 --ties 0.2
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from machine import StandardErrors, made, record

from crowdrank.active.null_simulation import SeparatedPairs, separated_pairs
from crowdrank.errors import CrowdrankWarning
from crowdrank.models import CrowdBT
from crowdrank.server.assignments import Answer, AssignmentService, Outcome
from crowdrank.server.boards import Board, build_board
from crowdrank.server.projection import Projection
from crowdrank.storage import Collection

FIXED = CrowdBT(estimation="joint", prior_scale=3.0, quality_prior=(3.0, 0.5), ties="half")
SHOWS = {"crowd-bt": FIXED, "crowd-bt, standard errors": StandardErrors(FIXED)}
_OUT = Path(__file__).parent / "results" / "null-board.md"
_SIZES = ("30x12x240", "60x20x400", "320x40x1600")
_QUICK = ("12x6x60", "30x12x240")
_ALLOWED = 0.05


@dataclass(frozen=True)
class Size:
    """Of a collection."""

    items: int
    annotators: int
    votes: int

    @classmethod
    def of(cls, text: str) -> Size:
        return cls(*map(int, text.split("x")))


@dataclass(frozen=True)
class Trial:
    """What came of one collection."""

    model: str
    board: SeparatedPairs
    plain: float
    """The share of pairs that crowd-bt with a fixed spread of scores would have told apart, from the same votes."""
    random: int
    trusted: bool
    """Whether the reliability that is published is surely above zero."""


def toss(collection: Collection, size: Size, ties: float, seed: int) -> Projection:
    """Everyone answers in turn whatever they are asked: a tie with this chance, else a side by lot."""
    rng = np.random.default_rng([seed, 1])
    collection.items.add([f"item {n}" for n in range(size.items)], actor="null board")
    people = collection.annotators.add([f"annotator {n}" for n in range(size.annotators)], actor="null board")
    projection = Projection(collection).catch_up()
    service = AssignmentService(collection, projection, lambda: False, seed=seed)
    for n in range(size.votes):
        annotator = service.annotator(people[n % size.annotators])
        asked = service.question(annotator)["assignment"]
        said: Outcome = "tie" if rng.random() < ties else "left" if rng.random() < 0.5 else "right"
        service.vote(annotator, Answer(asked["token"], said))
    return projection


def trial(size: Size, ties: float, seed: int) -> Trial:
    with tempfile.TemporaryDirectory() as folder, Collection.open(Path(folder) / "c.db", durable=False) as collection:
        projection = toss(collection, size, ties, seed)
        return judged(build_board(collection, projection, projection.board_seq))


def judged(board: Board) -> Trial:
    if board.ranking is None or board.judgments is None:
        raise SystemExit("Nothing was tossed: --sizes needs votes.")
    told = board.reliability or {"random": 0, "of_all": None}
    trusted = told["of_all"] is not None and not told["too_few"] and told["of_all"]["low"] > 0
    plain = separated_pairs(FIXED.fit(board.judgments)).by_scores
    return Trial(board.model, separated_pairs(board.ranking), plain, told["random"], trusted)


def row(size: Size, found: Sequence[Trial]) -> str:
    def told(values: Sequence[float]) -> str:
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
        return f"{100 * np.mean(values):.2f} ± {100 * error:.2f} %"

    apart = [one.board.by_scores for one in found]
    cells = (
        f"{size.items:,}",
        f"{size.annotators:,}",
        f"{size.votes:,}",
        str(len(found)),
        found[0].model,
        told(apart),
        told([one.board.by_draws for one in found]),
        f"{100 * max(apart):.1f} %",
        told([one.plain for one in found]),
        f"{sum(one.trusted for one in found)} of {len(found)}",
        "met" if max(np.mean(apart), np.mean([one.board.by_draws for one in found])) <= _ALLOWED else "MISSED",
    )
    return f"| {' | '.join(cells)} |"


_COLUMNS = (
    "items",
    "annotators",
    "votes",
    "collections",
    "board by",
    "pairs told apart",
    "by its draws",
    "worst collection",
    "crowd-bt, spread fixed",
    "reliability above 0",
    "at most 5 %",
)


def report(rows: Sequence[str], ties: float, seconds: float) -> str:
    return f"""# Random answers under the default policy

| {" | ".join(_COLUMNS)} |
|{" ---: |" * len(_COLUMNS)}
{chr(10).join(rows)}

Annotators who answer at random ({ties:.0%} of their answers are ties) are asked in turn by the default policy, through
the same code as on the server. *Pairs told apart*: the share of pairs of items whose scores on the published board
differ by more than 1.96 standard deviations of their difference, averaged over collections ± its standard error. *By
its draws*: the share of pairs whose order is the same in more than 97.5 % of the draws. *Crowd-bt, spread fixed*: the
share that crowd-bt with its default prior separates, from the same votes. *Reliability above 0*: collections whose
published reliability has an interval above 0 and is not marked as based on too few random questions. Made by
`benchmarks/null_board.py` in {seconds:,.0f} s.
"""


def main() -> None:
    told = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    told.add_argument("--trials", type=int, help="collections of each size (20)")
    told.add_argument("--sizes", nargs="+", help="ITEMSxANNOTATORSxVOTES")
    told.add_argument("--ties", type=float, default=0.0, help="the share of answers that are ties")
    told.add_argument("--seed", type=int, default=0)
    told.add_argument("--minutes", type=float, default=float("inf"), help="begin no further collection after so many")
    told.add_argument("--quick", action="store_true")
    told.add_argument("--out", type=Path, help="where to keep the results (results/null-board.md unless --quick)")
    given = told.parse_args()
    warnings.simplefilter("ignore", CrowdrankWarning)
    begin, sizes = time.monotonic(), [Size.of(text) for text in given.sizes or (_QUICK if given.quick else _SIZES)]
    found: dict[Size, list[Trial]] = {size: [] for size in sizes}
    for size in sizes:
        for n in range(given.trials or (2 if given.quick else 20)):
            if time.monotonic() - begin < 60 * given.minutes or not found[size]:
                found[size].append(trial(size, given.ties, given.seed + n))
    text = report([row(size, trials) for size, trials in found.items()], given.ties, time.monotonic() - begin)
    print(text)
    if (out := given.out or (None if given.quick else _OUT)) is not None:
        out.write_text(f"{text}\n{made()}\n", encoding="utf-8")
        record(Path(__file__), out.parent, out.stem)


if __name__ == "__main__":
    main()
