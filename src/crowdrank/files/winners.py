"""Who won: the winner's name, a word for its side, a tie or a skip."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.files.roles import SIDES, each, plain
from crowdrank.judgments import LEFT, RIGHT, TIE

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
