"""Backups on a schedule: copies of an SQLite collection in a folder, the oldest of which are deleted."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from crowdrank.storage import Collection

KEPT = 14
"""Backups that are kept."""


@dataclass(frozen=True, kw_only=True)
class BackupSchedule:
    """Where and how often a collection is copied.

    Parameters
    ----------
    folder : Path
        The folder of the copies. Several processes may share it.
    name : str
        What the names of the copies start with; their time follows.
    hours : float, default 24
        How many hours lie between two copies.
    """

    folder: Path
    name: str
    hours: float = 24.0

    def run_if_due(self, collection: Collection, now: float | None = None) -> Path | None:
        """Copy the collection if the last copy is old enough, and return the new file."""
        now = time.time() if now is None else now
        copies = self.copies()
        if copies and now - copies[-1].stat().st_mtime < 3600 * self.hours:
            return None
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self.folder / f"{self.name}-{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%SZ}.db"
        collection.backup(new)
        for old in self.copies()[:-KEPT]:
            old.unlink(missing_ok=True)
        return new

    def copies(self) -> list[Path]:
        """Return the copies, oldest first."""
        return sorted(self.folder.glob(f"{self.name}-????????T??????Z.db"))
