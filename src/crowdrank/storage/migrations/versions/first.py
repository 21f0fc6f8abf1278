"""The first schema: the log, the typed tables beside it, and the triggers that keep both."""

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
    CREATE TABLE rate (
        key_hash BYTEA NOT NULL CONSTRAINT ck_rate_key_hash CHECK (length(key_hash) = 32),
        free_at BIGINT NOT NULL,
        CONSTRAINT pk_rate PRIMARY KEY (key_hash)
    )
    """,
    "CREATE INDEX ix_rate_free_at ON rate (free_at)",
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
        instead_of BIGINT,
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
        CONSTRAINT uq_assignment_instead_of UNIQUE (instead_of),
        CONSTRAINT fk_assignment_instead_of FOREIGN KEY(instead_of) REFERENCES assignment (seq)
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
# A row of these writes its own row of the log.
LOGGED = ("assignment", "vote")
# What must not be true of a new row of the log, in both databases; and of one that is about an earlier row.
OUT_OF_ORDER = {
    "the next number is due": "NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM log)",
    "time runs forward": "NEW.at < (SELECT at FROM log ORDER BY seq DESC LIMIT 1)",
}
ABOUT_NOTHING = {
    "it must be about an item": "NEW.kind IN ('item_edited', 'item_hidden', 'item_shown') "
    "AND NOT EXISTS (SELECT 1 FROM item WHERE item.id = NEW.subject)",
    "it must be about an annotator": "NEW.kind IN ('annotator_edited', 'annotator_excluded', 'annotator_included') "
    "AND NOT EXISTS (SELECT 1 FROM annotator WHERE annotator.id = NEW.subject)",
    "it must be about a token": "NEW.kind = 'token_revoked' "
    "AND NOT EXISTS (SELECT 1 FROM token WHERE token.seq = NEW.subject)",
    "it must be about a vote": "NEW.kind IN ('undo', 'void') "
    "AND NOT EXISTS (SELECT 1 FROM vote WHERE vote.seq = NEW.subject)",
}


def upgrade() -> None:
    here = op.get_bind()
    sqlite = here.dialect.name == "sqlite"
    for statement in [*TABLES, *(triggers_of_sqlite() if sqlite else triggers_of_postgresql())]:
        here.exec_driver_sql(_in_sqlite(statement) if sqlite else statement)


def downgrade() -> None:
    raise NotImplementedError("There is nothing before the first version: restore a backup.")


def _in_sqlite(statement: str) -> str:
    for theirs, ours in {"BIGINT": "INTEGER", "BYTEA": "BLOB", "DOUBLE PRECISION": "DOUBLE"}.items():
        statement = statement.replace(theirs, ours)
    return statement


def triggers_of_sqlite() -> list[str]:
    def refuse(wrong: dict[str, str]) -> str:
        return "".join(f"SELECT RAISE(ABORT, 'log: {what}') WHERE {when}; " for what, when in wrong.items())

    return [
        f"CREATE TRIGGER log_in_order BEFORE INSERT ON log BEGIN {refuse(OUT_OF_ORDER)} END",
        f"CREATE TRIGGER log_about BEFORE INSERT ON log WHEN NEW.subject IS NOT NULL BEGIN {refuse(ABOUT_NOTHING)} END",
        *(
            f"CREATE TRIGGER {table}_logged BEFORE INSERT ON {table} BEGIN "
            f"INSERT INTO log (seq, at, kind, actor) VALUES (NEW.seq, NEW.at, '{table}', 'annotator'); END"
            for table in LOGGED
        ),
        *(
            f"CREATE TRIGGER {table}_no_{act} BEFORE {act} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table}: rows are added, never changed'); END"
            for table in APPEND_ONLY
            for act in ("update", "delete")
        ),
    ]


def triggers_of_postgresql() -> list[str]:
    def function(name: str, body: str) -> str:
        return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"

    def refusal(message: str) -> str:
        return f"RAISE EXCEPTION USING MESSAGE = {message}, ERRCODE = 'integrity_constraint_violation';"

    def refuse(wrong: dict[str, str]) -> str:
        checks = (f"IF {when} THEN {refusal(repr('log: ' + what))} END IF; " for what, when in wrong.items())
        return "".join(checks) + "RETURN NEW;"

    new_row = "INSERT INTO log (seq, at, kind, actor) VALUES (NEW.seq, NEW.at, TG_TABLE_NAME, 'annotator');"
    return [
        function("log_in_order", refuse(OUT_OF_ORDER)),
        function("log_about", refuse(ABOUT_NOTHING)),
        function("row_logged", f"{new_row} RETURN NEW;"),
        function("never_changed", refusal("TG_TABLE_NAME || ': rows are added, never changed'")),
        "CREATE TRIGGER log_in_order BEFORE INSERT ON log FOR EACH ROW EXECUTE FUNCTION log_in_order()",
        "CREATE TRIGGER log_about BEFORE INSERT ON log FOR EACH ROW WHEN (NEW.subject IS NOT NULL) "
        "EXECUTE FUNCTION log_about()",
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
