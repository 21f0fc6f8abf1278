"""The first schema: the log, the typed tables, and the triggers that keep both append-only."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = [
    """
    CREATE TABLE log (
        seq BIGINT NOT NULL,
        at BIGINT NOT NULL,
        kind TEXT NOT NULL CONSTRAINT ck_log_kind CHECK (kind IN ('item_added', 'annotator_added',
            'token_issued', 'assignment', 'vote', 'item_edited', 'item_hidden', 'item_shown',
            'annotator_edited', 'annotator_excluded', 'annotator_included', 'token_revoked', 'undo', 'void',
            'settings_changed', 'paused', 'resumed', 'closed', 'noted')),
        actor TEXT NOT NULL CONSTRAINT ck_log_actor CHECK (actor <> ''),
        subject BIGINT,
        detail TEXT DEFAULT '{}' NOT NULL,
        CONSTRAINT pk_log PRIMARY KEY (seq),
        CONSTRAINT ck_log_subject CHECK (subject IS NOT NULL OR NOT (kind IN ('item_edited', 'item_hidden',
            'item_shown', 'annotator_edited', 'annotator_excluded', 'annotator_included', 'token_revoked',
            'undo', 'void'))),
        CONSTRAINT fk_log_subject FOREIGN KEY(subject) REFERENCES log (seq)
    )
    """,
    "CREATE INDEX ix_log_events ON log (seq) WHERE kind NOT IN ('assignment', 'vote')",
    "CREATE INDEX ix_log_subject ON log (subject) WHERE subject IS NOT NULL",
    """
    CREATE TABLE rate_limit (
        key_hash BYTEA NOT NULL CONSTRAINT ck_rate_limit_key_hash CHECK (length(key_hash) = 32),
        free_at BIGINT NOT NULL,
        CONSTRAINT pk_rate_limit PRIMARY KEY (key_hash)
    )
    """,
    "CREATE INDEX ix_rate_limit_free_at ON rate_limit (free_at)",
    """
    CREATE TABLE annotator (
        id BIGINT NOT NULL,
        name TEXT NOT NULL CONSTRAINT ck_annotator_name CHECK (length(name) BETWEEN 1 AND 300),
        CONSTRAINT pk_annotator PRIMARY KEY (id),
        CONSTRAINT fk_annotator_id FOREIGN KEY(id) REFERENCES log (seq),
        CONSTRAINT uq_annotator_name UNIQUE (name)
    )
    """,
    """
    CREATE TABLE item (
        id BIGINT NOT NULL,
        query TEXT NOT NULL CONSTRAINT ck_item_query CHECK (length(query) <= 300),
        label TEXT NOT NULL CONSTRAINT ck_item_label CHECK (length(label) BETWEEN 1 AND 300),
        CONSTRAINT pk_item PRIMARY KEY (id),
        CONSTRAINT uq_item_query_label UNIQUE (query, label),
        CONSTRAINT uq_item_id_query UNIQUE (id, query),
        CONSTRAINT fk_item_id FOREIGN KEY(id) REFERENCES log (seq)
    )
    """,
    """
    CREATE TABLE assignment (
        seq BIGINT NOT NULL,
        at BIGINT NOT NULL,
        token_hash BYTEA NOT NULL CONSTRAINT ck_assignment_token_hash CHECK (length(token_hash) = 32),
        annotator BIGINT NOT NULL,
        query TEXT NOT NULL,
        left_item BIGINT NOT NULL,
        right_item BIGINT NOT NULL,
        policy TEXT NOT NULL CONSTRAINT ck_assignment_policy CHECK (policy <> ''),
        probability DOUBLE PRECISION NOT NULL CONSTRAINT ck_assignment_probability CHECK (probability > 0 AND
            probability <= 1),
        gold_item BIGINT,
        replaces BIGINT,
        CONSTRAINT pk_assignment PRIMARY KEY (seq),
        CONSTRAINT fk_assignment_left_item_query FOREIGN KEY(left_item, query) REFERENCES item (id, query),
        CONSTRAINT fk_assignment_right_item_query FOREIGN KEY(right_item, query) REFERENCES item (id, query),
        CONSTRAINT ck_assignment_two_items CHECK (left_item <> right_item),
        CONSTRAINT ck_assignment_gold_item CHECK (gold_item IS NULL OR gold_item IN (left_item, right_item)),
        CONSTRAINT uq_assignment_seq_annotator_left_item_right_item UNIQUE (seq, annotator, left_item, right_item),
        CONSTRAINT uq_assignment_seq_annotator UNIQUE (seq, annotator),
        CONSTRAINT fk_assignment_seq FOREIGN KEY(seq) REFERENCES log (seq),
        CONSTRAINT uq_assignment_token_hash UNIQUE (token_hash),
        CONSTRAINT fk_assignment_annotator FOREIGN KEY(annotator) REFERENCES annotator (id),
        CONSTRAINT uq_assignment_replaces UNIQUE (replaces),
        CONSTRAINT fk_assignment_replaces FOREIGN KEY(replaces) REFERENCES assignment (seq)
    )
    """,
    """
    CREATE TABLE token (
        seq BIGINT NOT NULL,
        hash BYTEA NOT NULL CONSTRAINT ck_token_hash CHECK (length(hash) = 32),
        role TEXT NOT NULL CONSTRAINT ck_token_role CHECK (role IN ('annotator', 'admin', 'join')),
        annotator BIGINT,
        CONSTRAINT pk_token PRIMARY KEY (seq),
        CONSTRAINT ck_token_annotator CHECK ((role = 'annotator') = (annotator IS NOT NULL)),
        CONSTRAINT fk_token_seq FOREIGN KEY(seq) REFERENCES log (seq),
        CONSTRAINT uq_token_hash UNIQUE (hash),
        CONSTRAINT fk_token_annotator FOREIGN KEY(annotator) REFERENCES annotator (id)
    )
    """,
    "CREATE INDEX ix_token_annotator ON token (annotator)",
    """
    CREATE TABLE lease (
        annotator BIGINT NOT NULL,
        assignment BIGINT NOT NULL,
        token TEXT NOT NULL,
        expires_at BIGINT NOT NULL,
        CONSTRAINT pk_lease PRIMARY KEY (annotator),
        CONSTRAINT fk_lease_assignment_annotator FOREIGN KEY(assignment, annotator) REFERENCES assignment (seq,
            annotator),
        CONSTRAINT uq_lease_assignment UNIQUE (assignment)
    )
    """,
    """
    CREATE TABLE session (
        hash BYTEA NOT NULL CONSTRAINT ck_session_hash CHECK (length(hash) = 32),
        token BIGINT NOT NULL,
        opened_at BIGINT NOT NULL,
        expires_at BIGINT NOT NULL,
        CONSTRAINT pk_session PRIMARY KEY (hash),
        CONSTRAINT fk_session_token FOREIGN KEY(token) REFERENCES token (seq)
    )
    """,
    "CREATE INDEX ix_session_token ON session (token)",
    """
    CREATE TABLE vote (
        seq BIGINT NOT NULL,
        at BIGINT NOT NULL,
        assignment BIGINT NOT NULL,
        annotator BIGINT NOT NULL,
        left_item BIGINT NOT NULL,
        right_item BIGINT NOT NULL,
        outcome TEXT NOT NULL CONSTRAINT ck_vote_outcome CHECK (outcome IN ('left', 'right', 'tie', 'skip')),
        winner_item BIGINT,
        reason TEXT DEFAULT '' NOT NULL,
        response_ms BIGINT CONSTRAINT ck_vote_response_ms CHECK (response_ms >= 0),
        CONSTRAINT pk_vote PRIMARY KEY (seq),
        CONSTRAINT fk_vote_assignment_annotator_left_item_right_item FOREIGN KEY(assignment, annotator,
            left_item, right_item) REFERENCES assignment (seq, annotator, left_item, right_item),
        CONSTRAINT ck_vote_winner_item CHECK (CASE outcome WHEN 'left' THEN winner_item IS NOT NULL AND
            winner_item = left_item WHEN 'right' THEN winner_item IS NOT NULL AND winner_item = right_item ELSE
            winner_item IS NULL END),
        CONSTRAINT fk_vote_seq FOREIGN KEY(seq) REFERENCES log (seq),
        CONSTRAINT uq_vote_assignment UNIQUE (assignment)
    )
    """,
    "CREATE INDEX ix_vote_annotator_seq ON vote (annotator, seq)",
    """
    CREATE TABLE withdrawal (
        seq BIGINT NOT NULL,
        vote BIGINT NOT NULL,
        CONSTRAINT pk_withdrawal PRIMARY KEY (seq),
        CONSTRAINT fk_withdrawal_seq FOREIGN KEY(seq) REFERENCES log (seq),
        CONSTRAINT uq_withdrawal_vote UNIQUE (vote),
        CONSTRAINT fk_withdrawal_vote FOREIGN KEY(vote) REFERENCES vote (seq)
    )
    """,
]

APPEND_ONLY = ("log", "item", "annotator", "token", "assignment", "vote", "withdrawal")
# Inserting into one of these tables also inserts a row into `log`.
LOGGED = ("assignment", "vote")
# Conditions that reject a new row of `log`, by their error message.
OUT_OF_ORDER = {
    "rows must be numbered without gaps": "NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM log)",
    "time must not go backwards": "NEW.at < (SELECT at FROM log ORDER BY seq DESC LIMIT 1)",
}
WRONG_SUBJECT = {
    "the subject must be an item": "NEW.kind IN ('item_edited', 'item_hidden', 'item_shown') "
    "AND NOT EXISTS (SELECT 1 FROM item WHERE item.id = NEW.subject)",
    "the subject must be an annotator": "NEW.kind IN ('annotator_edited', 'annotator_excluded', 'annotator_included') "
    "AND NOT EXISTS (SELECT 1 FROM annotator WHERE annotator.id = NEW.subject)",
    "the subject must be a token": "NEW.kind = 'token_revoked' "
    "AND NOT EXISTS (SELECT 1 FROM token WHERE token.seq = NEW.subject)",
    "the subject must be a vote": "NEW.kind IN ('undo', 'void') "
    "AND NOT EXISTS (SELECT 1 FROM vote WHERE vote.seq = NEW.subject)",
}


def upgrade() -> None:
    connection = op.get_bind()
    is_sqlite = connection.dialect.name == "sqlite"
    for statement in [*TABLES, *(sqlite_triggers() if is_sqlite else postgresql_triggers())]:
        connection.exec_driver_sql(for_sqlite(statement) if is_sqlite else statement)


def downgrade() -> None:
    raise NotImplementedError("This is the first version of the schema. Restore a backup instead.")


def for_sqlite(statement: str) -> str:
    for postgresql, sqlite in {"BIGINT": "INTEGER", "BYTEA": "BLOB", "DOUBLE PRECISION": "DOUBLE"}.items():
        statement = statement.replace(postgresql, sqlite)
    return statement


def sqlite_triggers(wrong_subject: dict[str, str] | None = None) -> list[str]:
    def reject(conditions: dict[str, str]) -> str:
        return "".join(f"SELECT RAISE(ABORT, 'log: {message}') WHERE {when}; " for message, when in conditions.items())

    return [
        f"CREATE TRIGGER log_in_order BEFORE INSERT ON log BEGIN {reject(OUT_OF_ORDER)} END",
        f"CREATE TRIGGER log_subject BEFORE INSERT ON log WHEN NEW.subject IS NOT NULL "
        f"BEGIN {reject(wrong_subject or WRONG_SUBJECT)} END",
        *(
            f"CREATE TRIGGER {table}_logged BEFORE INSERT ON {table} BEGIN "
            f"INSERT INTO log (seq, at, kind, actor) VALUES (NEW.seq, NEW.at, '{table}', 'annotator'); END"
            for table in LOGGED
        ),
        *(
            f"CREATE TRIGGER {table}_no_{change} BEFORE {change} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table}: rows cannot be changed or deleted'); END"
            for table in APPEND_ONLY
            for change in ("update", "delete")
        ),
    ]


def postgresql_triggers() -> list[str]:
    def function(name: str, body: str) -> str:
        return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"

    insert_log = "INSERT INTO log (seq, at, kind, actor) VALUES (NEW.seq, NEW.at, TG_TABLE_NAME, 'annotator');"
    return [
        function("log_in_order", reject_in_postgresql(OUT_OF_ORDER)),
        function("log_subject", reject_in_postgresql(WRONG_SUBJECT)),
        function("row_logged", f"{insert_log} RETURN NEW;"),
        function("never_changed", error_in_postgresql("TG_TABLE_NAME || ': rows cannot be changed or deleted'")),
        "CREATE TRIGGER log_in_order BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION log_in_order()",
        "CREATE TRIGGER log_subject BEFORE INSERT ON log FOR EACH ROW WHEN (NEW.subject IS NOT NULL) "
        "EXECUTE FUNCTION log_subject()",
        *(
            f"CREATE TRIGGER {table}_logged BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION row_logged()"
            for table in LOGGED
        ),
        *(
            f"CREATE TRIGGER {table}_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION never_changed()"
            for table in APPEND_ONLY
        ),
    ]


def error_in_postgresql(message: str) -> str:
    return f"RAISE EXCEPTION USING MESSAGE = {message}, ERRCODE = 'integrity_constraint_violation';"


def reject_in_postgresql(conditions: dict[str, str]) -> str:
    checks = (
        f"IF {when} THEN {error_in_postgresql(repr('log: ' + message))} END IF; "
        for message, when in conditions.items()
    )
    return "".join(checks) + "RETURN NEW;"
