"""Build comparisons, ratings and rankings from validated rows."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from crowdrank.arrays import AnyArray, FloatArray, Int32Array, IntArray
from crowdrank.data import LEFT, RIGHT, TIE, Comparisons, Rankings, Ratings
from crowdrank.data.labels import encode_annotators, encode_items
from crowdrank.errors import FormatError
from crowdrank.io.column_roles import (
    DURATIONS,
    ITEM_WORDS,
    SIDE_PAIRS,
    RoleMatcher,
    columns_error,
    each,
    load_expressions,
    normalize_name,
)
from crowdrank.io.rows import (
    Explain,
    Rows,
    missing_numbers,
    parse_labels,
    parse_numbers,
    parse_numbers_or_text,
    parse_timestamps,
    show_cell,
)
from crowdrank.io.source_table import SourceTable, with_columns_computed

SKIP, UNKNOWN, BOTH_BAD = np.int8(2), np.int8(3), np.int8(4)

_TIES = each(
    "= == ~ - ½ tie ties tied tievote draw drawn drew equal equals equallygood both bothequal same bothgood "
    "bothgoodvote thesame aboutthesame roughlythesame aboutequal roughlyequal similar verysimilar "
    "undecided nopreference np nodifference indifferent tieinconsistent c t "
    "unentschieden gleich égalité egalite empate"
)
_BOTH_BADS = each(
    "bothbad botharebad bothbadvote tiebothbad equallybad bothpoor botharepoor neither neitherisgood neithergood"
)
_SKIPS = each(
    "* skip skips skipped pass passed canttell cannottell cantsay cantdecide cannotdecide unsure notsure dontknow idk "
    "unknown none na null nan noanswer unanswered abstain abstained"
)
_LEFT_WORDS = each("> >> leftvote leftwins arrowleft awins win won wins victory")
_RIGHT_WORDS = each("< << rightvote rightwins arrowright bwins loss lost lose defeat")
# model_1 is the first of model_1 and model_2; of model_0 and model_1 it is the second only where columns say so.
_NAMED_SIDES = [(left, right) for tier in SIDE_PAIRS for left, right in tier if "0" not in left]
_WORDS: dict[str, np.int8] = {
    **{left: LEFT for left, _ in _NAMED_SIDES},
    **{right: RIGHT for _, right in _NAMED_SIDES},
    **{word: LEFT for (word,) in _LEFT_WORDS},
    **{word: RIGHT for (word,) in _RIGHT_WORDS},
    **{word: TIE for (word,) in _TIES},
    **{word: BOTH_BAD for (word,) in _BOTH_BADS},
    **{word: SKIP for (word,) in _SKIPS},
}
# Initials, which mean something else for other sides: A is the first of A and B, and the second of home and away.
_INITIALS: dict[str, dict[str, np.int8]] = {
    "home": {"h": LEFT, "d": TIE, "x": TIE, "a": RIGHT},
    # chess.com says how White's game ended, in a column such as white_result.
    "white": {"w": LEFT, "d": TIE, "b": RIGHT}
    | dict.fromkeys(["checkmated", "resigned", "timeout", "abandoned"], RIGHT)
    | dict.fromkeys(["agreed", "stalemate", "repetition", "insufficient", "timevsinsufficient", "50move"], TIE),
    "fighter": {"red": LEFT, "r": LEFT, "blue": RIGHT, "b": RIGHT},
    "opponent": {"w": LEFT, "d": TIE, "t": TIE, "l": RIGHT},
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
_NOUNS = "|".join([*ITEM_WORDS, "response", "answer", "output", "text", "assistant", "side"])
_VERDICT = re.compile(r"([AB12])\s*(>+|<+|=+|~)\s*([AB12])", re.IGNORECASE)
# The verdict of a language model at the end of its reasons: "… so the first is better. [[A]]".
_REASONED = re.compile(r".*\[\[([^\[\]]{1,20})\]\]\W*", re.DOTALL)
# Preferences in words: "A is much better", "Response B is slightly preferred".
_BETTER = re.compile(
    rf"(?:the )?(?:(?:{_NOUNS}) ?)?(?P<side>a|b|1|2|left|right|first|second)(?: (?:{_NOUNS}|one))?(?: is| was)?"
    r"(?: much| far| way| clearly| significantly| considerably| definitely| strongly| moderately| somewhat| slightly"
    r"| marginally| a bit| a little| a lot)? (?:better|preferred)"
)
_SCORE = re.compile(r"(\d+(?:[.,]\d+)?|½|1/2)\s*[-–:]\s*(\d+(?:[.,]\d+)?|½|1/2)")
# A game that one player did not come to: + - - in tables of chess tournaments.
_FORFEIT = re.compile(r"([+1])\s*[-–:]\s*[-–]|[-–]\s*[-–:]\s*[+1]")


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
    initials = next((words for side, words in _INITIALS.items() if any(side in name for name in names)), {})
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
    if (forfeit := _FORFEIT.fullmatch(bare)) is not None:
        return LEFT if forfeit[1] else RIGHT
    if bare == "1/2":
        return TIE
    if (better := _BETTER.fullmatch(bare.lower().rstrip("."))) is not None:
        return LEFT if better["side"] in ("a", "1", "left", "first") else RIGHT
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
    "no/down/thumbs down/dislike/reject/false/incorrect|maybe/neutral/unsure|yes/up/thumbs up/like/accept/true/correct",
)


def _steps(scale: str) -> dict[str, int]:
    return {normalize_name(word): n for n, step in enumerate(scale.split("|"), 1) for word in step.split("/")}


def is_scale_of_words(words: Iterable[str]) -> bool:
    """Return whether words are two or more steps of one scale: poor, good, excellent."""
    names = {normalize_name(word) for word in words}
    return len(names) > 1 and any(names <= _steps(scale).keys() for scale in _SCALES)


def with_numbers_for_words(table: SourceTable, column: str) -> SourceTable:
    """Replace the words of a scale (poor, good, excellent) by numbers; other columns are left as they are."""
    cells = load_expressions(table, [column])[column]
    if cells.dtype != pl.String:
        return table
    labels = parse_labels(cells, strip_spaces=True)
    if (read := _bare_numbers(labels)) is not None:
        note = f"The cells of {column!r} were read as {read[1]}."
        changed = with_columns_computed(table, pl.DataFrame({column: read[0]}))
        return replace(changed, columns=table.columns, notes=(*table.notes, note))
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


# Share of the cells of a scale such as "6: weak accept" in which the words are written out.
_MOST_WORDED = 0.5


def _bare_numbers(labels: pl.Series) -> tuple[pl.Series, str] | None:
    """Return the numbers in cells such as 79%, 6/10 or ★★★, and what they were read as."""
    cells = labels.drop_nulls()
    if cells.is_empty():
        return None
    if cells.str.contains(r"^\d+([.,]\d+)? ?%$").all():
        return labels.str.strip_chars("% ").str.replace(",", ".", literal=True), "percentages"
    most = cells.str.extract(r"^\d+(?:\.\d+)? ?/ ?(\d+)$")
    if cells.str.contains(r"^\d+ ?[:=–-] ?[^\d\s]").mean() > _MOST_WORDED and cells.str.contains(r"^\d+\b").all():  # type: ignore[operator]
        return labels.str.extract(r"^(\d+)"), "the numbers before their words"
    if not most.has_nulls() and most.n_unique() == 1:
        return labels.str.extract(r"^([\d.]+)"), f"points out of {most[0]}"
    if cells.str.contains("^[★⭐]*[☆✩]*$").all():
        return labels.str.count_matches("[★⭐]").cast(pl.String), "numbers of stars"
    return None


# Build comparisons, ratings and rankings from validated rows.

# A column of this name says where its item was shown, even in rows marked as swapped.
_LEFT_PREFIXES = ("left", "lhs")
_MAX_KEY = float(2**62)
# A longer median duration was probably recorded in milliseconds.
_MAX_MEDIAN_SECONDS = 1000.0
# More different numbers than this are not codes for a side.
_MAX_CODES = 4
# With fewer rows, repeats of one answer say little.
_MIN_REPEATS = 20


def build_comparisons(rows: Rows) -> Comparisons:
    """Build comparisons from left, right and winner, or from winner and loser; skips are counted and left out."""
    positions_known = rows.has("left")
    first, second = ("left", "right") if positions_known else ("winner", "loser")
    left, right = rows.labels(first), rows.labels(second)
    if rows.has("winner") and positions_known:
        left, right, outcome = _with_outcomes(rows, left, right)
    elif positions_known:
        outcome = _by_values(rows, left, right)
    else:
        outcome = _first_won(rows, left, right)
    who, query = rows.optional_labels("annotator"), rows.optional_labels("query")
    weight = rows.optional_weights()
    rows.counts.skips += rows.errors.ignore(outcome == SKIP)
    rows.finish_checks()
    items, (lefts, rights) = encode_items([rows.usable(left), rows.usable(right)], [first, second], rows.usable(query))
    annotators, annotator = encode_annotators(rows.usable(who))
    outcome = rows.usable(outcome)
    if annotator is not None and rows.counts_duplicates and rows.table.part_of is None:
        rows.counts.duplicates = count_duplicates(annotator, lefts, rights, outcome + 1)
    if len(items.labels) == 2 and 2 * rows.counts.duplicates > max(len(outcome), _MIN_REPEATS) and query is None:
        rows.note(
            "All rows compare the same two items. If they are about different questions, name the column of the "
            "question: columns={'query': 'COLUMN'}."
        )
    both_bad = outcome == BOTH_BAD
    outcome = np.where(both_bad, TIE, outcome)
    rows.counts.ties, rows.counts.both_bad = int(np.count_nonzero(outcome == TIE)), int(np.count_nonzero(both_bad))
    return Comparisons(
        items=items,
        left=lefts,
        right=rights,
        outcome=outcome,
        annotators=annotators,
        annotator=annotator,
        weight=rows.usable(weight),
        time=_time(rows),
        duration=_duration(rows),
        both_bad=both_bad,
        features={name: parse_numbers_or_text(rows.usable(rows.frame[name])) for name in rows.features},
        positions_known=positions_known and rows.table.positions_known,
        frame_backend=rows.table.frame_backend,
    )


def _refuse_same(rows: Rows, left: pl.Series, right: pl.Series, column: str) -> None:
    same = (left == right).fill_null(False)
    rows.counts.self_comparisons = rows.errors.refuse(
        same, column, lambda row: f"{show_cell(left[row])} is compared with itself"
    )


def _first_won(rows: Rows, winner: pl.Series, loser: pl.Series) -> npt.NDArray[np.int8]:
    _refuse_same(rows, winner, loser, rows.match.roles["loser"])
    return np.full(len(winner), LEFT, np.int8)


def _with_outcomes(rows: Rows, left: pl.Series, right: pl.Series) -> tuple[pl.Series, pl.Series, npt.NDArray[np.int8]]:
    """Return both items as they were shown, and the outcome."""
    roles, short = rows.match.roles, rows.table.short_names
    _refuse_same(rows, left, right, roles["right"])
    winner = rows.labels("winner")
    sides = (short.get(roles["left"], roles["left"]), short.get(roles["right"], roles["right"]))
    swapped = rows.table.shown_swapped
    if swapped is not None and not normalize_name(sides[0]).startswith(_LEFT_PREFIXES):
        winner = _winner_by_name(winner, left, right, sides)
        exchanged = pl.Series(swapped)
        left, right = right.zip_with(exchanged, left), left.zip_with(exchanged, right)
    found, codes, unclear = parse_outcomes(left, right, winner, sides)
    if unclear:
        raise _unclear_codes(rows, unclear)
    if codes:
        said = ", ".join(f"{code} {meaning}" for code, meaning in codes.items())
        rows.note(f"Codes in {roles['winner']!r} were read as {said}. {_other_meanings(roles['winner'], codes)}")
    rows.counts.unknown_items = rows.errors.refuse(
        found == UNKNOWN,
        roles["winner"],
        lambda row: (
            f"{show_cell(winner[row])} is neither {show_cell(left[row])}, {show_cell(right[row])}, a tie nor a skip"
        ),
    )
    return left, right, found


def _other_meanings(column: str, codes: Iterable[str]) -> str:
    meanings = ",".join(f"{code}={word}" for code, word in zip(codes, ("right", "left", "tie"), strict=False))
    return f"If they mean something else, say so: columns={{'winner': '{column}:{meanings}'}}."


def _unclear_codes(rows: Rows, codes: Sequence[str]) -> FormatError:
    """Return the error for a winner that is given by numbers without a conventional meaning."""
    column = rows.match.roles["winner"]
    problem = f"{rows.table.name}: the winner {column!r} holds numbers ({list_codes(codes)}), which do not say who won."
    scores = RoleMatcher(rows.table, {}).pair(("left_score", "right_score")) or {}
    if column in scores.values():
        roles = {role: name for role, name in rows.match.roles.items() if role in ("left", "right")} | scores
        return columns_error(problem, "If they are scores, the larger wins with", roles)
    if len(codes) > _MAX_CODES:
        scores = {"left_score": column, "right_score": "COLUMN"}
        return columns_error(problem, "If they are scores, name those of both sides:", scores)
    meanings = ",".join(f"{c}={word}" for c, word in zip(reversed(codes), ("left", "right", "tie"), strict=False))
    return columns_error(problem, "Say what each means:", {"winner": f"{column}:{meanings}"})


def _by_values(rows: Rows, left: pl.Series, right: pl.Series) -> npt.NDArray[np.int8]:
    """Return outcomes by two scores, of which the larger wins, or by two ranks, of which the smaller wins."""
    _refuse_same(rows, left, right, rows.match.roles["right"])
    value, sign = ("score", 1) if rows.has("left_score") else ("rank", -1)
    first, second = (parse_numbers(rows.column(f"{side}_{value}")) for side in ("left", "right"))
    for side, numbers in (("left", first), ("right", second)):
        # A match that was not played and a system that was not ranked (-1) have no outcome.
        column = rows.column(f"{side}_{value}")
        rows.counts.skips += rows.errors.ignore(missing_numbers(column) | ((value == "rank") & (numbers < 0)))
        rows.refuse_numbers(f"{side}_{value}", np.isfinite(numbers), "a number")
    better = {"score": "the larger", "rank": "the smaller"}[value]
    columns = " and ".join(repr(rows.match.roles[f"{side}_{value}"]) for side in ("left", "right"))
    rows.note(f"{better.capitalize()} of {columns} wins; equal {value}s are ties.")
    return np.sign(np.nan_to_num(sign * (first - second))).astype(np.int8)


def _winner_by_name(winner: pl.Series, left: pl.Series, right: pl.Series, sides: tuple[str, str]) -> pl.Series:
    """Replace the name of a column (model_1) by its item, because a swapped item is not on the side of its column."""
    names = normalize_names(winner)
    for side, item in zip(sides, (left, right), strict=True):
        winner = item.zip_with((names == normalize_name(side)).fill_null(False), winner)
    return winner


def count_duplicates(annotator: Int32Array, *codes: AnyArray) -> int:
    """Count the rows that repeat an earlier row of the same annotator."""
    sizes = [int(c.max(initial=0)) + 1 for c in codes]
    if (int(annotator.max(initial=0)) + 1) * np.prod(np.asarray(sizes, float)) < _MAX_KEY:
        key = annotator.astype(np.int64)
        for code, size in zip(codes, sizes, strict=True):
            key = key * size + code
        return len(key) - pl.Series(key).n_unique()
    frame = pl.DataFrame({str(n): c for n, c in enumerate((annotator, *codes))})
    return frame.height - frame.n_unique()


def _time(rows: Rows) -> FloatArray | None:
    return _recorded(rows, parse_timestamps(rows.usable(rows.column("time"))), "time") if rows.has("time") else None


def _duration(rows: Rows) -> FloatArray | None:
    if not rows.has("duration"):
        return None
    name = rows.match.roles["duration"]
    values = parse_numbers(rows.usable(rows.column("duration")))
    seconds = _recorded(rows, values / DURATIONS.get(normalize_name(name), 1.0), "duration")
    if seconds is not None and np.nanmedian(seconds) > _MAX_MEDIAN_SECONDS:
        rows.note(
            f"Half of the answers took over {_MAX_MEDIAN_SECONDS:,.0f} s. If {name!r} is in milliseconds, divide it."
        )
    return seconds


def _recorded(rows: Rows, values: FloatArray, role: str) -> FloatArray | None:
    """Return values with NaN where nothing was recorded; None if nothing was recorded at all."""
    values = np.where(np.isfinite(values), values, np.nan)
    missing = int(np.count_nonzero(np.isnan(values)))
    name = rows.match.roles[role]
    if missing == len(values):
        rows.note(f"{name!r} contains no {role} that can be read; it was ignored.")
        return None
    if missing:
        rows.note(f"{name!r}: no {role} in {missing:,} of {len(values):,} rows.")
    return values


def build_ratings(rows: Rows) -> Ratings:
    """Build ratings from item and grade."""
    item, grade = rows.labels("item"), rows.numbers("grade")
    who, query = rows.optional_labels("annotator"), rows.optional_labels("query")
    weight = rows.optional_weights()
    rows.finish_checks()
    found = Ratings.of(
        item=rows.usable(item),
        grade=rows.usable(grade),
        annotator=rows.usable(who),
        query=rows.usable(query),
        weight=rows.usable(weight),
        frame_backend=rows.table.frame_backend,
    )
    if found.annotator is not None:
        answers = pl.DataFrame({"who": found.annotator, "item": found.item, "grade": np.asarray(found.grade)})
        rows.counts.duplicates = answers.height - answers.n_unique()
    return found


_LIST_KEYS = ("query", "annotator", "list")


def build_rankings(rows: Rows) -> Rankings:
    return _from_orders(rows) if rows.has("order") else _from_ranks(rows)


def _from_ranks(rows: Rows) -> Rankings:
    """Build rankings from item and rank; rows with the same annotator, query and list name form one list."""
    item, rank = rows.labels("item"), rows.numbers("rank")
    keys = {role: labels for role in _LIST_KEYS if (labels := rows.optional_labels(role)) is not None}
    weight = rows.optional_weights()
    frame = pl.DataFrame({**keys, "item": item, "rank": rank, "row": np.arange(len(item))})
    frame = frame.filter(rows.errors.usable)
    again = frame.filter(~pl.struct(*keys, "item").is_first_distinct())["row"].to_numpy()
    _refuse_rows(rows, again, rows.match.roles["item"], lambda row: f"{show_cell(item[row])} is already in this list")
    rows.finish_checks()
    kept = frame.filter(rows.errors.usable[frame["row"].to_numpy()])
    return _to_rankings(rows, kept, [*keys], None if weight is None else weight[kept["row"].to_numpy()])


def _from_orders(rows: Rows) -> Rankings:
    """Build one list per row, from text such as "a>b=c>d" (best first, = for ties) or from lists of tied items."""
    order = _with_lists(rows.column("order"))
    listed = order.dtype == pl.List
    if listed:
        order = order.set(order.list.len() == 0, None)
        rows.errors.refuse_missing(order, rows.match.roles["order"], "order")
    else:
        order = rows.labels("order")
    keys = {role: labels for role in _LIST_KEYS[:2] if (labels := rows.optional_labels(role)) is not None}
    weight = rows.optional_weights()
    column = rows.match.roles["order"]
    if not listed and not order.str.contains(">").any():
        order = _with_signs(rows, order, column)
    frame = _listed_places(order) if listed else _places(order)
    empty = frame.filter(pl.col("item").fill_null("") == "")["row"].to_numpy()
    _refuse_rows(rows, empty, column, lambda row: f"{show_cell(order[row])} leaves a place empty")
    again = frame.filter(~pl.struct("row", "item").is_first_distinct())["row"].to_numpy()
    _refuse_rows(rows, again, column, lambda row: f"{show_cell(order[row])} names an item twice")
    rows.finish_checks()
    frame = frame.filter(rows.errors.usable[frame["row"].to_numpy()])
    row = frame["row"]
    named = [labels.gather(row).alias(role) for role, labels in keys.items()]
    # Padded with zeros, so that lists sorted by name keep the order of the file.
    frame = frame.with_columns(*named, row.cast(pl.String).str.zfill(12).alias("list"))
    return _to_rankings(rows, frame, [*keys, "list"], None if weight is None else weight[row.to_numpy()])


def _with_lists(order: pl.Series) -> pl.Series:
    """Return cells that are lists in text, such as ['tea', 'milk'], as lists."""
    if order.dtype != pl.String or not order.str.contains(r"^\s*\[.*\]\s*$").all():
        return order
    found = [None if text is None else _parsed_list(text) for text in order.to_list()]
    if any(text is not None and entry is None for text, entry in zip(order.to_list(), found, strict=True)):
        return order
    return pl.Series(order.name, found, dtype=pl.List(pl.String))


def _parsed_list(text: str) -> list[str] | None:
    for parse in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            entries = parse(text)
            if isinstance(entries, list) and not any(isinstance(entry, list | dict | tuple) for entry in entries):
                return [str(entry) for entry in entries]
    # Without quotes: [tea, milk].
    bare = [part.strip() for part in text.strip()[1:-1].split(",")]
    return bare if all(bare) and not re.search("[\\['\"]", text.strip()[1:-1]) else None


def _with_signs(rows: Rows, order: pl.Series, column: str) -> pl.Series:
    """Return lists that are separated by commas, semicolons or bars, best first, in the form a>b>c."""
    for sign, name in ((";", "semicolons"), ("|", "bars"), (",", "commas")):
        if (order.str.count_matches(sign, literal=True) > 0).mean() == 1:
            rows.note(f"The lists in {column!r} are separated by {name}, and the first item was read as the best.")
            return order.str.strip_chars(f" {sign}").str.replace_all(sign, ">", literal=True)
    raise FormatError(f"{rows.table.name}: column {column!r} contains no lists such as 'a>b=c>d' or 'a, b, c'.")


def _places(order: pl.Series) -> pl.DataFrame:
    """Return one row per item: the row of its list, and its rank there."""
    frame = pl.DataFrame({"row": np.arange(len(order)), "item": order}).drop_nulls()
    frame = frame.with_columns(pl.col("item").str.split(">"))
    frame = frame.with_columns(rank=pl.int_ranges(1, pl.col("item").list.len() + 1)).explode("item", "rank")
    frame = frame.with_columns(pl.col("item").str.split("=")).explode("item")
    return frame.with_columns(pl.col("item").str.strip_chars())


def _listed_places(order: pl.Series) -> pl.DataFrame:
    """Return the same from lists of places, or from lists of items."""
    frame = pl.DataFrame({"row": np.arange(len(order)), "item": order}).drop_nulls()
    frame = frame.with_columns(rank=pl.int_ranges(1, pl.col("item").list.len() + 1)).explode("item", "rank")
    if frame["item"].dtype == pl.List:
        frame = frame.explode("item").drop_nulls()  # empty places
    return frame.with_columns(pl.col("item").cast(pl.String).str.strip_chars())


def _refuse_rows(rows: Rows, numbers: IntArray, column: str, explain: Explain) -> None:
    mask = np.zeros(rows.table.rows, bool)
    mask[numbers] = True
    rows.errors.refuse(mask, column, explain)


def _to_rankings(rows: Rows, frame: pl.DataFrame, keys: list[str], weight: FloatArray | None) -> Rankings:
    columns = {key: frame[key] for key in keys}
    found = Rankings.of(item=frame["item"], rank=frame["rank"], **columns, frame_backend=rows.table.frame_backend)
    places = found.place[found.offsets[1:] - 1] + 1
    rows.counts.ties = len(found.item) - int(places.sum())
    return found if weight is None else replace(found, weight=_weight_of_lists(rows, frame, keys, weight))


def _weight_of_lists(rows: Rows, frame: pl.DataFrame, keys: list[str], weight: FloatArray) -> FloatArray:
    """Return one weight per list, in the order of `Rankings.of`: by query, annotator and list."""
    lists = (
        frame.with_columns(pl.Series("weight", weight))
        .group_by(keys or pl.lit(0))
        .agg(least=pl.col("weight").min(), weight=pl.col("weight").max())
    )
    if keys:
        lists = lists.sort(keys)
    if (lists["least"] != lists["weight"]).any():
        column = rows.match.roles["weight"]
        raise FormatError(
            f"{rows.table.name}: column {column!r} gives rows of one list different weights.",
            remedy="Give one weight per list.",
        )
    return lists["weight"].to_numpy()
