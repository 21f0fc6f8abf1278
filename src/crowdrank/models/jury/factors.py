"""Factor analysis of judges: the few dimensions along which their answers to a pair agree or err together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import Comparisons, EncodedSideInformation, Items
from crowdrank.data.side_information import AnnotatorDetails
from crowdrank.errors import DataError
from crowdrank.inference.special import inverse_mills

# The answers of an annotator to a pair as one cell: what it answered, how often, and whether it agrees with itself.

# Cells seen from both sides that a judge needs before its side effect is believed by half.
_CELLS_FOR_SIDE = 5.0
# Repeated cells after which a judge's own reliability counts as much as that of all judges.
_CELLS_FOR_RELIABILITY = 20.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Cells:
    """One row per annotator and pair.

    Parameters
    ----------
    annotator, pair : array of int
        Codes of the annotator and the pair of each cell.
    answer : array of float
        Mean answer, from 1 (always the first item) to −1 (always the second). Both orders count the same, and the side
        effect of the annotator is taken out where only one order was shown.
    count : array of float
        Number of answers (sum of weights).
    balanced : array of bool
        Whether the pair was shown in both orders, equally often.
    first, second : array of int
        The items of each pair, the lower code first.
    reliability : array of float
        Correlation between two answers of one annotator on the same pair, without the side effect; NaN if nobody
        answered a pair twice.
    side : array of float
        Side effect of each annotator: 1 if it always chooses left, −1 if right, 0 if the side does not matter.
    mean_square : array of float
        Mean square of an annotator's answers, without the side effect.
    n_annotators : int
        Number of annotators.
    """

    annotator: IntArray
    pair: IntArray
    answer: FloatArray
    count: FloatArray
    balanced: BoolArray
    first: IntArray
    second: IntArray
    reliability: FloatArray
    side: FloatArray
    mean_square: FloatArray
    n_annotators: int

    @property
    def n_pairs(self) -> int:
        return len(self.first)


def make_cells(comparisons: Comparisons) -> Cells:
    """Gather the answers of each annotator on each pair. Without annotators, all answers are of one."""
    size = len(comparisons.items)
    left, right = comparisons.left.astype(np.int64), comparisons.right.astype(np.int64)
    along = np.where(left < right, 1.0, -1.0)
    pairs, pair = np.unique(np.minimum(left, right) * size + np.maximum(left, right), return_inverse=True)
    who = np.zeros(len(left), np.int64) if comparisons.annotator is None else comparisons.annotator.astype(np.int64)
    n_annotators = max(1, len(comparisons.annotators))
    codes, cell = np.unique(who * len(pairs) + pair, return_inverse=True)
    owner, weight = codes // len(pairs), np.asarray(comparisons.weights, float)
    answer = comparisons.outcome * along
    order = along if comparisons.positions_known else np.ones(len(along))

    def total(values: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(cell, values, len(codes)), float)

    shown = [total(weight * (order == side)) for side in (1, -1)]
    mean = [
        total(weight * answer * (order == side)) / np.maximum(n, 1e-300) for side, n in zip((1, -1), shown, strict=True)
    ]
    both = (shown[0] > 0) & (shown[1] > 0)
    seen = np.bincount(owner, both, n_annotators)
    lean = np.bincount(owner, np.where(both, (mean[0] - mean[1]) / 2, 0.0), n_annotators)
    side = lean / (seen + _CELLS_FOR_SIDE)
    alone = np.where(shown[0] > 0, mean[0] - side[owner], mean[1] + side[owner])
    corrected = answer - side[who] * order
    count, squares = total(weight), total(weight * corrected**2)
    answers = np.bincount(owner, count, n_annotators)
    mean_square = np.bincount(owner, squares, n_annotators) / np.maximum(answers, 1e-300)
    return Cells(
        annotator=owner,
        pair=codes % len(pairs),
        answer=np.clip(np.where(both, (mean[0] + mean[1]) / 2, alone), -1.0, 1.0),
        count=count,
        balanced=both & (np.abs(shown[0] - shown[1]) < 1e-6),
        first=pairs // size,
        second=pairs % size,
        reliability=_reliability(count, total(weight * corrected), squares, owner, mean_square),
        side=side,
        mean_square=mean_square,
        n_annotators=n_annotators,
    )


def _reliability(
    count: FloatArray, sums: FloatArray, squares: FloatArray, owner: IntArray, mean_square: FloatArray
) -> FloatArray:
    """Mean product of two answers to one pair over the mean square of an answer, per annotator, shrunk to the mean."""
    repeated = count > 1 + 1e-6  # weights that sum to one within rounding are one answer
    judges = len(mean_square)
    if not repeated.any():
        return np.full(judges, np.nan)
    safe = np.maximum(count, 1.0)
    product = np.bincount(owner, np.where(repeated, (sums**2 - squares) / safe, 0.0), judges)
    number = np.bincount(owner, np.where(repeated, count - 1, 0.0), judges)
    possible = number * mean_square
    typical = product.sum() / max(possible.sum(), 1e-12)
    prior = _CELLS_FOR_RELIABILITY * max(possible.sum() / number.sum(), 1e-12)
    return np.asarray(np.clip((product + prior * typical) / (possible + prior), 0.0, 1.0))


# Two factors, one for the truth and one for shared errors, need at least this many judges, and pairs that two judges
# share.
_MIN_JUDGES, _MIN_SHARED_PAIRS = 3, 30
_MAX_DENSE_CELLS = 20_000_000
_STEPS = 60
# Share of the variance of a judge's own error that stays the same when it is asked again, if nobody was asked twice.
_PERSISTENT, _LEAST_PERSISTENT, _MOST_PERSISTENT = 0.5, 0.02, 0.9
# Loadings vary around their mean with this variance; a lone judge is expected to have this loading.
_LOADING_VARIANCE, _TYPICAL_LOADING, _JUDGES_IN_PRIOR = 0.1, 0.6, 1.0
_CELLS_IN_PRIOR, _LEAST_VARIANCE = 5.0, 0.02


@dataclass(frozen=True, eq=False)
class Factors:
    """Judge a answers pair p as λ_a·z_p plus its own error.

    Parameters
    ----------
    loadings : array, judges × factors
        λ_a.
    variance : array
        Variance of each judge's own error in a single answer.
    persistent : float
        Share of that variance that stays the same when a judge is asked again.
    """

    loadings: FloatArray
    variance: FloatArray
    persistent: float

    @property
    def count(self) -> int:
        return int(self.loadings.shape[1])

    def evidence(self, cells: Cells) -> tuple[FloatArray, FloatArray]:
        """Precision (pairs × factors × factors) and linear term (pairs × factors) of the likelihood of each z_p."""
        loading = self.loadings[cells.annotator]
        weight = self.answer_weight(cells) / self.variance[cells.annotator]
        precision = _sum_outer(cells.pair, weight, loading, cells.n_pairs)
        return precision, _sum_rows(cells.pair, (weight * cells.answer)[:, None] * loading, cells.n_pairs)

    def answer_weight(self, cells: Cells) -> FloatArray:
        """How many independent answers a cell is worth: repeats share what is persistent in the judge's own error."""
        return np.asarray(cells.count / (1 + np.maximum(cells.count - 1, 0.0) * self.persistent))


def fit_factors(cells: Cells) -> Factors:
    """Estimate loadings and error variances by EM: two factors, or one if the judges share too few pairs."""
    loadings = _start(cells)
    typical = 0.6 * max(float(np.mean(cells.answer**2)), 1e-3)
    factors = Factors(loadings, np.full(len(loadings), typical), _persistent(cells, loadings))
    for _ in range(_STEPS):
        factors = _em_step(cells, factors, typical)
    return factors


def _em_step(cells: Cells, factors: Factors, typical: float) -> Factors:
    who, eye = cells.annotator, np.eye(factors.count)
    weight = factors.answer_weight(cells)
    precision, linear = factors.evidence(cells)
    spread = np.linalg.inv(eye + precision)
    mean = np.einsum("pkl,pl->pk", spread, linear)[cells.pair]
    second = spread[cells.pair] + mean[:, :, None] * mean[:, None, :]
    share = weight / factors.variance[who]
    rows = (share[:, None, None] * second).reshape(len(share), -1)
    moment = _sum_rows(who, rows, cells.n_annotators).reshape(-1, *eye.shape) + eye / _LOADING_VARIANCE
    product = _sum_rows(who, (share * cells.answer)[:, None] * mean, cells.n_annotators)
    target = product + _mean_loading(factors.loadings) / _LOADING_VARIANCE
    loadings = np.asarray(np.linalg.solve(moment, target[:, :, None])[:, :, 0], float)
    own = loadings[who]
    squared = (own * np.einsum("ckl,cl->ck", second, own)).sum(axis=1)
    left = cells.answer**2 - 2 * cells.answer * (own * mean).sum(axis=1) + squared
    errors = np.bincount(who, weight * left, cells.n_annotators) + _CELLS_IN_PRIOR * typical
    answered = np.bincount(who, minlength=cells.n_annotators) + _CELLS_IN_PRIOR
    return Factors(loadings, np.maximum(errors / answered, _LEAST_VARIANCE), _persistent(cells, loadings))


def _persistent(cells: Cells, loadings: FloatArray) -> float:
    """What two answers of a judge to one pair have in common beyond its factors, of all that is not its factors."""
    if np.isnan(cells.reliability[0]):
        return _PERSISTENT if cells.n_annotators > 1 else _LEAST_PERSISTENT
    number = np.bincount(cells.annotator, np.maximum(cells.count - 1, 0.0), cells.n_annotators)
    seen = (loadings**2).sum(axis=1)
    common = float(number @ (cells.reliability * cells.mean_square - seen))
    total = float(number @ (cells.mean_square - seen))
    return float(np.clip(common / max(total, 1e-12), _LEAST_PERSISTENT, _MOST_PERSISTENT))


def _mean_loading(loadings: FloatArray) -> FloatArray:
    """The mean loading. With one factor, a typical positive loading counts as one more judge."""
    if loadings.shape[1] > 1:
        return np.asarray(loadings.mean(axis=0))
    judges = len(loadings)
    return np.asarray((loadings.sum(axis=0) + _JUDGES_IN_PRIOR * _TYPICAL_LOADING) / (judges + _JUDGES_IN_PRIOR))


def _start(cells: Cells) -> FloatArray:
    """Starting loadings: the two principal axes of the correlations among judges, if they share enough pairs."""
    one = np.full((cells.n_annotators, 1), _TYPICAL_LOADING)
    judges = cells.n_annotators
    if judges < _MIN_JUDGES or judges * cells.n_pairs > _MAX_DENSE_CELLS:
        return one
    answers, asked = np.zeros((2, judges, cells.n_pairs))
    answers[cells.annotator, cells.pair] = cells.answer
    asked[cells.annotator, cells.pair] = 1.0
    shared = asked @ asked.T
    typical = (shared.sum() - np.trace(shared)) / (judges * (judges - 1))
    if typical < _MIN_SHARED_PAIRS:
        return one
    scale = np.sqrt(np.maximum((answers**2).sum(axis=1) / np.maximum(np.diag(shared), 1), 1e-6))
    # Judges who share few pairs are taken as less correlated than they look.
    products = answers @ answers.T / (shared + 2.0)
    np.fill_diagonal(products, scale**2)
    values, axes = np.linalg.eigh(products / np.outer(scale, scale))
    return np.asarray(scale[:, None] * axes[:, -2:] * np.sqrt(np.maximum(values[-2:] - 0.5, 0.25)))


def _sum_rows(group: IntArray, rows: FloatArray, size: int) -> FloatArray:
    return np.stack([np.bincount(group, column, size) for column in rows.T], axis=1)


def _sum_outer(group: IntArray, weight: FloatArray, rows: FloatArray, size: int) -> FloatArray:
    count = rows.shape[1]
    found = np.empty((size, count, count))
    for k in range(count):
        for m in range(k + 1):
            found[:, k, m] = found[:, m, k] = np.bincount(group, weight * rows[:, k] * rows[:, m], size)
    return found


# Factors of items from the factors of pairs, and their joint distribution in each query.

MAX_ITEMS = 1_500
"""Most items in a query: the covariance of their factors is a dense matrix."""
_PAIR_SHARES = (0.05, 0.2, 0.5, 0.8)


@dataclass(frozen=True, eq=False)
class ItemFactors:
    """Normal posterior of the factors of items: z_p = F_i − F_j + v_p, with v_p shared by all answers to pair p.

    Parameters
    ----------
    mean : array, items × factors
        Posterior means.
    covariance : tuple of arrays
        One matrix per query, (items · factors)², items in the order of the query.
    pair_share : float
        Variance of v_p as a share of the variance of z_p.
    """

    mean: FloatArray
    covariance: tuple[FloatArray, ...]
    pair_share: float

    def along(self, direction: FloatArray, query: int, size: int) -> FloatArray:
        """Covariance among the items of a query of their component along a direction."""
        blocks = self.covariance[query].reshape(size, len(direction), size, len(direction))
        return np.asarray(np.einsum("ikjl,k,l->ij", blocks, direction, direction))


def fit_items(cells: Cells, items: Items, precision: FloatArray, linear: FloatArray) -> ItemFactors:
    """Posterior of the factors of items, with the share of the pairs that makes the answers most probable."""
    sizes = np.diff(items.starts)
    if sizes.max() > MAX_ITEMS:
        raise DataError(f"jury ranks at most {MAX_ITEMS:,} items in a query, got {sizes.max():,}: use crowd-bt.")
    query = items.query[cells.first]
    # Pairs of a query are contiguous: they are sorted by their first item, and items by query.
    ends = np.searchsorted(query, np.arange(len(sizes) + 1))
    # With two items in a query, an effect of the pair cannot be separated from effects of its items.
    shares = _PAIR_SHARES if sizes.max() > 2 else (0.0,)
    found = [_fit_with_share(share, cells, items, ends, precision, linear) for share in shares]
    return max(found, key=lambda one: one[0])[1]


def _fit_with_share(
    share: float, cells: Cells, items: Items, ends: IntArray, precision: FloatArray, linear: FloatArray
) -> tuple[float, ItemFactors]:
    count = linear.shape[1]
    eye = np.eye(count)
    damped = np.linalg.inv(eye + share * precision)
    known, linear_term = damped @ precision, np.einsum("pkl,pl->pk", damped, linear)
    evidence = 0.5 * float(np.sum(np.linalg.slogdet(damped)[1]) + share * np.sum(linear_term * linear))
    mean, covariances = np.zeros((len(items), count)), []
    prior = 2 / (1 - share)
    for code, start in enumerate(items.starts[:-1]):
        own = slice(ends[code], ends[code + 1])
        size = int(items.starts[code + 1] - start)
        first, second = cells.first[own] - start, cells.second[own] - start
        matrix = np.zeros((size, size, count, count))
        np.add.at(matrix, (first, first), known[own])
        np.add.at(matrix, (second, second), known[own])
        np.add.at(matrix, (first, second), -known[own])
        np.add.at(matrix, (second, first), -known[own])
        target = np.zeros((size, count))
        np.add.at(target, first, linear_term[own])
        np.add.at(target, second, -linear_term[own])
        full = matrix.transpose(0, 2, 1, 3).reshape(size * count, size * count) + prior * np.eye(size * count)
        covariance = np.linalg.inv(full)
        best = covariance @ target.ravel()
        mean[start : start + size] = best.reshape(size, count)
        covariances.append((covariance + covariance.T) / 2)
        evidence += 0.5 * (best @ target.ravel() - np.linalg.slogdet(full)[1] + size * count * np.log(prior))
    return evidence, ItemFactors(mean, tuple(covariances), share)


# Which direction among the factors of the judges is the truth: by gold answers, or by consistency with oneself.

# Prior belief without gold: the most consistent judge agrees with the truth as 0.8 (1 is always, 0 is chance, −1 is
# never), others less by the cube of their relative reliability, each give or take 0.35.
_BEST_AGREEMENT, _POWER, _SPREAD = 0.8, 3, 0.35
_UNKNOWN_AGREEMENT = 0.5
# Without answers to one pair twice, the belief is a guess: gold answers count against it as if it were this much wider.
_GUESS_WIDTH = 2.0
# The better item of a gold pair is ahead by β·z ± this much: what no judge sees may decide.
GOLD_SPREAD = 0.5
_MAX_STEPS, _SMALL_STEP = 50, 1e-9
_KNOWN_SPREAD = 0.1
_MAX_NORM = 0.95


@dataclass(frozen=True, eq=False)
class TruthDirection:
    """Normal posterior of β: the expected truth of a pair (1 if its first item is better, else −1) is β·z.

    Parameters
    ----------
    mean : array
        Posterior mean of β, at most 0.95 long.
    covariance : array
        Posterior covariance.
    """

    mean: FloatArray
    covariance: FloatArray

    @property
    def unexplained(self) -> float:
        """Share of the truth that no judge sees: errors that all of them share."""
        return float(1 - self.mean @ self.mean)

    def draw(self, rng: np.random.Generator, count: int) -> FloatArray:
        """Draws of β, at most 0.95 long."""
        root = np.linalg.cholesky(self.covariance + 1e-12 * np.eye(len(self.mean)))
        return _bounded(self.mean + rng.standard_normal((count, len(self.mean))) @ root.T)


def find_direction(
    factors: Factors, reliability: FloatArray, known: EncodedSideInformation, gold_factors: FloatArray
) -> TruthDirection:
    """Combine the prior belief about judges with the gold answers: a probit regression with a normal prior on β.

    Parameters
    ----------
    factors : Factors
        Loadings of the judges.
    reliability : array of float
        Correlation between two answers of a judge on one pair; NaN if unknown.
    known : EncodedSideInformation
        Families, and known qualities of judges.
    gold_factors : array, gold pairs × factors
        Factors of the better item minus those of the worse one.
    """
    loadings, count = factors.loadings, factors.count
    weight = _judge_weights(factors, known.people) / _SPREAD**2
    expected = expected_agreement(reliability)
    for code, quality in _known_quality(known).items():
        expected[code], weight[code] = 2 * quality - 1, 1 / _KNOWN_SPREAD**2
    precision = np.eye(count) + (weight[:, None] * loadings).T @ loadings
    target = loadings.T @ (weight * expected)
    covariance = np.asarray(np.linalg.inv(precision), float)
    mean = _bounded(covariance @ target)
    if len(gold_factors):
        mean, covariance = learn_from_gold(mean, gold_prior(covariance, reliability), gold_factors)
    return TruthDirection(_bounded(mean), (covariance + covariance.T) / 2)


def gold_prior(covariance: FloatArray, reliability: FloatArray) -> FloatArray:
    """The prior covariance of β beside gold: wider if it is a guess, since nobody answered a pair twice."""
    return covariance if np.isfinite(reliability).any() else covariance * _GUESS_WIDTH**2


def learn_from_gold(
    mean: FloatArray, covariance: FloatArray, gold_factors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mode and covariance of β given P(the better item of a gold pair is ahead) = Φ(β·z / 0.5), by Newton's method.

    Parameters
    ----------
    mean, covariance : array
        Normal prior of β.
    gold_factors : array, gold pairs × factors
        Factors z of the better item minus those of the worse one.
    """
    precision = np.linalg.inv(covariance)
    rows = gold_factors / GOLD_SPREAD
    found = mean
    for _ in range(_MAX_STEPS):
        ahead = rows @ found
        ratio = inverse_mills(ahead)
        information = precision + (rows * (ratio * (ratio + ahead))[:, None]).T @ rows
        step = np.linalg.solve(information, rows.T @ ratio - precision @ (found - mean))
        found = found + step
        if np.abs(step).max() < _SMALL_STEP:
            break
    return found, np.asarray(np.linalg.inv(information))


def expected_agreement(reliability: FloatArray) -> FloatArray:
    """What each judge's agreement with the truth is expected to be, before any gold."""
    known = np.isfinite(reliability)
    if not known.any() or reliability[known].max() <= 0:
        return np.full(len(reliability), _UNKNOWN_AGREEMENT)
    found = _BEST_AGREEMENT * (reliability / reliability[known].max()) ** _POWER
    return np.asarray(np.where(known, found, found[known].mean()))


def effective_number(factors: Factors, direction: TruthDirection, answer_weight: FloatArray) -> float:
    """How many independent judges err as these do: (Σ λ)² / Σ λ² over the eigenvalues λ of their error correlation.

    Errors are what is left of the factors across the direction of the truth, and each judge's own error in a judgment
    that is worth `answer_weight` answers.
    """
    unit = direction.mean / max(float(np.linalg.norm(direction.mean)), 1e-12)
    across = factors.loadings - np.outer(factors.loadings @ unit, unit)
    return _participation(across, factors.variance / answer_weight)


def _judge_weights(factors: Factors, people: Mapping[int, AnnotatorDetails]) -> FloatArray:
    """Weights of the judges in the prior: they sum to the number of independent ones, and families weigh the same."""
    weight = np.ones(len(factors.loadings))
    families: dict[str, list[int]] = {}
    for code, details in people.items():
        if details.family is not None:
            families.setdefault(details.family, []).append(code)
    for members in families.values():
        weight[members] = 1 / len(members)
    return np.asarray(weight * (_participation(factors.loadings, factors.variance) / weight.sum()))


def _participation(loadings: FloatArray, variance: FloatArray) -> float:
    scale = np.sqrt((loadings**2).sum(axis=1) + variance)
    scaled = loadings / scale[:, None]
    own = variance / scale**2
    # ‖ΛΛᵀ + D‖² without the judges × judges matrix.
    total = np.sum((scaled.T @ scaled) ** 2) + 2 * np.sum(own * (scaled**2).sum(axis=1)) + np.sum(own**2)
    return float(len(loadings) ** 2 / total)


def _known_quality(known: EncodedSideInformation) -> dict[int, float]:
    """Known qualities, and the middle of known intervals."""
    middle = {code: (max(low, 0.0) + min(high, 1.0)) / 2 for code, (low, high) in known.between.items()}
    return middle | dict(known.quality)


def _bounded(direction: FloatArray) -> FloatArray:
    length = np.linalg.norm(direction, axis=-1, keepdims=True)
    return np.asarray(direction * np.minimum(1.0, _MAX_NORM / np.maximum(length, 1e-12)))
