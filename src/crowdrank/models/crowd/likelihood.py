"""Likelihoods of the Crowd-BT family: the probability of one answer, and sums over a shard of answers.

Annotator k prefers the winner to the loser with probability P, which depends on the margin d (score of the winner less
score of the loser), the annotator's logit g, and the bias z of irrelevant features towards the winner:

crowd_bt         Chen et al. 2013                    P = η·σ(d) + (1−η)·σ(−d),        η = σ(g) is the quality
crowd_bt_probit  the same with Thurstone's noise     P = η·Φ(d/√2) + (1−η)·Φ(−d/√2),  η = σ(g)
variance_bt      Volkovs & Zemel 2012 (Variance-BT)  P = σ(κ·d),                      κ = exp(g) is the precision
factor_bt        Bugakova et al. 2019 (factorBT)     P = η·σ(d) + (1−η)·σ(z),         η = σ(g) is the attention

By default crowd-bt averages crowd_bt over the quality of each annotator: that sum is in `marginal_likelihood`. The
other models, and crowd-bt with `estimation="joint"`, estimate one parameter per annotator together with the scores,
here called the "logit": the logit of the quality or attention, or the log precision. The bias is z = ⟨x, r⟩, with the
features x of the comparison and the annotator's "feature weights" r.

Each formula returns P, 1 − P, the first derivatives of P by d, g and z, and the second derivatives by dd, dg, gg, gz
and zz (dz is always zero). Formulas use elementwise operations only, so that the same text serves whole arrays and
compiled loops. The negative Hessian of log P can be indefinite; the Fisher information (∂P)²/(P(1−P)) never is.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray, Int32Array
from crowdrank.engines.compilation import COMPILE_MIN_ROWS, compiled
from crowdrank.inference.special import HALF_LOG_TWO_PI, ROOT_HALF, log_normal_cdf, register_numba_overloads

CROWD_BT, CROWD_BT_PROBIT, VARIANCE_BT, FACTOR_BT = 0, 1, 2, 3

# Probabilities are bounded below, so that their logarithms stay finite.
MIN_PROBABILITY = 1e-300
# Scores and logits up to this size take a faster pass for crowd_bt: neither e^40 nor a product of sixteen probabilities
# overflows or underflows.
MAX_PARAMETER = 40.0
_FACTORS = 16


# The formulas


def sigmoid(x: Any) -> Any:
    # exp of a negative number only: it cannot overflow
    shrink = np.exp(-np.abs(x))
    ahead = (x >= 0) * 1.0
    return (ahead + (1.0 - ahead) * shrink) / (1.0 + shrink)


def sigmoid_pair(x: Any) -> Any:
    """σ(x) and σ(−x), with one exponential."""
    shrink = np.exp(-np.abs(x))
    more = 1.0 / (1.0 + shrink)
    less = shrink * more
    ahead = (x >= 0) * 1.0
    behind = 1.0 - ahead
    return ahead * more + behind * less, ahead * less + behind * more


def crowd_bt(d: Any, logit: Any, bias: Any) -> Any:
    """Crowd-BT (Chen et al. 2013): η·σ(d) + (1−η)·σ(−d). No bias."""
    won, lost = sigmoid_pair(d)
    honest, lying = sigmoid_pair(logit)
    side, doubt, unsure = honest - lying, honest * lying, won * lost
    return (
        honest * won + lying * lost,
        honest * lost + lying * won,
        side * unsure,
        doubt * (won - lost),
        0.0,
        side * unsure * (lost - won),
        2.0 * doubt * unsure,
        -doubt * side * (won - lost),
        0.0,
        0.0,
    )


def crowd_bt_probit(d: Any, logit: Any, bias: Any) -> Any:
    """Crowd-BT with Thurstone's normal noise (§3.1): η·Φ(d/√2) + (1−η)·Φ(−d/√2). No bias."""
    x = d * ROOT_HALF
    won, lost = np.exp(log_normal_cdf(x)), np.exp(log_normal_cdf(-x))
    honest, lying = sigmoid_pair(logit)
    side, doubt = honest - lying, honest * lying
    density = ROOT_HALF * np.exp(-0.5 * x * x - HALF_LOG_TWO_PI)
    return (
        honest * won + lying * lost,
        honest * lost + lying * won,
        side * density,
        doubt * (won - lost),
        0.0,
        -side * density * x * ROOT_HALF,
        2.0 * doubt * density,
        -doubt * side * (won - lost),
        0.0,
        0.0,
    )


def variance_bt(d: Any, logit: Any, bias: Any) -> Any:
    """Variance-BT: σ(κ·d) with κ = exp(logit). No bias."""
    scale = np.exp(logit)
    u = scale * d
    won, lost = sigmoid_pair(u)
    unsure = won * lost
    curve = unsure * (lost - won)
    return (
        won,
        lost,
        scale * unsure,
        u * unsure,
        0.0,
        scale * scale * curve,
        scale * (unsure + u * curve),
        u * (unsure + u * curve),
        0.0,
        0.0,
    )


def factor_bt(d: Any, logit: Any, bias: Any) -> Any:
    """factorBT (Bugakova et al. 2019, eq. 3): η·σ(d) + (1−η)·σ(bias)."""
    won, lost = sigmoid_pair(d)
    near, far = sigmoid_pair(bias)
    attentive, inattentive = sigmoid_pair(logit)
    doubt = attentive * inattentive
    return (
        attentive * won + inattentive * near,
        attentive * lost + inattentive * far,
        attentive * won * lost,
        doubt * (won - near),
        inattentive * near * far,
        attentive * won * lost * (lost - won),
        doubt * won * lost,
        doubt * (inattentive - attentive) * (won - near),
        -doubt * near * far,
        inattentive * near * far * (far - near),
    )


FORMULAS = (crowd_bt, crowd_bt_probit, variance_bt, factor_bt)


# Shards of answers


class Answers(NamedTuple):
    """One shard of answers.

    Parameters
    ----------
    winner, loser, annotator : arrays of int
        Codes of both items and of who answered, one per answer.
    weight : array of float
        Weight of each answer.
    features : array of float, answers × features
        Features, positive where they favour the winner.
    start : int
        Row of the whole table at which this shard begins.
    """

    winner: Int32Array
    loser: Int32Array
    annotator: Int32Array
    weight: AnyArray
    features: AnyArray
    start: int = 0

    @property
    def rows(self) -> int:
        return len(self.winner)

    def split(self, parts: int) -> list[Answers]:
        cuts = np.linspace(0, self.rows, parts + 1).astype(np.int64)
        return [self._between(int(a), int(b)) for a, b in pairwise(cuts)]

    def joined(self, more: Answers) -> Answers:
        """These answers, followed by others."""
        winner, loser, who, weight, features = (np.concatenate(pair) for pair in zip(self[:5], more[:5], strict=True))
        return Answers(winner, loser, who, weight, features, self.start)

    def sorted_by_annotator(self) -> Answers:
        """The answers of each annotator side by side, so that a pass reads the annotator's parameters once."""
        order = np.argsort(self.annotator, kind="stable")
        weight = self.weight if self.weight.strides == (0,) else self.weight[order]
        return Answers(
            self.winner[order], self.loser[order], self.annotator[order], weight, self.features[order], self.start
        )

    def _between(self, a: int, b: int) -> Answers:
        rows = slice(a, b)
        who, features = self.annotator[rows], self.features[rows]
        return Answers(self.winner[rows], self.loser[rows], who, self.weight[rows], features, self.start + a)


class AnswerCurvature(NamedTuple):
    """One shard of the negative Hessian: −∂² log P of each answer.

    Parameters
    ----------
    answers : Answers
        The answers.
    second : tuple of arrays
        Weighted −∂² log P of each answer by (d,d), (d,g), (g,g) and, with features, (d,z), (g,z), (z,z).
    """

    answers: Answers
    second: tuple[AnyArray, ...]

    @property
    def rows(self) -> int:
        return self.answers.rows


class Derivatives(NamedTuple):
    """Log-likelihood of a shard with its gradient and diagonals of its curvature.

    Parameters
    ----------
    value : float
        Log-likelihood.
    scores, logits, feature_weights : arrays of float
        Gradient.
    scores_fisher, logits_fisher, feature_weights_fisher : arrays of float
        Diagonal of the Fisher information.
    scores_curvature, logits_curvature : arrays of float
        Diagonal of the negative Hessian.
    """

    value: float
    scores: AnyArray
    logits: AnyArray
    feature_weights: AnyArray
    scores_fisher: AnyArray
    logits_fisher: AnyArray
    feature_weights_fisher: AnyArray
    scores_curvature: AnyArray
    logits_curvature: AnyArray


def evaluate(
    shard: Answers, scores: AnyArray, logits: AnyArray, feature_weights: AnyArray, formula: int
) -> tuple[AnswerCurvature, Derivatives]:
    """Log-likelihood, gradient and curvature of a shard, in one pass."""
    if shard.rows < COMPILE_MIN_ROWS:
        if formula == CROWD_BT and max(np.max(np.abs(scores)), np.max(np.abs(logits))) <= MAX_PARAMETER:
            return _evaluate_crowd_bt_arrays(shard, scores, logits, feature_weights)
        return _evaluate_arrays(shard, scores, logits, feature_weights, formula)
    second = np.empty((6 if formula == FACTOR_BT else 3, shard.rows), np.float32)
    if formula == CROWD_BT and max(np.max(np.abs(scores)), np.max(np.abs(logits))) <= MAX_PARAMETER:
        value, of_scores, of_logits = _evaluate_crowd_bt(*shard[:4], scores, logits, second)
        none = np.zeros_like(feature_weights)
        (gradient, fisher, curvature), (logit_gradient, logit_fisher, logit_curvature) = of_scores, of_logits
        found = Derivatives(
            value, gradient, logit_gradient, none, fisher, logit_fisher, none, curvature, logit_curvature
        )
        return AnswerCurvature(shard, tuple(second)), found
    register_numba_overloads()
    shapes = (scores.shape, logits.shape, feature_weights.shape)
    sums = [np.zeros(shape) for shape in (*shapes, *shapes, *shapes[:2])]
    value = _evaluate_loop(*shard[:5], scores, logits, feature_weights, formula, second, *sums)
    return AnswerCurvature(shard, tuple(second)), Derivatives(value, *sums)


def _evaluate_crowd_bt_arrays(
    shard: Answers, scores: AnyArray, logits: AnyArray, feature_weights: AnyArray
) -> tuple[AnswerCurvature, Derivatives]:
    """`crowd_bt` on few rows, with one exponential per annotator and the fewest operations per row."""
    winner, loser, who, weight = shard[:4]
    items, people = len(scores), len(logits)
    eta, rest = (part[who] for part in sigmoid_pair(logits))
    shrink = np.exp(scores[loser] - scores[winner])
    won = 1.0 / (1.0 + shrink)
    lost = shrink * won
    p, other = eta * won + rest * lost, eta * lost + rest * won
    inverse, side, lead, unsure = weight / p, eta - rest, won - lost, won * lost
    doubt = eta * rest
    d, g = side * unsure / p, doubt * lead / p  # derivatives of log P
    if weight.strides == (0,) and weight[0] == 1.0:
        weighted_d, weighted_g = d, g
    else:
        weighted_d, weighted_g = weight * d, weight * g
    second = (
        weighted_d * (d + lead),
        weighted_d * g - 2.0 * inverse * doubt * unsure,
        weighted_g * (g + side),
    )
    odds = p / other
    fisher = odds * weighted_d * d
    none = np.zeros_like(feature_weights)
    found = Derivatives(
        value=float(weight @ np.log(p)),
        scores=np.bincount(winner, weighted_d, items) - np.bincount(loser, weighted_d, items),
        logits=np.bincount(who, weighted_g, people),
        feature_weights=none,
        scores_fisher=np.bincount(winner, fisher, items) + np.bincount(loser, fisher, items),
        logits_fisher=np.bincount(who, odds * weighted_g * g, people),
        feature_weights_fisher=none,
        scores_curvature=np.bincount(winner, second[0], items) + np.bincount(loser, second[0], items),
        logits_curvature=np.bincount(who, second[2], people),
    )
    return AnswerCurvature(shard, second), found


def _evaluate_arrays(
    shard: Answers, scores: AnyArray, logits: AnyArray, feature_weights: AnyArray, formula: int
) -> tuple[AnswerCurvature, Derivatives]:
    winner, loser, who, weight, features, _ = shard
    bias = np.einsum("mf,mf->m", features, feature_weights[who]) if formula == FACTOR_BT else 0.0
    p, other, d, g, z, dd, dg, gg, gz, zz = FORMULAS[formula](scores[winner] - scores[loser], logits[who], bias)
    p, other = np.maximum(p, MIN_PROBABILITY), np.maximum(other, MIN_PROBABILITY)
    # from derivatives of P to those of log P: ∂ log P = ∂P/P, −∂² log P = (∂P/P)² − ∂²P/P
    d, g, z = d / p, g / p, z / p
    second = [weight * (d * d - dd / p), weight * (d * g - dg / p), weight * (g * g - gg / p)]
    if formula == FACTOR_BT:
        second += [weight * d * z, weight * (g * z - gz / p), weight * (z * z - zz / p)]
    fisher = weight * p / other
    items, people = len(scores), len(logits)
    found = Derivatives(
        value=float(weight @ np.log(p)),
        scores=np.bincount(winner, weight * d, items) - np.bincount(loser, weight * d, items),
        logits=np.bincount(who, weight * g, people),
        feature_weights=sum_per_feature(who, weight * z, features, feature_weights),
        scores_fisher=np.bincount(winner, fisher * d * d, items) + np.bincount(loser, fisher * d * d, items),
        logits_fisher=np.bincount(who, fisher * g * g, people),
        feature_weights_fisher=sum_per_feature(who, fisher * z * z, features**2, feature_weights),
        scores_curvature=np.bincount(winner, second[0], items) + np.bincount(loser, second[0], items),
        logits_curvature=np.bincount(who, second[2], people),
    )
    return AnswerCurvature(shard, tuple(second)), found


def sum_per_feature(who: AnyArray, column: Any, features: AnyArray, feature_weights: AnyArray) -> AnyArray:
    """Sum of column × feature for each annotator and feature."""
    out = np.empty_like(feature_weights)
    for f in range(feature_weights.shape[1]):
        out[:, f] = np.bincount(who, column * features[:, f], len(feature_weights))
    return out


@compiled(sigmoid_pair, crowd_bt, crowd_bt_probit, variance_bt, factor_bt)
def _evaluate_loop(  # type: ignore[no-untyped-def]
    winner,
    loser,
    annotator,
    weight,
    features,
    scores,
    logits,
    feature_weights,
    formula,
    second,
    score_gradient,
    logit_gradient,
    weight_gradient,
    score_fisher,
    logit_fisher,
    weight_fisher,
    score_curvature,
    logit_curvature,
):
    value = 0.0
    count = features.shape[1]
    for row in range(len(winner)):
        i, j, k, w = winner[row], loser[row], annotator[row], weight[row]
        margin, logit, bias = scores[i] - scores[j], logits[k], 0.0
        if formula == 0:
            p, other, d, g, z, dd, dg, gg, gz, zz = crowd_bt(margin, logit, bias)
        elif formula == 1:
            p, other, d, g, z, dd, dg, gg, gz, zz = crowd_bt_probit(margin, logit, bias)
        elif formula == 2:
            p, other, d, g, z, dd, dg, gg, gz, zz = variance_bt(margin, logit, bias)
        else:
            for f in range(count):
                bias += features[row, f] * feature_weights[k, f]
            p, other, d, g, z, dd, dg, gg, gz, zz = factor_bt(margin, logit, bias)
        p, other = max(p, 1e-300), max(other, 1e-300)
        value += w * np.log(p)
        inverse = 1.0 / p
        d, g = d * inverse, g * inverse
        score_gradient[i] += w * d
        score_gradient[j] -= w * d
        logit_gradient[k] += w * g
        by_margin, by_logit = w * (d * d - dd * inverse), w * (g * g - gg * inverse)
        second[0, row] = by_margin
        second[1, row] = w * (d * g - dg * inverse)
        second[2, row] = by_logit
        score_curvature[i] += by_margin
        score_curvature[j] += by_margin
        logit_curvature[k] += by_logit
        fisher = w * p / other
        score_fisher[i] += fisher * d * d
        score_fisher[j] += fisher * d * d
        logit_fisher[k] += fisher * g * g
        if formula == 3:
            z *= inverse
            second[3, row] = w * d * z
            second[4, row] = w * (g * z - gz * inverse)
            second[5, row] = w * (z * z - zz * inverse)
            for f in range(count):
                x = features[row, f]
                weight_gradient[k, f] += w * z * x
                weight_fisher[k, f] += fisher * (z * x) ** 2
    return value


def _evaluate_crowd_bt(
    winner: AnyArray,
    loser: AnyArray,
    annotator: AnyArray,
    weight: AnyArray,
    scores: AnyArray,
    logits: AnyArray,
    second: AnyArray,
) -> tuple[float, AnyArray, AnyArray]:
    """A faster compiled pass for `crowd_bt`: value; then gradient, Fisher and curvature diagonal by score and by logit.

    With a = eˢ of the winner and b = eˢ of the loser, P = η·a/(a+b) + (1−η)·b/(a+b). The exponentials are taken once
    per item and once per annotator, and one logarithm serves sixteen answers. Fills `second`.
    """
    # what a row reads and writes for an item or an annotator lies side by side in memory
    items = np.stack((np.exp(scores), *np.zeros((3, len(scores)))), axis=1)
    honest = 1.0 / (1.0 + np.exp(-logits))
    lying = 1.0 / (1.0 + np.exp(logits))
    people = np.stack((honest, lying, *np.zeros((3, len(logits)))), axis=1)
    value = _crowd_bt_loop(winner, loser, annotator, weight, items, people, second, _FACTORS)
    return value, np.ascontiguousarray(items[:, 1:].T), np.ascontiguousarray(people[:, 2:].T)


@compiled()
def _crowd_bt_loop(winner, loser, annotator, weight, items, people, second, factors):  # type: ignore[no-untyped-def]
    value, product = 0.0, 1.0
    for row in range(len(winner)):
        w = weight[row]
        better, worse, person = items[winner[row]], items[loser[row]], people[annotator[row]]
        honest, lying = person[0], person[1]
        inverse = 1.0 / (better[0] + worse[0])
        won, lost = better[0] * inverse, worse[0] * inverse
        side, doubt, unsure, lead = honest - lying, honest * lying, won * lost, won - lost
        p = honest * won + lying * lost
        inverse_p = 1.0 / p
        # log P₁ + … + log P₁₆ = log(P₁ ⋯ P₁₆): one logarithm for sixteen answers of weight 1
        if w == 1.0:
            product *= p
        else:
            value += w * np.log(p)
        if row % factors == factors - 1:
            value += np.log(product)
            product = 1.0
        d = side * unsure
        by_margin, by_logit = d * inverse_p, doubt * lead * inverse_p
        gradient = w * by_margin
        better[1] += gradient
        worse[1] -= gradient
        person[2] += w * by_logit
        curvature = w * (by_margin * by_margin + d * lead * inverse_p)
        logit_curvature = w * (by_logit * by_logit + side * by_logit)
        second[0, row] = curvature
        second[1, row] = w * (by_margin * by_logit - 2.0 * doubt * unsure * inverse_p)
        second[2, row] = logit_curvature
        # Fisher information: the opposite answer has the remaining probability
        fisher = w * p / (honest * lost + lying * won)
        by_score = fisher * by_margin * by_margin
        better[2] += by_score
        worse[2] += by_score
        better[3] += curvature
        worse[3] += curvature
        person[3] += fisher * by_logit * by_logit
        person[4] += logit_curvature
    return value + np.log(product)


def quality_derivatives(shard: Answers, scores: AnyArray, quality: AnyArray, formula: int) -> tuple[AnyArray, AnyArray]:
    """Gradient and curvature of the log-likelihood by each η itself, for the two Crowd-BT formulas."""
    margin = scores[shard.winner] - scores[shard.loser]
    won, lost = _truthful_probabilities(margin, formula)
    eta = quality[shard.annotator]
    ratio = (won - lost) / np.maximum(eta * won + (1.0 - eta) * lost, MIN_PROBABILITY)
    people = len(quality)
    gradient = np.bincount(shard.annotator, shard.weight * ratio, people)
    return gradient, np.bincount(shard.annotator, shard.weight * ratio**2, people)


def _truthful_probabilities(margin: AnyArray, formula: int) -> tuple[AnyArray, AnyArray]:
    """Probabilities that a truthful annotator prefers the winner, and the loser."""
    if formula == CROWD_BT:
        return sigmoid(margin), sigmoid(-margin)
    return np.exp(log_normal_cdf(margin * ROOT_HALF)), np.exp(log_normal_cdf(-margin * ROOT_HALF))
