"""Policies as text, and worker processes, for commands that simulate collections."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from crowdrank.cli.parsing import parse_pairs
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.active.policies import Chooser


def parse_policy(text: str) -> Chooser:
    """A policy with optional settings: adaptive, gain:exploration=5 or adaptive:epsilon=0.2:floor=5."""
    from crowdrank.active import by_name
    from crowdrank.models.selection import parse_settings

    name, *settings = (part.strip() for part in text.split(":"))
    policy = by_name(name)
    if wrong := [pair for pair in settings if "=" not in pair]:
        raise SettingError(
            f"Write the settings of a policy like adaptive:epsilon=0.2:floor=5; got {wrong[0]!r} in {text!r}."
        )
    return policy(**parse_settings(policy, dict(parse_pairs(settings, "policy", "epsilon=0.2"))))


def process_count(wanted: int | None, trials: int) -> int:
    """One process per core unless told otherwise, and never more than trials."""
    return max(1, min(os.cpu_count() or 1 if wanted is None else wanted, trials))
