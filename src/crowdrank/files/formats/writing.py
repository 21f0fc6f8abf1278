"""What writers share: columns under another's names, and a word on what the format cannot hold."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from crowdrank.judgments import LEFT, TIE, Comparisons


def decided(votes: Comparisons, format_name: str) -> tuple[Comparisons, list[str]]:
    """Without ties, for formats that know none."""
    if not votes.ties:
        return votes, []
    ties = "1 tie was" if votes.ties == 1 else f"{votes.ties:,} ties were"
    return votes.take(np.flatnonzero(votes.outcome != TIE)), [f"{ties} left out: {format_name} has none."]


def labelled(votes: Comparisons, names: Mapping[str, str]) -> pl.DataFrame:
    """Canonical columns under other names; query and weight keep theirs, where there are any."""
    frame = votes.to_frame()
    also = [name for name in ("query", "weight") if name in frame.columns]
    return frame.select(*(pl.col(c).alias(n) for c, n in names.items() if c in frame.columns), *also)


def sides(votes: Comparisons, left: str, right: str, tie: str) -> pl.Series:
    """Who won, as a word for its side."""
    return pl.Series(np.where(votes.outcome == TIE, tie, np.where(votes.outcome == LEFT, left, right)), dtype=pl.String)


def beaten(votes: Comparisons, who: str, chosen: str, not_chosen: str, took: str) -> pl.DataFrame:
    """Winner and loser in columns of their own."""
    frame = votes.to_frame()
    won = pl.Series(votes.outcome == LEFT)
    loser = frame["right"].zip_with(won, frame["left"])
    names = {"annotator": who, "winner": chosen, "loser": not_chosen, "duration": took}
    also = [name for name in ("query", "weight") if name in frame.columns]
    frame = frame.with_columns(loser.alias("loser"))
    return frame.select(*(pl.col(c).alias(n) for c, n in names.items() if c in frame.columns), *also)
