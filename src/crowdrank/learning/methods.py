"""The ways to learn a ranking function from a crowd, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.judgments import Knowledge
from crowdrank.learning import baselines
from crowdrank.learning.crowd import Crowd
from crowdrank.learning.em import EM, Learnt, labels_of
from crowdrank.learning.rankers.contract import Matrix

Run = Callable[[EM, Crowd, Matrix, Callable[[int], None]], Learnt]
Side = Literal["", "known", "between", "better"]


def from_crowds(em: EM, crowd: Crowd, values: Matrix, tell: Callable[[int], None]) -> Learnt:
    """EM; a ranker with a `teacher` is trained once, on the labels that EM reached with that."""
    teacher = getattr(em.ranker, "teacher", None)
    if teacher is None:
        return em.run(crowd, values, tell)
    learnt = replace(em, ranker=teacher).run(crowd, values, tell)
    lists = labels_of(crowd.queries, learnt.posteriors, em.labels)
    return learnt._replace(scorer=em.ranker.fit(lists, values, crowd.items.starts))


@dataclass(frozen=True)
class Method:
    """One way to learn, in a line."""

    run: Run
    about: str
    weighs_annotators: bool = False
    needs: Side = ""
    """The side information without which it is only ltr-crowds."""
    linear_only: bool = False

    def check(self, name: str, known: Knowledge, truth: bool) -> None:
        """Refuse a method whose side information was not given."""
        given = {"known": bool(known.quality) or truth, "between": bool(known.between), "better": bool(known.better)}
        say = {
            "known": "Known(…) or the truth of some queries (--known, --truth)",
            "between": "Between(…) (--known ann=-3..-1)",
            "better": "Better(…) (--better)",
        }
        if self.needs and not given[self.needs]:
            raise SettingError(
                f"{name} is ltr-crowds with side information: give {say[self.needs]}, or say ltr-crowds."
            )


METHODS: dict[str, Method] = {
    "ltr-crowds": Method(from_crowds, "true lists, expertise and function by EM (LTRMA-MLE)", True),
    "ltrma-s1": Method(from_crowds, "the same, with annotators or true lists that are known", True, "known"),
    "ltrma-s2": Method(from_crowds, "the same, with annotators known within a range", True, "between"),
    "ltrma-s3": Method(from_crowds, "the same, with annotators known to be better than others", True, "better"),
    "ltrma-d": Method(baselines.direct, "lists put together by Mallows first, then ListMLE", True),
    "pooled": Method(baselines.pooled, "ListMLE on all lists alike"),
    "borda": Method(baselines.borda, "ListMLE on Borda's lists"),
    "lregma": Method(baselines.regression, "regression on places (Raykar et al. 2010)", linear_only=True),
    "truth": Method(baselines.truth, "ListMLE on true lists"),
}


def by_name(name: str) -> Method:
    if name not in METHODS:
        raise UnknownNameError("method", name, METHODS)
    return METHODS[name]
