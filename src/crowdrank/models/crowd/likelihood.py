"""How an annotator bends an answer: P(winner over loser) from the margin d between them, a gate g of the annotator's
own, and the pull z of irrelevant features towards the winner.

reliable   Chen et al. 2013 (Crowd-BT)         P = η·σ(d) + (1−η)·σ(−d),       η = σ(g)
probit     the same after Thurstone (§3.1)     P = η·Φ(d/√2) + (1−η)·Φ(−d/√2), η = σ(g)
scaled     Volkovs & Zemel 2012 (Variance-BT)  P = σ(κ·d),                      κ = exp(g)
pulled     Bugakova et al. 2019 (factorBT)     P = η·σ(d) + (1−η)·σ(z),         η = σ(g), z = ⟨x, r⟩

Each formula returns P, 1 − P, its slopes ∂P by d, g and z, and its bends ∂²P by dd, dg, gg, gz and zz (dz is always
zero); elementwise, so that one text serves arrays and compiled loops. The curvature of a row is −∂² log P; it may
be negative in some direction, so its diagonal is given Fisher's way, too: (∂P)²/(P(1−P)).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from crowdrank.arrays import AnyArray, Int32Array
from crowdrank.engines.compilation import COMPILE_MIN_ROWS, compiled
from crowdrank.inference.pair_curvature import PairCurvature
from crowdrank.inference.special import HALF_LOG_TWO_PI, ROOT_HALF, log_cdf, teach_numba
from crowdrank.models.crowd import crowd_bt_kernel

RELIABLE, PROBIT, SCALED, PULLED = 0, 1, 2, 3

# Below this a probability is as good as none; the logarithm stays finite.
LEAST = 1e-300


class Answers(NamedTuple):
    """One shard: who won, who lost, who said so, its weight, and features leaning to the winner (rows × features)."""

    winner: Int32Array
    loser: Int32Array
    annotator: Int32Array
    weight: AnyArray
    features: AnyArray
    start: int = 0
    """Where this shard begins in the whole."""

    @property
    def rows(self) -> int:
        return len(self.winner)

    def split(self, parts: int) -> list[Answers]:
        cuts = np.linspace(0, self.rows, parts + 1).astype(np.int64)
        return [self._between(int(a), int(b)) for a, b in pairwise(cuts)]

    def joined(self, more: Answers) -> Answers:
        """These, then others."""
        winner, loser, who, weight, features = (np.concatenate(pair) for pair in zip(self[:5], more[:5], strict=True))
        return Answers(winner, loser, who, weight, features, self.start)

    def by_annotator(self) -> Answers:
        """In the order of their annotators, so that what is known of one is read once."""
        order = np.argsort(self.annotator, kind="stable")
        weight = self.weight if self.weight.strides == (0,) else self.weight[order]
        return Answers(
            self.winner[order], self.loser[order], self.annotator[order], weight, self.features[order], self.start
        )

    def _between(self, a: int, b: int) -> Answers:
        rows = slice(a, b)
        who, features = self.annotator[rows], self.features[rows]
        return Answers(self.winner[rows], self.loser[rows], who, self.weight[rows], features, self.start + a)


class Rows(NamedTuple):
    """A shard of curvature: −∂² log P of each answer by (d,d), (d,g), (g,g) and, with features, (d,z), (g,z), (z,z)."""

    answers: Answers
    bends: tuple[AnyArray, ...]

    @property
    def rows(self) -> int:
        return self.answers.rows


class LikelihoodTerms(NamedTuple):
    """Log-likelihood, its gradient and Fisher's diagonal, in scores, gates and pulls; the curvature's own diagonal."""

    value: float
    scores: AnyArray
    gates: AnyArray
    pulls: AnyArray
    scores_bend: AnyArray
    gates_bend: AnyArray
    pulls_bend: AnyArray
    scores_own: AnyArray
    gates_own: AnyArray


def sigmoid(x: Any) -> Any:
    shrink = np.exp(-np.abs(x))
    ahead = (x >= 0) * 1.0
    return (ahead + (1.0 - ahead) * shrink) / (1.0 + shrink)


def both(x: Any) -> Any:
    """σ(x) and σ(−x), for one exponential."""
    shrink = np.exp(-np.abs(x))
    more = 1.0 / (1.0 + shrink)
    less = shrink * more
    ahead = (x >= 0) * 1.0
    behind = 1.0 - ahead
    return ahead * more + behind * less, ahead * less + behind * more


def reliable(d: Any, gate: Any, pull: Any) -> Any:
    won, lost = both(d)
    honest, lying = both(gate)
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


def probit(d: Any, gate: Any, pull: Any) -> Any:
    x = d * ROOT_HALF
    won, lost = np.exp(log_cdf(x)), np.exp(log_cdf(-x))
    honest, lying = both(gate)
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


def scaled(d: Any, gate: Any, pull: Any) -> Any:
    scale = np.exp(gate)
    u = scale * d
    won, lost = both(u)
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


def pulled(d: Any, gate: Any, pull: Any) -> Any:
    won, lost = both(d)
    near, far = both(pull)
    caring, careless = both(gate)
    doubt = caring * careless
    return (
        caring * won + careless * near,
        caring * lost + careless * far,
        caring * won * lost,
        doubt * (won - near),
        careless * near * far,
        caring * won * lost * (lost - won),
        doubt * won * lost,
        doubt * (careless - caring) * (won - near),
        -doubt * near * far,
        careless * near * far * (far - near),
    )


FORMULAS = (reliable, probit, scaled, pulled)


def slopes(
    shard: Answers, scores: AnyArray, gates: AnyArray, pulls: AnyArray, formula: int
) -> tuple[Rows, LikelihoodTerms]:
    """One pass over a shard."""
    if shard.rows < COMPILE_MIN_ROWS:
        return _slopes_of_arrays(shard, scores, gates, pulls, formula)
    bends = np.empty((6 if formula == PULLED else 3, shard.rows), np.float32)
    if formula == RELIABLE and max(np.max(np.abs(scores)), np.max(np.abs(gates))) <= crowd_bt_kernel.FARTHEST:
        value, of_scores, of_gates = crowd_bt_kernel.plain_slopes(*shard[:4], scores, gates, bends)
        none = np.zeros_like(pulls)
        (slope, bend, own), (gate_slope, gate_bend, gate_own) = of_scores, of_gates
        return Rows(shard, tuple(bends)), LikelihoodTerms(
            value, slope, gate_slope, none, bend, gate_bend, none, own, gate_own
        )
    teach_numba()
    shapes = (scores.shape, gates.shape, pulls.shape)
    sums = [np.zeros(shape) for shape in (*shapes, *shapes, *shapes[:2])]
    value = _slopes_loop(*shard[:5], scores, gates, pulls, formula, bends, *sums)
    return Rows(shard, tuple(bends)), LikelihoodTerms(value, *sums)


def _slopes_of_arrays(
    shard: Answers, scores: AnyArray, gates: AnyArray, pulls: AnyArray, formula: int
) -> tuple[Rows, LikelihoodTerms]:
    winner, loser, who, weight, features, _ = shard
    pull = np.einsum("mf,mf->m", features, pulls[who]) if formula == PULLED else 0.0
    chance, other, d, g, z, dd, dg, gg, gz, zz = FORMULAS[formula](scores[winner] - scores[loser], gates[who], pull)
    chance, other = np.maximum(chance, LEAST), np.maximum(other, LEAST)
    d, g, z = d / chance, g / chance, z / chance
    bends = [weight * (d * d - dd / chance), weight * (d * g - dg / chance), weight * (g * g - gg / chance)]
    if formula == PULLED:
        bends += [weight * d * z, weight * (g * z - gz / chance), weight * (z * z - zz / chance)]
    fisher = weight * chance / other
    items, people = len(scores), len(gates)
    found = LikelihoodTerms(
        value=float(weight @ np.log(chance)),
        scores=np.bincount(winner, weight * d, items) - np.bincount(loser, weight * d, items),
        gates=np.bincount(who, weight * g, people),
        pulls=_per_feature(who, weight * z, features, pulls),
        scores_bend=np.bincount(winner, fisher * d * d, items) + np.bincount(loser, fisher * d * d, items),
        gates_bend=np.bincount(who, fisher * g * g, people),
        pulls_bend=_per_feature(who, fisher * z * z, features**2, pulls),
        scores_own=np.bincount(winner, bends[0], items) + np.bincount(loser, bends[0], items),
        gates_own=np.bincount(who, bends[2], people),
    )
    return Rows(shard, tuple(bends)), found


def _per_feature(who: AnyArray, column: Any, features: AnyArray, pulls: AnyArray) -> AnyArray:
    """Adds up, for each annotator and feature, a column times the feature."""
    out = np.empty_like(pulls)
    for f in range(pulls.shape[1]):
        out[:, f] = np.bincount(who, column * features[:, f], len(pulls))
    return out


@compiled(both, reliable, probit, scaled, pulled)
def _slopes_loop(  # type: ignore[no-untyped-def]
    winner,
    loser,
    annotator,
    weight,
    features,
    scores,
    gates,
    pulls,
    formula,
    bends,
    score_slope,
    gate_slope,
    pull_slope,
    score_bend,
    gate_bend,
    pull_bend,
    score_own,
    gate_own,
):
    value = 0.0
    count = features.shape[1]
    for row in range(len(winner)):
        i, j, k, w = winner[row], loser[row], annotator[row], weight[row]
        margin, gate, pull = scores[i] - scores[j], gates[k], 0.0
        if formula == 0:
            chance, other, d, g, z, dd, dg, gg, gz, zz = reliable(margin, gate, pull)
        elif formula == 1:
            chance, other, d, g, z, dd, dg, gg, gz, zz = probit(margin, gate, pull)
        elif formula == 2:
            chance, other, d, g, z, dd, dg, gg, gz, zz = scaled(margin, gate, pull)
        else:
            for f in range(count):
                pull += features[row, f] * pulls[k, f]
            chance, other, d, g, z, dd, dg, gg, gz, zz = pulled(margin, gate, pull)
        chance, other = max(chance, 1e-300), max(other, 1e-300)
        value += w * np.log(chance)
        share = 1.0 / chance
        d, g = d * share, g * share
        score_slope[i] += w * d
        score_slope[j] -= w * d
        gate_slope[k] += w * g
        own, own_of_gate = w * (d * d - dd * share), w * (g * g - gg * share)
        bends[0, row] = own
        bends[1, row] = w * (d * g - dg * share)
        bends[2, row] = own_of_gate
        score_own[i] += own
        score_own[j] += own
        gate_own[k] += own_of_gate
        fisher = w * chance / other
        score_bend[i] += fisher * d * d
        score_bend[j] += fisher * d * d
        gate_bend[k] += fisher * g * g
        if formula == 3:
            z *= share
            bends[3, row] = w * d * z
            bends[4, row] = w * (g * z - gz * share)
            bends[5, row] = w * (z * z - zz * share)
            for f in range(count):
                x = features[row, f]
                pull_slope[k, f] += w * z * x
                pull_bend[k, f] += fisher * (z * x) ** 2
    return value


def product(shard: Rows, scores: AnyArray, gates: AnyArray, pulls: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Curvature times a direction."""
    (winner, loser, who, _, features, _), bends = shard
    if shard.rows >= COMPILE_MIN_ROWS and len(bends) == 3:
        # what a row reads and writes of an item, or of an annotator, lies side by side
        items, people = (np.stack((column, np.zeros(len(column))), axis=1) for column in (scores, gates))
        _product_loop(winner, loser, who, *bends, items, people)
        return items[:, 1].copy(), people[:, 1].copy(), np.zeros_like(pulls)
    if shard.rows >= COMPILE_MIN_ROWS:
        out = np.zeros_like(scores), np.zeros_like(gates), np.zeros_like(pulls)
        _product_with_pulls_loop(winner, loser, who, features, *bends, scores, gates, pulls, *out)
        return out
    d, g = scores[winner] - scores[loser], gates[who]
    by_d, by_g, by_pull = bends[0] * d + bends[1] * g, bends[1] * d + bends[2] * g, np.zeros_like(pulls)
    if len(bends) > 3:
        z = np.einsum("mf,mf->m", features, pulls[who])
        by_d, by_g, by_z = by_d + bends[3] * z, by_g + bends[4] * z, bends[3] * d + bends[4] * g + bends[5] * z
        by_pull = _per_feature(who, by_z, features, pulls)
    size = len(scores)
    along = np.bincount(winner, by_d, size) - np.bincount(loser, by_d, size)
    return along, np.bincount(who, by_g, len(gates)), by_pull


@compiled()
def _product_loop(winner, loser, annotator, dd, dg, gg, items, people):  # type: ignore[no-untyped-def]
    for row in range(len(winner)):
        better, worse, person = items[winner[row]], items[loser[row]], people[annotator[row]]
        d, g = better[0] - worse[0], person[0]
        along = dd[row] * d + dg[row] * g
        better[1] += along
        worse[1] -= along
        person[1] += dg[row] * d + gg[row] * g


@compiled()
def _product_with_pulls_loop(  # type: ignore[no-untyped-def]
    winner, loser, annotator, features, dd, dg, gg, dz, gz, zz, scores, gates, pulls, score_out, gate_out, pull_out
):
    for row in range(len(winner)):
        i, j, k = winner[row], loser[row], annotator[row]
        d, g, z = scores[i] - scores[j], gates[k], 0.0
        for f in range(features.shape[1]):
            z += features[row, f] * pulls[k, f]
        along = dd[row] * d + dg[row] * g + dz[row] * z
        score_out[i] += along
        score_out[j] -= along
        gate_out[k] += dg[row] * d + gg[row] * g + gz[row] * z
        back = dz[row] * d + gz[row] * g + zz[row] * z
        for f in range(features.shape[1]):
            pull_out[k, f] += back * features[row, f]


def matrix(shard: Rows, items: int, annotators: int, features: int) -> tuple[AnyArray]:
    """The curvature as a full matrix, scores first, then gates, then pulls annotator by annotator."""
    (winner, loser, who, _, x, _), bends = shard
    size = items + annotators * (1 + features)
    # each row touches these parameters, with these slopes of (d, g, z)
    touched: list[tuple[Any, int, Any]] = [(winner, 0, 1.0), (loser, 0, -1.0), (items + who, 1, 1.0)]
    base = items + annotators + who.astype(np.int64) * features
    touched += [(base + f, 2, x[:, f]) for f in range(features)]
    kinds = {(0, 0): 0, (0, 1): 1, (1, 1): 2, (0, 2): 3, (1, 2): 4, (2, 2): 5}
    out = np.zeros(size * size)
    for first, a, by_first in touched:
        for second, b, by_second in touched:
            bend = bends[kinds[min(a, b), max(a, b)]]
            out += np.bincount(first.astype(np.int64) * size + second, bend * by_first * by_second, size * size)
    return (out.reshape(size, size),)


def blocks(shard: Rows, items: int, annotators: int, features: int) -> tuple[AnyArray, Any, AnyArray]:
    """The same in parts: items × items, items × annotators' parameters (sparse), and one small block an annotator.

    An annotator's parameters stand side by side here, the gate first.
    """
    from scipy.sparse import coo_array

    (winner, loser, who, _, x, _), bends = shard
    own = np.bincount(winner * np.int64(items) + loser, -bends[0], items * items).reshape(items, items)
    own = own + own.T
    own.flat[:: items + 1] -= own.sum(axis=1)
    width = 1 + features
    # how each answer bends by its margin and each parameter of its annotator, and by two of these
    by_margin = [bends[1], *(bends[3] * x[:, f] for f in range(features))]
    first = who.astype(np.int64) * width
    column = np.concatenate([first + n for n in range(width)] * 2)
    row = np.concatenate([np.tile(winner, width), np.tile(loser, width)])
    value = np.concatenate([*by_margin, *(-part for part in by_margin)])
    across = coo_array((value, (row, column)), shape=(items, annotators * width)).tocsr()
    small = np.empty((annotators, width, width))
    for a in range(width):
        for b in range(width):
            bend = bends[2] if a + b == 0 else bends[4] if a * b == 0 else bends[5]
            by_a, by_b = (1.0 if n == 0 else x[:, n - 1] for n in (a, b))
            small[:, a, b] = np.bincount(who, bend * by_a * by_b, annotators)
    return own, across, small


def by_truth(shard: Answers, scores: AnyArray, truth: AnyArray, formula: int) -> tuple[AnyArray, AnyArray]:
    """Slope and curvature of log P by η itself, one annotator at a time, for formulas whose gate is the logit of η."""
    margin = scores[shard.winner] - scores[shard.loser]
    won, lost = _truthful(margin, formula)
    eta = truth[shard.annotator]
    share = (won - lost) / np.maximum(eta * won + (1.0 - eta) * lost, LEAST)
    people = len(truth)
    slope = np.bincount(shard.annotator, shard.weight * share, people)
    return slope, np.bincount(shard.annotator, shard.weight * share**2, people)


def _truthful(margin: AnyArray, formula: int) -> tuple[AnyArray, AnyArray]:
    """The chances of a truthful answer for and against the winner."""
    if formula == RELIABLE:
        return sigmoid(margin), sigmoid(-margin)
    return np.exp(log_cdf(margin * ROOT_HALF)), np.exp(log_cdf(-margin * ROOT_HALF))


def margins(
    shard: Answers, scores: AnyArray, gates: AnyArray, pulls: AnyArray, formula: int
) -> tuple[PairCurvature, tuple[()]]:
    """Fisher's curvature by the margin alone, given the annotators: what ties two items together, never negative."""
    winner, loser, who, weight, features, _ = shard
    if shard.rows >= COMPILE_MIN_ROWS:
        teach_numba()
        tied = np.empty(shard.rows, np.float32)
        _margins_loop(winner, loser, who, weight, features, scores, gates, pulls, formula, tied)
        return PairCurvature(winner, loser, tied, shard.start), ()
    pull = np.einsum("mf,mf->m", features, pulls[who]) if formula == PULLED else 0.0
    chance, other, d, *_ = FORMULAS[formula](scores[winner] - scores[loser], gates[who], pull)
    bend = weight * d * d / (np.maximum(chance, LEAST) * np.maximum(other, LEAST))
    return PairCurvature(winner, loser, bend.astype(np.float32), shard.start), ()


@compiled(both, reliable, probit, scaled, pulled)
def _margins_loop(winner, loser, annotator, weight, features, scores, gates, pulls, formula, tied):  # type: ignore[no-untyped-def]
    for row in range(len(winner)):
        k = annotator[row]
        margin, gate, pull = scores[winner[row]] - scores[loser[row]], gates[k], 0.0
        if formula == 0:
            found = reliable(margin, gate, pull)
        elif formula == 1:
            found = probit(margin, gate, pull)
        elif formula == 2:
            found = scaled(margin, gate, pull)
        else:
            for f in range(features.shape[1]):
                pull += features[row, f] * pulls[k, f]
            found = pulled(margin, gate, pull)
        tied[row] = weight[row] * found[2] * found[2] / (max(found[0], 1e-300) * max(found[1], 1e-300))
