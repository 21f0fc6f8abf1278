"""Actions of admins, from the pages and the API. The log records every action with the admin's name."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.server.files import (
    CONTENT_FIELDS,
    content_kind,
    item_body,
    item_view,
    parse_item,
    save_media,
    text_of_file,
)
from crowdrank.server.projection import Projection
from crowdrank.server.quality import gold_failures
from crowdrank.server.records import Annotator, Item
from crowdrank.server.service import Service
from crowdrank.server.settings import Settings, check_changes
from crowdrank.storage import Collection, Event
from crowdrank.storage.judgments import iso_time
from crowdrank.storage.schema import MAX_NAME_LENGTH

Json = dict[str, Any]
PREVIEW_SECONDS = 3600
HIDDEN = "hidden"
"""Shown instead of a secret."""


def get_item(service: Service, id_: int) -> Item:
    items = service.projection.catch_up().items
    if id_ not in items:
        raise UnknownNameError("item", id_, list(items)[:9])
    return items[id_]


def get_annotator(service: Service, id_: int) -> Annotator:
    annotators = service.projection.catch_up().annotators
    if id_ not in annotators:
        raise UnknownNameError("annotator", id_, list(annotators)[:9])
    return annotators[id_]


def edit_item(service: Service, id_: int, values: Mapping[str, Any], actor: str) -> None:
    """Change the content of an item, and hide or show it. Fields that are not in `values` keep their value."""
    item = get_item(service, id_)
    content = item.content | {key: str(values[key] or "") for key in CONTENT_FIELDS if key in values}
    content = {key: value for key, value in content.items() if value}
    content_kind(content.get("body", ""), content.get("kind"))
    if content != item.content:
        service.collection.items.edit(id_, content, actor=actor)
    if values.get("hidden") is not None and bool(values["hidden"]) != item.hidden:
        if values["hidden"]:
            service.collection.items.hide(id_, actor=actor, reason=str(values.get("reason") or ""))
        else:
            service.collection.items.show(id_, actor=actor)
    service.projection.catch_up()


def add_files(service: Service, uploaded: Iterable[tuple[str, bytes]], query: str, actor: str) -> list[int]:
    """Add one item per file, named after it: an image or a recording, or the text in a text, Markdown or HTML file."""
    new = []
    for name, content in uploaded:
        text = text_of_file(name, content)
        body, kind = (upload_media(service, name, content, actor), "") if text is None else text
        new.append(parse_item({"label": Path(name).stem[:MAX_NAME_LENGTH], "query": query, "body": body, "kind": kind}))
    if not new:
        raise SettingError("Choose one file or several.")
    return service.collection.items.add(new, actor=actor)


def upload_media(service: Service, name: str, content: bytes, actor: str) -> str:
    """Save an image or a recording in the media folder and return its name there."""
    file_name = save_media(service.options.media, name, content)
    service.collection.log.note("file uploaded", actor=actor, detail={"file": file_name, "bytes": len(content)})
    return file_name


def add_annotators(service: Service, names_and_quotas: Sequence[tuple[str, int | None]], actor: str) -> list[Json]:
    """Add annotators and issue each a new token. The token of an existing annotator is replaced."""
    access = service.collection.access
    metadata = {name: {} if quota is None else {"quota": quota} for name, quota in names_and_quotas}
    existing = {annotator.name for annotator in service.projection.catch_up().annotators.values()}
    names = [name for name, _ in names_and_quotas]
    ids = service.collection.annotators.add(names, actor=actor, metadata=metadata)
    for (name, quota), id_ in zip(names_and_quotas, ids, strict=True):
        if name in existing:
            access.revoke_all(id_, actor=actor)
            if quota is not None:
                set_quota(service, id_, quota, actor)
    tokens = access.issue(ids, actor=actor)
    service.projection.catch_up()
    return [{"id": id_, "name": name, "token": token} for id_, name, token in zip(ids, names, tokens, strict=True)]


def replace_token(service: Service, id_: int, actor: str) -> str:
    """Revoke the tokens of an annotator and issue a new one."""
    if get_annotator(service, id_).erased:
        raise DataError("This annotator was erased, which cannot be undone.")
    service.collection.access.revoke_all(id_, actor=actor)
    token = service.collection.access.issue([id_], actor=actor)[0]
    service.projection.catch_up()
    return token


def revoke_token(service: Service, id_: int, actor: str) -> None:
    """Revoke the tokens of an annotator and withdraw their open assignment."""
    get_annotator(service, id_)
    service.collection.access.revoke_all(id_, actor=actor)
    service.collection.assignments.release(id_)
    service.projection.catch_up()


def set_quota(service: Service, id_: int, quota: int | None, actor: str) -> None:
    metadata = {key: value for key, value in get_annotator(service, id_).metadata.items() if key != "quota"}
    new = metadata | ({} if quota is None else {"quota": quota})
    service.collection.annotators.edit(id_, new, actor=actor)
    service.projection.catch_up()


def set_excluded(service: Service, id_: int, excluded: bool, actor: str, reason: str = "") -> None:
    annotator = get_annotator(service, id_)
    if annotator.erased:
        raise DataError("This annotator was erased, which cannot be undone.")
    if annotator.is_preview:
        raise DataError("This is an organiser who looked at the study: their answers never count.")
    if annotator.excluded == excluded and not annotator.quarantined:
        return
    if excluded:
        service.collection.annotators.exclude(id_, actor=actor, reason=reason)
    else:
        service.collection.annotators.include(id_, actor=actor)
        if annotator.votes:
            _forgive(service, annotator, actor)
    service.projection.catch_up()


def set_paused(service: Service, id_: int, reason: str | None, actor: str) -> None:
    """Ask an annotator nothing more for now, for a reason, or let them go on if it is None. Their votes count."""
    annotator = get_annotator(service, id_)
    if annotator.erased:
        raise DataError("This annotator was erased, which cannot be undone.")
    if reason is None:
        _forgive(service, annotator, actor)
    else:
        paused = {**annotator.metadata, "paused": reason or "paused by an organiser"}
        service.collection.annotators.edit(id_, paused, actor=actor)
    service.projection.catch_up()


def _forgive(service: Service, annotator: Annotator, actor: str) -> None:
    """Let the rules of `quality.py` start again from here, so that they do not act on the same answers twice."""
    projection = service.projection
    standing = sum(not projection.is_withdrawn(row) for row in annotator.votes)
    start = {"forgiven_gold": gold_failures(projection, annotator), "checked_votes": standing}
    kept = {key: value for key, value in annotator.metadata.items() if key != "paused"}
    service.collection.annotators.edit(annotator.id, kept | start, actor=actor)


def start_preview(service: Service, actor: str) -> str:
    """Add an annotator for an organiser who looks at the study, and return the secret of their session.

    Their votes are set aside from the start, so that they never count.
    """
    name = f"preview-{secrets.token_hex(4)}"
    annotators, access = service.collection.annotators, service.collection.access
    (id_,) = annotators.add([name], actor=actor, metadata={name: {"joined": "preview"}})
    annotators.exclude(id_, actor=actor, reason="preview", quarantine=True)
    service.projection.catch_up()
    return access.open_session(access.issue([id_], actor=actor)[0], seconds=PREVIEW_SECONDS)


def erase_annotator(service: Service, id_: int, actor: str, *, keep_votes: bool) -> str:
    """Erase what identifies an annotator, and return the name that replaces theirs."""
    get_annotator(service, id_)
    try:
        return service.collection.erase_annotator(id_, actor=actor, keep_votes=keep_votes)
    finally:
        service.projection.catch_up()


def data_about(service: Service, id_: int, actor: str) -> Json:
    """Return everything that is stored about an annotator. The log records the export, without their name."""
    data = service.collection.data_about(id_)
    service.collection.log.note("data of an annotator exported", actor=actor, detail={"annotator": id_})
    return data


def void_votes(service: Service, votes: Iterable[int], actor: str, reason: str = "") -> list[int]:
    """Withdraw votes and return those that counted."""
    withdrawn = service.collection.votes.void(votes, actor=actor, reason=reason)
    service.projection.catch_up()
    return withdrawn


def void_all_votes(service: Service, id_: int, actor: str, reason: str = "") -> list[int]:
    """Withdraw all votes of an annotator so far and return those that counted."""
    get_annotator(service, id_)
    withdrawn = service.collection.votes.void_all(id_, actor=actor, reason=reason)
    service.projection.catch_up()
    return withdrawn


def set_state(service: Service, state: Literal["open", "paused", "closed"], actor: str) -> None:
    if service.projection.catch_up().state == state:
        return
    settings = service.collection.settings
    {"open": settings.resume, "paused": settings.pause, "closed": settings.close}[state](actor=actor)
    service.projection.catch_up()


def change_settings(service: Service, values: Mapping[str, Any], actor: str) -> None:
    """Check the new settings, then store those that differ."""
    projection = service.projection.catch_up()
    old = projection.settings
    new = old.with_changes(_restore_secrets(values, old))
    allow_internal = service.options.allow_internal_webhooks
    store_settings(service.collection, projection, new, actor, allow_internal=allow_internal)
    service.projection.catch_up()


def store_settings(
    collection: Collection, projection: Projection, new: Settings, actor: str, *, allow_internal: bool
) -> None:
    """Store the settings that differ from the current ones. The secrets of webhooks are encrypted."""
    before, after = projection.settings.as_dict(), new.as_dict()
    known = {hook["url"] for hook in before["webhooks"]}
    changed = {key: value for key, value in after.items() if value != before[key]}
    added = replace(new, webhooks=tuple(hook for hook in new.webhooks if hook.url not in known))
    items = [(item.query, item.label) for item in projection.items.values()]
    check_changes(added, changed, items, allow_internal=allow_internal)
    if "task" in changed:
        _check_task_change(projection)
    if "webhooks" in changed:
        changed["webhooks"] = [{**hook, "secret": collection.keys.seal(hook["secret"])} for hook in after["webhooks"]]
    if changed:
        collection.settings.change(changed, actor=actor)
    if "task" in changed:
        collection.assignments.release_all()


def _check_task_change(projection: Projection) -> None:
    if len(projection.votes):
        raise SettingError("task: it cannot be changed after the first answer. Start another collection.")


def settings_without_secrets(settings: Settings) -> Json:
    """Return settings as plain values, with the secrets of webhooks hidden."""
    values = settings.as_dict()
    values["webhooks"] = [{**hook, "secret": HIDDEN} for hook in values["webhooks"]]
    return values


def add_webhook(service: Service, url: str, events: Sequence[str], actor: str) -> str:
    """Add a webhook and return its secret, which cannot be read again later."""
    hooks = service.projection.catch_up().settings.as_dict()["webhooks"]
    if any(hook["url"] == url for hook in hooks):
        raise SettingError(f"webhooks: {url} is already a webhook. Remove it first.")
    secret = secrets.token_urlsafe(32)
    new = {"url": url, "secret": secret, "events": list(events)}
    change_settings(service, {"webhooks": [*hooks, new]}, actor)
    return secret


def remove_webhook(service: Service, url: str, actor: str) -> None:
    hooks = service.projection.catch_up().settings.as_dict()["webhooks"]
    change_settings(service, {"webhooks": [hook for hook in hooks if hook["url"] != url]}, actor)


def list_items(service: Service) -> list[Json]:
    """Return one row per item, hidden ones included."""
    projection = service.projection.catch_up()
    return [
        {
            **item_view(item),
            "body": item_body(item),
            "query": item.query,
            "context": str(item.content.get("context", "")),
            "group": str(item.content.get("group", "")),
            "owner": item.owner,
            "hidden": item.hidden,
            "votes": int(projection.appearances[item.code]),
        }
        for item in list(projection.items.values())
    ]


def totals(service: Service) -> Json:
    """Return the numbers of the overview page."""
    projection = service.projection.catch_up()
    budget, counted = projection.settings.budget, projection.n_counted
    return {
        "votes": len(projection.votes),
        "decided": counted,
        "skipped": sum(annotator.skipped for annotator in projection.annotators.values()),
        "annotators": sum(not annotator.is_preview for annotator in projection.annotators.values()),
        "items": sum(not item.hidden for item in projection.items.values()),
        "money": round(counted * budget.price_per_vote, 2),
        "budget_votes": budget.votes,
        "budget_money": budget.money,
    }


def audit_page(service: Service, before: int | None, limit: int, *, by: str = "") -> tuple[list[Json], int | None]:
    """Return events, the latest first, and the row before which the next page starts; all, or those `by` someone."""
    up_to = None if before is None else before - 1
    events = service.collection.log.events(up_to=up_to) if up_to is None or up_to > 0 else []
    events = [event for event in events if not by or event.actor == by]
    page = events[::-1][:limit]
    return [_event_view(event) for event in page], (page[-1].seq if len(events) > limit else None)


def audit_rows(service: Service) -> Iterator[Json]:
    """Iterate over the audit log for an export, the earliest event first."""
    for event in service.collection.log.events():
        view = _event_view(event)
        yield {**view, "detail": json.dumps(view["detail"], ensure_ascii=False, sort_keys=True)}


def actors(service: Service) -> list[str]:
    """Return who appears in the audit log."""
    return sorted({event.actor for event in service.collection.log.events()})


def _event_view(event: Event) -> Json:
    detail = {key: value for key, value in event.detail.items() if value not in ("", {}, None)}
    if isinstance(detail.get("webhooks"), list):
        detail["webhooks"] = [{**hook, "secret": HIDDEN} for hook in detail["webhooks"]]
    # Who someone is on a panel is only shown to those who ask for it.
    if isinstance(metadata := detail.get("metadata"), dict) and "panel" in metadata:
        detail["metadata"] = {**metadata, "panel": HIDDEN}
    return {
        "seq": event.seq,
        "at": iso_time(event.at),
        "kind": event.kind,
        "actor": event.actor,
        "subject": event.subject or None,
        "detail": detail,
    }


def _restore_secrets(values: Mapping[str, Any], old: Settings) -> dict[str, Any]:
    """Replace the hidden secrets of webhooks by the stored ones."""
    stored = {hook.url: hook.secret for hook in old.webhooks}
    restored = dict(values)
    if isinstance(restored.get("webhooks"), list):
        restored["webhooks"] = [
            {**hook, "secret": stored.get(str(hook.get("url")), "")}
            if isinstance(hook, dict) and hook.get("secret") == HIDDEN
            else hook
            for hook in restored["webhooks"]
        ]
    return restored
