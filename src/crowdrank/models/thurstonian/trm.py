"""Thurstonian ranking model (Thurstone 1927; Wang et al. 2016, §II): a list is the order of perceived utilities."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from crowdrank.arrays import BoolArray, FloatArray, IntArray
from crowdrank.data import Items, Judgments, Rankings
from crowdrank.engines import Engine
from crowdrank.errors import DataError, SettingError
from crowdrank.inference.mcmc import Samples, r_hat, sample, sample_until
from crowdrank.models.base import FitOptions, Model, build_ranking, check_connected, diagnose, require_kind
from crowdrank.models.bootstrap import bootstrap
from crowdrank.models.thurstonian import trm_kernels
from crowdrank.models.thurstonian.trm_kernels import Lists, Prior, State, build_lists
from crowdrank.results import Convergence, Domains, Ranking, Uncertainty

# Chains have converged if R̂ is below this.
_R_HAT = 1.1
# Sweeps per draw.
_THIN = 3
# With more updates of rows (sweeps × rows of lists) than this, chains run in rounds, the first of half as many.
_MOST_UPDATES, _MIN_SWEEPS = 40_000_000, 60
# EM has converged if no score changes by more than this, in units of the noise.
_EM_TOLERANCE = 0.1
# Sweeps of one E-step that are discarded, and that are kept.
_E_STEP_WARMUP = 5
_E_STEP_SWEEPS = 20


@dataclass(frozen=True, kw_only=True)
class TRM(Model):
    """Thurstonian ranking model for whole lists, partial lists and top-k lists.

    Reads rankings. Everyone who makes a list perceives its items with normal noise, and sorts them by what they
    perceive. Harder queries have more noise. The unit of scores is the noise of a query of mean difficulty. Items that
    share a position of a list are not ordered among themselves.

    Parameters
    ----------
    inference : {"posterior", "mcem"}, default "posterior"
        Posterior means by Gibbs sampling, or maximum likelihood by the published Monte Carlo EM, without a prior.
    chains : int, default 4
        Number of Markov chains; at least 2. Warns if R̂ of any score or difficulty is 1.1 or more (with more than
        40,000 rows of lists: of more than 5 % of them).
    draws : int, default 250
        Draws kept per chain, one in three sweeps; at least 10.
    warmup : int, default 250
        Sweeps discarded at the start of each chain. With more than 40,000 rows of lists, chains instead run in rounds
        that become longer, and end as soon as they have converged.
    rounds : int, default 100
        Iterations of EM, at least 4. Scores are means over the last quarter of them, because each is noisy.
    seed : int, default 0
        Seed of all random draws.

    Notes
    -----
    Every item of a query has a true score s, and a list is the order of

        u = s + δ e,   e ~ N(0, 1)

    with the difficulty δ² of the query, which is one on average over queries. The priors are s ~ N(0, ω²),
    δ² ~ inverse gamma(2, 1) and ω² ~ inverse gamma(2, 4). On lists of two items, the model is Thurstone's.

    References
    ----------
    L. L. Thurstone (1927). A law of comparative judgment. Psychological Review 34.
    X. Wang, J. Wang, L. Jie, C. Zhai, Y. Chang (2016). Blind men and the elephant: Thurstonian pairwise preference for
    ranking in crowdsourcing. ICDM.

    Examples
    --------
    >>> lists = Rankings.of_lists([[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]], [["a"], ["c"], ["b"]]])
    >>> TRM().fit(lists).table(uncertainty=False)["item"].to_list()
    ['a', 'b', 'c']
    """

    reads: ClassVar[type] = Rankings
    distributable: ClassVar[bool] = True
    samples: ClassVar[bool] = True

    inference: Literal["posterior", "mcem"] = "posterior"
    chains: int = 4
    draws: int = 250
    warmup: int = 250
    rounds: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        if self.inference not in ("posterior", "mcem"):
            raise SettingError(f'inference must be "posterior" or "mcem", got {self.inference!r}.')
        for name, value, least in (
            ("chains", self.chains, 2),
            ("draws", self.draws, 10),
            ("warmup", self.warmup, 0),
            ("rounds", self.rounds, 4),
        ):
            if value < least:
                raise SettingError(f"{name} must be at least {least}, got {value}.")

    def _fit(self, judgments: Judgments, options: FitOptions) -> Ranking:
        rankings = require_kind(Rankings, judgments, self)
        sampler = self.sampler(rankings)
        check_connected(diagnose(rankings), has_prior=True)
        if self.inference == "mcem":
            return self._fit_em(rankings, sampler)
        return self._sample(rankings, sampler, options.engine)

    def sampler(self, rankings: Rankings) -> Sampler:
        """Sampler for the lists that order at least two items, each repeated as often as its weight says."""
        if not np.any(rankings.place):
            raise DataError("No list orders any two items, so there is nothing to rank.")
        repeated = rankings.take(_repeated(rankings))
        lists = build_lists(repeated.item, repeated.place, repeated.offsets, repeated.items.starts)
        return Sampler(lists, rankings.items)

    def _sample(self, rankings: Rankings, sampler: Sampler, engine: Engine) -> Ranking:
        samples, sweeps = self._samples(sampler, engine)
        reached = _typical_r_hat(samples) if self._in_rounds(sampler) else samples.r_hat
        scores = samples.pooled[:, : len(rankings.items)]
        unit = "of R̂ above 1, so the chains have not converged"
        convergence = Convergence(reached < _R_HAT, sweeps, reached - 1.0, unit, "raise draws and warmup")
        method = f"{len(scores):,} posterior draws of scores and difficulties"
        parameters = {
            "prior_scale": float(np.exp(samples.pooled[:, -1].mean())),
            "r_hat": reached,
            "effective_size": samples.effective_sample_size,
        }
        ranking = build_ranking(
            self,
            rankings,
            scores.mean(axis=0),
            parameters=parameters,
            convergence=convergence,
            measure=lambda: Uncertainty(scores, scores.std(axis=0), method, sampled=True),
        )
        if len(rankings.items.queries) == 1:  # the difficulty of a single query is the unit
            return ranking
        return ranking.with_parts(domains=lambda: _domains(samples, rankings.items))

    def _samples(self, sampler: Sampler, engine: Engine) -> tuple[Samples, int]:
        """Draws, and sweeps per chain. Where a sweep is long, chains end as soon as they have converged."""
        sweeps, extract, chains = self.warmup + _THIN * self.draws, partial(_state_to_draw, sampler), self.chains
        if not self._in_rounds(sampler):
            samples = sample(
                sampler.init,
                sampler.run,
                extract,
                chains=chains,
                warmup=self.warmup,
                draws=self.draws,
                thin=_THIN,
                seed=self.seed,
                engine=engine,
            )
            return samples, sweeps
        return sample_until(
            sampler.init,
            _unchanged,
            sampler.run,
            extract,
            converged=lambda so_far: _typical_r_hat(so_far) < _R_HAT,
            chains=chains,
            initial_sweeps=max(_MIN_SWEEPS, _MOST_UPDATES // (2 * len(sampler.lists.item))),
            max_sweeps=sweeps,
            draws=self.draws,
            seed=self.seed,
            engine=engine,
        )

    def _in_rounds(self, sampler: Sampler) -> bool:
        return (self.warmup + _THIN * self.draws) * len(sampler.lists.item) > _MOST_UPDATES

    def _fit_em(self, rankings: Rankings, sampler: Sampler) -> Ranking:
        scores, change = em_scores(sampler, self.rounds, self.seed)
        unit = "of the noise from where it was a quarter of the rounds before"
        return build_ranking(
            self,
            rankings,
            scores,
            convergence=Convergence(change < _EM_TOLERANCE, self.rounds, change, unit, "raise rounds"),
            measure=lambda: bootstrap(rankings, self._refit_em, seed=self.seed),
        )

    def _refit_em(self, rankings: Rankings) -> FloatArray:
        if not np.any(rankings.place):  # a resample of few lists may order nothing
            return np.zeros(len(rankings.items))
        return em_scores(self.sampler(rankings), self.rounds, self.seed)[0]


# The sampler: starting values, sweeps, and iterations of the published Monte Carlo EM


class Info(NamedTuple):
    acceptance_rate: float


@dataclass(frozen=True)
class Sampler:
    """Sampler of the posterior of TRM, for `crowdrank.inference.mcmc`, and its EM.

    Parameters
    ----------
    lists : Lists
    items : Items
    prior : Prior
    """

    lists: Lists
    items: Items
    prior: Prior = field(default_factory=Prior)

    @cached_property
    def majority_scores(self) -> FloatArray:
        """Mean share of other items below an item minus the share above it, shrunk towards zero."""
        lists = self.lists
        rows = np.diff(lists.position_starts[lists.list_starts])
        ends = np.repeat(lists.position_starts[lists.list_starts[1:]], rows)
        begins = np.repeat(lists.position_starts[lists.list_starts[:-1]], rows)
        below = ends - lists.position_starts[lists.position + 1]
        above = lists.position_starts[lists.position] - begins
        won = np.bincount(lists.item, (below - above) / np.maximum(ends - begins - 1, 1), len(self.items))
        return np.asarray(won / (np.diff(lists.row_starts) + 1.0))

    @cached_property
    def has_lists(self) -> BoolArray:
        """Which queries have a list. Only these determine the unit of scores."""
        return np.asarray(np.diff(self.lists.query_starts) > 0)

    def init(self, rng: np.random.Generator) -> State:
        """Scores around the majority, and perceived utilities in the order of their lists."""
        scores = 2.0 * self.majority_scores + rng.normal(scale=0.3, size=len(self.items))
        lists = self.lists
        perceived = scores[lists.item] + rng.normal(size=len(lists.item))
        row_list = np.searchsorted(lists.list_starts, lists.position, side="right")
        perceived = perceived[np.lexsort((-perceived, row_list))]
        return State(scores, perceived, np.ones(len(self.items.queries)), np.full(1, 4.0))

    def run(self, rng: np.random.Generator, state: State, sweeps: int) -> tuple[State, Info]:
        """Run a number of sweeps from a state, which stays as it is. No move is ever rejected."""
        new = State._make(part.copy() for part in state)
        trm_kernels.run(rng, self.lists, self.prior, new, sweeps)
        return new, Info(1.0)

    def em_step(self, rng: np.random.Generator, state: State) -> State:
        """One iteration of the published EM: eq. 27 for perceived utilities, 18 for scores, 19 for difficulty.

        Scores stay in units of the noise. `normalize` applies the unit and zero of eq. 16 and 17.
        """
        lists, items = self.lists, self.items
        new = State._make(part.copy() for part in state)
        mean, square = trm_kernels.expected_utilities(rng, lists, new, _E_STEP_WARMUP, _E_STEP_SWEEPS)
        count = np.diff(lists.row_starts)
        scores = np.bincount(lists.item, mean, len(items)) / np.maximum(count, 1)
        residual = np.bincount(lists.item, square, len(items)) - count * scores**2
        listed, total, rows, noise = (
            np.bincount(items.query, column, len(items.queries)) for column in (count > 0, scores, count, residual)
        )
        # An item without a list gets the mean of its query.
        scores = np.where(count > 0, scores, (total / np.maximum(listed, 1))[items.query])
        noise = np.where(self.has_lists, noise / np.maximum(rows, 1), 1.0)
        root = np.sqrt(noise)[items.query]
        return State(scores / root, new.perceived / root[lists.item], state.difficulty * noise, state.score_variance)

    def normalize(self, state: State) -> tuple[FloatArray, FloatArray]:
        """Centred scores and difficulty in the published unit: δ² has mean one."""
        difficulty = state.difficulty / state.difficulty[self.has_lists].mean()
        return self.items.centre(state.scores * np.sqrt(difficulty[self.items.query])), difficulty


def difficulty_estimates(samples: Samples, items: Items) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Posterior mean of δ² of each query, and the ends of its 90 % interval."""
    draws = np.exp(samples.pooled[:, len(items) : -1])
    low, high = np.quantile(draws, (0.05, 0.95), axis=0)
    return draws.mean(axis=0), low, high


def _domains(samples: Samples, items: Items) -> Domains:
    """Difficulty of the queries, in a single domain without annotators."""
    empty = np.zeros((0, 1))
    return Domains(
        annotators=np.array([], object),
        queries=items.queries,
        expertise=(empty, empty, empty),
        membership=np.ones((len(items.queries), 1)),
        difficulty=difficulty_estimates(samples, items),
        n_judgments=np.zeros((0, 1), np.int64),
    )


def em_scores(sampler: Sampler, rounds: int, seed: int) -> tuple[FloatArray, float]:
    """Scores by EM, averaged over the last quarter of the rounds, and their largest change since the third quarter."""
    rng, quarter = np.random.default_rng(seed), rounds // 4
    state = sampler.init(rng)
    earlier, last, scores = np.zeros((3, len(sampler.items)))
    for remaining in range(rounds, 0, -1):
        state = sampler.em_step(rng, state)
        if remaining <= quarter:
            last += sampler.items.centre(state.scores) / quarter
            scores += sampler.normalize(state)[0] / quarter
        elif remaining <= 2 * quarter:
            earlier += sampler.items.centre(state.scores) / quarter
    return scores, float(np.max(np.abs(last - earlier)))


def _typical_r_hat(samples: Samples) -> float:
    """R̂ that 95 % of the scores and difficulties stay below: the largest of thousands is large by chance."""
    values = r_hat(samples.draws)
    return 1.0 if np.all(np.isnan(values)) else float(np.nanquantile(values, 0.95))


def _unchanged(_: np.random.Generator, state: State) -> State:
    """This sampler has nothing to tune."""
    return state


def _state_to_draw(sampler: Sampler, state: State) -> FloatArray:
    scores, difficulty = sampler.normalize(state)
    variance = state.score_variance * difficulty[0] / state.difficulty[0]
    return np.concatenate((scores, np.log(difficulty), 0.5 * np.log(variance)))


def _repeated(rankings: Rankings) -> IntArray:
    """Indices of the lists that order something, each repeated as often as its weight says."""
    repeats = np.where(rankings.place[rankings.offsets[1:] - 1] > 0, rankings.weights, 0.0)
    fractional = np.flatnonzero(repeats != np.round(repeats))
    if len(fractional):
        row = int(fractional[0])
        raise DataError(
            f"List {row + 1}: TRM needs whole numbers as weights, got {repeats[row]}. Round the weights or drop them."
        )
    return np.repeat(np.arange(len(rankings)), repeats.astype(np.int64))
