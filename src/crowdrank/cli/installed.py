"""What a command needs beyond the core."""

from __future__ import annotations

from importlib.util import find_spec

from crowdrank.errors import SettingError


def needed(*modules: str, extra: str = "server") -> None:
    """Say how to install what is missing, before anything is begun."""
    if any(find_spec(module) is None for module in modules):
        raise SettingError(f"This needs more than the core of crowdrank:  pip install 'crowdrank[{extra}]'")
