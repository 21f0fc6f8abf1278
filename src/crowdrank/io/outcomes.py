"""Parse the winner of a comparison: the name of an item, a word for a side, a verdict, a score or a code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.data import LEFT, RIGHT, TIE
from crowdrank.io.column_roles import SIDE_PAIRS, each, load_expressions, normalize_name
from crowdrank.io.rows import parse_labels
from crowdrank.io.source_table import SourceTable, with_columns_computed

SKIP, UNKNOWN, BOTH_BAD = np.int8(2), np.int8(3), np.int8(4)

_TIES = each(
    "= == ~ - ½ tie ties tied tievote draw drawn drew equal equals equallygood both bothequal same bothgood "
    "bothgoodvote undecided nopreference nodifference indifferent c t"
)
_BOTH_BADS = each(
    "bothbad botharebad bothbadvote tiebothbad equallybad bothpoor botharepoor neither neitherisgood neithergood"
)
_SKIPS = each(
    "skip skips skipped pass passed canttell cannottell cantsay cantdecide cannotdecide unsure notsure dontknow idk "
    "unknown none na null nan noanswer unanswered abstain abstained"
)
_LEFT_WORDS = each("leftvote leftwins awins win won wins victory")
_RIGHT_WORDS = each("rightvote rightwins bwins loss lost lose defeat")
_WORDS: dict[str, np.int8] = {
    **{left: LEFT for tier in SIDE_PAIRS for left, _ in tier},
    **{right: RIGHT for tier in SIDE_PAIRS for _, right in tier},
    **{word: LEFT for (word,) in _LEFT_WORDS},
    **{word: RIGHT for (word,) in _RIGHT_WORDS},
    **{word: TIE for (word,) in _TIES},
    **{word: BOTH_BAD for (word,) in _BOTH_BADS},
    **{word: SKIP for (word,) in _SKIPS},
}
# Initials, which mean something else for other sides: A is the first of A and B, and the second of home and away.
_INITIALS: dict[str, dict[str, np.int8]] = {
    "home": {"h": LEFT, "d": TIE, "x": TIE, "a": RIGHT},
    "white": {"w": LEFT, "d": TIE, "b": RIGHT},
}
_MEANINGS: dict[np.int8, str] = {LEFT: "left", RIGHT: "right", TIE: "tie"}
# Sets of codes whose reading is a convention, by the codes that must be among them.
_CODES: tuple[tuple[frozenset[float], dict[float, np.int8]], ...] = (
    (frozenset((-1.0,)), {1.0: LEFT, 0.0: TIE, -1.0: RIGHT}),
    (frozenset((0.5,)), {1.0: LEFT, 0.5: TIE, 0.0: RIGHT}),
    (frozenset((2.0, 0.0)), {1.0: LEFT, 2.0: RIGHT, 0.0: TIE}),
    (frozenset((1.5,)), {1.0: LEFT, 1.5: TIE, 2.0: RIGHT}),
    (frozenset(), {1.0: LEFT, 2.0: RIGHT}),
)
# Codes that are rarer than this are errors of the file and do not change how the others are read.
_RARE = 0.05
_MAX_CODES_SHOWN = 6
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")
_VERDICT = re.compile(r"([AB12])\s*(>+|<+|=+|~)\s*([AB12])", re.IGNORECASE)
# The verdict of a language model at the end of its reasons: "… so the first is better. [[A]]".
_REASONED = re.compile(r".*\[\[([^\[\]]{1,20})\]\]\W*", re.DOTALL)
_SCORE = re.compile(r"(\d+(?:[.,]\d+)?|½|1/2)\s*[-–:]\s*(\d+(?:[.,]\d+)?|½|1/2)")


class Outcomes(NamedTuple):
    """Outcomes of rows, and how codes were read.

    Parameters
    ----------
    outcome : array of int8
        1, 0 or -1 as in `Comparisons`, 2 for a skip, 4 for both bad, and 3 if a cell is none of these.
    codes : mapping of str to str
        What numbers stand for, if the winner is given by numbers.
    unclear : tuple of str
        Numbers that could mean several things; their rows are unknown.
    """

    outcome: npt.NDArray[np.int8]
    codes: Mapping[str, str]
    unclear: tuple[str, ...]


def is_outcome_word(text: str) -> bool:
    """Return whether a cell is a word for a side, a tie or a skip."""
    return _word_outcome(text, _WORDS) is not None or text.strip() in ("1", "2")


def parse_outcomes(left: pl.Series, right: pl.Series, winner: pl.Series, sides: tuple[str, str]) -> Outcomes:
    """Return the outcome of each row.

    The exact names of the two items are tried first. Other words are compared without case and punctuation, and only
    if no item has that name. `sides` are the names of the two columns, which some files use for the winner.
    """
    frame = pl.DataFrame([left.alias("left"), right.alias("right"), winner.alias("winner")])
    named = pl.col("winner")
    by_name = pl.when(named == pl.col("left")).then(int(LEFT)).when(named == pl.col("right")).then(int(RIGHT))
    found = frame.select(by_name.otherwise(None).cast(pl.Int8).alias("outcome")).to_series()
    unresolved = found.is_null()
    if not unresolved.any():
        return Outcomes(found.to_numpy(), {}, ())
    words = winner.filter(unresolved).drop_nulls().alias("word").value_counts()
    counts = dict(zip(words["word"].to_list(), words["count"].to_list(), strict=True))
    free = _without_items(counts, pl.concat([left, right.alias(left.name)]))
    numbers = {word: float(word) for word in free if _NUMBER.fullmatch(word.strip())}
    codes = _read_codes(numbers, counts)
    known = _words_of(sides)
    meanings = {word: codes[value] for word, value in numbers.items() if value in codes} | {
        word: outcome for word in free if word not in numbers and (outcome := _word_outcome(word, known)) is not None
    }
    if meanings:
        found = found.fill_null(
            winner.replace_strict(list(meanings), list(meanings.values()), default=None, return_dtype=pl.Int8)
        )
    named_any = not bool(unresolved.all())
    unclear = () if codes or named_any or not numbers else tuple(sorted(numbers, key=lambda word: numbers[word]))
    shown = {word: _MEANINGS[codes[value]] for word, value in sorted(numbers.items()) if value in codes}
    return Outcomes(found.fill_null(UNKNOWN).to_numpy(), shown, unclear)


def list_codes(codes: Iterable[str]) -> str:
    """Return codes for a message, the first few of many."""
    listed = list(codes)
    return ", ".join(listed[:_MAX_CODES_SHOWN]) + (", …" if len(listed) > _MAX_CODES_SHOWN else "")


def _read_codes(numbers: Mapping[str, float], counts: Mapping[str, int]) -> Mapping[float, np.int8]:
    """Return what numbers stand for, by a convention that fits them; empty if none does."""
    total = sum(counts[word] for word in numbers)
    common = {value for word, value in numbers.items() if counts[word] > _RARE * total}
    for values in ({*numbers.values()}, common):
        for needed, meanings in _CODES:
            if values and needed <= values <= meanings.keys():
                return meanings
    return {}


def _words_of(sides: tuple[str, str]) -> Mapping[str, np.int8]:
    """Return the words for a winner, with those that the names of the two columns add."""
    names = [normalize_name(name) for name in sides]
    initials = next((words for side, words in _INITIALS.items() if side in names[0]), {})
    return _WORDS | initials | {name: side for name, side in zip(names, (LEFT, RIGHT), strict=True) if name}


def _word_outcome(text: str, known: Mapping[str, np.int8]) -> np.int8 | None:
    """Return what a cell that is not a number stands for."""
    if (reasoned := _REASONED.fullmatch(text)) is not None:
        text = reasoned[1]
    bare = text.strip().strip("[](){}\"'* ")
    if (verdict := _VERDICT.fullmatch(bare)) is not None:
        return _verdict_outcome(*verdict.groups())
    if (score := _SCORE.fullmatch(bare)) is not None:
        left, right = (_score(text) for text in score.groups())
        return TIE if left == right else LEFT if left > right else RIGHT
    if bare == "1/2":
        return TIE
    return known.get(normalize_name(text))


def _verdict_outcome(first: str, sign: str, second: str) -> np.int8 | None:
    if first.lower() == second.lower():
        return None
    if sign[0] in "=~":
        return TIE
    better = first if sign[0] == ">" else second
    return LEFT if better.lower() in ("a", "1") else RIGHT


def _score(text: str) -> float:
    return 0.5 if text in ("½", "1/2") else float(text.replace(",", "."))


def _without_items(words: Iterable[str], items: pl.Series) -> list[str]:
    """Return the words that are not the name of an item."""
    listed = list(words)
    names = normalize_names(items.drop_nulls().unique())
    taken = set(names.filter(names.is_in([normalize_name(word) for word in listed])))
    return [word for word in listed if normalize_name(word) not in taken]


def normalize_names(words: pl.Series) -> pl.Series:
    """`normalize_name` for a whole column."""
    bare = words.str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]", "")
    return pl.select(pl.when(bare == "").then(words.str.strip_chars()).otherwise(bare)).to_series()


# Grades in words: the usual scales of questionnaires, as numbers.

# Each scale from worst to best; words of one step are separated by bars.
_SCALES = (
    "strongly disagree|disagree|somewhat disagree|neutral/neither agree nor disagree/undecided/not sure|somewhat agree"
    "|agree|strongly agree",
    "terrible/awful/very poor/very bad|bad|poor|fair/average/ok/okay/acceptable/neutral|good|very good|excellent/great",
    "very dissatisfied|dissatisfied|somewhat dissatisfied|neutral/neither|somewhat satisfied|satisfied|very satisfied",
    "very unlikely|unlikely|neutral/neither likely nor unlikely|likely|very likely",
    "never|rarely/seldom|sometimes/occasionally|often/frequently|always",
    "not at all|slightly/a little|moderately/somewhat|very/a lot|extremely",
    "very low|low|medium/moderate|high|very high",
)


def _steps(scale: str) -> dict[str, int]:
    return {normalize_name(word): n for n, step in enumerate(scale.split("|"), 1) for word in step.split("/")}


def with_numbers_for_words(table: SourceTable, column: str) -> SourceTable:
    """Replace the words of a scale (poor, good, excellent) by numbers; other columns are left as they are."""
    cells = load_expressions(table, [column])[column]
    if cells.dtype != pl.String:
        return table
    labels = parse_labels(cells, strip_spaces=True)
    words = {word: normalize_name(word) for word in labels.drop_nulls().unique().to_list()}
    if not 2 <= len(words) <= 20:
        return table
    known = next((steps for scale in _SCALES if {*words.values()} <= (steps := _steps(scale)).keys()), None)
    if known is None:
        return table
    # The steps that occur are numbered from 1, so that a scale of five words has grades from 1 to 5.
    found = {step: n for n, step in enumerate(sorted({known[name] for name in words.values()}), 1)}
    grades = {word: str(found[known[name]]) for word, name in words.items()}
    listed = ", ".join(f"{word} {grade}" for word, grade in sorted(grades.items(), key=lambda pair: pair[1]))
    numbers = labels.replace_strict(list(grades), list(grades.values()), default=None, return_dtype=pl.String)
    note = f"The words in {column!r} were read as {listed}."
    changed = with_columns_computed(table, pl.DataFrame({column: numbers}))
    return replace(changed, columns=table.columns, notes=(*table.notes, note))
