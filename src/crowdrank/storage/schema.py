"""The tables of a collection.

`log` numbers everything that ever happened, without gaps. What is asked and answered most has a typed table beside it,
keyed by the same number: a row there writes its own row of the log. Rows of the log and of the typed tables are never
changed; triggers see to that (migrations/versions). Only `lease`, `session` and `rate` change: what they hold is
passing. Times are microseconds since 1970.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

HEAD = "0001"
"""The migration that makes what stands here."""

SUBJECTS = {
    "item_edited": "item",
    "item_hidden": "item",
    "item_shown": "item",
    "annotator_edited": "annotator",
    "annotator_excluded": "annotator",
    "annotator_included": "annotator",
    "token_revoked": "token",
    "undo": "vote",
    "void": "vote",
}
"""Kinds of row that are about an earlier one, and what that one must be."""
KINDS = (
    "item_added",
    "annotator_added",
    "token_issued",
    "assignment",
    "vote",
    *SUBJECTS,
    "settings_changed",
    "paused",
    "resumed",
    "closed",
    "noted",
)
LONGEST_NAME = 300
"""Characters of a label, a query or an annotator's name: what an index of PostgreSQL holds of two of them."""
OUTCOMES = ("left", "right", "tie", "skip")
ROLES = ("annotator", "admin", "join")

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# SQLite counts rows by an INTEGER, which is as wide as BIGINT.
_number = BigInteger().with_variant(Integer, "sqlite")


def _one_of(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


def _key_of_the_log(name: str) -> Column[int]:
    return Column(name, _number, ForeignKey("log.seq"), primary_key=True, autoincrement=False)


log = Table(
    "log",
    metadata,
    Column("seq", _number, primary_key=True, autoincrement=False),
    Column("at", _number, nullable=False),
    Column("kind", Text, CheckConstraint(_one_of("kind", KINDS), name="kind"), nullable=False),
    Column("actor", Text, CheckConstraint("actor <> ''", name="actor"), nullable=False),
    Column("subject", _number, ForeignKey("log.seq")),
    Column("detail", Text, nullable=False, server_default=text("'{}'")),
    CheckConstraint(f"subject IS NOT NULL OR NOT ({_one_of('kind', tuple(SUBJECTS))})", name="subject"),
    Index(
        "ix_log_subject",
        "subject",
        sqlite_where=text("subject IS NOT NULL"),
        postgresql_where=text("subject IS NOT NULL"),
    ),
    # What is neither asked nor answered is little, and is read often.
    Index(
        "ix_log_events",
        "seq",
        sqlite_where=text("kind NOT IN ('assignment', 'vote')"),
        postgresql_where=text("kind NOT IN ('assignment', 'vote')"),
    ),
)

item = Table(
    "item",
    metadata,
    _key_of_the_log("id"),
    Column("query", Text, CheckConstraint(f"length(query) <= {LONGEST_NAME}", name="query"), nullable=False),
    Column("label", Text, CheckConstraint(f"length(label) BETWEEN 1 AND {LONGEST_NAME}", name="label"), nullable=False),
    UniqueConstraint("query", "label"),
    UniqueConstraint("id", "query"),
)

annotator = Table(
    "annotator",
    metadata,
    _key_of_the_log("id"),
    Column(
        "name",
        Text,
        CheckConstraint(f"length(name) BETWEEN 1 AND {LONGEST_NAME}", name="name"),
        nullable=False,
        unique=True,
    ),
)

token = Table(
    "token",
    metadata,
    _key_of_the_log("seq"),
    Column("hash", LargeBinary, CheckConstraint("length(hash) = 32", name="hash"), nullable=False, unique=True),
    Column("role", Text, CheckConstraint(_one_of("role", ROLES), name="role"), nullable=False),
    Column("annotator", _number, ForeignKey("annotator.id"), index=True),
    CheckConstraint("(role = 'annotator') = (annotator IS NOT NULL)", name="annotator"),
)

assignment = Table(
    "assignment",
    metadata,
    _key_of_the_log("seq"),
    Column("at", _number, nullable=False),
    Column(
        "token_hash",
        LargeBinary,
        CheckConstraint("length(token_hash) = 32", name="token_hash"),
        nullable=False,
        unique=True,
    ),
    Column("annotator", _number, ForeignKey("annotator.id"), nullable=False),
    Column("query", Text, nullable=False),
    Column("left_item", _number, nullable=False),
    Column("right_item", _number, nullable=False),
    Column("policy", Text, CheckConstraint("policy <> ''", name="policy"), nullable=False),
    Column(
        "probability",
        Double,
        CheckConstraint("probability > 0 AND probability <= 1", name="probability"),
        nullable=False,
    ),
    Column("gold_item", _number),
    Column("instead_of", _number, ForeignKey("assignment.seq"), unique=True),
    ForeignKeyConstraint(["left_item", "query"], ["item.id", "item.query"]),
    ForeignKeyConstraint(["right_item", "query"], ["item.id", "item.query"]),
    CheckConstraint("left_item <> right_item", name="two_items"),
    CheckConstraint("gold_item IS NULL OR gold_item IN (left_item, right_item)", name="gold_item"),
    UniqueConstraint("seq", "annotator", "left_item", "right_item"),
    UniqueConstraint("seq", "annotator"),
)

vote = Table(
    "vote",
    metadata,
    _key_of_the_log("seq"),
    Column("at", _number, nullable=False),
    Column("assignment", _number, nullable=False, unique=True),
    Column("annotator", _number, nullable=False),
    Column("left_item", _number, nullable=False),
    Column("right_item", _number, nullable=False),
    Column("outcome", Text, CheckConstraint(_one_of("outcome", OUTCOMES), name="outcome"), nullable=False),
    Column("winner_item", _number),
    Column("reason", Text, nullable=False, server_default=text("''")),
    Column("response_ms", _number, CheckConstraint("response_ms >= 0", name="response_ms")),
    ForeignKeyConstraint(
        ["assignment", "annotator", "left_item", "right_item"],
        ["assignment.seq", "assignment.annotator", "assignment.left_item", "assignment.right_item"],
    ),
    CheckConstraint(
        "CASE outcome WHEN 'left' THEN winner_item IS NOT NULL AND winner_item = left_item "
        "WHEN 'right' THEN winner_item IS NOT NULL AND winner_item = right_item ELSE winner_item IS NULL END",
        name="winner_item",
    ),
    Index("ix_vote_annotator_seq", "annotator", "seq"),
)

withdrawal = Table(
    "withdrawal",
    metadata,
    _key_of_the_log("seq"),
    Column("vote", _number, ForeignKey("vote.seq"), nullable=False, unique=True),
)

lease = Table(
    "lease",
    metadata,
    Column("annotator", _number, primary_key=True, autoincrement=False),
    Column("assignment", _number, nullable=False, unique=True),
    Column("token", Text, nullable=False),
    Column("expires_at", _number, nullable=False),
    ForeignKeyConstraint(["assignment", "annotator"], ["assignment.seq", "assignment.annotator"]),
)

session = Table(
    "session",
    metadata,
    Column("hash", LargeBinary, CheckConstraint("length(hash) = 32", name="hash"), primary_key=True),
    Column("token", _number, ForeignKey("token.seq"), nullable=False, index=True),
    Column("opened_at", _number, nullable=False),
    Column("expires_at", _number, nullable=False),
)

rate = Table(
    "rate",
    metadata,
    Column("key_hash", LargeBinary, CheckConstraint("length(key_hash) = 32", name="key_hash"), primary_key=True),
    Column("free_at", _number, nullable=False, index=True),
)

APPEND_ONLY = (log, item, annotator, token, assignment, vote, withdrawal)
