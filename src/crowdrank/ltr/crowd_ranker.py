"""Learning to rank from crowds (Wu et al. 2016, with corrections and extensions): the public estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.data import EncodedSideInformation, Rankings, SideInformation
from crowdrank.engines import LOCAL, Engine
from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.evaluation import Gold
from crowdrank.ltr.baselines import NO_EXPERTISE
from crowdrank.ltr.boosted import Boosted
from crowdrank.ltr.em import EM, EMResult, EStep, Sampler
from crowdrank.ltr.expertise import AnnotatorExpertise, annotator_expertise
from crowdrank.ltr.features import Features
from crowdrank.ltr.linear import Linear, Ranker, Scorer
from crowdrank.ltr.list_posterior import MAX_EXACT_ITEMS
from crowdrank.ltr.methods import (
    AUTO,
    EM_METHOD,
    POOLED,
    HeldOutScores,
    Method,
    by_name,
    learn_by_em,
    prefers_pooled,
    score_held_out,
    split_queries,
)
from crowdrank.ltr.ranking_function import RankingFunction
from crowdrank.ltr.training_set import CrowdLists, TrainingSet, build_training_set
from crowdrank.models.lists.plackett_luce_likelihood import RankedLists

Labels = Literal["auto", "map", "expected"]
Progress = Callable[[int], None]

RANKERS: dict[str, Callable[[], Ranker]] = {"linear": Linear, "lightgbm": Boosted}


@dataclass(frozen=True, kw_only=True)
class CrowdRanker:
    """Estimate true lists, annotators' expertise and a ranking function from annotators' lists.

    Parameters
    ----------
    ranker : str or Ranker, default "linear"
        Kind of ranking function: "linear", "lightgbm", or an object with a `fit` method (see `Ranker`).
    method : str, default "auto"
        How the function is learned, see `crowdrank.ltr.METHODS`. "auto" is "ltr-crowds", or "pooled" if that predicts
        the lists of held-out queries better (with fewer than 30 of them, by two standard errors), as it does if
        annotators err together. It is always "ltr-crowds" with side information, with true lists, or without held-out
        queries.
    side_information : SideInformation, optional
        Facts about the expertise θ of annotators. Lower θ is better; 0 means random lists.
    labels : {"auto", "map", "expected"}, default "auto"
        Lists that the function is trained on: the most probable one of each query ("map"), or all, weighted by their
        probability ("expected"). "auto" chooses on held-out queries.
    sampler : {"auto", "exact", "gibbs", "paper"}, default "auto"
        How the posterior of the true lists is computed: exact sums, Gibbs sampling, or the paper's Metropolis sampler.
        "auto" is exact for lists of up to 10 items, else Gibbs.
    top : int or None, default None
        k for top-k lists: items that a list leaves out are worse than its first k. None: nothing is known about items
        that a list leaves out.
    prior_lists : float, default 1.0
        Pseudo-lists of average expertise that are added to each annotator.
    draws : int, default 20
        Draws of each true list per iteration.
    held_out : float, default 0.2
        Fraction of the queries held out for validation and for choosing `labels`; 0 for none.
    iterations : int, default 15
        Maximum number of EM iterations.
    tolerance : float, default 0.02
        Stop when no θ changes by more, nor the scores by more than this fraction of their standard deviation.
    seed : int, default 0
        Seed of draws and of the held-out split.

    Notes
    -----
    The true list of a query follows a Plackett-Luce model with scores f(features); annotator j's list follows a Mallows
    model around the true list with dispersion θⱼ. EM alternates the posterior of the true lists with the estimates of θ
    and of the function f (ListMLE). The sign of θ is resolved so that most annotators are not reversed.

    Reference: Wu, You, Xia, Ma & Hu (2016), Listwise learning to rank from crowds.

    Examples
    --------
    >>> import crowdrank as cr
    >>> crowd = cr.simulation.list_crowd(
    ...     queries=30, items=8, annotators=5, labels="mallows", expertise="uniform(-0.6,-0.1)", first_expertise=0.5
    ... )
    >>> items = crowd.judgments.items
    >>> table = {"query": items.queries[items.query], "item": items.labels, **crowd.features}
    >>> function = CrowdRanker().fit(crowd.judgments, table)
    >>> function
    <RankingFunction of 2 features by ltr-crowds (linear)>
    >>> function.annotators.reversed
    ['annotator1']
    """

    ranker: str | Ranker = "linear"
    method: str = AUTO
    side_information: SideInformation = field(default_factory=SideInformation)
    labels: Labels = "auto"
    sampler: Sampler = "auto"
    top: int | None = None
    prior_lists: float = 1.0
    draws: int = 20
    held_out: float = 0.2
    iterations: int = 15
    tolerance: float = 0.02
    seed: int = 0

    def __post_init__(self) -> None:
        by_name(self.method)
        if isinstance(self.ranker, str) and self.ranker not in RANKERS:
            raise UnknownNameError("ranker", self.ranker, RANKERS)
        for name, kinds in (("labels", Labels), ("sampler", Sampler)):
            if getattr(self, name) not in get_args(kinds):
                raise SettingError(f"{name} must be one of {', '.join(get_args(kinds))}, got {getattr(self, name)!r}.")
        if self.top is not None and self.top < 1:
            raise SettingError(f"top must be at least 1, or None for full lists, got {self.top}.")
        if self.top is not None and self.sampler in ("exact", "paper"):
            raise SettingError(f"top={self.top} works only with sampler 'auto' or 'gibbs', got {self.sampler!r}.")
        for name in ("iterations", "draws"):
            if getattr(self, name) < 1:
                raise SettingError(f"{name} must be at least 1, got {getattr(self, name)}.")
        for name in ("prior_lists", "tolerance"):
            if getattr(self, name) < 0:
                raise SettingError(f"{name} must be zero or more, got {getattr(self, name)}.")
        if not 0 <= self.held_out <= 0.5:
            raise SettingError(f"held_out must lie between 0 and 0.5, got {self.held_out}.")

    def fit(
        self,
        lists: Rankings,
        features: Features | Any,
        truth: Rankings | Gold | None = None,
        progress: Progress = lambda step: None,
        engine: Engine = LOCAL,
    ) -> RankingFunction:
        """Learn a ranking function.

        Parameters
        ----------
        lists : Rankings
            The annotators' lists.
        features : Features or anything that `Features.of` accepts
            Features of the listed items.
        truth : Rankings or Gold, optional
            True lists of some queries.
        progress : callable, optional
            Called with the number of each finished iteration.
        engine : Engine, optional
            Where the posteriors of the true lists are computed.

        Returns
        -------
        RankingFunction
        """
        method = by_name(self.method)
        given = features if isinstance(features, Features) else Features.of(features)
        data = build_training_set(lists, given, truth, self.top)
        self._check_sizes(data.crowd)
        known = self.side_information.encode_annotators(lists.annotators, larger_is_better=False)
        method.check(self.method, known, truth is not None)
        em = self._em(known, engine)
        if method.linear_only and not isinstance(em.ranker, Linear):
            raise SettingError(f"The method {self.method} works only with ranker='linear'.")
        may_pool = self.method == AUTO and truth is None and not known.has_annotators
        name, labels, held_out = self._validate(method, em, data, may_pool, progress)
        result = by_name(name).run(replace(em, labels=labels), data.crowd, data.features, progress)
        result.convergence.warn(name)
        if name == POOLED and method.models_annotators:
            result = result._replace(theta=self._theta_given(result.scorer, em, data))
        return RankingFunction(
            scorer=result.scorer,
            names=given.names,
            method=name,
            settings=self._settings(name, labels),
            expertise=self._expertise(lists, data.crowd, result, known) if method.models_annotators else None,
            validation=held_out.validation() if held_out else None,
            convergence=result.convergence,
            notes=(*data.notes, *self._choices(name, labels, held_out)),
        )

    def _check_sizes(self, crowd: CrowdLists) -> None:
        longest = max(query.size for query in crowd.queries)
        if self.sampler == "exact" and longest > MAX_EXACT_ITEMS:
            raise SettingError(
                f"sampler='exact' works for lists of up to {MAX_EXACT_ITEMS} items, got {longest}: use 'auto'."
            )

    def _em(self, known: EncodedSideInformation, engine: Engine) -> EM:
        ranker = RANKERS[self.ranker]() if isinstance(self.ranker, str) else self.ranker
        e_step = EStep(self.sampler, self.draws, self.seed)
        labels: Literal["map", "expected"] = "map" if self.labels == "map" else "expected"
        return EM(ranker, e_step, labels, self.prior_lists, self.iterations, self.tolerance, known, engine)

    def _chooses_labels(self, method: Method) -> bool:
        return self.labels == "auto" and method.run is learn_by_em

    def _validate(
        self, method: Method, em: EM, data: TrainingSet, may_pool: bool, progress: Progress
    ) -> tuple[str, Literal["map", "expected"], HeldOutScores | None]:
        """The method and the labels to train with, and their performance on held-out queries."""
        name = EM_METHOD if self.method == AUTO else self.method
        parts = split_queries(len(data.crowd.queries), self.held_out, self.seed)
        if parts is None:
            return name, em.labels, None
        train, test = (data.crowd.subset(part) for part in parts)
        tried: dict[Literal["map", "expected"], HeldOutScores] = {}
        scores: dict[str, FloatArray] = {}
        for labels in ("expected", "map") if self._chooses_labels(method) else (em.labels,):
            result = method.run(replace(em, labels=labels), train, data.features, progress)
            scores[labels] = result.scorer.scores(data.features)
            tried[labels] = score_held_out(test, scores[labels], result.theta, data.grades)
        best = max(tried, key=lambda labels: tried[labels].mean)
        if may_pool:
            alike = by_name(POOLED).run(em, train, data.features, progress).scorer.scores(data.features)
            if prefers_pooled(test, scores[best], alike):
                return POOLED, best, score_held_out(test, alike, NO_EXPERTISE, data.grades)
        return name, best, tried[best]

    def _choices(self, name: str, labels: str, held_out: HeldOutScores | None) -> tuple[str, ...]:
        """What was chosen on held-out queries, in words."""
        if held_out is None:
            return ()
        if name == POOLED and self.method == AUTO:
            return (_POOLED_NOTE,)
        if not self._chooses_labels(by_name(name)):
            return ()
        return (f"Trained on {_LABEL_WORDS[labels]}, which did better on held-out queries.",)

    def _theta_given(self, scorer: Scorer, em: EM, data: TrainingSet) -> FloatArray:
        """Expertise of the annotators given a function that did not need it."""
        given = replace(em, ranker=FixedRanker(scorer), iterations=min(self.iterations, _ROUNDS_GIVEN_FUNCTION))
        return given.run(data.crowd, data.features).theta

    def _settings(self, method: str, labels: str) -> dict[str, Any]:
        """All settings as plain values, with the method and the labels that were chosen."""
        settings: dict[str, Any] = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        ranker = self.ranker if isinstance(self.ranker, str) else repr(self.ranker)
        return {
            **settings,
            "ranker": ranker,
            "method": method,
            "labels": labels,
            "side_information": repr(self.side_information),
        }

    def _expertise(
        self, lists: Rankings, crowd: CrowdLists, result: EMResult, known: EncodedSideInformation
    ) -> AnnotatorExpertise:
        prior_factor = 1 + self.prior_lists / np.maximum(crowd.statistics.lists, 1e-12)
        fixed = np.isin(np.arange(crowd.annotators), list(known.quality))
        length = int(np.median(lists.lengths)) if self.top is None else self.top
        return annotator_expertise(
            lists.annotators if len(lists.annotators) else np.array(["everyone"], dtype=object),
            crowd.judged,
            result.theta,
            crowd.statistics.information(result.theta) * prior_factor,
            fixed=fixed,
            length=length,
            native=lists.frame_backend,
        )


@dataclass(frozen=True)
class FixedRanker:
    """A ranker that returns a function that was trained before."""

    scorer: Scorer

    def fit(self, lists: RankedLists, features: FloatArray, starts: IntArray, init: Scorer | None = None) -> Scorer:
        return self.scorer


# Iterations of θ and true lists for a given function.
_ROUNDS_GIVEN_FUNCTION = 5

_POOLED_NOTE = (
    "Trained on all lists with equal weights, which predicted the lists of held-out queries better than weights by "
    "expertise: the annotators may share errors, and their agreement is then not a sign of expertise."
)

_LABEL_WORDS = {
    "map": "the most probable list of each query",
    "expected": "all lists of each query, weighted by probability",
}
