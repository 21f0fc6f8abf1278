"""Parse the cells of a column: labels, numbers, timestamps, and outcomes; null or NaN if a cell cannot be read."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray
from crowdrank.data import LEFT, RIGHT, TIE
from crowdrank.errors import FormatError
from crowdrank.io.column_roles import SIDE_PAIRS, each, normalize_name
from crowdrank.io.frames import text_series

_DATES = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M%#z", "%Y-%m-%d")
# Times since 1970 in milli-, micro- or nanoseconds exceed these from 1973 on; in seconds, only from the year 5138.
_CLOCK_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))


def labels(column: pl.Series, strip_spaces: bool) -> pl.Series:
    """Return text, null where a cell is empty. Integers that became floats next to missing cells lose their ".0"."""
    text = _text(column)
    if strip_spaces:
        text = text.str.strip_chars()
    empty = text.str.len_bytes() == 0
    return text.set(empty, None) if empty.any() else text


def _text(column: pl.Series) -> pl.Series:
    # Renamed, because polars reads a series name such as "*" or "^…$" as a pattern.
    name, column = column.name, column.alias("cell")
    if column.dtype == pl.Object:
        column = text_series("cell", column.to_list())
    kind = column.dtype
    if kind == pl.String:
        return column
    if kind.is_nested() or kind == pl.Object:
        raise FormatError(f"column {name!r} holds lists or objects; it must hold one value per row.")
    try:
        if kind.is_float() or kind.is_decimal():
            return _number_text(column.cast(pl.Float64))
        return column.cast(pl.String)
    except pl.exceptions.PolarsError as error:
        raise FormatError(f"column {name!r} ({kind}) cannot be read as text.") from error


def _number_text(column: pl.Series) -> pl.Series:
    value = pl.col("cell")
    whole = (value == value.floor()) & (value.abs() < 2**53)
    text = pl.when(whole).then(value.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(value.cast(pl.String))
    return column.fill_nan(None).to_frame().select(text).to_series()


def numbers(column: pl.Series) -> FloatArray:
    """Return numbers, NaN where a cell is not a number."""
    if column.dtype == pl.Duration:
        column = column.alias("cell").dt.total_nanoseconds() / 1e9
    if not column.dtype.is_numeric() and column.dtype != pl.Boolean:
        column = labels(column, strip_spaces=True)
    return column.alias("cell").cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def timestamps(column: pl.Series) -> FloatArray:
    """Return seconds since 1970 from dates, ISO text or numbers of a clock; NaN where a cell is none of these."""
    if column.dtype.is_temporal() and column.dtype not in (pl.Duration, pl.Time):
        return _to_seconds(column.cast(pl.Datetime) if column.dtype == pl.Date else column)
    if column.dtype.is_numeric():
        return _clock_to_seconds(numbers(column))
    text = labels(column, strip_spaces=True)
    clock = text.cast(pl.Float64, strict=False)
    if clock.null_count() > text.null_count():
        return np.where(clock.is_null().to_numpy(), _iso(text), clock.fill_null(np.nan).to_numpy())
    return _clock_to_seconds(clock.fill_null(np.nan).to_numpy())


def _iso(text: pl.Series) -> FloatArray:
    """Parse each cell by the first ISO pattern that fits; most files need only one."""
    cell = text.str.replace(" ?(UTC|GMT|Z)$", "").str.replace(r"^(\d{4}-\d\d-\d\d) ", "${1}T")
    found = np.full(len(text), np.nan)
    for pattern in _DATES:
        missing = np.isnan(found)
        if np.count_nonzero(missing) <= text.null_count():
            break
        found = np.where(missing, _to_seconds(cell.str.to_datetime(pattern, strict=False, time_unit="us")), found)
    return found


def _to_seconds(column: pl.Series) -> FloatArray:
    micros = column.alias("cell").dt.timestamp("us").cast(pl.Float64)
    return (micros / 1e6).fill_null(np.nan).to_numpy()


def _clock_to_seconds(values: FloatArray) -> FloatArray:
    """Convert to seconds; the unit is guessed from the median."""
    seen = np.abs(values[np.isfinite(values)])
    median = float(np.median(seen)) if seen.size else 0.0
    return values / next((unit for limit, unit in _CLOCK_UNITS if median > limit), 1.0)


def numbers_or_text(column: pl.Series) -> AnyArray:
    """Return numbers if every cell that is not empty is a number, else text with "" for empty cells."""
    text = labels(column, strip_spaces=True)
    found = numbers(column)
    if np.count_nonzero(np.isnan(found)) <= text.null_count():
        return found
    return np.array(text.fill_null("").to_list(), dtype=object)


SKIP, UNKNOWN = np.int8(2), np.int8(3)

_TIES = each(
    "= == ~ - tie ties tied tievote draw drawn drew equal equals equallygood equallybad both bothequal same neither "
    "tiebothbad bothbad bothbadvote bothgood bothgoodvote undecided nopreference nodifference indifferent"
)
_SKIPS = each(
    "skip skips skipped pass passed canttell cannottell cantsay cantdecide cannotdecide unsure notsure dontknow idk "
    "unknown none na null nan noanswer unanswered abstain abstained"
)
_LEFT = [left for tier in SIDE_PAIRS for left, _ in tier] + ["1", "leftvote", "leftwins", "awins"]
_RIGHT = [right for tier in SIDE_PAIRS for _, right in tier] + ["2", "rightvote", "rightwins", "bwins"]
_WORDS: dict[str, np.int8] = {
    **dict.fromkeys(_LEFT, LEFT),
    **dict.fromkeys(_RIGHT, RIGHT),
    **{word: TIE for (word,) in _TIES},
    **{word: SKIP for (word,) in _SKIPS},
}


def is_outcome_word(text: str) -> bool:
    """Return whether a cell is a word for a side, a tie or a skip."""
    return normalize_name(text) in _WORDS


def outcomes(left: pl.Series, right: pl.Series, winner: pl.Series, sides: tuple[str, str]) -> npt.NDArray[np.int8]:
    """Return 1, 0 or -1 as in `Comparisons`, 2 for a skip, and 3 if a cell is none of these.

    The exact names of the two items are tried first. Other words are compared without case and punctuation, and only
    if no item has that name. `sides` are the names of the two columns, which some files use for the winner.
    """
    frame = pl.DataFrame([left.alias("left"), right.alias("right"), winner.alias("winner")])
    named = pl.col("winner")
    by_name = pl.when(named == pl.col("left")).then(int(LEFT)).when(named == pl.col("right")).then(int(RIGHT))
    found = frame.select(by_name.otherwise(None).cast(pl.Int8).alias("outcome")).to_series()
    unresolved = found.is_null()
    if unresolved.any():
        meanings = _meanings(
            winner.filter(unresolved).drop_nulls().unique(), pl.concat([left, right.alias(left.name)]), sides
        )
        if meanings:
            found = found.fill_null(
                winner.replace_strict(list(meanings), list(meanings.values()), default=None, return_dtype=pl.Int8)
            )
        found = found.fill_null(UNKNOWN)
    return found.to_numpy()


def _meanings(words: pl.Series, items: pl.Series, sides: tuple[str, str]) -> dict[str, np.int8]:
    """Return the outcome that each word stands for, without words that are unknown or name an item."""
    known = _WORDS | {normalize_name(name): side for name, side in zip(sides, (LEFT, RIGHT), strict=True) if name}
    common = words.filter(normalize_names(words).is_in(list(known)))
    if common.is_empty():
        return {}
    names = normalize_names(items.drop_nulls().unique())
    taken = set(names.filter(names.is_in(normalize_names(common).to_list())))
    return {word: known[key] for word in common if (key := normalize_name(word)) in known and key not in taken}


def normalize_names(words: pl.Series) -> pl.Series:
    """`normalize_name` for a whole column."""
    bare = words.str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]", "")
    return pl.select(pl.when(bare == "").then(words.str.strip_chars()).otherwise(bare)).to_series()
