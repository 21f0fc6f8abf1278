"""The identity of a collection, and the addresses of recent participants. Removes what was stored in the clear."""

from alembic import op

from crowdrank.storage.migrations.versions.first import for_sqlite

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STATEMENTS = [
    """
    CREATE TABLE identity (
        name TEXT NOT NULL,
        value BYTEA NOT NULL,
        CONSTRAINT pk_identity PRIMARY KEY (name)
    )
    """,
    """
    CREATE TABLE visit (
        annotator BIGINT NOT NULL,
        address BYTEA NOT NULL CONSTRAINT ck_visit_address CHECK (length(address) = 32),
        expires_at BIGINT NOT NULL,
        CONSTRAINT pk_visit PRIMARY KEY (annotator),
        CONSTRAINT fk_visit_annotator FOREIGN KEY(annotator) REFERENCES annotator (id)
    )
    """,
    "CREATE INDEX ix_visit_expires_at ON visit (expires_at)",
    # The tokens of open questions were stored in the clear, and addresses without a key. Both are temporary.
    "DELETE FROM lease",
    "DELETE FROM rate_limit",
]


def upgrade() -> None:
    connection = op.get_bind()
    for statement in STATEMENTS:
        connection.exec_driver_sql(for_sqlite(statement) if connection.dialect.name == "sqlite" else statement)


def downgrade() -> None:
    raise NotImplementedError("Restore a backup instead.")
