"""Online Crowd-BT (Chen et al. 2013, §4.1): scores N(μ, σ²) and qualities Beta(α, β), moments matched per answer.

Beliefs about one query can also be taken from a fit of tpp, for choosing questions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from crowdrank.arrays import FloatArray
from crowdrank.errors import DataError, DataWarning, SettingError, issue_warning
from crowdrank.online import moments
from crowdrank.online.beliefs import Answers, Beliefs, ColumnarModel, OneAnswer, Vocabulary, check_positive
from crowdrank.results import Domains, Ranking

_MAX_CLOSED_VARIANCE = 2.0
"""Prior variance up to which the closed form is usable: beyond it, variances soon explode or freeze at κ."""
# The logistic function of 1.702·x approximates the normal distribution function best.
_LOGISTIC = 1.702
_N_NODES = 32
_MIN_VARIANCE = 1e-6


@dataclass(frozen=True, kw_only=True)
class CrowdBT(ColumnarModel):
    """Crowd-BT, one answer at a time: scores of items and quality of annotators are updated together.

    Parameters
    ----------
    prior_scale : float, default 1.0
        Standard deviation of the normal prior on scores.
    quality_prior : tuple of two floats, default (10.0, 1.0)
        Beta prior on an annotator's quality: pseudo-counts of true and of false answers.
    moments : {"exact", "closed"}, default "exact"
        Compute the posterior moments by numerical integration, or by the paper's formulas (eq. 12-18). The formulas
        are usable for variances up to 2.
    win_probability : {"stable", "taylor"}, default "stable"
        How the closed form approximates C₁, the probability that a truthful annotator prefers the left item: by
        MacKay's scaling, or by the Taylor series of the paper (eq. 19).
    ties : {"drop", "half"}, default "half"
        Ignore ties, or count each as half an answer each way.

    Notes
    -----
    The beliefs have the columns ``mean`` and ``variance`` of items, and ``alpha`` and ``beta`` of annotators. The
    formulas are in `crowdrank.online.moments`.

    References
    ----------
    Chen, Bennett, Collins-Thompson, Horvitz (2013): Pairwise ranking aggregation in a crowdsourced setting. WSDM.

    Examples
    --------
    >>> from crowdrank.data import Comparison
    >>> model = CrowdBT()
    >>> beliefs = model.update(model.start(["a", "b"]), Comparison("a", "b", "a", "ann"))
    >>> beliefs.mean.round(3).tolist(), beliefs.quality.round(3).tolist()
    ([0.297, -0.297], [0.909])
    """

    prior_scale: float = 1.0
    quality_prior: tuple[float, float] = (10.0, 1.0)
    moments: Literal["exact", "closed"] = "exact"
    win_probability: Literal["stable", "taylor"] = "stable"
    ties: Literal["drop", "half"] = "half"

    def __post_init__(self) -> None:
        check_positive(self, "prior_scale")
        if len(self.quality_prior) != 2 or not 0 < min(self.quality_prior) <= max(self.quality_prior) < np.inf:
            raise SettingError(f"quality_prior must be two positive numbers, got {self.quality_prior!r}.")
        if self.moments not in ("exact", "closed"):
            raise SettingError(f"moments must be 'exact' or 'closed', got {self.moments!r}.")
        if self.win_probability not in ("stable", "taylor"):
            raise SettingError(f"win_probability must be 'stable' or 'taylor', got {self.win_probability!r}.")
        if self.ties not in ("drop", "half"):
            raise SettingError(f"ties must be 'drop' or 'half', got {self.ties!r}.")
        if self.moments == "closed" and self.prior_scale**2 > _MAX_CLOSED_VARIANCE:
            issue_warning(
                f"The closed form is for variances up to {_MAX_CLOSED_VARIANCE:g}, but prior_scale="
                f'{self.prior_scale:g} starts with a variance of {self.prior_scale**2:g}. Set moments="exact".',
                DataWarning,
                stacklevel=3,
            )

    @property
    def new_item(self) -> Mapping[str, float]:
        return {"mean": 0.0, "variance": self.prior_scale**2}

    @property
    def new_annotator(self) -> Mapping[str, float]:
        return {"alpha": self.quality_prior[0], "beta": self.quality_prior[1]}

    def update_columns(
        self,
        answers: Answers | OneAnswer,
        item_columns: Mapping[str, FloatArray],
        annotator_columns: Mapping[str, FloatArray],
    ) -> int:
        outside = answers.loop(moments.fold)(
            *answers,
            item_columns["mean"],
            item_columns["variance"],
            annotator_columns["alpha"],
            annotator_columns["beta"],
            self.moments == "exact",
            self.win_probability == "taylor",
            self.ties == "half",
        )
        if outside:
            issue_warning(
                f"Eq. 19 left [0, 1] in {outside} of {len(answers.left)} judgments; the stable form was used there. "
                f'The variances are too large for a Taylor series. Set win_probability="stable".',
                DataWarning,
                stacklevel=4,
            )
        return answers.n_ties if self.ties == "drop" else 0


def beliefs_from_ranking(ranking: Ranking, query: object) -> Beliefs:
    """Express a fit of tpp as Crowd-BT beliefs about one query.

    Parameters
    ----------
    ranking : Ranking
        A ranking fitted by tpp.
    query : object
        The label of the query.

    Returns
    -------
    Beliefs
        Mean and variance of the scores of the query's items, and ``alpha`` and ``beta`` of the annotators there.

    Notes
    -----
    Scores are rescaled so that an annotator without noise answers like the truthful annotator of Crowd-BT. Quality is
    how often other annotators do, on two items that the noiseless one orders correctly in 84 of 100 cases.
    """
    if "spread" not in ranking.parameters:
        raise DataError(f"A ranking by {ranking.model} has no domains: fit tpp first.")
    domains, place = ranking.domains, ranking.items.query_code(query)
    items = ranking.items.of_query(place)
    noise = np.sqrt(domains.difficulty[0][place])
    factor = _LOGISTIC * ranking.parameters["spread"] / (np.sqrt(2.0) * noise)
    mean, variance = _quality_moments(domains, place, noise)
    count = mean * (1.0 - mean) / variance - 1.0
    scores = ranking.uncertainty.draws[:, items] * factor
    label = str(ranking.items.queries[place]) if ranking.items.has_queries else ""
    return Beliefs(
        items=Vocabulary.of(ranking.items.labels[items], label),
        annotators=Vocabulary.of(domains.annotators),
        item_columns={"mean": scores.mean(axis=0), "variance": scores.var(axis=0)},
        annotator_columns={"alpha": mean * count, "beta": (1.0 - mean) * count},
        n_judgments=int(domains.n_judgments.sum()),
    )


def _quality_moments(domains: Domains, place: int, noise: float) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of each annotator's quality, over the posterior of τ and of the query's domain."""
    from scipy.special import ndtr, ndtri

    # Gauss–Hermite quadrature over τ, whose posterior is taken as normal
    node, weight = np.polynomial.hermite_e.hermegauss(_N_NODES)
    middle, low, high = domains.expertise
    std = (high - low) / (2.0 * ndtri(0.5 + 0.5 * domains.level))
    tau = middle[..., None] + std[..., None] * node
    truthful = ndtr(1.0)
    agreement = ndtr(tau * noise / np.sqrt(1.0 + (tau * noise) ** 2))
    quality = (agreement - (1.0 - truthful)) / (2.0 * truthful - 1.0)
    share = domains.membership[place][:, None] * weight / weight.sum()
    mean = np.sum(quality * share, axis=(1, 2))
    variance = np.sum(quality**2 * share, axis=(1, 2)) - mean**2
    mean = np.clip(mean, 0.001, 0.999)
    return mean, np.clip(variance, _MIN_VARIANCE, 0.999 * mean * (1.0 - mean))
