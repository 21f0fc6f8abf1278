"""What an online model promises."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from crowdrank.judgments import Comparison, Comparisons, Items
from crowdrank.online.beliefs import Beliefs


class OnlineModel(Protocol):
    """A frozen set of settings that takes judgments in one at a time. It changes nothing: beliefs go in and come out.

    A name that is new in a judgment joins with the prior, at any time.
    """

    def start(self, items: Items | Iterable[object] = (), annotators: Iterable[object] = ()) -> Beliefs:
        """What is believed before anyone judged."""
        ...

    def update(self, beliefs: Beliefs, judgment: Comparison) -> Beliefs:
        """What is believed after one judgment."""
        ...

    def fold(self, beliefs: Beliefs, comparisons: Comparisons) -> Beliefs:
        """What is believed after all of them: by time where times are known, else as they stand."""
        ...
