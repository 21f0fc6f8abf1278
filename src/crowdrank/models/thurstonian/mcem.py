"""Thurstonian pairwise preferences by Monte Carlo EM, as Wang et al. 2016 publish it: their Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from crowdrank.arrays import AnyArray, FloatArray
from crowdrank.data import Comparisons, Items
from crowdrank.errors import SettingError
from crowdrank.models.base import build_ranking
from crowdrank.models.bootstrap import bootstrap
from crowdrank.models.thurstonian.layout import Sights
from crowdrank.models.thurstonian.mcem_kernels import Draws, Latent, Parameters, bounded, climb, log_joint, walk
from crowdrank.models.thurstonian.postprocess import given_in, with_domains
from crowdrank.results import Convergence, Ranking

# Of the mean of δ², at least: where all sights agree it would vanish, and the likelihood grow without bound.
_LEAST_DIFFICULTY = 1e-3
_PATIENCE = 3
_REPLICATES = 20


@dataclass(frozen=True)
class Found:
    """Where EM stopped."""

    scores: FloatArray
    """The lowest of each query is 0 (17)."""
    difficulty: FloatArray
    """δ² of each query, of mean 1 (16)."""
    shares: FloatArray
    """θ, of each domain."""
    memberships: FloatArray
    """The chance that each query is in each domain; queries × domains."""
    expertise: FloatArray
    """τ, annotators × domains; below 0 where they lie."""
    log_likelihood: FloatArray
    """The mean of ln P(D, Z | Θ) (6) over the draws of each E-step, at the Θ that they were made with."""
    likeliest: AnyArray
    """The likeliest domain of each query, at the start and after each iteration; iterations + 1 × queries."""
    converged: bool


@dataclass(frozen=True, kw_only=True)
class MonteCarloEM:
    """The paper's estimate; what the paper leaves open is settled so that its tables come out.

    The start is random: any domain for each query, kept through the first E-step. Scores start at the head count, so
    that the answer is normally the right way up; every τ and δ² starts at 1. In each M-step τ takes one step of
    Newton's method, at most 1 long: the paper calls its Newton inexact. An exact one sends every τ that a few
    unanimous answers tell of far out at once; the domain drawn given Δs (8) is then stuck, and domains die.
    The likelihood has no top, as δ² may vanish and |τ| grow, so more iterations are not better.
    """

    domains: int = 10
    expertise: Literal["each", "shared"] = "each"
    """τ of each annotator in each domain, or one for all annotators (the paper's TPPUNIEXP)."""
    difficulty: Literal["each", "shared"] = "each"
    """δ² of each query, or one for all (TPPUNIDIFF)."""
    iterations: int = 40
    """At most."""
    sweeps: int = 50
    """Kept of the chain in each E-step, …"""
    warmup: int = 10
    """… after so many that are forgotten."""
    tolerance: float = 0.05
    """It has settled when the median τ moves by less, as a share, and no query changes its domain, three times on end;
    scores always move, as they carry the chain's noise."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.domains < 1:
            raise SettingError(f"domains must be at least 1, got {self.domains}.")
        for name in ("expertise", "difficulty"):
            if getattr(self, name) not in ("each", "shared"):
                raise SettingError(f"{name} must be each or shared, got {getattr(self, name)!r}.")
        if self.iterations < 1 or self.sweeps < 1 or self.warmup < 0:
            raise SettingError("iterations and sweeps must be at least 1 and warmup not negative.")
        if not self.tolerance >= 0:
            raise SettingError(f"tolerance must not be negative, got {self.tolerance}.")

    def find(self, sights: Sights, items: Items, annotators: int) -> Found:
        """From judgments as `sights_of` lays them out."""
        people = annotators
        if self.expertise == "shared":
            people, sights = 1, _by_one(sights)
        rng = np.random.default_rng(self.seed)
        at, latent = self._start(rng, sights, items, people)
        likeliest, calm = [latent.domain.copy()], 0
        values: list[float] = []
        judged = np.diff(sights.judgment_starts) > 0
        while len(values) < self.iterations and calm < _PATIENCE:
            draws = walk(rng, sights, at, latent, self.warmup, self.sweeps)
            if not values:
                # all τ are still the same, so the sights were drawn whatever the domains
                latent.domain[:] = likeliest[0]
                draws = draws._replace(domain=np.tile(likeliest[0], (self.sweeps, 1)))
            values.append(log_joint(sights, draws, at))
            members = np.mean(draws.domain[..., None] == np.arange(self.domains), axis=0)
            before, (at, latent) = at, _rescale(self._update(sights, items, draws, at, members), latent, sights, items)
            likeliest.append(np.argmax(members, axis=1))
            same = np.array_equal(likeliest[-1][judged], likeliest[-2][judged])
            calm = calm + 1 if same and _moved(before.expertise, at.expertise) < self.tolerance else 0
        expertise = np.array(np.broadcast_to(at.expertise, (annotators, self.domains)))
        return Found(
            at.scores,
            at.difficulty,
            at.shares,
            members,
            expertise,
            np.array(values),
            np.array(likeliest),
            calm == _PATIENCE,
        )

    def _start(self, rng: np.random.Generator, sights: Sights, items: Items, people: int) -> tuple[Parameters, Latent]:
        queries, judgments = len(items.queries), len(sights.winner)
        won, lost = (np.bincount(sights.item[side], minlength=len(items)) for side in (sights.winner, sights.loser))
        scores = 3.0 * (won - lost) / (won + lost + 1.0)
        shares, expertise = np.full(self.domains, 1.0 / self.domains), np.ones((people, self.domains))
        latent = Latent(rng.integers(self.domains, size=queries), scores[sights.item], np.ones(judgments))
        return _rescale(Parameters(scores, np.ones(queries), shares, expertise), latent, sights, items)

    def _update(self, sights: Sights, items: Items, draws: Draws, at: Parameters, members: FloatArray) -> Parameters:
        """The M-step (18) to (22). An item that nobody judged goes with the others of its query."""
        queries, query = len(items.queries), items.query[sights.item]
        seen = draws.seen.mean(axis=0)
        others = _mean_by(query, seen, queries, 0.0)
        scores = _mean_by(sights.item, seen, len(items), others[items.query])
        blur = np.mean((draws.seen - scores[sights.item]) ** 2, axis=0)
        usual = blur.mean() if len(blur) else 1.0
        difficulty = np.full(queries, usual)
        if self.difficulty == "each":
            difficulty = _mean_by(query, blur, queries, usual)
        difficulty = np.maximum(difficulty, _LEAST_DIFFICULTY * difficulty.mean())
        return Parameters(scores, difficulty, members.mean(axis=0), climb(sights, draws, at.expertise, 1, longest=1.0))


def _by_one(sights: Sights) -> Sights:
    """As if one annotator had seen all that each of them saw."""
    one, of_sight = np.zeros_like(sights.annotator), np.zeros_like(sights.annotator_of_sight)
    return sights._replace(annotator=one, annotator_of_sight=of_sight)


def _rescale(at: Parameters, latent: Latent, sights: Sights, items: Items) -> tuple[Parameters, Latent]:
    """Mean δ² to 1 (16) and the lowest score of each query to 0 (17), by (15)."""
    lowest = np.full(len(items.queries), np.inf)
    np.minimum.at(lowest, items.query, at.scores)
    unit, base = np.sqrt(at.difficulty.mean()), lowest[items.query]
    scores = (at.scores - base) / unit
    return (
        Parameters(scores, at.difficulty / unit**2, at.shares, bounded(at.expertise * unit)),
        Latent(latent.domain, (latent.seen - base[sights.item]) / unit, latent.noisy / unit),
    )


def _mean_by(codes: AnyArray, values: FloatArray, size: int, empty: Any) -> FloatArray:
    """The mean of the values of each code; `empty` where there are none."""
    count = np.bincount(codes, minlength=size)
    return np.where(count > 0, np.bincount(codes, values, size) / np.maximum(count, 1), empty)


def _moved(before: FloatArray, after: FloatArray) -> float:
    return float(np.median(np.abs(after / before - 1.0)))


def conclude_published(model: Any, comparisons: Comparisons) -> Ranking:
    """The published estimate as a result, errors by refitting; "auto" is the paper's ten domains."""
    from crowdrank.models.thurstonian.sampler import laid_out

    items = comparisons.items
    domains = min(10 if model.domains == "auto" else model.domains, len(items.queries))
    method = MonteCarloEM(domains=domains, expertise=model.expertise, difficulty=model.difficulty, seed=model.seed)
    people = max(1, len(comparisons.annotators))

    def find(some: Comparisons) -> tuple[Found, FloatArray, float]:
        found = method.find(laid_out(some), items, people)
        scores = items.centre(found.scores)
        spread = max(float(np.sqrt(np.mean(scores**2))), 1e-12)
        return found, scores / spread, spread

    found, scores, spread = find(comparisons)
    unit, remedy = "as a share of the median τ", "the published method may never settle"
    ranking = build_ranking(
        model,
        comparisons,
        scores,
        parameters={"domains": float(domains), "spread": spread},
        log_likelihood=float(found.log_likelihood[-1]),
        measure=lambda: bootstrap(comparisons, lambda some: find(some)[1], seed=model.seed, replicates=_REPLICATES),
        convergence=Convergence(found.converged, len(found.log_likelihood), method.tolerance, unit, remedy),
    )
    given = given_in(laid_out(comparisons), people)
    return with_domains(ranking, comparisons, _same(found.expertise), _same(found.difficulty), found.memberships, given)


def _same(estimate: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """An estimate without an interval."""
    return estimate, estimate, estimate
