"""Run the Alembic migrations on the connection that `crowdrank.storage.database` provides."""

from alembic import context

from crowdrank.storage.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
