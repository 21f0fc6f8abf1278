"""Charts as files: a page that needs no network, or a picture."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from crowdrank.errors import SettingError

_ENDINGS = (".html", ".svg", ".png")
_ACTIONS = {"export": True, "source": False, "compiled": False, "editor": False}
"""What the menu of a page offers: pictures, and nothing that needs a network."""


def check_drawable(path: str | PathLike[str]) -> Path:
    """Refuses what cannot be drawn, before anyone waits for it."""
    target = Path(path)
    if target.suffix.lower() not in _ENDINGS:
        raise SettingError(f"{target.name}: figures are drawn as {', '.join(_ENDINGS)}, got {target.suffix!r}.")
    if not target.parent.is_dir():
        raise SettingError(f"{target}: there is no folder {target.parent} to draw into.")
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401  (what altair draws with)
    except ImportError as error:
        raise SettingError("Nothing to draw with: pip install 'crowdrank[reports]' brings it.") from error
    return target


def write_chart(chart: Any, target: Path) -> None:
    """By the ending of the file."""
    try:
        if target.suffix.lower() == ".html":
            chart.save(str(target), format="html", inline=True, embed_options={"actions": _ACTIONS})
        else:
            chart.save(str(target), format=target.suffix.lower()[1:], scale_factor=2)
    except OSError as error:
        raise SettingError(f"{target}: cannot be written ({error.strerror or error}).") from error
