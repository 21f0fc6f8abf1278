"""A ranking function from several unreliable teachers (Wu et al. 2016), corrected and carried further."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from crowdrank.data import EncodedSideInformation, Rankings, SideInformation
from crowdrank.engines import LOCAL, Engine
from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.evaluation import Gold
from crowdrank.ltr.e_step import Drawing, Sampler
from crowdrank.ltr.em import EM, Learnt
from crowdrank.ltr.expertise import Teachers, teachers_of
from crowdrank.ltr.features import Features
from crowdrank.ltr.list_posterior import MOST_EXACT
from crowdrank.ltr.methods import Held, Method, by_name, from_crowds, grade, split
from crowdrank.ltr.rankers.boosted import Boosted
from crowdrank.ltr.rankers.linear import Linear, Ranker
from crowdrank.ltr.ranking_function import RankingFunction
from crowdrank.ltr.training_set import Crowd, Lesson, lesson_of

Labels = Literal["auto", "map", "expected"]
Tell = Callable[[int], None]

RANKERS: dict[str, Callable[[], Ranker]] = {"linear": Linear, "lightgbm": Boosted}


@dataclass(frozen=True, kw_only=True)
class CrowdRanker:
    """True lists, annotators' expertise and a ranking function, all from the annotators' lists."""

    ranker: str | Ranker = "linear"
    """The kind of function: "linear", "lightgbm", or one of your own."""
    method: str = "ltr-crowds"
    """How it is learnt: see `crowdrank.ltr.METHODS`."""
    side_information: SideInformation = field(default_factory=SideInformation)
    """What is known of annotators' expertise θ: the lower, the better, 0 for random lists."""
    labels: Labels = "auto"
    """What the function learns from: the likeliest list of each query, or all, each by its chance; "auto" tries both
    on queries held out."""
    sampler: Sampler = "auto"
    """How true lists are found: summed over, drawn by Gibbs' moves, or as in the paper; "auto" sums over short ones."""
    top: int | None = None
    """Lists say which items come first, so many of them, and that all others come later; None: lists say nothing of
    items they leave out."""
    prior_lists: float = 1.0
    """How many lists the expertise in the middle of the crowd counts for, beside an annotator's own."""
    draws: int = 20
    """Of each true list, in each step."""
    held_out: float = 0.2
    """The share of the queries by which the function is validated, and `labels` chosen; 0 for none."""
    iterations: int = 15
    tolerance: float = 0.02
    """Stop when no expertise moves by more, nor the scores by more than this share of their spread."""
    seed: int = 0

    def __post_init__(self) -> None:
        by_name(self.method)
        if isinstance(self.ranker, str) and self.ranker not in RANKERS:
            raise UnknownNameError("ranker", self.ranker, RANKERS)
        for name, kinds in (("labels", Labels), ("sampler", Sampler)):
            if getattr(self, name) not in get_args(kinds):
                raise SettingError(f"{name} must be one of {', '.join(get_args(kinds))}, got {getattr(self, name)!r}.")
        if self.top is not None and self.top < 1:
            raise SettingError(f"top must be at least 1, or None for whole lists, got {self.top}.")
        if self.top is not None and self.sampler in ("exact", "paper"):
            raise SettingError(f"The first {self.top} items are found by Gibbs' moves: leave sampler to itself.")
        if self.iterations < 1 or self.draws < 1 or self.prior_lists < 0 or self.tolerance < 0:
            raise SettingError("iterations and draws must be positive, prior_lists and tolerance not negative.")
        if not 0 <= self.held_out <= 0.5:
            raise SettingError(f"held_out must lie between 0 and 0.5, got {self.held_out}.")

    def fit(
        self,
        lists: Rankings,
        features: Features | Any,
        truth: Rankings | Gold | None = None,
        tell: Tell = lambda step: None,
        engine: Engine = LOCAL,
    ) -> RankingFunction:
        """From annotators' lists of items, and features of these items; `truth` is what is known of some queries.

        `tell` is called with a running number after each step; `engine` is where true lists are found.
        """
        method = by_name(self.method)
        given = features if isinstance(features, Features) else Features.of(features)
        lesson = lesson_of(lists, given, truth, self.top)
        self._check_sizes(lesson.crowd)
        known = self.side_information.encode_annotators(lists.annotators, larger_is_better=False)
        method.check(self.method, known, truth is not None)
        em = self._em(known, engine)
        if method.linear_only and not isinstance(em.ranker, Linear):
            raise SettingError(f"{self.method} learns a linear function: leave ranker to itself.")
        labels, held = self._validate(method, em, lesson, tell)
        learnt = method.run(replace(em, labels=labels), lesson.crowd, lesson.values, tell)
        learnt.convergence.warn(self.method)
        chosen = (f"Learnt from {_WORDS[labels]}, by queries held out.",) if held and self._chooses(method) else ()
        return RankingFunction(
            scorer=learnt.scorer,
            names=given.names,
            method=self.method,
            settings=self._settings(labels),
            teachers=self._teachers(lists, lesson.crowd, learnt, known) if method.models_annotators else None,
            validation=held.validation() if held else None,
            convergence=learnt.convergence,
            notes=(*lesson.notes, *chosen),
        )

    def _check_sizes(self, crowd: Crowd) -> None:
        longest = max(query.size for query in crowd.queries)
        if self.sampler == "exact" and longest > MOST_EXACT:
            raise SettingError(
                f"Lists of up to {MOST_EXACT} items can be summed over, got {longest}: use sampler auto."
            )

    def _em(self, known: EncodedSideInformation, engine: Engine) -> EM:
        ranker = RANKERS[self.ranker]() if isinstance(self.ranker, str) else self.ranker
        drawing = Drawing(self.sampler, self.draws, self.seed)
        labels: Literal["map", "expected"] = "map" if self.labels == "map" else "expected"
        return EM(ranker, drawing, labels, self.prior_lists, self.iterations, self.tolerance, known, engine)

    def _chooses(self, method: Method) -> bool:
        return self.labels == "auto" and method.run is from_crowds

    def _validate(
        self, method: Method, em: EM, lesson: Lesson, tell: Tell
    ) -> tuple[Literal["map", "expected"], Held | None]:
        """What to learn from, and how well that did on queries held out."""
        parts = split(len(lesson.crowd.queries), self.held_out, self.seed)
        if parts is None:
            return em.labels, None
        train, out = (lesson.crowd.some(part) for part in parts)
        tried: dict[Literal["map", "expected"], Held] = {}
        for labels in ("expected", "map") if self._chooses(method) else (em.labels,):
            learnt = method.run(replace(em, labels=labels), train, lesson.values, tell)
            tried[labels] = grade(out, learnt.scorer.scores(lesson.values), learnt.theta, lesson.grades)
        best = max(tried, key=lambda labels: tried[labels].mean)
        return best, tried[best]

    def _settings(self, labels: str) -> dict[str, Any]:
        told: dict[str, Any] = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        ranker = self.ranker if isinstance(self.ranker, str) else repr(self.ranker)
        return {**told, "ranker": ranker, "labels": labels, "side_information": repr(self.side_information)}

    def _teachers(self, lists: Rankings, crowd: Crowd, learnt: Learnt, known: EncodedSideInformation) -> Teachers:
        lent = 1 + self.prior_lists / np.maximum(crowd.kinds.lists, 1e-12)
        held = np.isin(np.arange(crowd.annotators), list(known.quality))
        length = int(np.median(lists.lengths)) if self.top is None else self.top
        return teachers_of(
            lists.annotators if len(lists.annotators) else np.array(["everyone"], dtype=object),
            crowd.judged,
            learnt.theta,
            crowd.kinds.information(learnt.theta) * lent,
            held=held,
            length=length,
            native=lists.native,
        )


_WORDS = {"map": "the likeliest list of each query", "expected": "all lists of each query, each by its chance"}
