"""Accounts of organisers and their sessions."""

from alembic import op

from crowdrank.storage.migrations.versions.first import for_sqlite

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

STATEMENTS = [
    """
    CREATE TABLE account (
        id BIGINT NOT NULL,
        name TEXT NOT NULL CONSTRAINT ck_account_name CHECK (length(name) BETWEEN 1 AND 100),
        role TEXT NOT NULL CONSTRAINT ck_account_role CHECK (role IN ('owner', 'editor', 'viewer')),
        password TEXT,
        totp TEXT,
        totp_step BIGINT DEFAULT 0 NOT NULL,
        invitation BYTEA CONSTRAINT ck_account_invitation CHECK (length(invitation) = 32),
        invited_until BIGINT,
        CONSTRAINT pk_account PRIMARY KEY (id),
        CONSTRAINT fk_account_id_log FOREIGN KEY(id) REFERENCES log (seq),
        CONSTRAINT uq_account_name UNIQUE (name),
        CONSTRAINT uq_account_invitation UNIQUE (invitation)
    )
    """,
    """
    CREATE TABLE account_session (
        hash BYTEA NOT NULL CONSTRAINT ck_account_session_hash CHECK (length(hash) = 32),
        account BIGINT NOT NULL,
        opened_at BIGINT NOT NULL,
        seen_at BIGINT NOT NULL,
        expires_at BIGINT NOT NULL,
        client TEXT DEFAULT '' NOT NULL,
        CONSTRAINT pk_account_session PRIMARY KEY (hash),
        CONSTRAINT fk_account_session_account FOREIGN KEY(account) REFERENCES account (id)
    )
    """,
    "CREATE INDEX ix_account_session_account ON account_session (account)",
]


def upgrade() -> None:
    connection = op.get_bind()
    for statement in STATEMENTS:
        connection.exec_driver_sql(for_sqlite(statement) if connection.dialect.name == "sqlite" else statement)


def downgrade() -> None:
    raise NotImplementedError("Restore a backup instead.")
