"""The audit of a jury: how far each judge can be believed, who errs with whom, and which judges to pay for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import AnnotatorDetails, Comparisons, SideInformation, people_from_names
from crowdrank.errors import DataError, SettingError
from crowdrank.evaluation.judge_agreement import (
    OWN_FAMILY,
    PairAnswers,
    effective_number,
    error_correlations,
    judge_biases,
    kappa,
    pair_answers,
    resampled_weights,
)
from crowdrank.evaluation.psychometrics import OUTCOME_DISTANCE, alpha_of_counts

# Which judges to ask: juries of growing size, chosen greedily, with accuracy on pairs that did not choose them.

_MAX_SIZE, _FOLDS, _MIN_PAIRS = 9, 5, 10


@dataclass(frozen=True, kw_only=True)
class CandidateJury:
    """A jury that decides by majority.

    Parameters
    ----------
    members : tuple of int
        Positions of the judges, in the order in which they were chosen.
    accuracy : float
        Share of pairs that such a jury decides correctly, by cross-validation: the members are chosen on some pairs and
        tested on the others. A tie is half right.
    std_error : float
        Standard error of `accuracy`.
    price : float
        What one question costs; NaN if the price of a member is unknown.
    """

    members: tuple[int, ...]
    accuracy: float
    std_error: float
    price: float


def compare_juries(
    answer: FloatArray,
    reference: FloatArray,
    candidates: IntArray,
    prices: FloatArray,
    budget: float | None = None,
    seed: int = 0,
) -> tuple[CandidateJury, ...]:
    """Return the best juries of 1, 2, … members; none if too few pairs have a reference, or nobody is affordable.

    Parameters
    ----------
    answer : array, shape (judges, pairs)
        Answers, −1 to 1; NaN counts as no vote.
    reference : array, shape (judges, pairs)
        What is right: 1 or −1; NaN where it is unknown.
    candidates : array of int
        Judges that can be members.
    prices : array
        What a question costs with each judge; NaN if unknown.
    budget : float, optional
        The most that a question may cost with the whole jury.
    seed : int, default 0
        Seed of the folds.
    """
    truth = reference[candidates[0]] if candidates.size else np.zeros(0)
    known = np.isfinite(truth)
    if known.sum() < _MIN_PAIRS:
        return ()
    votes = np.nan_to_num(answer[np.ix_(candidates, np.flatnonzero(known))]) * truth[known]
    price = prices[candidates]
    whole = _greedy(votes, price, budget)
    fold = np.random.default_rng(seed).permutation(votes.shape[1]) % _FOLDS
    held_out = np.zeros((len(whole), votes.shape[1]))
    for k in range(_FOLDS):
        chosen = _greedy(votes[:, fold != k], price, budget)
        for size in range(1, len(whole) + 1):
            held_out[size - 1, fold == k] = _right(votes[chosen[:size]][:, fold == k].sum(axis=0))
    return tuple(
        CandidateJury(
            members=tuple(int(candidates[n]) for n in whole[:size]),
            accuracy=float(held_out[size - 1].mean()),
            std_error=float(held_out[size - 1].std() / np.sqrt(votes.shape[1])),
            price=float(price[whole[:size]].sum()),
        )
        for size in range(1, len(whole) + 1)
    )


def _greedy(votes: FloatArray, prices: FloatArray, budget: float | None) -> list[int]:
    """Add the judge with whom the majority is right most often, while the budget lasts.

    Among equals, the judge is added who is right most often alone.
    """
    alone = _right(votes).mean(axis=1)
    chosen: list[int] = []
    total, spent = np.zeros(votes.shape[1]), 0.0
    while len(chosen) < min(_MAX_SIZE, len(votes)):
        gain = _right(total + votes).mean(axis=1) + 1e-6 * alone
        gain[chosen] = -1.0
        if budget is not None:
            gain[~(spent + prices <= budget * (1 + 1e-9))] = -1.0
        best = int(np.argmax(gain))
        if gain[best] < 0:
            break
        chosen.append(best)
        total, spent = total + votes[best], spent + float(prices[best])
    return chosen


def _right(total: FloatArray) -> FloatArray:
    """1 where the sum of votes is for the right side, ½ for a tie, 0 where it is wrong."""
    return np.where(np.abs(total) < 1e-9, 0.5, (total > 0).astype(np.float64))


def recommend_jury(juries: Sequence[CandidateJury]) -> CandidateJury | None:
    """Return the smallest jury whose accuracy is within one standard error of the best."""
    if not juries:
        return None
    best = max(juries, key=lambda jury: jury.accuracy)
    return next(jury for jury in juries if jury.accuracy >= best.accuracy - best.std_error)


_MANY_FLIPS, _SHARED_ERRORS = 0.25, 0.5
REFERENCES = {
    "gold": "gold",
    "humans": "the majority of the humans",
    "others": "the majority of the other judges",
}


class Interval(NamedTuple):
    """An estimate with its interval; NaN where there are no data."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgeAudit:
    """What is known about the judges of a jury.

    Parameters
    ----------
    judges : tuple of str
        Names of the judges.
    details : tuple of AnnotatorDetails
        Kind, family and price of each.
    reference : {"gold", "humans", "others"}
        What errors are measured against.
    n_pairs : int
        Pairs that were judged.
    n_reference : int
        Pairs with an answer of the reference.
    level : float
        Coverage of the intervals.
    table : polars.DataFrame
        One row per judge, see `frame`.
    biases : polars.DataFrame
        One row per judge and bias, as `judge_biases` returns: side, features and own family.
    alpha : mapping of str to Interval
        Krippendorff's alpha of all judges, and of the humans and the language models if both are known.
    correlation : array, shape (judges, judges)
        Correlation of errors; NaN where it is unknown.
    n_effective : float
        The number of judges with independent errors that those with known errors (`compared`) amount to; NaN without
        gold and humans.
    juries : tuple of CandidateJury
        The best juries of growing size.
    recommended : CandidateJury or None
        The one to choose.
    """

    judges: tuple[str, ...]
    details: tuple[AnnotatorDetails, ...]
    reference: str
    n_pairs: int
    n_reference: int
    level: float
    table: pl.DataFrame
    biases: pl.DataFrame
    alpha: Mapping[str, Interval]
    correlation: FloatArray
    n_effective: float
    juries: tuple[CandidateJury, ...]
    recommended: CandidateJury | None

    def frame(self) -> pl.DataFrame:
        """Return one row per judge, the best first.

        The columns are annotator, kind, family, price, votes, pairs (with an answer of the reference), agreement with
        the reference (a tie is half right), kappa, flips (share of pairs decided for a side rather than an item, when
        both orders were asked), left (share of decided votes for the left), each with low and high; and the price of
        a correct answer, with all votes that a judge gives on a pair. With both gold and humans, pairs_humans,
        agreement_humans and kappa_humans compare with the majority of the humans.
        """
        return self.table

    @property
    def compared(self) -> list[int]:
        """Positions in `judges` of those who answered a pair with an answer of the reference."""
        asked = set(self.table.filter(pl.col("pairs") > 0)["annotator"])
        return [n for n, name in enumerate(self.judges) if name in asked]

    def notes(self) -> list[str]:
        """What stands out, in sentences."""
        sentences = []
        if self.reference == "others":
            sentences.append(
                "There are no gold pairs and no humans to compare with: a judge who errs with the majority looks "
                "right here, and shared errors cannot be seen."
            )
        elif self.n_reference < _MIN_PAIRS:
            sentences.append(f"Only {self.n_reference:,} pairs have an answer from {REFERENCES[self.reference]}.")
        if self.n_effective < _SHARED_ERRORS * len(self.compared):
            sentences.append(
                f"The {len(self.compared):,} judges share errors and are worth only {self.n_effective:.1f} independent "
                "ones. Where they agree, their majority may be wrong."
            )
        poor = self.table.filter(pl.col("agreement_high") < 0.5)["annotator"].to_list()
        if poor and self.reference != "others":
            sentences.append(f"{_count(poor)} worse than a coin: {_names(poor)}.")
        flipping = self.table.filter(pl.col("flips_low") > _MANY_FLIPS)["annotator"].to_list()
        if flipping:
            sentences.append(
                f"{_count(flipping)} inconsistent: when the sides are swapped, they change their answer on more than "
                f"{_MANY_FLIPS:.0%} of the pairs: {_names(flipping)}."
            )
        partial_to_own = self.clear_biases().filter((pl.col("bias") == OWN_FAMILY) & (pl.col("effect") > 0))
        if own := partial_to_own["annotator"].to_list():
            sentences.append(f"{_count(own)} partial to items of their own family: {_names(own)}.")
        return sentences

    def clear_biases(self) -> pl.DataFrame:
        """Return the biases whose interval does not hold 0, the strongest first."""
        clear = self.biases.filter((pl.col("low") > 0) | (pl.col("high") < 0))
        return clear.sort(pl.col("effect").abs(), descending=True, maintain_order=True)


def audit_judges(
    votes: Comparisons,
    *,
    people: Mapping[str, AnnotatorDetails] | None = None,
    gold: Comparisons | Iterable[tuple[Any, Any]] | None = None,
    budget: float | None = None,
    features: Sequence[str] = (),
    level: float = 0.95,
    seed: int = 0,
) -> JudgeAudit:
    """Audit the judges of a jury: agreement, flips, biases, shared errors, prices, and the jury to choose.

    Parameters
    ----------
    votes : Comparisons
        Votes that name annotators.
    people : mapping of str to AnnotatorDetails, optional
        Kind (human or llm), family and price of annotators, as `crowdrank.io.read_people` returns. By default the
        kinds that their names make plain.
    gold : Comparisons or pairs (better, worse), optional
        Pairs whose answer is known. Judges are compared with these; without them with the majority of the humans;
        without humans with the majority of the other judges.
    budget : float, optional
        The most that a question may cost, with all votes of the recommended jury on it.
    features : sequence of str, default ()
        Features of the comparisons, such as length, that may bias judges.
    level : float, default 0.95
        Coverage of the intervals.
    seed : int, default 0
        Seed of the bootstrap and of the cross-validation of juries.

    Returns
    -------
    JudgeAudit

    Raises
    ------
    DataError
        If the votes name no annotators, or fewer than two.

    Examples
    --------
    >>> votes = Comparisons.of(
    ...     ["a", "b", "c", "a", "b", "c"],
    ...     ["b", "c", "a", "b", "c", "a"],
    ...     ["a", "b", "a", "a", "c", "c"],
    ...     annotator=["good"] * 3 + ["bad"] * 3,
    ... )
    >>> audit = audit_judges(votes, gold=[("a", "b"), ("b", "c"), ("a", "c")])
    >>> audit.frame()["annotator", "agreement"].rows()
    [('good', 1.0), ('bad', 0.3333333333333333)]
    """
    if not 0 < level < 1:
        raise SettingError(f"level must be between 0 and 1, got {level}.")
    answers = pair_answers(votes)
    names = tuple(map(str, votes.annotators))
    if len(names) < 2:
        raise DataError("An audit of judges needs at least two annotators.")
    known_people = people_from_names(names) if people is None else people
    details = tuple(known_people.get(name, AnnotatorDetails()) for name in names)
    human = np.array([who.kind == "human" for who in details])
    references = _references(answers, votes, gold, human)
    name, reference = next(iter(references.items()))
    known = np.isfinite(reference) & np.isfinite(answers.answer)
    independent = name != "others"
    correlation, shared = error_correlations(answers.answer, reference)
    if not independent:
        correlation = np.full_like(correlation, np.nan)
    # Humans are the reference themselves, so only the others can be hired.
    hired = np.flatnonzero(~human) if name == "humans" else np.arange(len(names))
    costs = _costs(details, answers)
    if budget is not None and not np.isfinite(costs[hired]).any():
        raise SettingError("A budget needs the prices of the judges: give people= with a column price.")
    juries = compare_juries(answers.answer, reference, hired, costs, budget, seed) if independent else ()
    return JudgeAudit(
        judges=names,
        details=details,
        reference=name,
        n_pairs=answers.answer.shape[1],
        n_reference=int(known.any(axis=0).sum()),
        level=level,
        table=_table(names, details, answers, references, level, seed),
        biases=judge_biases(votes, known_people, features=features, level=level),
        alpha=_alphas(answers.sign, human, np.array([who.kind == "llm" for who in details]), level, seed),
        correlation=correlation,
        n_effective=_effective(correlation, shared) if independent else float("nan"),
        juries=juries,
        recommended=recommend_jury(juries),
    )


def _effective(correlation: FloatArray, shared: IntArray) -> float:
    """The effective number of the judges whose errors are known: the only human is the reference, for example."""
    compared = np.flatnonzero(np.diag(shared))
    return effective_number(correlation[np.ix_(compared, compared)], shared[np.ix_(compared, compared)])


def _references(
    answers: PairAnswers,
    votes: Comparisons,
    gold: Comparisons | Iterable[tuple[Any, Any]] | None,
    human: BoolArray,
) -> dict[str, FloatArray]:
    """The decisions to compare with, one row per judge; the most trustworthy reference comes first."""
    found = {}
    if gold is not None:
        found["gold"] = np.broadcast_to(_gold_decisions(answers, votes, gold), answers.answer.shape)
    given = np.where(np.isfinite(answers.answer), answers.answer, 0.0)
    if human.any() and not human.all():
        found["humans"] = _majority_without(given[human].sum(axis=0), np.where(human[:, None], given, 0.0))
    return found or {"others": _majority_without(given.sum(axis=0), given)}


def _majority_without(total: FloatArray, own: FloatArray) -> FloatArray:
    """The majority without each judge's own votes; NaN where it is even."""
    rest = total - own
    return np.where(np.abs(rest) > 1e-9, np.sign(rest), np.nan)


def _gold_decisions(
    answers: PairAnswers, votes: Comparisons, gold: Comparisons | Iterable[tuple[Any, Any]]
) -> FloatArray:
    encoded = SideInformation(gold=gold).encode(votes)
    known = {(int(a), int(b)) for a, b in zip(encoded.gold_better, encoded.gold_worse, strict=True)}
    pairs = zip(answers.first.tolist(), answers.second.tolist(), strict=True)
    decided = np.array([1.0 if (a, b) in known else -1.0 if (b, a) in known else np.nan for a, b in pairs])
    if not np.isfinite(decided).any():
        raise DataError("No gold pair was judged.")
    return decided


def _costs(details: Sequence[AnnotatorDetails], answers: PairAnswers) -> FloatArray:
    """What a question costs with each judge, who may be asked in both orders; NaN if the price is unknown."""
    prices = np.array([np.nan if who.price is None else who.price for who in details])
    n_pairs = np.maximum(np.isfinite(answers.answer).sum(axis=1), 1)
    return np.asarray(prices * answers.n_votes / n_pairs)


def _table(
    names: Sequence[str],
    details: Sequence[AnnotatorDetails],
    answers: PairAnswers,
    references: Mapping[str, FloatArray],
    level: float,
    seed: int,
) -> pl.DataFrame:
    main, *others = references.values()
    columns: dict[str, Any] = {
        "annotator": list(names),
        "kind": [who.kind for who in details],
        "family": [who.family for who in details],
        "price": pl.Series([who.price for who in details], dtype=pl.Float64),
        "votes": answers.n_votes,
        **_agreement(answers, main, level, seed),
        **{name: v for other in others for name, v in _agreement(answers, other, level, seed, "_humans").items()},
        **_three("flips", wilson(answers.flipped, answers.both_orders, level)),
        **_three("left", wilson(answers.decided_left, answers.decided, level)),
    }
    with np.errstate(invalid="ignore", divide="ignore"):
        per_correct = _costs(details, answers) / columns["agreement"]
    columns["price_per_correct"] = np.where(np.isfinite(per_correct), per_correct, np.nan)
    text = dict.fromkeys(("annotator", "kind", "family"), pl.String)
    frame = pl.DataFrame(columns, schema_overrides=text).with_columns(pl.selectors.float().fill_nan(None))
    # By the lower end, so that a judge of three pairs does not come first by luck.
    return frame.sort("agreement_low", "pairs", descending=True, nulls_last=True, maintain_order=True)


def _agreement(answers: PairAnswers, reference: FloatArray, level: float, seed: int, end: str = "") -> dict[str, Any]:
    """Number of pairs with a reference, share of agreement, and kappa."""
    known = np.isfinite(reference) & np.isfinite(answers.answer)
    right = np.where(known, (1 + answers.sign * reference) / 2, 0.0).sum(axis=1)
    draws = [kappa(answers.sign, reference, weight) for weight in resampled_weights(known.shape[1], seed)]
    kappas = np.stack([kappa(answers.sign, reference), *_quantiles(np.concatenate(draws), level)])
    n_pairs = known.sum(axis=1)
    shares = wilson(right, n_pairs, level)
    return {f"pairs{end}": n_pairs, **_three(f"agreement{end}", shares), **_three(f"kappa{end}", kappas)}


def _three(name: str, values: FloatArray) -> dict[str, FloatArray]:
    return {name: values[0], f"{name}_low": values[1], f"{name}_high": values[2]}


def wilson(successes: FloatArray | IntArray, trials: IntArray, level: float) -> FloatArray:
    """Return shares with Wilson's intervals as three rows; NaN without trials.

    >>> wilson(np.array([8.0]), np.array([10]), 0.95).round(2).ravel().tolist()
    [0.8, 0.49, 0.94]
    """
    from scipy.special import ndtri

    z = float(ndtri((1 + level) / 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = successes / trials
        centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
        half = z * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2)) / (1 + z**2 / trials)
    return np.stack([share, centre - half, centre + half])


def _quantiles(draws: FloatArray, level: float) -> FloatArray:
    """Both ends of the interval of each column; NaN for a column of NaN."""
    ends = np.full((2, draws.shape[1]), np.nan)
    usable = np.isfinite(draws).any(axis=0)
    ends[:, usable] = np.nanquantile(draws[:, usable], [(1 - level) / 2, (1 + level) / 2], axis=0)
    return ends


def _alphas(sign: FloatArray, human: BoolArray, llm: BoolArray, level: float, seed: int) -> dict[str, Interval]:
    groups = {"all judges": np.ones(len(sign), bool), "humans": human, "language models": llm}
    found = {}
    for name, members in groups.items():
        if members.sum() < 2 or (name != "all judges" and members.all()):
            continue
        counts = np.stack([(sign[members] == value).sum(axis=0) for value in (-1, 0, 1)], axis=1).astype(np.float64)
        alpha = partial(alpha_of_counts, counts, OUTCOME_DISTANCE, symmetric=True)
        draws = np.concatenate([alpha(weight) for weight in resampled_weights(len(counts), seed)])
        low, high = _quantiles(draws[:, None], level)[:, 0]
        found[name] = Interval(float(alpha()[0]), float(low), float(high))
    return found


def _count(names: Sequence[str]) -> str:
    return "1 judge is" if len(names) == 1 else f"{len(names):,} judges are"


def _names(names: Sequence[str], limit: int = 5) -> str:
    return ", ".join(names[:limit]) + (f" and {len(names) - limit:,} more" if len(names) > limit else "")
