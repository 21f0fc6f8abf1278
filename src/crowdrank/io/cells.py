"""What a column's cells say: labels, numbers, moments; null or NaN where they say nothing.

Who won: the winner's name, a word for its side, a tie or a skip.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray
from crowdrank.data import LEFT, RIGHT, TIE
from crowdrank.errors import FormatError
from crowdrank.io.column_roles import SIDES, each, plain
from crowdrank.io.frames import series_of

_DATES = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M%#z", "%Y-%m-%d")
# A clock of 1970 read in milli-, micro- or nanoseconds passes these around 1973; in seconds, in the year 5138.
_CLOCKS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))


def labels(column: pl.Series, trimmed: bool) -> pl.Series:
    """Text; null where a cell is empty. Whole numbers lose the ".0" that a missing neighbour gave them."""
    text = _text(column)
    if trimmed:
        text = text.str.strip_chars()
    empty = text.str.len_bytes() == 0
    return text.set(empty, None) if empty.any() else text


def _text(column: pl.Series) -> pl.Series:
    # Under a name of our own: polars takes a series called "*" or "^…$" for a pattern.
    name, column = column.name, column.alias("cell")
    if column.dtype == pl.Object:
        column = series_of("cell", column.to_list())
    kind = column.dtype
    if kind == pl.String:
        return column
    if kind.is_nested() or kind == pl.Object:
        raise FormatError(f"column {name!r} holds lists or objects, where one value a row is needed.")
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
    """Numbers; NaN where a cell is none."""
    if column.dtype == pl.Duration:
        column = column.alias("cell").dt.total_nanoseconds() / 1e9
    if not column.dtype.is_numeric() and column.dtype != pl.Boolean:
        column = labels(column, trimmed=True)
    return column.alias("cell").cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def moments(column: pl.Series) -> FloatArray:
    """Seconds since 1970, from dates, ISO text or a clock's number; NaN where a cell is none of them."""
    if column.dtype.is_temporal() and column.dtype not in (pl.Duration, pl.Time):
        return _seconds(column.cast(pl.Datetime) if column.dtype == pl.Date else column)
    if column.dtype.is_numeric():
        return _clock(numbers(column))
    text = labels(column, trimmed=True)
    clock = text.cast(pl.Float64, strict=False)
    if clock.null_count() > text.null_count():
        return np.where(clock.is_null().to_numpy(), _iso(text), clock.fill_null(np.nan).to_numpy())
    return _clock(clock.fill_null(np.nan).to_numpy())


def _iso(text: pl.Series) -> FloatArray:
    """The first way of writing dates that fits, cell by cell; most files need only one."""
    cell = text.str.replace(" ?(UTC|GMT|Z)$", "").str.replace(r"^(\d{4}-\d\d-\d\d) ", "${1}T")
    found = np.full(len(text), np.nan)
    for form in _DATES:
        missing = np.isnan(found)
        if np.count_nonzero(missing) <= text.null_count():
            break
        found = np.where(missing, _seconds(cell.str.to_datetime(form, strict=False, time_unit="us")), found)
    return found


def _seconds(column: pl.Series) -> FloatArray:
    micros = column.alias("cell").dt.timestamp("us").cast(pl.Float64)
    return (micros / 1e6).fill_null(np.nan).to_numpy()


def _clock(values: FloatArray) -> FloatArray:
    """Seconds, whatever unit the clock counted in."""
    seen = np.abs(values[np.isfinite(values)])
    middle = float(np.median(seen)) if seen.size else 0.0
    return values / next((unit for limit, unit in _CLOCKS if middle > limit), 1.0)


def values_of(column: pl.Series) -> AnyArray:
    """Numbers where every cell that holds something holds one, text otherwise."""
    text = labels(column, trimmed=True)
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
_LEFT = [left for tier in SIDES for left, _ in tier] + ["1", "leftvote", "leftwins", "awins"]
_RIGHT = [right for tier in SIDES for _, right in tier] + ["2", "rightvote", "rightwins", "bwins"]
_WORDS: dict[str, np.int8] = {
    **dict.fromkeys(_LEFT, LEFT),
    **dict.fromkeys(_RIGHT, RIGHT),
    **{word: TIE for (word,) in _TIES},
    **{word: SKIP for (word,) in _SKIPS},
}


def is_word(text: str) -> bool:
    """Whether a cell is a word for a side, a tie or a skip."""
    return plain(text) in _WORDS


def outcomes(left: pl.Series, right: pl.Series, winner: pl.Series, sides: tuple[str, str]) -> npt.NDArray[np.int8]:
    """1, 0, -1 as in `Comparisons`; 2 for a skip, 3 where a cell says none of these.

    Names of the two items come first, and exactly; words are read without regard to case and punctuation, and only
    where no item goes by them. `sides` are the names of the two columns, which some files repeat as the winner.
    """
    frame = pl.DataFrame([left.alias("left"), right.alias("right"), winner.alias("winner")])
    won = pl.col("winner")
    by_name = pl.when(won == pl.col("left")).then(int(LEFT)).when(won == pl.col("right")).then(int(RIGHT))
    found = frame.select(by_name.otherwise(None).cast(pl.Int8).alias("outcome")).to_series()
    open_rows = found.is_null()
    if open_rows.any():
        said = _meanings(
            winner.filter(open_rows).drop_nulls().unique(), pl.concat([left, right.alias(left.name)]), sides
        )
        if said:
            found = found.fill_null(
                winner.replace_strict(list(said), list(said.values()), default=None, return_dtype=pl.Int8)
            )
        found = found.fill_null(UNKNOWN)
    return found.to_numpy()


def _meanings(words: pl.Series, items: pl.Series, sides: tuple[str, str]) -> dict[str, np.int8]:
    """What each of the words says about the row; words that say nothing, or name an item, are left out."""
    known = _WORDS | {plain(name): side for name, side in zip(sides, (LEFT, RIGHT), strict=True) if name}
    common = words.filter(plain_words(words).is_in(list(known)))
    if common.is_empty():
        return {}
    names = plain_words(items.drop_nulls().unique())
    taken = set(names.filter(names.is_in(plain_words(common).to_list())))
    return {word: known[key] for word in common if (key := plain(word)) in known and key not in taken}


def plain_words(words: pl.Series) -> pl.Series:
    """`plain`, for a whole column."""
    bare = words.str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]", "")
    return pl.select(pl.when(bare == "").then(words.str.strip_chars()).otherwise(bare)).to_series()
