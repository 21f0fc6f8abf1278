"""Two camps of annotators who prefer different items: whether a crowd has them, by a mixture of two rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from crowdrank.arrays import BoolArray, FloatArray, IntArray, ObjectArray
from crowdrank.data import Comparisons, Items
from crowdrank.inference.curvature import DenseCurvature, MatrixFreeCurvature
from crowdrank.results.parts import Tabular

# Mixture of Bradley–Terry rankings over annotators: each follows one of K rankings, with a quality of their own.
#
# An answer x is +1 for left and −1 for right. An annotator who follows ranking k with the slope c = 2η − 1 answers
# with P(x) = ½(1 + c·x·a), a = tanh(Δ/2), where Δ is the difference of the two scores in ranking k. The slope has a
# distribution on a grid that is learnt with the scores, so random and reversed annotators need no ranking of their
# own.

SLOPES = np.array([-0.97, -0.5, 0.0, 0.5, 0.97])
"""Grid of 2η − 1."""
_PRIOR_VARIANCE = 4.0
"""Variance of the normal prior on scores. Only differences in fit matter here, so it is not learnt."""
_MAX_FACTORED = 250
_MAX_STEP = 2.0
_TOLERANCE = 1e-3
"""Stop when the log-likelihood grows by less than this per annotator."""


@dataclass(frozen=True)
class AnswerTable:
    """Decided answers with dense codes of annotators.

    Parameters
    ----------
    left, right : array of int
        The two items of each answer.
    answer : array of float
        +1 for left, −1 for right.
    annotator : array of int
        Annotator of each answer.
    n_items, n_annotators : int
        Number of items and of annotators.
    """

    left: IntArray
    right: IntArray
    answer: FloatArray
    annotator: IntArray
    n_items: int
    n_annotators: int

    def __len__(self) -> int:
        return len(self.answer)

    def take(self, rows: IntArray | BoolArray) -> AnswerTable:
        return AnswerTable(
            self.left[rows],
            self.right[rows],
            self.answer[rows],
            self.annotator[rows],
            self.n_items,
            self.n_annotators,
        )

    def by_annotator(self, values: FloatArray) -> FloatArray:
        return np.bincount(self.annotator, values, self.n_annotators).astype(np.float64)

    def expected(self, scores: FloatArray) -> FloatArray:
        """Mean of each answer for an annotator of quality 1."""
        return np.asarray(np.tanh((scores[self.left] - scores[self.right]) / 2))

    def log_likelihoods(self, scores: FloatArray) -> FloatArray:
        """Log-likelihood of each annotator's answers, annotators × rankings × slopes; `scores` is rankings × items."""
        found = np.empty((self.n_annotators, len(scores), len(SLOPES)))
        for k, ranking in enumerate(scores):
            agreement = self.answer * self.expected(ranking)
            for g, slope in enumerate(SLOPES):
                found[:, k, g] = self.by_annotator(np.log1p(slope * agreement))
        found -= np.log(2) * self.by_annotator(np.ones(len(self)))[:, None, None]
        return found


@dataclass(frozen=True)
class RankingMixture:
    """A fitted mixture.

    Parameters
    ----------
    scores : array of float, rankings × items
        Scores of the items in each ranking.
    log_share : array of float, rankings × slopes
        Log of the share of annotators with each ranking and slope.
    membership : array of float, annotators × rankings × slopes
        Posterior probability of each ranking and slope.
    log_likelihood : float
        At the estimate.
    """

    scores: FloatArray
    log_share: FloatArray
    membership: FloatArray
    log_likelihood: float

    def predict(self, held_out: AnswerTable) -> FloatArray:
        """Log predictive probability of each annotator's held-out answers, given their other answers."""
        joint = np.log(np.maximum(self.membership, 1e-300)) + held_out.log_likelihoods(self.scores)
        return _log_sum(joint)


def fit_mixture(
    table: AnswerTable, start: FloatArray, scores: FloatArray | None = None, max_steps: int = 40
) -> RankingMixture:
    """Fit by generalised EM: one Fisher scoring step on the scores for each update of the memberships.

    Parameters
    ----------
    table : AnswerTable
        The answers.
    start : array of float, annotators × rankings
        Memberships to start from.
    scores : array of float, rankings × items, optional
        Scores to start from; zero by default.
    max_steps : int, default 40
        Largest number of EM steps.
    """
    rankings = start.shape[1]
    # The first steps take everyone as nearly honest: the sign of a ranking follows its first members.
    membership = start[:, :, None] * np.array([0.0, 0.0, 0.1, 0.3, 0.6])
    scores = np.zeros((rankings, table.n_items)) if scores is None else scores.copy()
    for _ in range(3 if not scores.any() else 0):
        scores = np.array([_scoring_step(table, scores[k], membership[:, k]) for k in range(rankings)])
    value = -np.inf
    for _ in range(max_steps):
        log_share = _log_shares(membership)
        joint = log_share + table.log_likelihoods(scores)
        total = _log_sum(joint)
        membership = np.exp(joint - total[:, None, None])
        before, value = value, float(total.sum()) - float(np.sum(scores**2)) / (2 * _PRIOR_VARIANCE)
        if value - before < _TOLERANCE * table.n_annotators:
            break
        scores = np.array([_scoring_step(table, scores[k], membership[:, k]) for k in range(rankings)])
    return RankingMixture(scores, log_share, membership, float(total.sum()))


def _log_shares(membership: FloatArray) -> FloatArray:
    """Shares with one more annotator spread evenly, so that none is zero."""
    count = membership.sum(axis=0) + 1 / membership[0].size
    return np.asarray(np.log(count / count.sum()))


def _log_sum(joint: FloatArray) -> FloatArray:
    top = joint.max(axis=(1, 2))
    return np.asarray(top + np.log(np.exp(joint - top[:, None, None]).sum(axis=(1, 2))))


def _scoring_step(table: AnswerTable, scores: FloatArray, membership: FloatArray) -> FloatArray:
    """One step of Fisher scoring on the scores of one ranking; `membership` is annotators × slopes."""
    expected = table.expected(scores)
    agreement = table.answer * expected
    variance = 1 - expected**2
    gain, information = np.zeros(len(table)), np.full(len(table), 1e-3)
    for g, slope in enumerate(SLOPES):
        if slope == 0 or not membership[:, g].any():
            continue
        share = membership[table.annotator, g] * slope
        gain += share / (1 + slope * agreement)
        information += share * slope * variance / (1 - (slope * expected) ** 2)
    force = gain * table.answer * variance / 2
    gradient = np.bincount(table.left, force, table.n_items) - np.bincount(table.right, force, table.n_items)
    step = _solve(table, information * variance / 4 + 1e-9, gradient - scores / _PRIOR_VARIANCE)
    return np.asarray(scores + np.clip(step, -_MAX_STEP, _MAX_STEP))


def _solve(table: AnswerTable, weight: FloatArray, gradient: FloatArray) -> FloatArray:
    """Solve with the weighted Laplacian of the pairs plus the prior's precision."""
    size, left, right = table.n_items, table.left, table.right
    diagonal = np.full(size, 1 / _PRIOR_VARIANCE)
    diagonal += np.bincount(left, weight, size) + np.bincount(right, weight, size)
    if size <= _MAX_FACTORED:
        matrix = np.bincount(left * size + right, -weight, size * size).astype(np.float64).reshape(size, size)
        matrix += matrix.T
        matrix.flat[:: size + 1] = diagonal
        return DenseCurvature(matrix).solve(gradient)

    def product(vector: FloatArray) -> FloatArray:
        flow = weight * (vector[left] - vector[right])
        return np.asarray(
            np.bincount(left, flow, size) - np.bincount(right, flow, size) + vector / _PRIOR_VARIANCE, np.float64
        )

    return MatrixFreeCurvature(product, diagonal).solve(gradient, 1e-2)


MIN_ANSWERS = 10
"""Annotators with fewer decided answers are not looked at."""
_MIN_ANNOTATORS = 10
_MIN_CAMP, _MIN_CAMP_SHARE = 4, 0.1
"""Smallest camp, in annotators and as a share of those who follow either camp."""
_OPPOSITE_SHARE = 0.35
"""Annotators who answer in reverse are a camp, and not spammers, if they are more than this share."""
_CLEAR = 0.9
"""Probability of belonging to a camp from which an annotator is counted as a member."""
_MIN_DISAGREEMENT = 0.1
"""Smallest mean difference between what the two camps answer to the questions that were asked."""
_SCREEN_Z, _SCREEN_FLIPS = 3.0, 10
_GAIN_Z = 2.5
"""Standard errors by which two rankings must predict held-out answers better than one."""
_MAX_ANSWERS = 16_000
"""More answers are not used: a random sample of the annotators is enough to see camps."""
_MANY_ANSWERS = 4_000
_NAMED_ITEMS = 3


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Camps(Tabular):
    """Two camps of annotators and what each prefers. `frame` has one row per item.

    Parameters
    ----------
    annotators : array of str
        Labels of all annotators.
    camp : array of int
        1 for members of the larger camp, 2 for members of the smaller one, 0 for annotators with few answers or of
        neither camp.
    items : Items
        The items.
    scores : array of float, 2 × items
        Scores of the items in each camp.
    opposite : bool
        Whether the smaller camp prefers the reverse of what the larger one prefers.
    native : str, default "polars"
        Data frame library of `frame`.

    Examples
    --------
    >>> from crowdrank.simulation import mixed_crowd
    >>> votes = mixed_crowd(items=12, kinds={"good": 18, "reversed": 12}, votes_each=40, seed=1).judgments
    >>> found = find_camps(votes)
    >>> found
    <Camps: 18 and 12 annotators>
    >>> found.preferences[0] == found.preferences[1]
    False
    """

    annotators: ObjectArray
    camp: IntArray
    items: Items
    scores: FloatArray
    opposite: bool
    native: str = "polars"

    def __repr__(self) -> str:
        return f"<Camps: {self.sizes[0]:,} and {self.sizes[1]:,} annotators>"

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of annotators in each camp, the larger one first."""
        return int(np.count_nonzero(self.camp == 1)), int(np.count_nonzero(self.camp == 2))

    @property
    def members(self) -> tuple[list[str], list[str]]:
        """Labels of the members of each camp."""
        first, second = ([str(name) for name in self.annotators[self.camp == n]] for n in (1, 2))
        return first, second

    @property
    def preferences(self) -> tuple[list[str], list[str]]:
        """The items of each camp, best first."""
        first, second = ([self.items.name(int(n)) for n in np.argsort(-row, kind="stable")] for row in self.scores)
        return first, second

    @property
    def disputed(self) -> list[str]:
        """The items, those on which the camps differ most first."""
        difference = np.abs(self.scores[0] - self.scores[1])
        return [self.items.name(int(n)) for n in np.argsort(-difference, kind="stable")]

    def to_polars(self) -> pl.DataFrame:
        """Return one row per item: its score in each camp, most disputed first."""
        difference = self.scores[0] - self.scores[1]
        order = np.argsort(-np.abs(difference), kind="stable")
        columns = {"query": self.items.queries[self.items.query[order]].tolist()} if self.items.has_queries else {}
        columns |= {
            "item": self.items.labels[order].tolist(),
            "camp_1": self.scores[0, order],
            "camp_2": self.scores[1, order],
            "difference": difference[order],
        }
        return pl.DataFrame(columns)

    def describe(self) -> list[str]:
        """Return sentences for the reader of a ranking: the camps with their sizes, and what each prefers."""
        larger, smaller = self.sizes
        rest = len(self.annotators) - larger - smaller
        others = f" ({rest:,} more gave too few answers or follow neither)" if rest else ""
        relation = "opposite" if self.opposite else "different"
        found = [
            f"This crowd has tastes: it falls into two camps of {larger:,} and {smaller:,} annotators with {relation} "
            f"preferences{others}. Any one ranking mixes them, and its first place is not everyone's."
        ]
        one, other = (_names(names) for names in self.preferences)
        if not self.items.has_queries:
            found.append(f"The larger camp prefers {one}; the smaller camp prefers {other}.")
        if not self.opposite or self.items.has_queries:
            found.append(f"The camps differ most on {_names(self.disputed)}.")
        return found


def _names(names: Sequence[str]) -> str:
    shown = list(names[:_NAMED_ITEMS])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def find_camps(comparisons: Comparisons, seed: int = 0) -> Camps | None:
    """Look for two camps of annotators with different preferences.

    Parameters
    ----------
    comparisons : Comparisons
        Comparisons with annotators.
    seed : int, default 0
        Seed of the starting values, of the held-out answers and of the sample of annotators.

    Returns
    -------
    Camps or None
        None if one ranking explains the answers, with random and reversed annotators beside it.

    Notes
    -----
    One Bradley–Terry ranking is compared with a mixture of two. In both, every annotator has a quality of their own,
    which may be random or reversed. Two rankings are accepted if they predict held-out answers of the same annotators
    better by 2.5 standard errors over annotators, if each camp has at least four members and a tenth of the annotators,
    and if the camps would answer differently to the questions that were asked. Annotators who answer in reverse are
    explained by one ranking; they are taken as a camp if they are more than 35 % of those who are not random.

    Examples
    --------
    >>> from crowdrank.simulation import mixed_crowd
    >>> find_camps(mixed_crowd(items=12, kinds={"good": 25, "reversed": 4}, seed=1).judgments) is None
    True
    """
    rng = np.random.default_rng(seed)
    sample = _sample(comparisons, rng)
    if sample is None:
        return None
    table, chosen = sample
    one = fit_mixture(table, np.ones((table.n_annotators, 1)))
    slope_share = one.membership[:, 0]
    backward, forward = slope_share[:, SLOPES < 0].sum(axis=1), slope_share[:, SLOPES > 0].sum(axis=1)
    two = _two_rankings(table, one, rng)
    if two is not None:
        camps = two.membership[:, :, SLOPES > 0].sum(axis=2)
        return _result(comparisons, chosen, camps, two.scores, opposite=False)
    if not _large_enough(backward > _CLEAR, forward > _CLEAR, _OPPOSITE_SHARE) or _gain_z(table, rng, 1) < _GAIN_Z:
        return None
    camps = np.stack((forward, backward), axis=1)
    return _result(comparisons, chosen, camps, np.concatenate((one.scores, -one.scores)), opposite=True)


def _result(
    comparisons: Comparisons, chosen: IntArray, probability: FloatArray, scores: FloatArray, opposite: bool
) -> Camps:
    member = probability > _CLEAR
    order = np.argsort(-member.sum(axis=0), kind="stable")
    camp = np.zeros(len(comparisons.annotators), np.int64)
    camp[chosen] = np.where(member[:, order[0]], 1, np.where(member[:, order[1]], 2, 0))
    return Camps(
        annotators=comparisons.annotators,
        camp=camp,
        items=comparisons.items,
        scores=np.array([comparisons.items.centre(row) for row in scores[order]]),
        opposite=opposite,
        native=comparisons.frame_backend,
    )


def _sample(comparisons: Comparisons, rng: np.random.Generator) -> tuple[AnswerTable, IntArray] | None:
    """Answers of annotators with enough of them, and who they are; None if there are too few."""
    if comparisons.annotator is None or comparisons.storage is not None:
        return None
    decided = np.flatnonzero(comparisons.outcome)
    count = np.bincount(comparisons.annotator[decided], minlength=len(comparisons.annotators))
    chosen = np.flatnonzero(count >= MIN_ANSWERS)
    if len(chosen) < _MIN_ANNOTATORS:
        return None
    if count[chosen].sum() > _MAX_ANSWERS:
        mixed = rng.permutation(chosen)
        enough = max(_MIN_ANNOTATORS, int(np.searchsorted(np.cumsum(count[mixed]), _MAX_ANSWERS)))
        chosen = np.sort(mixed[:enough])
    code = np.full(len(count), -1)
    code[chosen] = np.arange(len(chosen))
    rows = decided[code[comparisons.annotator[decided]] >= 0]
    table = AnswerTable(
        comparisons.left[rows].astype(np.int64),
        comparisons.right[rows].astype(np.int64),
        comparisons.outcome[rows].astype(np.float64),
        code[comparisons.annotator[rows]],
        len(comparisons.items),
        len(chosen),
    )
    return table, chosen


def _large_enough(small: BoolArray, large: BoolArray, share: float) -> bool:
    """Whether the smaller of two groups is large enough to be a camp."""
    sizes = sorted((int(small.sum()), int(large.sum())))
    return sizes[0] >= _MIN_CAMP and sizes[0] > share * sum(sizes)


def _two_rankings(table: AnswerTable, one: RankingMixture, rng: np.random.Generator) -> RankingMixture | None:
    """The mixture of two rankings, if it is needed."""
    if not _has_second_direction(table, one, rng):
        return None
    two = _fit_two(table, one)
    # Akaike's criterion: necessary, far from sufficient, and cheaper than held-out answers.
    if two.log_likelihood - one.log_likelihood < table.n_items:
        return None
    positive = two.membership[:, :, SLOPES > 0].sum(axis=2) > _CLEAR
    if not _large_enough(positive[:, 0], positive[:, 1], _MIN_CAMP_SHARE):
        return None
    answers = np.abs(table.expected(two.scores[0]) - table.expected(two.scores[1])) / 2
    if answers.mean() < _MIN_DISAGREEMENT:
        return None
    return two if _gain_z(table, rng, 2) > _GAIN_Z else None


def _gain_z(table: AnswerTable, rng: np.random.Generator, rankings: int) -> float:
    """How much better held-out answers are predicted, in standard errors over annotators.

    Two rankings are compared with one, one ranking with random answers.
    """
    folds = 2 if len(table) > _MANY_ANSWERS else 4
    # Every annotator's answers are spread evenly over the folds.
    order = np.lexsort((rng.random(len(table)), table.annotator))
    fold = np.empty(len(table), np.int64)
    fold[order] = np.arange(len(table)) % folds
    gain = np.zeros(table.n_annotators)
    for n in range(folds):
        train, test = table.take(fold != n), table.take(fold == n)
        one = fit_mixture(train, np.ones((table.n_annotators, 1)))
        if rankings == 1:
            gain += one.predict(test) + np.log(2) * test.by_annotator(np.ones(len(test)))
        else:
            gain += _fit_two(train, one).predict(test) - one.predict(test)
        if gain.sum() <= 0:  # the first folds decide most crowds without camps
            break
    return float(gain.sum() / (np.std(gain) * np.sqrt(len(gain)) + 1e-12))


def _fit_two(table: AnswerTable, one: RankingMixture) -> RankingMixture:
    """The best of several starts: annotators split by their residuals, evenly or unevenly."""
    residuals = _residual_matrix(table, one)
    _, vectors = np.linalg.eigh(residuals @ residuals.T)
    loading = vectors[:, -1]
    splits = [loading > 0, loading > np.quantile(loading, 0.7), loading < np.quantile(loading, 0.3)]
    starts = [np.stack((np.where(split, 0.9, 0.1), np.where(split, 0.1, 0.9)), axis=1) for split in splits]
    return max((fit_mixture(table, start) for start in starts), key=lambda found: found.log_likelihood)


def _residual_matrix(table: AnswerTable, one: RankingMixture, flip: FloatArray | None = None) -> FloatArray:
    """What one ranking leaves unexplained, annotators × items; each row and column divided by the root of its count."""
    slope = one.membership[:, 0] @ SLOPES
    residual = table.answer - slope[table.annotator] * table.expected(one.scores[0])
    if flip is not None:
        residual = residual * flip
    size = table.n_items
    cell = table.annotator * size
    total = np.bincount(cell + table.left, residual, table.n_annotators * size)
    total -= np.bincount(cell + table.right, residual, table.n_annotators * size)
    matrix = total.reshape(table.n_annotators, size)
    per_item = np.bincount(table.left, minlength=size) + np.bincount(table.right, minlength=size)
    per_annotator = table.by_annotator(np.ones(len(table)))
    return np.asarray(matrix / np.sqrt(np.maximum(per_item, 1)) / np.sqrt(np.maximum(per_annotator, 1))[:, None])


def _has_second_direction(table: AnswerTable, one: RankingMixture, rng: np.random.Generator) -> bool:
    """Whether the residuals have a larger first singular value than with their signs flipped at random."""
    found = _largest_singular_value(_residual_matrix(table, one))
    flips = rng.choice([-1.0, 1.0], (_SCREEN_FLIPS, len(table)))
    null = [_largest_singular_value(_residual_matrix(table, one, flip)) for flip in flips]
    return bool(found > np.mean(null) + _SCREEN_Z * np.std(null))


def _largest_singular_value(matrix: FloatArray) -> float:
    gram = matrix @ matrix.T if matrix.shape[0] < matrix.shape[1] else matrix.T @ matrix
    return float(np.linalg.eigvalsh(gram)[-1])
