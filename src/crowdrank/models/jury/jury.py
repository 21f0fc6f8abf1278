"""Jury: scores from judges who err together, with quality learnt from gold or from consistency with oneself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.data import Comparisons, EncodedSideInformation, Items, Judgments
from crowdrank.errors import SettingError
from crowdrank.models.base import (
    FitOptions,
    Model,
    build_ranking,
    check_connected,
    diagnose,
    require_kind,
    with_annotators,
)
from crowdrank.models.jury.factors import (
    Cells,
    Factors,
    ItemFactors,
    TruthDirection,
    effective_number,
    find_direction,
    fit_factors,
    fit_items,
    make_cells,
)
from crowdrank.results import Ranking, Uncertainty

_MAX_DRAWS, _DRAWN_SCORES = 1000, 4_000_000
# Standard deviation of a judge's agreement with the truth around what its loadings say.
_OWN_SPREAD = 0.1
# Variance that is left of the difference of a gold pair: its order is known, not its size.
_GOLD_VARIANCE = 0.05
# Clearly fewer: the judges answer as if they were at most this share of their number.
_CLEARLY_FEWER = 0.5


@dataclass(frozen=True, kw_only=True)
class Jury(Model):
    """Scores from judges who err together, such as language models; quality comes from gold answers or consistency.

    Parameters
    ----------
    seed : int, default 0
        Seed of the draws behind standard errors and intervals. Scores do not depend on it.

    Notes
    -----
    The mean answer of judge a to pair p = (i, j), over both orders, is y = λ_a·z_p + e with z_p = F_i − F_j + v_p: two
    factors of the items and of the pair, which every judge sees in a mixture of its own, and an error e of the judge,
    part of which repeats when it is asked again. So two orders, or repeats, are one judgment seen twice. One direction
    β among the factors is the truth, sᵢ = β·Fᵢ + ξᵢ; whatever the judges share across it are shared errors, which no
    number of judges averages out. ξ is what no judge sees.

    β has a normal prior: without gold, λ_a·β (agreement of judge a with the truth) is expected to be
    0.8 (r_a / max r)³ ± 0.35, where r_a is the correlation between two answers of judge a to one pair. Judges who
    contradict themselves are not believed; consistent ones are, which is an assumption. If nobody answered a pair
    twice, it is 0.5 for all. Gold pairs are observations β·(Fᵢ − Fⱼ) ± 0.5 > 0, so ten of them outweigh the prior; if
    nobody answered a pair twice, the prior is twice as wide beside gold, since it is a guess.
    Loadings are estimated by EM, with two factors, or one if there are fewer than three judges or judges share fewer
    than 30 pairs on average.

    `parameters` of the ranking has `effective_judges`, how many judges with independent errors err as these do.

    Examples
    --------
    >>> votes = Comparisons.of(["a", "b", "a"], ["b", "c", "c"], ["a", "b", "a"], annotator=["x", "y", "x"])
    >>> Jury().fit(votes).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Comparisons
    models_annotators: ClassVar[bool] = True
    accepts_side_information: ClassVar[bool] = True

    seed: int = 0

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = require_kind(Comparisons, judgments, self)
        if options.side_information.better:
            raise SettingError("jury cannot use an order of annotators (annotator_order=). Give their quality instead.")
        check_connected(diagnose(comparisons), has_prior=True)
        found = fit_jury(comparisons, options.side_information)
        ranking = build_ranking(
            self,
            comparisons,
            found.scores,
            measure=lambda: found.measure(self.seed),
            parameters={
                "effective_judges": found.effective_judges,
                "factors": float(found.factors.count),
                "pair_share": found.item_factors.pair_share,
            },
        )
        general = ranking.notes
        ranking = ranking.with_parts(notes=lambda: [*found.notes(), *general])
        return with_annotators(ranking, comparisons, lambda: {"quality": found.quality(self.seed)})


@dataclass(frozen=True, eq=False)
class JuryFit:
    """The fitted parts of the model.

    Parameters
    ----------
    cells : Cells
        The answers.
    items : Items
        The items.
    factors : Factors
        Loadings of the judges.
    item_factors : ItemFactors
        Factors of the items.
    direction : TruthDirection
        The direction of the truth.
    known : EncodedSideInformation
        Gold pairs, and what is known about judges.
    """

    cells: Cells
    items: Items
    factors: Factors
    item_factors: ItemFactors
    direction: TruthDirection
    known: EncodedSideInformation

    def with_side_information(self, known: EncodedSideInformation) -> JuryFit:
        """The same answers with other gold pairs: only the direction of the truth is found anew."""
        direction = _direction(self.cells, self.factors, self.item_factors, known)
        return replace(self, direction=direction, known=known)

    @cached_property
    def effective_judges(self) -> float:
        weight = self.factors.answer_weight(self.cells)
        judges = self.cells.n_annotators
        answered = np.bincount(self.cells.annotator, minlength=judges)
        typical = (np.bincount(self.cells.annotator, weight, judges) + 1) / (answered + 1)
        return effective_number(self.factors, self.direction, typical)

    @property
    def errs_together(self) -> bool:
        """Whether the judges answer as if they were clearly fewer."""
        return self.cells.n_annotators > 2 and self.effective_judges <= _CLEARLY_FEWER * self.cells.n_annotators

    @cached_property
    def scores(self) -> FloatArray:
        return np.asarray(self._condition_on_gold((self.item_factors.mean @ self.direction.mean)[None, :])[0])

    def notes(self) -> list[str]:
        """A warning if the judges may be wrong together, and whom the scores rest on."""
        if not self.errs_together:
            return []
        advice = "Ten gold pairs (gold_pairs=) would show whom to believe."
        if self.known.has_gold:
            advice = "Gold pairs decide whom to believe."
        elif np.isfinite(self.cells.reliability).all():
            advice = f"The most consistent judges are believed, which may be wrong. {advice}"
        return [f"{self.warning} {advice}"]

    @property
    def warning(self) -> str:
        """The effective number of judges in words."""
        judges, effective = self.cells.n_annotators, max(1, round(self.effective_judges))
        return f"The {judges:,} judges share errors and are worth only about {effective:,} independent ones."

    def measure(self, seed: int) -> Uncertainty:
        """Draws of the scores: of the direction, the factors of the items, and what no judge sees."""
        rng = np.random.default_rng(seed)
        size, count = len(self.items), int(np.clip(_DRAWN_SCORES // max(len(self.items), 1), 200, _MAX_DRAWS))
        direction = self.direction.draw(rng, count)
        if self._consensus_is_truth:
            direction = np.broadcast_to(self.direction.mean, direction.shape)
        factors = np.empty((count, size, self.factors.count))
        for code, covariance in enumerate(self.item_factors.covariance):
            own = self.items.of_query(code)
            root = np.linalg.cholesky(covariance)
            noise = rng.standard_normal((count, len(root))) @ root.T
            factors[:, own] = self.item_factors.mean[own] + noise.reshape(count, -1, self.factors.count)
        hidden = np.sqrt((1 - (direction**2).sum(axis=1))[:, None] * self.hidden_share)
        draws = np.einsum("dik,dk->di", factors, direction) + hidden * rng.standard_normal((count, size))
        draws = self.items.centre(self._condition_on_gold(draws))
        return Uncertainty(draws, draws.std(axis=0), "posterior of the judges' factors", sampled=True)

    @property
    def _consensus_is_truth(self) -> bool:
        """One factor and no gold: nothing speaks of shared errors, so the consensus is the truth, as elsewhere."""
        return self.factors.count == 1 and not self.known.has_gold

    @cached_property
    def hidden_share(self) -> FloatArray:
        """Variance of what no judge sees, per item: independent in each pair, so the mean over its pairs has less."""
        if self._consensus_is_truth:
            return np.zeros(len(self.items))
        pairs = np.bincount(np.concatenate((self.cells.first, self.cells.second)), minlength=len(self.items))
        return np.asarray(0.5 / np.maximum(pairs, 1))

    def _condition_on_gold(self, draws: FloatArray) -> FloatArray:
        """Move scores (rows) so that the gold pairs hold, by Matheron's rule: normal prior, linear observations."""
        better, worse = self.known.gold_better, self.known.gold_worse
        draws = draws.copy()
        hidden = self.direction.unexplained * self.hidden_share
        for code in np.unique(self.items.query[better]):
            own = self.items.of_query(int(code))
            rows = np.flatnonzero(self.items.query[better] == code)
            size = own.stop - own.start
            prior = self.item_factors.along(self.direction.mean, int(code), size) + np.diag(hidden[own])
            pairs = np.zeros((len(rows), size))
            pairs[np.arange(len(rows)), better[rows] - own.start] = 1.0
            pairs[np.arange(len(rows)), worse[rows] - own.start] = -1.0
            gain = np.linalg.solve(pairs @ prior @ pairs.T + _GOLD_VARIANCE * np.eye(len(rows)), pairs @ prior)
            # Only what falls short of the known order is moved: a pair that already has it keeps its difference.
            short = np.maximum(1.0 - draws[:, own] @ pairs.T, 0.0)
            draws[:, own] += short @ gain
        return draws

    def quality(self, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Probability that an answer of each judge is right, with its 95 % interval."""
        rng = np.random.default_rng(seed)
        direction = self.direction.draw(rng, _MAX_DRAWS)
        agreement = direction @ self.factors.loadings.T
        own_mean, own_variance = self._own_agreement()
        agreement = agreement + own_mean + np.sqrt(own_variance) * rng.standard_normal(agreement.shape)
        drawn = np.clip((1 + agreement) / 2, 0.01, 0.99)
        mean = np.clip((1 + self.factors.loadings @ self.direction.mean + own_mean) / 2, 0.01, 0.99)
        low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
        return mean, np.minimum(low, mean), np.maximum(high, mean)

    def _own_agreement(self) -> tuple[FloatArray, FloatArray]:
        """A judge's agreement beyond its loadings: mean and variance, from its own answers to gold pairs."""
        judges = self.cells.n_annotators
        expected = self.factors.loadings @ self.direction.mean
        gold = _gold_answers(self.cells, self.known)
        asked = np.isfinite(gold)
        number = np.bincount(self.cells.annotator, asked, judges)
        agreed = np.bincount(self.cells.annotator, np.where(asked, gold, 0.0), judges)
        precision = number / np.clip(1 - expected**2, 0.1, 1.0)
        variance = 1 / (1 / _OWN_SPREAD**2 + precision)
        mean = variance * precision * (agreed / np.maximum(number, 1) - expected)
        return mean, variance


def fit_jury(comparisons: Comparisons, known: EncodedSideInformation) -> JuryFit:
    """Fit all parts, one after the other."""
    cells = make_cells(comparisons)
    factors = fit_factors(cells)
    items = fit_items(cells, comparisons.items, *factors.evidence(cells))
    return JuryFit(cells, comparisons.items, factors, items, _direction(cells, factors, items, known), known)


def _direction(cells: Cells, factors: Factors, items: ItemFactors, known: EncodedSideInformation) -> TruthDirection:
    gold = items.mean[known.gold_better] - items.mean[known.gold_worse]
    return find_direction(factors, cells.reliability, known, gold)


def _gold_answers(cells: Cells, known: EncodedSideInformation) -> FloatArray:
    """For each cell of a gold pair, the mean answer towards the better item; NaN for other pairs."""
    truth = np.full(cells.n_pairs, np.nan)
    if known.has_gold:
        size = int(cells.second.max()) + 1
        codes = cells.first * size + cells.second
        low, high = np.minimum(known.gold_better, known.gold_worse), np.maximum(known.gold_better, known.gold_worse)
        place = np.searchsorted(codes, low.astype(np.int64) * size + high)
        place = np.minimum(place, cells.n_pairs - 1)
        found = codes[place] == low.astype(np.int64) * size + high
        truth[place[found]] = np.where(known.gold_better < known.gold_worse, 1.0, -1.0)[found]
    return np.asarray(cells.answer * truth[cells.pair])
