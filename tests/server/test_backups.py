"""Backups on a schedule."""

import os

from crowdrank.server.service import KEPT, BackupSchedule
from crowdrank.storage import Collection


def test_copies_are_made_when_due_and_the_oldest_are_deleted(tmp_path):
    schedule = BackupSchedule(folder=tmp_path / "copies", name="cities", hours=24)
    with Collection.open(tmp_path / "cities.db") as collection:
        collection.items.add(["Rome", "Oslo"], actor="test")
        now = 1_800_000_000.0
        for day in range(KEPT + 3):
            made = schedule.run_if_due(collection, now + day * 86_400)
            os.utime(made, (now + day * 86_400,) * 2)
            assert schedule.run_if_due(collection, now + day * 86_400 + 3600) is None
    assert len(schedule.copies()) == KEPT
    assert schedule.copies()[-1] == made
    assert made.stat().st_mode & 0o777 == 0o600
    with Collection.open(made) as copy:
        assert len(copy.items.all()) == 2


def test_a_clock_that_was_wrong_does_not_stop_the_copies(tmp_path):
    schedule = BackupSchedule(folder=tmp_path / "copies", name="cities", hours=24)
    now, future = 1_800_000_000.0, 1_900_000_000.0
    with Collection.open(tmp_path / "cities.db") as collection:
        collection.items.add(["Rome", "Oslo"], actor="test")
        for day in range(KEPT):
            os.utime(schedule.run_if_due(collection, future + day * 86_400), (future + day * 86_400,) * 2)
        made = schedule.run_if_due(collection, now)
        assert made is not None
        assert made.exists()
        os.utime(made, (now,) * 2)
        assert schedule.run_if_due(collection, now + 3600) is None
        assert len(schedule.copies()) == KEPT
