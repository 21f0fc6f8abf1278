"""Which column plays which role, and so what kind of judgments these are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from crowdrank.errors import FormatError, UnknownNameError
from crowdrank.io.column_roles import BEATEN, ROLES, SIDES, SINGLE, PairTiers, Tiers, plain
from crowdrank.io.tables import Table

KINDS = ("comparisons", "ratings", "rankings")
# The first that is complete is taken; `order` comes last, because it is also a common name for the order of trials.
SHAPES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("comparisons", ("left", "right", "winner")),
    ("comparisons", ("winner", "loser")),
    ("rankings", ("item", "rank")),
    ("ratings", ("item", "grade")),
    ("rankings", ("order",)),
)
ALSO = {
    "comparisons": ("annotator", "query", "weight", "time", "duration"),
    "ratings": ("annotator", "query", "weight"),
    "rankings": ("annotator", "query", "list", "weight"),
}
_PAIRS: dict[tuple[str, ...], PairTiers] = {("left", "right"): SIDES, ("winner", "loser"): BEATEN}
_DEFINING = {role for _, shape in SHAPES for role in shape} | {"list"}
_MOST_COLUMNS = 30


@dataclass(frozen=True)
class Match:
    kind: str
    roles: Mapping[str, str]
    """The column that plays each role."""
    notes: tuple[str, ...] = ()


def match(table: Table, kind: str | None = None, columns: Mapping[str, str | None] | None = None) -> Match:
    """The roles of a table's columns: as told, and else by their names."""
    if kind is not None and kind not in KINDS:
        raise UnknownNameError("kind of judgments", kind, KINDS)
    search = Search(table, _declared(table, told_roles(table, columns)))
    for found_kind, shape in SHAPES:
        if kind in (None, found_kind) and search.allows(found_kind, shape) and (roles := search.shape(shape)):
            for role in ALSO[found_kind]:
                search.add(roles, role)
            return Match(found_kind, roles, tuple(search.notes))
    raise FormatError(_unmatched(search, kind))


def _declared(table: Table, told: dict[str, str]) -> dict[str, str]:
    """What the format says of its columns, unless the user says otherwise."""
    declared = dict(table.roles)
    if any(told[role] and not declared.get(role) for role in _DEFINING & told.keys()):
        # Another shape than the format's own: winner and loser in place of left, right and winner.
        declared = {role: column for role, column in declared.items() if role not in _DEFINING}
    return declared | told


def told_roles(table: Table, columns: Mapping[str, str | None] | None, known: Iterable[str] = ROLES) -> dict[str, str]:
    """What the user said, with the columns' own spelling; "" for a role that nothing plays."""
    told = {}
    for role, name in (columns or {}).items():
        if role not in known:
            raise UnknownNameError("role", role, known)
        told[role] = "" if name is None or name == "" else find_column(table, str(name))
    return told


def find_column(table: Table, name: str) -> str:
    """A column by its name, or by one that differs in case and punctuation only."""
    alike = [c for c in table.columns if plain(c) == plain(name)] or [
        c for c, short in table.short.items() if plain(short) == plain(name)
    ]
    if name not in table.columns and len(alike) != 1:
        raise UnknownNameError("column", name, table.columns)
    return refuse_repeated(table, name if name in table.columns else alike[0])


def refuse_repeated(table: Table, column: str) -> str:
    if column in table.repeated:
        raise FormatError(f"{table.name}: two columns are called {column!r}; rename one of them.")
    return column


@dataclass
class Search:
    """Columns by name, less those the user gave a role."""

    table: Table
    told: Mapping[str, str]
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        claimed = set(self.told.values())
        self.by_name: dict[str, list[str]] = {}
        for column in self.table.columns:
            if column not in claimed:
                self.by_name.setdefault(plain(self.table.short.get(column, column)), []).append(column)

    def allows(self, kind: str, shape: Sequence[str]) -> bool:
        """Whether a shape has a use for every defining role the user named."""
        named = {role for role, column in self.told.items() if column and role in _DEFINING}
        return named <= {*shape, *ALSO[kind]}

    def shape(self, shape: Sequence[str]) -> dict[str, str] | None:
        """A column for every role of the shape, or nothing."""
        roles = self.pair(shape)
        if roles is None or not all(role in roles or self.column_exists(role) for role in shape):
            return None
        for role in shape:
            self.add(roles, role)
        return roles if len(roles) == len(shape) else None

    def pair(self, shape: Sequence[str]) -> dict[str, str] | None:
        """Two columns that belong together: model_a with model_b, never left with model_b."""
        tiers = _PAIRS.get(tuple(shape[:2]))
        if tiers is None or any(role in self.told for role in shape[:2]):
            return {}
        for tier in tiers:
            if found := [pair for pair in tier if all(name in self.by_name for name in pair)]:
                sides = zip(*found, strict=True)
                return {role: self.only(role, self.named(side)) for role, side in zip(shape, sides, strict=False)}
        return None

    def column_exists(self, role: str) -> bool:
        if role in self.told:
            return bool(self.told[role])
        return any(name in self.by_name for tier in SINGLE[role] for name in tier)

    def add(self, roles: dict[str, str], role: str, tiers: Tiers | None = None) -> None:
        """The column for a role, as told or by its name, unless it has one already or none fits."""
        if role in roles:
            return
        column = self.told[role] if role in self.told else self.single(role, tiers or SINGLE[role], roles.values())
        if column:
            roles[role] = column

    def single(self, role: str, tiers: Tiers, taken: Iterable[str]) -> str:
        found = [[c for c in self.named(tier) if c not in taken] for tier in tiers]
        candidates = [tier for tier in found if tier]
        if not candidates:
            return ""
        column = self.only(role, candidates[0])
        if others := [repr(c) for tier in candidates for c in tier if c != column]:
            self.notes.append(f"{column!r} was read as the {role}, not {', '.join(others)}.")
        return column

    def named(self, names: Iterable[str]) -> list[str]:
        return [column for name in dict.fromkeys(names) for column in self.by_name.get(name, ())]

    def only(self, role: str, candidates: Sequence[str]) -> str:
        exact = [c for c in candidates if c == role] or list(candidates)
        if len(exact) > 1:
            raise FormatError(
                f"{self.table.name}: {' and '.join(map(repr, exact))} could each be the {role}; "
                f"say which: --column {role}={exact[0]!r} (columns={{{role!r}: {exact[0]!r}}})."
            )
        return refuse_repeated(self.table, exact[0])


def _unmatched(search: Search, kind: str | None) -> str:
    table = search.table
    shapes = [(k, shape) for k, shape in SHAPES if kind in (None, k)]
    missing = {shape: [role for role in shape if not search.column_exists(role)] for _, shape in shapes}
    nearest = min(missing, key=lambda shape: len(missing[shape]) / len(shape))
    lacking = missing[nearest] or list(nearest)
    needed = "; ".join(
        f"{k} need {', or '.join(_listed(shape) for other, shape in shapes if other == k)}"
        for k in dict.fromkeys(k for k, _ in shapes)
    )
    shown = ", ".join(map(repr, table.columns[:_MOST_COLUMNS])) + (", …" if len(table.columns) > _MOST_COLUMNS else "")
    if len(table.columns) == 1:
        shown += " alone (fields are separated by comma, semicolon, tab or bar)"
    return (
        f"{table.name}: no column for {_listed(lacking, 'or')}. Columns found: {shown or 'none'}. "
        f"{needed[0].upper()}{needed[1:]}. Name a column yourself: --column {lacking[0]}=COLUMN "
        f"(columns={{{lacking[0]!r}: 'COLUMN'}})."
    )


def _listed(names: Sequence[str], word: str = "and") -> str:
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))
