"""Comparisons from rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.files import cells
from crowdrank.files.problems import shown
from crowdrank.files.roles import DURATIONS, plain
from crowdrank.files.rows import Rows
from crowdrank.files.winners import SKIP, UNKNOWN, outcomes, plain_words
from crowdrank.judgments import LEFT, TIE, Comparisons
from crowdrank.judgments.labels import Codes, encode_annotators, encode_items

# A column of this name says where its item was shown, so there is nothing to turn round.
_ON_THE_LEFT = ("left", "lhs")
_LONGEST_KEY = float(2**62)
# Half of all answers taking longer than this are more likely counted in milliseconds.
_LONG_MEDIAN = 1000.0


def comparisons(rows: Rows) -> Comparisons:
    """From left, right and winner, or from winner and loser; skips are left out and counted."""
    sided = rows.has("left")
    first, second = ("left", "right") if sided else ("winner", "loser")
    left, right = rows.labels(first), rows.labels(second)
    if sided:
        left, right, outcome = _answered(rows, left, right)
    else:
        outcome = _first_won(rows, left, right)
    who, query = rows.maybe_labels("annotator"), rows.maybe_labels("query")
    weight = rows.maybe_weight()
    rows.counted.skips = rows.problems.ignore(outcome == SKIP)
    rows.settle()
    items, (lefts, rights) = encode_items([rows.usable(left), rows.usable(right)], [first, second], rows.usable(query))
    annotators, annotator = encode_annotators(rows.usable(who))
    outcome = rows.usable(outcome)
    rows.counted.ties = int(np.count_nonzero(outcome == TIE))
    if annotator is not None and rows.counts_repeats:
        rows.counted.duplicates = count_repeats(annotator, lefts, rights, outcome + 1)
    return Comparisons(
        items=items, left=lefts, right=rights, outcome=outcome, annotators=annotators, annotator=annotator,
        weight=rows.usable(weight), time=_time(rows), duration=_duration(rows),
        features={name: cells.values_of(rows.usable(rows.frame[name])) for name in rows.features},
        sided=sided and rows.table.sided, native=rows.table.native,
    )  # fmt: skip


def _refuse_same(rows: Rows, left: pl.Series, right: pl.Series, column: str) -> None:
    same = (left == right).fill_null(False)
    rows.counted.self_comparisons = rows.problems.refuse(
        same, column, lambda row: f"{shown(left[row])} is compared with itself"
    )


def _first_won(rows: Rows, winner: pl.Series, loser: pl.Series) -> npt.NDArray[np.int8]:
    _refuse_same(rows, winner, loser, rows.match.roles["loser"])
    return np.full(len(winner), LEFT, np.int8)


def _answered(rows: Rows, left: pl.Series, right: pl.Series) -> tuple[pl.Series, pl.Series, npt.NDArray[np.int8]]:
    """Both items as they were shown, and which of them won."""
    roles, short = rows.match.roles, rows.table.short
    _refuse_same(rows, left, right, roles["right"])
    winner = rows.labels("winner")
    sides = (short.get(roles["left"], roles["left"]), short.get(roles["right"], roles["right"]))
    swapped = rows.table.swapped
    if swapped is not None and not plain(sides[0]).startswith(_ON_THE_LEFT):
        winner = _named_by_column(winner, left, right, sides)
        turned = pl.Series(swapped)
        left, right = right.zip_with(turned, left), left.zip_with(turned, right)
    found = outcomes(left, right, winner, sides)
    rows.counted.unknown_items = rows.problems.refuse(
        found == UNKNOWN, roles["winner"],
        lambda row: f"{shown(winner[row])} is neither {shown(left[row])}, {shown(right[row])}, a tie nor a skip",
    )  # fmt: skip
    return left, right, found


def _named_by_column(winner: pl.Series, left: pl.Series, right: pl.Series, sides: tuple[str, str]) -> pl.Series:
    """A winner called by its column (model_1) by its own name: shown the other way round, it is not on the left."""
    said = plain_words(winner)
    for side, item in zip(sides, (left, right), strict=True):
        winner = item.zip_with((said == plain(side)).fill_null(False), winner)
    return winner


def count_repeats(annotator: Codes, *codes: npt.NDArray[Any]) -> int:
    """How many rows say again, exactly, what their annotator has said before."""
    sizes = [int(c.max(initial=0)) + 1 for c in codes]
    if (int(annotator.max(initial=0)) + 1) * np.prod(np.asarray(sizes, float)) < _LONGEST_KEY:
        key = annotator.astype(np.int64)
        for code, size in zip(codes, sizes, strict=True):
            key = key * size + code
        return len(key) - pl.Series(key).n_unique()
    frame = pl.DataFrame({str(n): c for n, c in enumerate((annotator, *codes))})
    return frame.height - frame.n_unique()


def _time(rows: Rows) -> cells.Numbers | None:
    return _recorded(rows, cells.moments(rows.usable(rows.column("time"))), "time") if rows.has("time") else None


def _duration(rows: Rows) -> cells.Numbers | None:
    if not rows.has("duration"):
        return None
    name = rows.match.roles["duration"]
    values = cells.numbers(rows.usable(rows.column("duration")))
    seconds = _recorded(rows, values / DURATIONS.get(plain(name), 1.0), "duration")
    if seconds is not None and np.nanmedian(seconds) > _LONG_MEDIAN:
        rows.note(f"Half of the answers took over {_LONG_MEDIAN:,.0f} s; if {name!r} counts milliseconds, divide it.")
    return seconds


def _recorded(rows: Rows, values: cells.Numbers, role: str) -> cells.Numbers | None:
    """Values with NaN where nothing was recorded; None where nothing ever was."""
    values = np.where(np.isfinite(values), values, np.nan)
    missing = int(np.count_nonzero(np.isnan(values)))
    name = rows.match.roles[role]
    if missing == len(values):
        rows.note(f"{name!r} holds no {role} that can be read; it was left out.")
        return None
    if missing:
        rows.note(f"{name!r}: no {role} in {missing:,} of {len(values):,} rows.")
    return values
