"""Alembic migrations, one file per schema version. Opening a collection applies the ones that are missing."""
