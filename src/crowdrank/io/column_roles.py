"""Match columns to roles by their names, and determine the kind of judgments.

`synonyms` lists the names of each role in tiers. The first tier with a match decides; two matches in one tier are an
error that asks the user.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from crowdrank.errors import CrowdrankError, FormatError, UnknownNameError
from crowdrank.io.source_table import SAMPLE_ROWS, SourceTable

# Names of columns by role: the one place for synonyms.
#
# Names are compared without case and punctuation: "Candidate.Chosen" equals "candidate_chosen". The names of a role
# are grouped in tiers: the first tier with a match decides.
#
# Some names are missing on purpose, because they often have a different value in every row: `prompt`, `question_id`,
# `task` and `id` are not read as the query, and `count` is not read as a weight. `response_a` and `output_1` come
# after `model_a`. A name comes before an id, because people read the ranking.

Tiers = tuple[tuple[str, ...], ...]
PairTiers = tuple[tuple[tuple[str, str], ...], ...]


def normalize_name(name: str) -> str:
    """Return a name without case and punctuation, unless it is nothing but punctuation."""
    return "".join(c for c in name.casefold() if c.isalnum()) or name.strip()


def _tiers(*lines: str) -> Tiers:
    return tuple(tuple(line.split()) for line in lines)


def each(names: str) -> Tiers:
    """Return tiers of one name each."""
    return tuple((name,) for name in names.split())


def _with_id(names: str) -> tuple[str, ...]:
    return _with_end(names, "id")


def _with_end(names: str, end: str) -> tuple[str, ...]:
    return tuple(f"{name}{end}" for name in names.split())


_ANNOTATOR_WORDS = (
    "worker judge rater observer voter assessor performer coder labeler labeller evaluator reviewer grader juror "
    "listener viewer taster prüfer juge juez"
)
_PARTICIPANT_WORDS = "user participant person respondent subject visitor prolific subj"
_ITEM_WORDS = (
    "item object candidate stimulus option entity alternative condition image img video model system "
    "generator player team driver method essay project product submission representation choice argument policy movie "
    "film song book poster sentence summary stim"
)
# Tried after the others, beside which they often stand: the sample that a model was shown, the paper of an author.
_OTHER_ITEM_WORDS = "sys document doc ratee gradee reviewee paper fighter athlete competitor contestant horse sample"
_TEXT_WORDS = "response output answer text conversation completion translation caption generation humanref"
_DURATION_WORDS = (
    "duration timetaken responsetime worktime reactiontime decisiontime leadtime timespent elapsed work response"
)
_DURATION_UNITS = {
    1.0: ("", "s", "sec", "secs", "seconds", "inseconds"),
    1000.0: ("ms", "msec", "millis", "milliseconds"),
}


def _durations() -> dict[str, float]:
    """Return the names of durations, and the divisor that gives seconds."""
    named = {
        f"{word}{unit}": by
        for word in _DURATION_WORDS.split()
        for by, units in _DURATION_UNITS.items()
        for unit in units
    }
    alone = {unit: by for by, units in _DURATION_UNITS.items() for unit in units if len(unit) > 2}
    # "work" and "response" name a duration only together with a unit.
    return {name: by for name, by in (named | alone).items() if name not in ("work", "response", "responses", "works")}


DURATIONS = _durations()
ITEM_WORDS = (*_ITEM_WORDS.split(), *_OTHER_ITEM_WORDS.split())
TEXT_WORDS = frozenset(_TEXT_WORDS.split())
ANNOTATOR_WORDS = ("annotator", *_ANNOTATOR_WORDS.split())
# In a grid with voters in rows: names of voters, and columns of numbers that are not items.
GRID_ANNOTATORS = frozenset(
    ["name", "student", "studentname", "username", "email", "emailaddress", "team", "group", "responseid"]
)
NOT_ITEMS = frozenset(
    name for (name,) in each("id idx index row no number nr trial unnamed0 total sum mean average age year")
) | {""}

SYNONYMS: dict[str, Tiers] = {
    "annotator": (
        ("annotator",),
        ("annotatorid", "annotatorname", "annotatorindex", "annotatorhash"),
        tuple(_ANNOTATOR_WORDS.split()),
        _with_id(_ANNOTATOR_WORDS),
        _with_end(_ANNOTATOR_WORDS, "name"),
        tuple(_PARTICIPANT_WORDS.split()),
        (*_with_id(_PARTICIPANT_WORDS), "prolificpid", "participantprivateid"),
        ("uid",),
    ),
    # A name with "+" stands for two columns whose cells are joined.
    "query": each(
        "query queryid qid topic topicid scene sceneid context contextid langpair languagepair lp "
        "srclang+trglang srclang+tgtlang sourcelang+targetlang"
    ),
    "winner": _tiers(
        "winner",
        "winnername winneritem",
        "winnerid",
        "preferred choice chosen selected selection vote result answer label preference verdict outcome judgment "
        "judgement decision better pick ftr whiteresult gewinner sieger vainqueur gagnant ganador",
        "preferredmodel preferredsystem preferredresponse preferreditem chosenmodel chosenitem chosenresponse "
        "bettermodel betteritem betterresponse winningteam winningmodel winningitem betterid preferredid chosenid "
        "whoisbetter whichisbetter",
    ),
    "item": (
        ("item",),
        ("itemname", "ratingstimulus"),
        ("itemid",),
        _with_end(_ITEM_WORDS, "name"),
        tuple(_ITEM_WORDS.split()[1:]),
        (*_with_id(_ITEM_WORDS), "docno"),
        # WMT's direct assessments name the system (sys) and, beside it, the document that it translated.
        ("sys",),
        _with_end(_OTHER_ITEM_WORDS, "name"),
        tuple(_OTHER_ITEM_WORDS.split()[1:]),
        _with_id(_OTHER_ITEM_WORDS),
    ),
    "grade": _tiers(
        "grade",
        "rating",
        "score",
        "stars relevance label mark points judgment judgement",
        "rawscore rawscr ratingscore",
    ),
    "rank": _tiers("rank", "position", "place placement", "ranking"),
    "list": _tiers("list", "listid", "ballot ballotid rankingid race raceid", "event eventid heat heatid"),
    "order": _tiers("order", "orderbestfirst", "ranking preferenceorder rankedlist"),
    "weight": _tiers("weight", "weights"),
    "time": each(
        "time timestamp answeredat createdat tstamp submittedat submittime datetime datecreated date updatedat"
    ),
    "duration": each(" ".join(DURATIONS)),
}


# Words for the two sides of a comparison, as part of a name or alone.
_SIDE_WORDS = (
    ("left", "right"),
    ("home", "away"),
    ("home", "visitor"),
    ("heim", "gast"),
    ("white", "black"),
    ("red", "blue"),
)
_SIDE_MARKS = (("a", "b"), ("1", "2"), ("x", "y"), ("0", "1"))


def _pairs(words: str, first: str, second: str) -> list[tuple[str, str]]:
    return [(first.format(w), second.format(w)) for w in words.split()]


def _by_side(words: str, end: str = "") -> list[tuple[str, str]]:
    return [
        pair
        for a, b in _SIDE_WORDS
        for pair in _pairs(words, f"{a}{{}}{end}", f"{b}{{}}{end}") + _pairs(words, f"{{}}{a}{end}", f"{{}}{b}{end}")
    ]


def _by_mark(words: str, end: str = "") -> list[tuple[str, str]]:
    return [pair for a, b in _SIDE_MARKS for pair in _pairs(words, f"{{}}{a}{end}", f"{{}}{b}{end}")]


def _side_pairs() -> PairTiers:
    bare = [("a", "b"), ("x", "y"), ("i", "j"), ("l", "r"), ("lhs", "rhs"), ("first", "second"), ("p1", "p2")]
    return tuple(
        tuple(tier)
        for tier in (
            [("left", "right")],
            [("leftname", "rightname")],
            [("leftid", "rightid")],
            _by_side(_ITEM_WORDS, "name"),
            _by_side(_ITEM_WORDS),
            _by_side(_ITEM_WORDS, "id"),
            _by_mark(_ITEM_WORDS, "name"),
            _by_mark(_ITEM_WORDS),
            _by_mark(_ITEM_WORDS, "id"),
            _by_side(_OTHER_ITEM_WORDS, "name") + _by_mark(_OTHER_ITEM_WORDS, "name"),
            _by_side(_OTHER_ITEM_WORDS) + _by_mark(_OTHER_ITEM_WORDS),
            _by_side(_OTHER_ITEM_WORDS, "id") + _by_mark(_OTHER_ITEM_WORDS, "id"),
            [("home", "away"), ("home", "visitor"), ("heim", "gast"), ("homeneutral", "visitorneutral")],
            [("white", "black")],
            [("links", "rechts"), ("gauche", "droite"), ("izquierda", "derecha"), ("rfighter", "bfighter")],
            [("whiteusername", "blackusername"), ("whiteuser", "blackuser")],
            [("homeid", "awayid"), ("whiteid", "blackid")],
            bare,
            [("lhsid", "rhsid")],
            [("id1", "id2")],
            [("player", "opponent"), ("team", "opponent")],
            _by_side(_TEXT_WORDS),
            _by_mark(_TEXT_WORDS),
            _by_mark(_TEXT_WORDS, "id"),
        )
    )


SIDE_PAIRS = _side_pairs()


def _valued_pairs(values: str, *, with_sides: bool) -> PairTiers:
    """Return names of a value on each side: score_a and score_b, system1score and system2score."""
    items = [pair for value in values.split() for pair in _by_mark(_ITEM_WORDS + " " + _TEXT_WORDS, value)]
    sides = (
        [pair for value in values.split() for pair in _by_side(value)]
        if with_sides
        else _pairs(values, "left{}", "right{}")
    )
    # home_team_goals: teams and players are those that score on a side.
    teams = [pair for value in values.split() for pair in _by_side("team player", value)] if with_sides else []
    return (
        tuple(sides),
        tuple(_by_mark(values)),
        (*items, *teams),
        tuple(_pairs(values, "a{}", "b{}") + _pairs(values, "p1{}", "p2{}")),
    )


# White's and home's ranks are usually places in a league or rating list before the match, so they are missing here.
_SCORE_WORDS = tuple("score scores goals points pts runs tore".split())  # noqa: SIM905
SCORE_PAIRS: PairTiers = (
    *_valued_pairs(" ".join(_SCORE_WORDS), with_sides=True),
    (("fthg", "ftag"), ("hg", "ag")),
)
RANK_PAIRS = _valued_pairs("rank", with_sides=False)

WINNER_LOSER_PAIRS: PairTiers = (
    (("winner", "loser"),),
    (("winnername", "losername"), ("winneritem", "loseritem")),
    (("winnerid", "loserid"),),
    (("winningteam", "losingteam"), ("winningplayer", "losingplayer"), ("winnerteam", "loserteam")),
    (("wteamname", "lteamname"), ("wteam", "lteam"), ("wname", "lname")),
    (("wteamid", "lteamid"),),
    (("chosenmodel", "rejectedmodel"), ("winnermodel", "losermodel")),
    (("chosen", "notchosen"),),
    (("chosen", "rejected"),),
    (("candidatechosen", "candidatenotchosen"),),
    (("won", "lost"),),
    (("preferred", "rejected"), ("preferred", "nonpreferred"), ("better", "worse"), ("selected", "rejected")),
)

ROLES = (
    "annotator",
    "query",
    "left",
    "right",
    "winner",
    "loser",
    "left_score",
    "right_score",
    "left_rank",
    "right_rank",
    "item",
    "grade",
    "rank",
    "list",
    "order",
    "weight",
    "time",
    "duration",
)

PAIRS_BY_ROLES: dict[tuple[str, str], PairTiers] = {
    ("left", "right"): SIDE_PAIRS,
    ("winner", "loser"): WINNER_LOSER_PAIRS,
    ("left_score", "right_score"): SCORE_PAIRS,
    ("left_rank", "right_rank"): RANK_PAIRS,
}
NAMES_BY_ROLE: dict[str, Tiers] = SYNONYMS | {
    role: tuple(tuple(pair[n] for pair in tier) for tier in tiers)
    for roles, tiers in reversed(PAIRS_BY_ROLES.items())
    for n, role in enumerate(roles)
    if role != "winner"
}


# Columns that are made of others: `type+level` joins cells, and `label:0=left,1=right` says what codes mean.

JOIN = "+"
# What a code can mean, in words that the outcome parser knows.
CODE_MEANINGS = ("left", "right", "tie", "both_bad", "skip")
_CODES = re.compile(r"(?P<column>.+):(?P<codes>[^:=,]+=\w+(?:,[^:=,]+=\w+)*)")


def resolve_expression(table: SourceTable, text: str, find: Callable[[SourceTable, str], str]) -> str:
    """Return an expression in the spelling of the table; `find` finds a single column, or raises an error."""
    if text in table.columns:
        return find(table, text)
    if (found := _CODES.fullmatch(text)) is not None:
        meanings = split_codes(text)[1]
        if unknown := [word for word in meanings.values() if word not in CODE_MEANINGS]:
            known = ", ".join(CODE_MEANINGS)
            raise FormatError(f"{text!r}: a code can mean {known}, got {unknown[0]!r}.")
        return f"{find(table, found['column'])}:{found['codes']}"
    parts = [part.strip() for part in text.split(JOIN)]
    if len(parts) > 1 and all(parts):
        return JOIN.join(find(table, part) for part in parts)
    return find(table, text)


def split_codes(text: str) -> tuple[str, dict[str, str]]:
    """Split `label:0=left,1=right` into the column and the meaning of each code."""
    found = _CODES.fullmatch(text)
    if found is None:
        return text, {}
    pairs = (pair.partition("=") for pair in found["codes"].split(","))
    return found["column"], {code.strip(): word.lower() for code, _, word in pairs}


def stored_columns(expression: str, columns: Sequence[str]) -> list[str]:
    """Return the columns of a table that an expression reads."""
    if expression in columns:
        return [expression]
    column = split_codes(expression)[0]
    return [column] if column in columns else column.split(JOIN)


def load_expressions(table: SourceTable, expressions: Sequence[str], rows: int | None = None) -> pl.DataFrame:
    """Load columns and expressions; each is a column of the result under its own text."""
    stored = {e: stored_columns(e, table.columns) for e in expressions}
    frame = table.load(list(dict.fromkeys(c for columns in stored.values() for c in columns)), rows)
    return pl.DataFrame({e: _evaluate(frame, e, columns) for e, columns in stored.items()})


def _evaluate(frame: pl.DataFrame, expression: str, columns: Sequence[str]) -> pl.Series:
    from crowdrank.io.rows import parse_labels

    if columns == [expression]:
        return frame.get_column(expression)
    cells = [parse_labels(frame.get_column(column), strip_spaces=True) for column in columns]
    if len(cells) == 1:
        meanings = split_codes(expression)[1]
        return cells[0].replace(list(meanings), list(meanings.values()))
    # A part that is missing is left out, so that a reference without a level keeps its name.
    joined = pl.select(pl.concat_str(cells, separator=JOIN, ignore_nulls=True)).to_series()
    return joined.set((joined == "").fill_null(True), None)


KINDS = ("comparisons", "ratings", "rankings")
# The first complete shape is taken. `order` comes last, because it is also a common name for the order of trials.
SHAPES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("comparisons", ("left", "right", "winner")),
    ("comparisons", ("winner", "loser")),
    ("comparisons", ("left", "right", "left_score", "right_score")),
    ("comparisons", ("left", "right", "left_rank", "right_rank")),
    ("rankings", ("item", "rank")),
    ("ratings", ("item", "grade")),
    ("rankings", ("order",)),
)
OPTIONAL_ROLES = {
    "comparisons": ("annotator", "query", "weight", "time", "duration"),
    "ratings": ("annotator", "query", "weight"),
    "rankings": ("annotator", "query", "list", "weight"),
}
DEFINING_ROLES = {role for _, shape in SHAPES for role in shape} | {"list"}
_MAX_COLUMNS_SHOWN = 30


class UnmatchedColumnsError(FormatError):
    """No shape of judgments fits the columns."""


@dataclass(frozen=True)
class RoleMatch:
    """The kind of judgments, and the column of each role.

    Parameters
    ----------
    kind : {"comparisons", "ratings", "rankings"}
        The kind of judgments.
    roles : mapping of str to str
        The column of each role.
    notes : tuple of str
        Remarks on ambiguous columns.
    names : pair of str, optional
        The columns that may hold the names of the two items, if left and right are their ids.
    """

    kind: str
    roles: Mapping[str, str]
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None


def columns_error(problem: str, remedy: str, columns: Mapping[str, str]) -> FormatError:
    """Return an error whose remedy is to pass `columns`."""
    return FormatError(problem, remedy=f"{remedy} columns={dict(columns)!r}.", option="columns", value=columns)


def match_roles(
    table: SourceTable, kind: str | None = None, columns: Mapping[str, str | None] | None = None
) -> RoleMatch:
    """Find the column of each role: as given by the caller or the format, or else by its name."""
    if kind is not None and kind not in KINDS:
        raise UnknownNameError("kind of judgments", kind, KINDS)
    named = resolve_columns(table, columns)
    matcher = RoleMatcher(table, _with_roles_of_format(table, named))
    for found_kind, shape in SHAPES:
        if kind in (None, found_kind) and matcher.allows(found_kind, shape) and (roles := matcher.match(shape)):
            for role in OPTIONAL_ROLES[found_kind]:
                matcher.add(roles, role)
            for role in [r for r in OPTIONAL_ROLES[found_kind] if r in roles and r not in named]:
                stored = table.load(stored_columns(roles[role], table.columns), 1)
                # A conversation called context; or a column that nobody filled in.
                if any(kind.is_nested() for kind in stored.dtypes) or _is_empty(table, roles[role]):
                    del roles[role]
            return RoleMatch(found_kind, roles, tuple(dict.fromkeys(matcher.notes)), matcher.names)
    raise _no_match(matcher, kind)


def _is_empty(table: SourceTable, column: str) -> bool:
    """Return whether no row has a value; the first rows usually say so without loading the others."""
    from crowdrank.io.rows import parse_labels

    for rows in (SAMPLE_ROWS, None):
        cells = load_expressions(table, [column], rows)[column]
        if parse_labels(cells, strip_spaces=True).null_count() < len(cells):
            return False
    return table.rows > 0


def _with_roles_of_format(table: SourceTable, given: dict[str, str]) -> dict[str, str]:
    """Add the roles that the format declares, unless the caller says otherwise."""
    declared = dict(table.roles)
    if any(given[role] and not declared.get(role) for role in DEFINING_ROLES & given.keys()):
        # The caller names another shape than the format: winner and loser in place of left, right and winner.
        declared = {role: column for role, column in declared.items() if role not in DEFINING_ROLES}
    return declared | given


def resolve_columns(
    table: SourceTable, columns: Mapping[str, str | None] | None, known: Iterable[str] = ROLES
) -> dict[str, str]:
    """Return the columns that the caller named, in the spelling of the table; "" for a role without a column."""
    given = {}
    for role, name in (columns or {}).items():
        if role not in known:
            raise UnknownNameError("role", role, known)
        given[role] = "" if name is None or name == "" else resolve_expression(table, str(name), find_column)
    return given


def find_column(table: SourceTable, name: str) -> str:
    """Find a column by its name, or by a name that differs in case and punctuation only."""
    alike = [c for c in table.columns if normalize_name(c) == normalize_name(name)] or [
        c for c, short in table.short_names.items() if normalize_name(short) == normalize_name(name)
    ]
    if name not in table.columns and len(alike) != 1:
        raise UnknownNameError("column", name, table.columns)
    return refuse_repeated_name(table, name if name in table.columns else alike[0])


def refuse_repeated_name(table: SourceTable, column: str) -> str:
    if column in table.repeated_names:
        raise FormatError(f"{table.name}: two columns are called {column!r}.", remedy="Rename one of them.")
    return column


def require_role(table: SourceTable, roles: Mapping[str, str], role: str) -> None:
    """Raise an error if a role that cannot be missing has no column."""
    if role not in roles:
        problem = f"{table.name}: no column for the {role}. Columns found: {_shown_columns(table)}."
        raise columns_error(problem, "Name it:", {role: "COLUMN"})


@dataclass
class RoleMatcher:
    """Finds columns by name, among those that the caller gave no role.

    Parameters
    ----------
    table : SourceTable
        The table.
    given : mapping of str to str
        The columns of roles that are known, "" for a role without a column.
    notes : list of str
        Collects remarks on ambiguous columns.
    names : pair of str, optional
        Set to the columns that come before those that were read as left and right, which the winner names.
    """

    table: SourceTable
    given: Mapping[str, str]
    notes: list[str] = field(default_factory=list)
    names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        taken = {column for given in self.given.values() for column in stored_columns(given, self.table.columns)}
        self.by_name: dict[str, list[str]] = {}
        for column in self.table.columns:
            if column not in taken:
                name = normalize_name(self.table.short_names.get(column, column))
                self.by_name.setdefault(name, []).append(column)

    def allows(self, kind: str, shape: Sequence[str]) -> bool:
        """Return whether a shape uses every defining role that the caller named."""
        named = {role for role, column in self.given.items() if column and role in DEFINING_ROLES}
        return named <= {*shape, *OPTIONAL_ROLES[kind]}

    def match(self, shape: Sequence[str]) -> dict[str, str] | None:
        """Return a column for every role of the shape; None if one is missing."""
        roles: dict[str, str] = {}
        for pair in PAIRS_BY_ROLES:
            if set(pair) <= {*shape}:
                if (found := self.pair(pair)) is None:
                    return None
                roles |= found
        if not all(role in roles or self.column_exists(role) for role in shape):
            return None
        for role in shape:
            self.add(roles, role)
        return {role: roles[role] for role in shape} if len(roles) == len(shape) else None

    def pair(self, pair: tuple[str, str]) -> dict[str, str] | None:
        """Return two columns that belong together: model_a with model_b, never left with model_b."""
        if any(role in self.given for role in pair):
            return {}
        candidates = [
            tuple(self._only(role, self._columns(side)) for role, side in zip(pair, sides, strict=True))
            for tier in PAIRS_BY_ROLES[pair]
            if (sides := list(zip(*(p for p in tier if all(name in self.by_name for name in p)), strict=True)))
        ]
        if not candidates:
            return self._repeated_scores() if pair == ("left_score", "right_score") else None
        chosen = self._as_the_winner_is_called(candidates) if pair == ("left", "right") else candidates[0]
        if chosen != candidates[0]:
            self.names = candidates[0]
        if others := [" and ".join(map(repr, other)) for other in candidates if other != chosen]:
            first, second = map(repr, chosen)
            self.notes.append(f"{first} and {second} were read as {' and '.join(pair)}, not {', '.join(others)}.")
        return dict(zip(pair, chosen, strict=True))

    def _repeated_scores(self) -> dict[str, str] | None:
        """Return two columns of the same name, each after its side: Visitor, PTS, Home, PTS."""
        names = list(self.table.columns)
        sides = self.pair(("left", "right")) or {role: self.given.get(role, "") for role in ("left", "right")}
        if not all(sides.get(role) in names[:-1] for role in ("left", "right")):
            return None
        after = {f"{role}_score": names[names.index(sides[role]) + 1] for role in ("left", "right")}
        first, second = sorted(after.values(), key=names.index)
        same = first in self.table.repeated_names and second.startswith(f"{first} (column ")
        return after if same and normalize_name(first) in _SCORE_WORDS else None

    def _as_the_winner_is_called(self, candidates: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        """Return the first pair, or a later one (ids) if the winner is one of its cells and never one of the first."""
        if len(candidates) == 1 or not self.column_exists("winner"):
            return candidates[0]
        winner: dict[str, str] = {}
        RoleMatcher(self.table, self.given).add(winner, "winner")
        if not winner or not self.table.rows:
            return candidates[0]
        columns = list(dict.fromkeys([*winner.values(), *(column for pair in candidates for column in pair)]))
        sample = load_expressions(self.table, columns, SAMPLE_ROWS).rows(named=True)

        def named(pair: tuple[str, ...]) -> bool:
            return any(row[winner["winner"]] in [row[column] for column in pair if row[column]] for row in sample)

        return next((pair for pair in candidates if named(pair)), candidates[0])

    def column_exists(self, role: str) -> bool:
        if role in self.given:
            return bool(self.given[role])
        return any(name in self.by_name for tier in NAMES_BY_ROLE[role] for name in tier)

    def add(self, roles: dict[str, str], role: str, tiers: Tiers | None = None) -> None:
        """Add the column of a role, as given or by its name, if there is one."""
        if role in roles:
            return
        given = role in self.given
        column = self.given[role] if given else self.find(role, tiers or NAMES_BY_ROLE[role], roles.values())
        if column:
            roles[role] = column

    def find(self, role: str, tiers: Tiers, taken: Iterable[str]) -> str:
        """Return the column of the first tier that matches; "" if none does."""
        found = [[c for c in self._columns(tier) if c not in taken] for tier in tiers]
        candidates = [tier for tier in found if tier]
        if not candidates:
            return ""
        if role == "time" and len(candidates) > 1:
            candidates.sort(key=lambda columns: not self._holds_times(columns[0]))
        column = self._only(role, candidates[0])
        if others := [repr(c) for tier in candidates for c in tier if c != column]:
            self.notes.append(f"{column!r} was read as the {role}, not {', '.join(others)}.")
        return column

    def _holds_times(self, column: str) -> bool:
        """Return whether the cells are times, and not hours beside a date."""
        from crowdrank.io.rows import parse_timestamps

        cells = self.table.load([column], SAMPLE_ROWS)[column]
        return not cells.dtype.is_nested() and bool(np.isfinite(parse_timestamps(cells)).any())

    def _columns(self, names: Iterable[str]) -> list[str]:
        return [column for name in dict.fromkeys(names) for column in self._named(name)]

    def _named(self, name: str) -> list[str]:
        """Return the columns of a name, or two joined columns if the name is made of two."""
        parts = [self.by_name.get(part, []) for part in name.split(JOIN)] if JOIN in name[1:-1] else []
        if parts:
            return [JOIN.join(columns[0] for columns in parts)] if all(parts) else []
        return self.by_name.get(name, [])

    def _only(self, role: str, candidates: Sequence[str]) -> str:
        exact = [c for c in candidates if c == role] or list(candidates)
        if len(exact) > 1:
            problem = f"{self.table.name}: {' and '.join(map(repr, exact))} could each be the {role}."
            raise columns_error(problem, "Say which, for example", {role: exact[0]})
        return refuse_repeated_name(self.table, exact[0])


def named_sides(table: SourceTable) -> dict[str, str]:
    """Return the two columns that are known by their names as the sides of a comparison; nothing if there are none."""
    with suppress(CrowdrankError):
        return RoleMatcher(table, {}).pair(("left", "right")) or {}
    return {}


def _no_match(matcher: RoleMatcher, kind: str | None) -> FormatError:
    table = matcher.table
    shapes = [(k, shape) for k, shape in SHAPES if kind in (None, k)]
    missing = {shape: [role for role in shape if not matcher.column_exists(role)] for _, shape in shapes}
    nearest = min(missing, key=lambda shape: len(missing[shape]) / len(shape))
    lacking = missing[nearest] or list(nearest)
    if lacking == ["loser"]:  # a column such as `selected` says which of two items won, and these are not known
        lacking = ["left", "right"]
    needed = "; ".join(
        f"{k} need {', or '.join(_listed(shape) for other, shape in shapes if other == k and len(shape) < 4)}"
        for k in dict.fromkeys(k for k, _ in shapes)
    )
    problem = (
        f"{table.name}: no column for {_listed(lacking, 'or')}. Columns found: {_shown_columns(table)}. "
        f"{needed[0].upper()}{needed[1:]}."
    )
    return UnmatchedColumnsError(
        problem,
        remedy=f"Name a column yourself: columns={{{lacking[0]!r}: 'COLUMN'}}.",
        option="columns",
        value={lacking[0]: "COLUMN"},
    )


def _shown_columns(table: SourceTable) -> str:
    more = ", …" if len(table.columns) > _MAX_COLUMNS_SHOWN else ""
    shown = ", ".join(map(repr, table.columns[:_MAX_COLUMNS_SHOWN])) + more
    if len(table.columns) == 1:
        return f"only {shown} (fields are separated by comma, semicolon, tab or bar)"
    return shown or "none"


def _listed(names: Sequence[str], word: str = "and") -> str:
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))
