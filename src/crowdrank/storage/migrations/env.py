"""What Alembic runs: migrations over the connection that `crowdrank.storage.database` hands it."""

from alembic import context

from crowdrank.storage.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
