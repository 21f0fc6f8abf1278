"""The schema of a database, brought up to what this version of crowdrank needs."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect

from crowdrank.errors import SettingError
from crowdrank.storage.database import Database
from crowdrank.storage.schema import HEAD


def upgrade(database: Database) -> None:
    """Make the tables, or change them to the last version, in one transaction; nothing where they are."""
    if database.read(version_of) == HEAD:
        return

    def run() -> None:
        with database.upgrading() as connection:
            if version_of(connection) != HEAD:  # nobody did it while we waited
                _migrate(connection)

    database.persist(run)


def version_of(connection: Connection) -> str | None:
    """The last migration that was run, if any was."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    row = connection.exec_driver_sql("SELECT version_num FROM alembic_version").first()
    return None if row is None else str(row[0])


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise SettingError(
            f"The database is of version {version_of(connection)}, which this crowdrank does not know "
            f"(its own is {HEAD}): use the crowdrank that made it, or a newer one."
        ) from error
