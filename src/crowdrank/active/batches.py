"""Many questions at once: each is chosen as if those before it had been asked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crowdrank.active.history import Asked
from crowdrank.active.policies import Policy
from crowdrank.active.question import Question
from crowdrank.errors import NothingToAskError
from crowdrank.online import Beliefs


def batch(
    policy: Policy,
    beliefs: Beliefs,
    asked: Asked,
    count: int,
    rng: np.random.Generator,
    annotator: str | None = None,
) -> Iterator[Question]:
    """Up to `count` questions, noted as asked; fewer where nothing is left to ask.

    What is awaited counts: no pair is put to two people at a time, and a policy that reckons with what an answer
    teaches reckons with those to come.
    """
    for _ in range(count):
        try:
            question = policy.next(beliefs, asked, annotator, rng)
        except NothingToAskError:
            return
        asked.note(question)
        yield question
