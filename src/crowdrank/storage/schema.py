"""The tables of a collection.

`log` has one row per event, numbered without gaps. The frequent events, assignments and votes, have typed tables with
the same key; a trigger writes their row of `log`. Triggers also reject every change to `log` and the typed tables (see
`migrations/versions/first.py`), except that texts are removed when a person is erased (`third.py`). The others
change: `lease`, `session`, `account_session`, `rate_limit` and `visit` are temporary, and `account` has credentials,
which must not be kept. What is done to accounts is in the log as well.
Times are microseconds since 1970.
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

SCHEMA_VERSION = "0004"
"""The last migration of these tables."""

SUBJECTS = {
    "item_edited": "item",
    "item_hidden": "item",
    "item_shown": "item",
    "annotator_edited": "annotator",
    "annotator_excluded": "annotator",
    "annotator_included": "annotator",
    "annotator_erased": "annotator",
    "token_revoked": "token",
    "undo": "vote",
    "void": "vote",
}
"""Event kinds that refer to an earlier row, and the kind of thing that row must be."""
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
MAX_NAME_LENGTH = 300
"""Characters of a label, a query or an annotator's name. A PostgreSQL index row must hold two of them."""
IS_EVENT = "kind NOT IN ('assignment', 'vote')"
"""Selects everything except assignments and votes. Queries must use this text, or the partial index is not used."""
OUTCOMES = ("left", "right", "tie", "both_bad", "skip", "answered")
"""Outcomes of a vote. The answer to a task other than a pair is in the column `answer`."""
TASKS = ("pair", "rating", "ranking", "best-worst", "choice")
ROLES = ("annotator", "admin", "join")
ACCOUNT_ROLES = ("owner", "editor", "viewer")
"""Roles of organisers: owners do everything, editors change the study, viewers only look."""
MAX_ACCOUNT_NAME = 100

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# SQLite only uses the row id as the primary key if the type is INTEGER, which is 64 bits wide there.
_number = BigInteger().with_variant(Integer, "sqlite")


def _one_of(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


def _log_key(name: str) -> Column[int]:
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
    # Everything except assignments and votes: few rows, read often.
    Index(
        "ix_log_events",
        "seq",
        sqlite_where=text(IS_EVENT),
        postgresql_where=text(IS_EVENT),
    ),
)

item = Table(
    "item",
    metadata,
    _log_key("id"),
    Column("query", Text, CheckConstraint(f"length(query) <= {MAX_NAME_LENGTH}", name="query"), nullable=False),
    Column(
        "label", Text, CheckConstraint(f"length(label) BETWEEN 1 AND {MAX_NAME_LENGTH}", name="label"), nullable=False
    ),
    UniqueConstraint("query", "label"),
    UniqueConstraint("id", "query"),
)

annotator = Table(
    "annotator",
    metadata,
    _log_key("id"),
    Column(
        "name",
        Text,
        CheckConstraint(f"length(name) BETWEEN 1 AND {MAX_NAME_LENGTH}", name="name"),
        nullable=False,
        unique=True,
    ),
)

token = Table(
    "token",
    metadata,
    _log_key("seq"),
    Column("hash", LargeBinary, CheckConstraint("length(hash) = 32", name="hash"), nullable=False, unique=True),
    Column("role", Text, CheckConstraint(_one_of("role", ROLES), name="role"), nullable=False),
    Column("annotator", _number, ForeignKey("annotator.id"), index=True),
    CheckConstraint("(role = 'annotator') = (annotator IS NOT NULL)", name="annotator"),
)

assignment = Table(
    "assignment",
    metadata,
    _log_key("seq"),
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
    Column("left_item", _number),
    Column("right_item", _number),
    Column("policy", Text, CheckConstraint("policy <> ''", name="policy"), nullable=False),
    Column(
        "probability",
        Double,
        CheckConstraint("probability > 0 AND probability <= 1", name="probability"),
        nullable=False,
    ),
    Column("gold_item", _number),
    Column("replaces", _number, ForeignKey("assignment.seq"), unique=True),
    Column(
        "task",
        Text,
        CheckConstraint(_one_of("task", TASKS), name="task"),
        nullable=False,
        server_default=text("'pair'"),
    ),
    Column("question", Text),  # JSON: items, grades and criteria, as far as the other columns do not say them
    ForeignKeyConstraint(["left_item", "query"], ["item.id", "item.query"]),
    ForeignKeyConstraint(["right_item", "query"], ["item.id", "item.query"]),
    CheckConstraint("left_item <> right_item", name="two_items"),
    CheckConstraint(
        "CASE task WHEN 'pair' THEN left_item IS NOT NULL AND right_item IS NOT NULL "
        "ELSE left_item IS NULL AND right_item IS NULL AND question IS NOT NULL END",
        name="items",
    ),
    CheckConstraint("gold_item IS NULL OR gold_item IN (left_item, right_item)", name="gold_item"),
    UniqueConstraint("seq", "annotator", "left_item", "right_item"),
    UniqueConstraint("seq", "annotator"),
)

vote = Table(
    "vote",
    metadata,
    _log_key("seq"),
    Column("at", _number, nullable=False),
    Column("assignment", _number, nullable=False, unique=True),
    Column("annotator", _number, nullable=False),
    Column("left_item", _number),
    Column("right_item", _number),
    Column("outcome", Text, CheckConstraint(_one_of("outcome", OUTCOMES), name="outcome"), nullable=False),
    Column("winner_item", _number),
    Column("reason", Text, nullable=False, server_default=text("''")),
    Column("response_ms", _number, CheckConstraint("response_ms >= 0", name="response_ms")),
    Column("answer", Text),  # JSON: the value, and the answers to further criteria
    Column("comment", Text, nullable=False, server_default=text("''")),
    ForeignKeyConstraint(["assignment", "annotator"], ["assignment.seq", "assignment.annotator"]),
    ForeignKeyConstraint(
        ["assignment", "annotator", "left_item", "right_item"],
        ["assignment.seq", "assignment.annotator", "assignment.left_item", "assignment.right_item"],
    ),
    CheckConstraint(
        "CASE outcome WHEN 'left' THEN winner_item IS NOT NULL AND winner_item = left_item "
        "WHEN 'right' THEN winner_item IS NOT NULL AND winner_item = right_item ELSE winner_item IS NULL END",
        name="winner_item",
    ),
    CheckConstraint(
        "CASE outcome WHEN 'answered' THEN left_item IS NULL AND answer IS NOT NULL WHEN 'skip' THEN answer IS NULL "
        "ELSE left_item IS NOT NULL AND right_item IS NOT NULL END",
        name="answer",
    ),
    Index("ix_vote_annotator_seq", "annotator", "seq"),
)

withdrawal = Table(
    "withdrawal",
    metadata,
    _log_key("seq"),
    Column("vote", _number, ForeignKey("vote.seq"), nullable=False, unique=True),
)

lease = Table(
    "lease",
    metadata,
    Column("annotator", _number, primary_key=True, autoincrement=False),
    Column("assignment", _number, nullable=False, unique=True),
    Column("token", Text, nullable=False),  # a nonce: the token is a function of it and of the secret key
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

account = Table(
    "account",
    metadata,
    _log_key("id"),
    Column(
        "name",
        Text,
        CheckConstraint(f"length(name) BETWEEN 1 AND {MAX_ACCOUNT_NAME}", name="name"),
        nullable=False,
        unique=True,
    ),
    Column("role", Text, CheckConstraint(_one_of("role", ACCOUNT_ROLES), name="role"), nullable=False),
    Column("password", Text),  # an argon2 hash with its parameters; none before the invitation is accepted
    Column("totp", Text),  # the sealed secret of one-time codes
    Column("totp_step", _number, nullable=False, server_default=text("0")),  # the step of the last code that was used
    Column(
        "invitation", LargeBinary, CheckConstraint("length(invitation) = 32", name="invitation"), unique=True
    ),  # the hash of a link that sets a new password
    Column("invited_until", _number),
)

account_session = Table(
    "account_session",
    metadata,
    Column("hash", LargeBinary, CheckConstraint("length(hash) = 32", name="hash"), primary_key=True),
    Column("account", _number, ForeignKey("account.id"), nullable=False, index=True),
    Column("opened_at", _number, nullable=False),
    Column("seen_at", _number, nullable=False),
    Column("expires_at", _number, nullable=False),
    Column("client", Text, nullable=False, server_default=text("''")),
)

rate_limit = Table(
    "rate_limit",
    metadata,
    Column("key_hash", LargeBinary, CheckConstraint("length(key_hash) = 32", name="key_hash"), primary_key=True),
    Column("free_at", _number, nullable=False, index=True),
)

visit = Table(
    "visit",
    metadata,
    Column("annotator", _number, ForeignKey("annotator.id"), primary_key=True, autoincrement=False),
    Column("address", LargeBinary, CheckConstraint("length(address) = 32", name="address"), nullable=False),
    Column("expires_at", _number, nullable=False, index=True),
)

identity = Table(
    "identity",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)

APPEND_ONLY = (log, item, annotator, token, assignment, vote, withdrawal)
