"""What is kept about people: retention periods, and which version of a study people agreed to and answered."""

from __future__ import annotations

from collections import Counter
from typing import Any

from crowdrank.server.onboarding import consent_version
from crowdrank.server.projection import Projection
from crowdrank.server.settings import Settings
from crowdrank.storage import Collection, Event
from crowdrank.storage.judgments import iso_time

Json = dict[str, Any]
ACTOR = "retention"
_DAY = 86_400 * 1_000_000
_TEXTS = ("title", "question", "instructions", "consent")


def erasure_due(collection: Collection) -> int | None:
    """Return when the data that identify people are to be erased, in microseconds since 1970; None if never so far."""
    settings = Settings.from_dict(collection.settings.all())
    closed, days = collection.settings.closed_since(), settings.privacy.retention_days
    return None if closed is None or days is None else closed + days * _DAY


def apply_retention(collection: Collection, now: int) -> int:
    """Erase what identifies all annotators if it is due, and return how many they were. The log says so."""
    due = erasure_due(collection)
    if due is None or now < due:
        return 0
    erased = collection.erase_everyone(actor=ACTOR)
    if erased:
        collection.log.note("retention period ended", actor=ACTOR, detail={"annotators": erased})
    return erased


def study_versions(collection: Collection, projection: Projection) -> list[Json]:
    """Return the versions of a study, the latest first: what people read and were asked, since when, and by whom.

    A version begins with each change of the settings. The exported column `study_version` has its row.
    """
    projection.catch_up()
    events = [event for event in collection.log.events() if event.kind == "settings_changed"]
    votes = collection.log.votes_by_assignment([event.seq for event in events])
    agreed = Counter(str(one.metadata.get("consent", "")) for one in projection.annotators.values())
    found: list[Json] = []
    values: Json = {}
    for event in events:
        values |= event.detail
        found.append(_version(event, Settings.from_dict(_given(values)), votes[event.seq], agreed))
    return found[::-1]


def _given(values: Json) -> Json:
    return {key: value for key, value in values.items() if value is not None}


def _version(event: Event, settings: Settings, votes: int, agreed: Counter[str]) -> Json:
    version = consent_version(settings.consent)
    return {
        "seq": event.seq,
        "at": iso_time(event.at),
        "actor": event.actor,
        "changed": sorted(event.detail),
        **{name: getattr(settings, name) for name in _TEXTS},
        "consent_version": version or None,
        "agreed": agreed[version] if version else None,
        "votes": votes,
    }
