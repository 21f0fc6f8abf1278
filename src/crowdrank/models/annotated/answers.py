"""Comparisons as rows of winner, loser and who said so, and where a climb over them may start."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from crowdrank.errors import SettingError
from crowdrank.judgments import Comparisons, Items
from crowdrank.likelihoods.annotated import Answers

Vector = npt.NDArray[np.float64]
Ties = Literal["drop", "half"]


def gold_judge(comparisons: Comparisons) -> int | None:
    """The code of the perfect annotator who answered the gold pairs, after all others; None where none count."""
    known = comparisons.knowledge
    return max(1, len(comparisons.annotators)) if len(known.gold_better) and known.gold_weight > 0 else None


def check_ties(ties: str) -> None:
    if ties not in get_args(Ties):
        raise SettingError(f"ties must be drop or half, got {ties!r}.")


def counted(comparisons: Comparisons, ties: Ties) -> npt.NDArray[np.int64] | slice:
    """The rows that count: with ties dropped those decided, unless nothing was."""
    if ties == "half" or not comparisons.ties:
        return slice(None)
    decided = np.flatnonzero(comparisons.outcome)
    return decided if len(decided) else slice(None)


def answers_of(
    comparisons: Comparisons, features: npt.NDArray[np.float64] | None = None, ties: Ties = "half"
) -> Answers:
    """Rows of winner and loser; a tie that counts becomes two answers of half the weight, one each way.

    Judgments that name no annotators are taken as one annotator's. Gold pairs are answers of one who never errs.
    """
    if features is None:
        features = np.zeros((len(comparisons), 0))
    rows = counted(comparisons, ties)
    comparisons, features = comparisons.take(rows), features[rows]
    who = np.zeros(len(comparisons), np.int32) if comparisons.annotator is None else comparisons.annotator
    left_won, tied = comparisons.outcome >= 0, np.flatnonzero(comparisons.outcome == 0)
    winner = np.where(left_won, comparisons.left, comparisons.right)
    loser = np.where(left_won, comparisons.right, comparisons.left)
    leaning = np.where(left_won, 1.0, -1.0)[:, None] * features
    answers = Answers(winner, loser, who, comparisons.weights, leaning)
    if len(tied):
        weight = np.array(comparisons.weights)
        weight[tied] /= 2
        answers = _joined(
            answers._replace(weight=weight), Answers(loser[tied], winner[tied], who[tied], weight[tied], -leaning[tied])
        )
    judge = gold_judge(comparisons)
    if judge is None:
        return answers
    known = comparisons.knowledge
    pairs = len(known.gold_better)
    return _joined(
        answers,
        Answers(
            known.gold_better, known.gold_worse, np.full(pairs, judge, np.int32),
            np.full(pairs, known.gold_weight), np.zeros((pairs, features.shape[1])),
        ),
    )  # fmt: skip


def _joined(first: Answers, second: Answers) -> Answers:
    winner, loser, who, weight, features = (np.concatenate(pair) for pair in zip(first[:5], second[:5], strict=True))
    return Answers(winner, loser, who, weight, features)


def first_scores(answers: Answers, items: Items, trust: Vector | None = None) -> Vector:
    """Scores as if everyone had met average opponents, each answer counted by how far its annotator is trusted."""
    size = len(items)
    weight = _plain(answers.weight) if trust is None else answers.weight * trust[answers.annotator]
    won, lost = (np.bincount(side, weight, size) for side in (answers.winner, answers.loser))
    net, total = won - lost, won + lost
    if weight is not None and np.any(weight < 0):
        heavy = np.abs(weight)
        total = np.bincount(answers.winner, heavy, size) + np.bincount(answers.loser, heavy, size)
    return items.centre(np.log((total + net + 1) / (total - net + 1)))


def agreement(answers: Answers, scores: Vector, annotators: int) -> Vector:
    """The logit of how often each annotator sided with the scores, two right and one wrong answer added."""
    sided = np.sign(scores[answers.winner] - scores[answers.loser])
    total = np.bincount(answers.annotator, _plain(answers.weight), annotators)
    net = np.bincount(answers.annotator, sided * answers.weight, annotators)
    return np.log((total + net + 4) / (total - net + 2))


def _plain(weight: Vector) -> Vector | None:
    """None where all weigh one, and counting is quicker than adding."""
    return None if weight.strides == (0,) and len(weight) and weight[0] == 1.0 else weight


def right_on_gold(comparisons: Comparisons, better: npt.NDArray[np.int32], worse: npt.NDArray[np.int32]) -> Vector:
    """The share of right answers of each annotator on gold pairs (§3.3 of Crowd-BT); ½ of who answered none."""
    size = len(comparisons.items)
    truth = np.sort(better.astype(np.int64) * size + worse)
    annotators = max(1, len(comparisons.annotators))
    who = np.zeros(len(comparisons), np.int32) if comparisons.annotator is None else comparisons.annotator
    left_won = comparisons.outcome > 0
    winner = np.where(left_won, comparisons.left, comparisons.right).astype(np.int64)
    loser = np.where(left_won, comparisons.right, comparisons.left).astype(np.int64)
    weight = np.where(comparisons.outcome == 0, 0.0, comparisons.weights)
    right = np.bincount(who, weight * np.isin(winner * size + loser, truth), annotators)
    wrong = np.bincount(who, weight * np.isin(loser * size + winner, truth), annotators)
    return np.asarray(np.divide(right, right + wrong, out=np.full(annotators, 0.5), where=right + wrong > 0))
