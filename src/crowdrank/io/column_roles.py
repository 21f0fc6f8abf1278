"""Match columns to roles by their names, and determine the kind of judgments.

Names are compared without case and punctuation: "Candidate.Chosen" equals "candidate_chosen". The names of a role are
grouped in tiers. The first tier with a match decides; two matches in one tier are an error that asks the user.

Some names are missing on purpose, because they often have a different value in every row: `prompt`, `question_id`,
`task` and `id` are not read as the query, and `count` is not read as a weight. `response_a` and `output_1` come after
`model_a`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from crowdrank.errors import FormatError, UnknownNameError
from crowdrank.io.source_table import SourceTable

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
    return tuple(f"{name}id" for name in names.split())


_ANNOTATOR_WORDS = (
    "worker judge rater observer voter assessor performer coder labeler labeller evaluator reviewer grader juror"
)
_PARTICIPANT_WORDS = "user participant person respondent subject visitor"
_ITEM_WORDS = (
    "item object document doc candidate stimulus option entity alternative condition image img video model system "
    "generator player team driver method essay project product submission representation choice argument"
)
_TEXT_WORDS = "response output answer text conversation"
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

SYNONYMS: dict[str, Tiers] = {
    "annotator": (
        ("annotator",),
        ("annotatorid",),
        tuple(_ANNOTATOR_WORDS.split()),
        _with_id(_ANNOTATOR_WORDS),
        tuple(_PARTICIPANT_WORDS.split()),
        _with_id(_PARTICIPANT_WORDS),
    ),
    "query": each("query queryid qid topic topicid scene sceneid context contextid"),
    "winner": _tiers(
        "winner",
        "winnerid winneritem winnername",
        "preferred choice chosen selected selection vote result answer label preference verdict outcome judgment "
        "judgement decision better pick",
    ),
    "item": (("item",), ("itemid",), ("itemname",), tuple(_ITEM_WORDS.split()[1:]), (*_with_id(_ITEM_WORDS), "docno")),
    "grade": _tiers("grade", "rating", "score", "stars relevance label mark points judgment judgement"),
    "rank": _tiers("rank", "position", "place placement", "ranking"),
    "list": _tiers("list", "listid", "ballot ballotid rankingid race raceid"),
    "order": _tiers("order", "orderbestfirst", "ranking preferenceorder rankedlist"),
    "weight": _tiers("weight", "weights"),
    "time": each(
        "time timestamp answeredat createdat tstamp submittedat submittime datetime datecreated date updatedat"
    ),
    "duration": each(" ".join(DURATIONS)),
}


def _side_pairs() -> PairTiers:
    def pairs(words: str, first: str, second: str) -> list[tuple[str, str]]:
        return [(first.format(w), second.format(w)) for w in words.split()]

    def by_side(words: str, end: str = "") -> list[tuple[str, str]]:
        return pairs(words, f"left{{}}{end}", f"right{{}}{end}") + pairs(words, f"{{}}left{end}", f"{{}}right{end}")

    def by_letter(words: str, end: str = "") -> list[tuple[str, str]]:
        return [p for a, b in ("ab", "12", "xy") for p in pairs(words, f"{{}}{a}{end}", f"{{}}{b}{end}")]

    bare = [("a", "b"), ("x", "y"), ("l", "r"), ("lhs", "rhs"), ("first", "second")]
    return tuple(
        tuple(tier)
        for tier in (
            [("left", "right")],
            [("leftid", "rightid")],
            [("leftname", "rightname")],
            by_side(_ITEM_WORDS),
            by_side(_ITEM_WORDS, "id"),
            by_letter(_ITEM_WORDS),
            by_letter(_ITEM_WORDS, "id"),
            by_letter(_ITEM_WORDS, "name"),
            bare,
            [("lhsid", "rhsid")],
            [("id1", "id2")],
            by_side(_TEXT_WORDS),
            by_letter(_TEXT_WORDS),
            by_letter(_TEXT_WORDS, "id"),
        )
    )


SIDE_PAIRS = _side_pairs()

WINNER_LOSER_PAIRS: PairTiers = (
    (("winner", "loser"),),
    (("winnerid", "loserid"),),
    (("winnername", "losername"), ("winneritem", "loseritem")),
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
    "item",
    "grade",
    "rank",
    "list",
    "order",
    "weight",
    "time",
    "duration",
)

NAMES_BY_ROLE: dict[str, Tiers] = SYNONYMS | {
    "left": tuple(tuple(left for left, _ in tier) for tier in SIDE_PAIRS),
    "right": tuple(tuple(right for _, right in tier) for tier in SIDE_PAIRS),
    "loser": tuple(tuple(loser for _, loser in tier) for tier in WINNER_LOSER_PAIRS),
}


KINDS = ("comparisons", "ratings", "rankings")
# The first complete shape is taken. `order` comes last, because it is also a common name for the order of trials.
SHAPES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("comparisons", ("left", "right", "winner")),
    ("comparisons", ("winner", "loser")),
    ("rankings", ("item", "rank")),
    ("ratings", ("item", "grade")),
    ("rankings", ("order",)),
)
OPTIONAL_ROLES = {
    "comparisons": ("annotator", "query", "weight", "time", "duration"),
    "ratings": ("annotator", "query", "weight"),
    "rankings": ("annotator", "query", "list", "weight"),
}
_PAIRS: dict[tuple[str, ...], PairTiers] = {("left", "right"): SIDE_PAIRS, ("winner", "loser"): WINNER_LOSER_PAIRS}
_DEFINING_ROLES = {role for _, shape in SHAPES for role in shape} | {"list"}
_MAX_COLUMNS_SHOWN = 30


@dataclass(frozen=True)
class RoleMatch:
    """The kind of judgments, and the column of each role."""

    kind: str
    roles: Mapping[str, str]
    notes: tuple[str, ...] = ()


def columns_error(problem: str, remedy: str, columns: Mapping[str, str]) -> FormatError:
    """Return an error whose remedy is to pass `columns`."""
    return FormatError(problem, remedy=f"{remedy} columns={dict(columns)!r}.", option="columns", value=columns)


def match_roles(
    table: SourceTable, kind: str | None = None, columns: Mapping[str, str | None] | None = None
) -> RoleMatch:
    """Find the column of each role: as given by the caller or the format, or else by its name."""
    if kind is not None and kind not in KINDS:
        raise UnknownNameError("kind of judgments", kind, KINDS)
    matcher = RoleMatcher(table, _with_roles_of_format(table, resolve_columns(table, columns)))
    for found_kind, shape in SHAPES:
        if kind in (None, found_kind) and matcher.allows(found_kind, shape) and (roles := matcher.match(shape)):
            for role in OPTIONAL_ROLES[found_kind]:
                matcher.add(roles, role)
            return RoleMatch(found_kind, roles, tuple(matcher.notes))
    raise _no_match(matcher, kind)


def _with_roles_of_format(table: SourceTable, given: dict[str, str]) -> dict[str, str]:
    """Add the roles that the format declares, unless the caller says otherwise."""
    declared = dict(table.roles)
    if any(given[role] and not declared.get(role) for role in _DEFINING_ROLES & given.keys()):
        # The caller names another shape than the format: winner and loser in place of left, right and winner.
        declared = {role: column for role, column in declared.items() if role not in _DEFINING_ROLES}
    return declared | given


def resolve_columns(
    table: SourceTable, columns: Mapping[str, str | None] | None, known: Iterable[str] = ROLES
) -> dict[str, str]:
    """Return the columns that the caller named, in the spelling of the table; "" for a role without a column."""
    given = {}
    for role, name in (columns or {}).items():
        if role not in known:
            raise UnknownNameError("role", role, known)
        given[role] = "" if name is None or name == "" else find_column(table, str(name))
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
    """

    table: SourceTable
    given: Mapping[str, str]
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        taken = set(self.given.values())
        self.by_name: dict[str, list[str]] = {}
        for column in self.table.columns:
            if column not in taken:
                name = normalize_name(self.table.short_names.get(column, column))
                self.by_name.setdefault(name, []).append(column)

    def allows(self, kind: str, shape: Sequence[str]) -> bool:
        """Return whether a shape uses every defining role that the caller named."""
        named = {role for role, column in self.given.items() if column and role in _DEFINING_ROLES}
        return named <= {*shape, *OPTIONAL_ROLES[kind]}

    def match(self, shape: Sequence[str]) -> dict[str, str] | None:
        """Return a column for every role of the shape; None if one is missing."""
        roles = self.pair(shape)
        if roles is None or not all(role in roles or self.column_exists(role) for role in shape):
            return None
        for role in shape:
            self.add(roles, role)
        return roles if len(roles) == len(shape) else None

    def pair(self, shape: Sequence[str]) -> dict[str, str] | None:
        """Return two columns that belong together: model_a with model_b, never left with model_b."""
        tiers = _PAIRS.get(tuple(shape[:2]))
        if tiers is None or any(role in self.given for role in shape[:2]):
            return {}
        for tier in tiers:
            if found := [pair for pair in tier if all(name in self.by_name for name in pair)]:
                sides = zip(*found, strict=True)
                return {role: self._only(role, self._columns(side)) for role, side in zip(shape, sides, strict=False)}
        return None

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
        column = self._only(role, candidates[0])
        if others := [repr(c) for tier in candidates for c in tier if c != column]:
            self.notes.append(f"{column!r} was read as the {role}, not {', '.join(others)}.")
        return column

    def _columns(self, names: Iterable[str]) -> list[str]:
        return [column for name in dict.fromkeys(names) for column in self.by_name.get(name, ())]

    def _only(self, role: str, candidates: Sequence[str]) -> str:
        exact = [c for c in candidates if c == role] or list(candidates)
        if len(exact) > 1:
            problem = f"{self.table.name}: {' and '.join(map(repr, exact))} could each be the {role}."
            raise columns_error(problem, "Say which, for example", {role: exact[0]})
        return refuse_repeated_name(self.table, exact[0])


def _no_match(matcher: RoleMatcher, kind: str | None) -> FormatError:
    table = matcher.table
    shapes = [(k, shape) for k, shape in SHAPES if kind in (None, k)]
    missing = {shape: [role for role in shape if not matcher.column_exists(role)] for _, shape in shapes}
    nearest = min(missing, key=lambda shape: len(missing[shape]) / len(shape))
    lacking = missing[nearest] or list(nearest)
    needed = "; ".join(
        f"{k} need {', or '.join(_listed(shape) for other, shape in shapes if other == k)}"
        for k in dict.fromkeys(k for k, _ in shapes)
    )
    problem = (
        f"{table.name}: no column for {_listed(lacking, 'or')}. Columns found: {_shown_columns(table)}. "
        f"{needed[0].upper()}{needed[1:]}."
    )
    return columns_error(problem, "Name a column yourself:", {lacking[0]: "COLUMN"})


def _shown_columns(table: SourceTable) -> str:
    more = ", …" if len(table.columns) > _MAX_COLUMNS_SHOWN else ""
    shown = ", ".join(map(repr, table.columns[:_MAX_COLUMNS_SHOWN])) + more
    if len(table.columns) == 1:
        return f"only {shown} (fields are separated by comma, semicolon, tab or bar)"
    return shown or "none"


def _listed(names: Sequence[str], word: str = "and") -> str:
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))
