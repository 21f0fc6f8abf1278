"""Thurstonian pairwise preferences (Wang et al. 2016): expertise depends on the hidden domain of a query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import Comparisons, Judgments
from crowdrank.engines import LOCAL, Engine
from crowdrank.errors import SettingError
from crowdrank.inference.mcmc import Samples, effective_sample_size, r_hat, sample_until
from crowdrank.models.base import FitOptions, Model, build_ranking, check_connected, diagnose, require_kind
from crowdrank.models.thurstonian.layout import judgment_counts
from crowdrank.models.thurstonian.sampler import (
    INTERVAL_LEVEL,
    PosteriorDraws,
    TransferredPrior,
    attach_domains,
    mean_and_interval,
    state_to_draw,
)
from crowdrank.results import Convergence, Ranking, Uncertainty

# Share of the scores whose R̂ must be below the target.
_DIAGNOSED_SHARE = 0.95
# Sweeps of the first round: fewer if there are many judgments, to limit the number of updates of judgments.
_MAX_INITIAL_SWEEPS, _MIN_INITIAL_SWEEPS, _INITIAL_JUDGMENT_UPDATES = 400, 100, 4_000_000
# Default limits: sweeps of a chain, and updates of judgments, of a third of a microsecond each. Looking at all domains
# of a query now and then costs as much as a sweep if there are this many domains.
_MAX_SWEEPS, _MIN_SWEEPS, _MAX_JUDGMENT_UPDATES, _DOMAINS_PER_UPDATE = 3_000, 10, 75_000_000, 40
# Target R̂ if the first round has the maximum number of sweeps, and if it has fewer.
_R_HAT, _R_HAT_LARGE = 1.05, 1.2
# Expertise assumed for judgments without annotators.
_DEFAULT_EXPERTISE = 1.0


@dataclass(frozen=True, kw_only=True)
class TPP(Model):
    """Thurstonian pairwise preferences: queries have hidden domains, annotators have an expertise in each of them.

    Reads comparisons. Learns the scores of the items, the domain and the difficulty of each query, and the expertise of
    each annotator in each domain, which is negative if they answer in reverse. Scores are posterior means, in units of
    their standard deviation over all items. Ties are dropped.

    Parameters
    ----------
    domains : int or "auto", default "auto"
        Number of domains, at most one per query. "auto" chooses the number with the largest evidence; with
        `inference="mcem"` it is ten, as in the paper.
    inference : {"posterior", "mcem"}, default "posterior"
        Sample the posterior with Markov chain Monte Carlo, or compute the published Monte Carlo EM estimate.
    expertise : {"each", "shared"}, default "each"
        Expertise per annotator and domain, or one per domain for all annotators (the paper's TPPUNIEXP). "shared" needs
        `inference="mcem"`.
    difficulty : {"each", "shared"}, default "each"
        Difficulty per query, or one for all queries (TPPUNIDIFF). "shared" needs `inference="mcem"`.
    chains : int, default 2
        Number of Markov chains; at least 2.
    draws : int, default 250
        Maximum number of draws kept per chain, evenly spaced; at least 10.
    r_hat : float or "auto", default "auto"
        Chains have converged if R̂ of 95 % of the scores is below this value. "auto" is 1.05 up to 10,000 judgments and
        1.2 above, where 1.05 would take several times as long.
    max_sweeps : int or "auto", default "auto"
        Maximum number of sweeps per chain, at least 10. Warns if R̂ is still above `r_hat`. "auto" is 3,000, and fewer
        with more than about 20,000 judgments, so that a fit takes about a minute at most.
    seed : int, default 0
        Seed of all random draws.

    Notes
    -----
    Query l has a domain m_l, a difficulty δ_l² and true scores s. Annotator k perceives every item of the query once,
    and answers with further noise that depends on their expertise τ in the domain:

        u = s + δ_l e,   e ~ N(0, 1)
        P(k prefers a to b) = Φ(τ_km (u_a − u_b) / √2),   m = m_l

    The priors are s ~ N(0, ω²), τ ~ N(1, 1.5²), m ~ Multinomial(θ), δ² ~ gamma(3/2, 3/2), ω² ~ inverse gamma(1, 4) and
    θ ~ Dirichlet(1, …, 1).

    Negating the scores of a domain and the expertise of everyone in it leaves the likelihood unchanged. The sign is
    chosen so that most judgments of the domain are expected to be right.

    References
    ----------
    X. Wang, J. Wang, L. Jie, C. Zhai, Y. Chang (2016). Blind men and the elephant: Thurstonian pairwise preference for
    ranking in crowdsourcing. ICDM.

    Examples
    --------
    >>> from crowdrank.simulation import domain_crowd
    >>> votes = domain_crowd(queries=10, items=4, annotators=5, domains=1, sparsity=0.8, seed=1).judgments
    >>> ranking = TPP().fit(votes)
    >>> ranking.convergence.converged
    True
    >>> ranking.domains
    <Domains: 1, of 10 queries and 5 annotators>
    >>> ranking.domains.queries_frame().columns
    ['query', 'difficulty', 'difficulty_low', 'difficulty_high', 'domain', 'probability']
    """

    reads: ClassVar[type] = Comparisons
    distributable: ClassVar[bool] = True
    models_annotators: ClassVar[bool] = True
    samples: ClassVar[bool] = True
    drops_ties: ClassVar[bool] = True

    domains: int | Literal["auto"] = "auto"
    inference: Literal["posterior", "mcem"] = "posterior"
    expertise: Literal["each", "shared"] = "each"
    difficulty: Literal["each", "shared"] = "each"
    chains: int = 2
    draws: int = 250
    r_hat: float | Literal["auto"] = "auto"
    max_sweeps: int | Literal["auto"] = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.domains != "auto" and (isinstance(self.domains, str) or self.domains < 1):
            raise SettingError(f'domains must be at least 1, or "auto", got {self.domains!r}.')
        if self.inference not in ("posterior", "mcem"):
            raise SettingError(f'inference must be "posterior" or "mcem", got {self.inference!r}.')
        for name, choice in (("expertise", self.expertise), ("difficulty", self.difficulty)):
            if choice not in ("each", "shared"):
                raise SettingError(f'{name} must be "each" or "shared", got {choice!r}.')
            if choice == "shared" and self.inference != "mcem":
                raise SettingError(f'{name}="shared" is a variant of the published method. Set inference="mcem".')
        for name, count, least in (
            ("chains", self.chains, 2),
            ("draws", self.draws, 10),
            ("max_sweeps", _MIN_SWEEPS if self.max_sweeps == "auto" else self.max_sweeps, _MIN_SWEEPS),
        ):
            if isinstance(count, str) or count < least:
                raise SettingError(f"{name} must be at least {least}, got {count!r}.")
        if self.r_hat != "auto" and (isinstance(self.r_hat, str) or not self.r_hat > 1):
            raise SettingError(f'r_hat must be above 1, or "auto", got {self.r_hat!r}.')

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        comparisons = self._checked(judgments)
        if self.inference == "mcem":
            from crowdrank.models.thurstonian.mcem import fit_mcem

            return fit_mcem(self, comparisons)
        return self._sample(comparisons, options.engine)

    def update(self, ranking: Ranking, judgments: Judgments, *, engine: Engine = LOCAL) -> Ranking:
        """Rank new queries, with what an earlier fit has learned about annotators and domains as the prior.

        Parameters
        ----------
        ranking : Ranking
            A ranking by `TPP` with `inference="posterior"`, or one that `update` returned.
        judgments : Comparisons
            Judgments on the new queries. New annotators get the default prior.
        engine : Engine
            Where the chains run.

        Returns
        -------
        Ranking
            The new queries only, with the same domains.
        """
        return self._sample(self._checked(judgments), engine, TransferredPrior.from_ranking(ranking))

    def _checked(self, judgments: Judgments) -> Comparisons:
        comparisons = require_kind(Comparisons, judgments, self)
        decided = comparisons.take(np.flatnonzero(comparisons.outcome))
        check_connected(diagnose(decided if len(decided) else comparisons), has_prior=True)
        return comparisons

    def _sample(self, comparisons: Comparisons, engine: Engine, transferred: TransferredPrior | None = None) -> Ranking:
        from crowdrank.models.thurstonian.sampler import Sampler

        count = None if self.domains == "auto" else self.domains
        sampler = Sampler.of(comparisons, count, self.seed, transferred)
        size, judgments = len(comparisons.items), len(sampler.layout.winner_utility)
        samples, sweeps = sample_until(
            sampler.init,
            sampler.tune,
            sampler.run,
            partial(state_to_draw, sampler),
            chains=self.chains,
            initial_sweeps=_initial_sweeps(judgments),
            max_sweeps=self._max_sweeps(judgments, sampler.start.expertise.shape[1]),
            draws=self.draws,
            seed=self.seed,
            converged=lambda so_far: _score_r_hat(so_far, size) < self._target_r_hat(judgments),
            engine=engine,
        )
        draws = PosteriorDraws.from_matrix(samples.pooled, comparisons.items, *sampler.start.expertise.shape)
        counts = judgment_counts(sampler.layout, len(sampler.start.expertise))
        return self._build(comparisons, draws, samples, sweeps, counts)

    def _max_sweeps(self, judgments: int, domains: int) -> int:
        if self.max_sweeps != "auto":
            return self.max_sweeps
        updates = max(1.0, judgments * (1.0 + domains / _DOMAINS_PER_UPDATE))
        return int(np.clip(_MAX_JUDGMENT_UPDATES // updates, _MIN_SWEEPS, _MAX_SWEEPS))

    def _target_r_hat(self, judgments: int) -> float:
        if self.r_hat != "auto":
            return self.r_hat
        return _R_HAT if judgments * _MAX_INITIAL_SWEEPS <= _INITIAL_JUDGMENT_UPDATES else _R_HAT_LARGE

    def _build(
        self, comparisons: Comparisons, draws: PosteriorDraws, samples: Samples, sweeps: int, counts: IntArray
    ) -> Ranking:
        scores = draws.scores
        reached = _score_r_hat(samples, scores.shape[1])
        unit = "of R̂ above 1, so the chains have not converged"
        converged = reached < self._target_r_hat(int(counts.sum()))
        convergence = Convergence(converged, sweeps, reached - 1.0, unit, "raise max_sweeps")
        method = f"{len(scores):,} posterior draws of scores, annotators and domains"
        parameters = {
            "domains": float(draws.expertise.shape[2]),
            "spread": float(draws.spread.mean()),
            "r_hat": reached,
            "effective_size": _score_effective_sample_size(samples, scores.shape[1]),
            "accepted": samples.acceptance_rate,
        }
        ranking = build_ranking(
            self,
            comparisons,
            scores.mean(axis=0),
            parameters=parameters,
            convergence=convergence,
            measure=lambda: Uncertainty(scores, scores.std(axis=0), method, sampled=True),
        )
        return attach_domains(
            ranking,
            comparisons,
            mean_and_interval(draws.expertise, INTERVAL_LEVEL),
            mean_and_interval(draws.difficulty, INTERVAL_LEVEL),
            draws.membership,
            counts,
            mean_and_interval(draws.quality(counts), 0.95),
        )

    def predict(self, ranking: Ranking, comparisons: Comparisons) -> FloatArray:
        """Probabilities of left, tie and right for each comparison, averaged over the posterior.

        Parameters
        ----------
        ranking : Ranking
            A ranking by this model.
        comparisons : Comparisons
            Comparisons of the same items by the same annotators. Their outcomes are ignored.

        Returns
        -------
        array of comparisons × 3
        """
        from scipy.special import ndtr

        domains, query = ranking.domains, comparisons.items.query[comparisons.left]
        who = np.zeros(len(comparisons), np.int64) if comparisons.annotator is None else comparisons.annotator
        named = len(domains.annotators) > 0
        expertise = domains.expertise[0] if named else np.full((1, len(domains)), _DEFAULT_EXPERTISE)
        tau, difficulty = expertise[who], domains.difficulty[0][query, None]
        # Perception noise integrated out: Φ(τ d / √(2 (1 + τ² δ²))).
        slope = ranking.parameters["spread"] * tau / np.sqrt(2.0 * (1.0 + tau**2 * difficulty))
        draws = ranking.scores[None] if self.inference == "mcem" else ranking.uncertainty.draws
        left_wins = np.zeros(len(comparisons))
        for scores in draws:
            difference = scores[comparisons.left] - scores[comparisons.right]
            left_wins += np.sum(domains.membership[query] * ndtr(slope * difference[:, None]), axis=1) / len(draws)
        return np.stack((left_wins, np.zeros(len(left_wins)), 1 - left_wins), axis=1)


def _initial_sweeps(judgments: int) -> int:
    return int(np.clip(_INITIAL_JUDGMENT_UPDATES // max(1, judgments), _MIN_INITIAL_SWEEPS, _MAX_INITIAL_SWEEPS))


def _score_effective_sample_size(samples: Samples, size: int) -> float:
    """Effective sample size that 95 % of the scores exceed."""
    sizes = effective_sample_size(samples.draws[..., :size])
    count = float(samples.draws.shape[0] * samples.draws.shape[1])
    return count if np.all(np.isnan(sizes)) else float(np.nanquantile(sizes, 1.0 - _DIAGNOSED_SHARE))


def _score_r_hat(samples: Samples, size: int) -> float:
    """R̂ that 95 % of the scores stay below."""
    values = r_hat(samples.draws[..., :size])
    return 1.0 if np.all(np.isnan(values)) else float(np.nanquantile(values, _DIAGNOSED_SHARE))
