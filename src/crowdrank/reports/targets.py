"""Checks of files to be written, before anything is computed for them."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from crowdrank.errors import SettingError

_FIGURE_SUFFIXES = (".html", ".svg", ".png")
_REPORT_SUFFIXES = (".html", ".htm")


def check_drawable(path: str | PathLike[str]) -> Path:
    """Return the path of a figure; raise if the suffix, the folder or the drawing library is missing."""
    target = Path(path)
    if target.suffix.lower() not in _FIGURE_SUFFIXES:
        raise SettingError(f"{target.name}: figures are drawn as {', '.join(_FIGURE_SUFFIXES)}, got {target.suffix!r}.")
    _check_folder(target)
    try:
        import altair  # noqa: F401
        import vl_convert  # noqa: F401  (altair draws with it)
    except ImportError as error:
        raise SettingError("Figures need Altair: pip install 'crowdrank[reports]'.") from error
    return target


def check_report(path: str | PathLike[str]) -> Path:
    """Return the path of a report; raise if the suffix or the folder is wrong."""
    target = Path(path)
    if target.suffix.lower() not in _REPORT_SUFFIXES:
        raise SettingError(f"{target.name}: a report is an HTML page (.html), got {target.suffix!r}.")
    _check_folder(target)
    return target


def _check_folder(target: Path) -> None:
    if not target.parent.is_dir():
        raise SettingError(f"{target}: the folder {target.parent} does not exist.")
