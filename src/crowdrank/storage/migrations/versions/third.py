"""Tasks beyond pairs, comments, and the erasure of an annotator.

Assignments and votes get columns for other tasks, and no longer need two items. Texts that identify a person can be
removed, but only while the last row of the log is the event that says so.
"""

from alembic import op
from sqlalchemy import Connection

from crowdrank.storage.migrations.versions import first

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

KINDS = (
    "kind IN ('item_added', 'annotator_added', 'token_issued', 'assignment', 'vote', 'item_edited', 'item_hidden', "
    "'item_shown', 'annotator_edited', 'annotator_excluded', 'annotator_included', 'annotator_erased', "
    "'token_revoked', 'undo', 'void', 'settings_changed', 'paused', 'resumed', 'closed', 'noted')"
)
SUBJECT = (
    "subject IS NOT NULL OR NOT (kind IN ('item_edited', 'item_hidden', 'item_shown', 'annotator_edited', "
    "'annotator_excluded', 'annotator_included', 'annotator_erased', 'token_revoked', 'undo', 'void'))"
)
OUTCOMES = "outcome IN ('left', 'right', 'tie', 'both_bad', 'skip', 'answered')"
TASK = "task IN ('pair', 'rating', 'ranking', 'best-worst', 'choice')"
ITEMS = (
    "CASE task WHEN 'pair' THEN left_item IS NOT NULL AND right_item IS NOT NULL "
    "ELSE left_item IS NULL AND right_item IS NULL AND question IS NOT NULL END"
)
ANSWER = (
    "CASE outcome WHEN 'answered' THEN left_item IS NULL AND answer IS NOT NULL WHEN 'skip' THEN answer IS NULL "
    "ELSE left_item IS NOT NULL AND right_item IS NOT NULL END"
)
ANNOTATOR_SUBJECT = (
    "NEW.kind IN ('annotator_edited', 'annotator_excluded', 'annotator_included', 'annotator_erased') "
    "AND NOT EXISTS (SELECT 1 FROM annotator WHERE annotator.id = NEW.subject)"
)
ASSIGNMENT_KEY = (
    "CONSTRAINT fk_vote_assignment_annotator FOREIGN KEY(assignment, annotator) REFERENCES assignment (seq, annotator)"
)
# Columns that stay as they are when a person is erased.
KEPT = {
    "log": ("seq", "at", "kind", "actor", "subject"),
    "annotator": ("id",),
    "vote": (
        *("seq", "at", "assignment", "annotator", "left_item", "right_item", "outcome", "winner_item"),
        *("response_ms", "answer"),
    ),
}
ERASING = "coalesce((SELECT kind FROM log ORDER BY seq DESC LIMIT 1), '') = 'annotator_erased'"


def upgrade() -> None:
    connection = op.get_bind()
    (_upgrade_sqlite if connection.dialect.name == "sqlite" else _upgrade_postgresql)(connection)


def downgrade() -> None:
    raise NotImplementedError("Restore a backup instead.")


def _upgrade_postgresql(connection: Connection) -> None:
    reject = first.reject_in_postgresql({**first.WRONG_SUBJECT, "the subject must be an annotator": ANNOTATOR_SUBJECT})
    statements = [
        "ALTER TABLE log DROP CONSTRAINT ck_log_kind, DROP CONSTRAINT ck_log_subject, "
        f"ADD CONSTRAINT ck_log_kind CHECK ({KINDS}), ADD CONSTRAINT ck_log_subject CHECK ({SUBJECT})",
        "ALTER TABLE assignment ALTER COLUMN left_item DROP NOT NULL, ALTER COLUMN right_item DROP NOT NULL, "
        f"ADD COLUMN task TEXT DEFAULT 'pair' NOT NULL CONSTRAINT ck_assignment_task CHECK ({TASK}), "
        f"ADD COLUMN question TEXT, ADD CONSTRAINT ck_assignment_items CHECK ({ITEMS})",
        "ALTER TABLE vote ALTER COLUMN left_item DROP NOT NULL, ALTER COLUMN right_item DROP NOT NULL, "
        f"DROP CONSTRAINT ck_vote_outcome, ADD CONSTRAINT ck_vote_outcome CHECK ({OUTCOMES}), "
        "ADD COLUMN answer TEXT, ADD COLUMN comment TEXT DEFAULT '' NOT NULL, "
        f"ADD CONSTRAINT ck_vote_answer CHECK ({ANSWER}), ADD {ASSIGNMENT_KEY}",
        f"CREATE OR REPLACE FUNCTION log_subject() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {reject} END $$",
    ]
    for table, columns in KEPT.items():
        same = " AND ".join(f"NEW.{name} IS NOT DISTINCT FROM OLD.{name}" for name in columns)
        error = first.error_in_postgresql("TG_TABLE_NAME || ': rows cannot be changed or deleted'")
        statements += [
            f"CREATE FUNCTION {table}_redacted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF NOT ({ERASING} AND {same}) THEN {error} END IF; RETURN NEW; END $$",
            f"DROP TRIGGER {table}_never_changed ON {table}",
            f"CREATE TRIGGER {table}_never_changed BEFORE DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION never_changed()",
            f"CREATE TRIGGER {table}_redacted BEFORE UPDATE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION {table}_redacted()",
        ]
    for statement in statements:
        connection.exec_driver_sql(statement)


def _upgrade_sqlite(connection: Connection) -> None:
    """Replace the tables whose constraints change: SQLite cannot alter them. Foreign keys are off meanwhile."""
    triggers = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").scalars().all()
    for name in triggers:  # they name tables that are missing for a moment
        connection.exec_driver_sql(f"DROP TRIGGER {name}")
    for table, statement in _sqlite_tables().items():
        columns = [row[1] for row in connection.exec_driver_sql(f"PRAGMA table_info({table})")]
        names = ", ".join(columns)
        # The other tables refer to the old name, so the new table takes it over at the end.
        connection.exec_driver_sql(first.for_sqlite(statement).replace(f"TABLE {table} ", f"TABLE new_{table} "))
        connection.exec_driver_sql(f"INSERT INTO new_{table} ({names}) SELECT {names} FROM {table}")
        connection.exec_driver_sql(f"DROP TABLE {table}")
        connection.exec_driver_sql(f"ALTER TABLE new_{table} RENAME TO {table}")
    for statement in [*_sqlite_indexes(), *_sqlite_triggers()]:
        connection.exec_driver_sql(statement)
    if broken := connection.exec_driver_sql("PRAGMA foreign_key_check").first():
        raise RuntimeError(f"The migration broke a reference of the table {broken[0]}.")


def _sqlite_tables() -> dict[str, str]:
    """Return the new definitions of tables: those of the first version, with changes."""
    old = {name: _definition(name) for name in ("log", "assignment", "vote")}
    between = {
        "log": [(_constraint(old["log"], "kind"), KINDS), (_constraint(old["log"], "subject"), SUBJECT)],
        "assignment": [
            ("left_item BIGINT NOT NULL", "left_item BIGINT"),
            ("right_item BIGINT NOT NULL", "right_item BIGINT"),
            (
                "replaces BIGINT,",
                f"replaces BIGINT, task TEXT DEFAULT 'pair' NOT NULL CONSTRAINT ck_assignment_task CHECK ({TASK}), "
                f"question TEXT, CONSTRAINT ck_assignment_items CHECK ({ITEMS}),",
            ),
        ],
        "vote": [
            ("left_item BIGINT NOT NULL", "left_item BIGINT"),
            ("right_item BIGINT NOT NULL", "right_item BIGINT"),
            (_constraint(old["vote"], "outcome"), OUTCOMES),
            (
                "CHECK (response_ms >= 0),",
                "CHECK (response_ms >= 0), answer TEXT, comment TEXT DEFAULT '' NOT NULL, "
                f"CONSTRAINT ck_vote_answer CHECK ({ANSWER}), {ASSIGNMENT_KEY},",
            ),
        ],
    }
    for table, changes in between.items():
        for before, after in changes:
            assert before in old[table], before
            old[table] = old[table].replace(before, after, 1)
    return old


def _definition(table: str) -> str:
    return next(statement for statement in first.TABLES if f"CREATE TABLE {table} (" in statement)


def _constraint(definition: str, name: str) -> str:
    """Return the condition of a check constraint as it is written in the definition of a table."""
    start = definition.index("(", definition.index(f"_{name} CHECK")) + 1
    depth, end = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(definition[end], 0)
        end += 1
    return definition[start : end - 1]


def _sqlite_indexes() -> list[str]:
    replaced = ("CREATE INDEX ix_log", "CREATE INDEX ix_vote")
    return [statement for statement in first.TABLES if statement.startswith(replaced)]


def _sqlite_triggers() -> list[str]:
    subjects = {**first.WRONG_SUBJECT, "the subject must be an annotator": ANNOTATOR_SUBJECT}
    triggers = [
        statement
        for statement in first.sqlite_triggers(subjects)
        if not any(f"TRIGGER {table}_no_update " in statement for table in KEPT)
    ]
    for table, columns in KEPT.items():
        same = " AND ".join(f"NEW.{name} IS OLD.{name}" for name in columns)
        triggers.append(
            f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} WHEN NOT ({ERASING} AND {same}) "
            f"BEGIN SELECT RAISE(ABORT, '{table}: rows cannot be changed or deleted'); END"
        )
    return triggers
