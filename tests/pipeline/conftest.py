"""The command, as in tests/cli."""

from tests.cli.conftest import crowdrank

__all__ = ["crowdrank"]
