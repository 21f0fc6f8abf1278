"""What an organiser does, by page or by API: each act is a row of the log with their name."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.server.assignments import shown
from crowdrank.server.content import check_upload, kind_of
from crowdrank.server.errors import Problem
from crowdrank.server.projection import Person, Thing
from crowdrank.server.service import HIDDEN, Service
from crowdrank.storage import Event, NewItem
from crowdrank.storage.log import iso

Json = dict[str, Any]
ABOUT = ("body", "kind", "context", "group", "owner")
"""What can be told of an item beside its label and its query."""
_BODIES = ("body", "text", "markdown", "image", "url", "link", "content", "answer")
_KINDS = {"markdown": "markdown", "image": "image", "url": None, "link": "link"}


def new_item(told: Mapping[str, Any]) -> NewItem:
    """An item from its columns; empty ones say nothing."""
    content = {key: str(told[key]) for key in ABOUT if told.get(key)}
    kind_of(content.get("body", ""), content.get("kind"))
    return NewItem(label=str(told.get("label", "")), query=str(told.get("query") or ""), content=content)


def items_of_file(path: Path) -> list[NewItem]:
    """Of a table with a row an item; beside item and query: text (or markdown, image, link), kind, context, owner …"""
    from crowdrank.io import as_labels, read_items

    table = read_items(path)
    columns = {name.strip().lower(): as_labels(values) for name, values in table.columns.items()}
    body = next((name for name in _BODIES if name in columns), None)
    rows = []
    for n, label in enumerate(table.item):
        told: Json = {name: columns[name][n] for name in ("kind", "context", "group", "owner") if name in columns}
        told |= {"label": label, "query": "" if table.query is None else table.query[n]}
        if body is not None:
            told |= {"body": columns[body][n], "kind": told.get("kind") or _KINDS.get(body)}
        rows.append(new_item(told))
    return rows


def gold_of_file(path: Path) -> list[list[str]]:
    """Pairs whose order is known, of a table with the columns better and worse."""
    from crowdrank.errors import FormatError
    from crowdrank.io.sources import open_table

    table = open_table(path)
    if not {"better", "worse"} <= set(table.columns):
        raise FormatError(
            f"{table.name}: gold pairs need the columns better and worse, got {', '.join(table.columns)}."
        )
    frame = table.load(["better", "worse"], None)
    return [[str(a), str(b)] for a, b in zip(frame["better"], frame["worse"], strict=True)]


def uploaded(name: str, content: bytes) -> Path:
    """A file that was sent, where the readers of files can have it."""
    ending = Path(name).suffix.lower()
    if ending not in (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".txt"):
        raise Problem(422, "Send a table: .csv, .tsv, .jsonl, .json or .parquet.")
    folder = Path(tempfile.mkdtemp(prefix="crowdrank-"))
    path = folder / f"upload{ending}"
    path.write_bytes(content)
    return path


def edit_item(service: Service, number: int, told: Mapping[str, Any], actor: str) -> None:
    """Change what is told of an item, and hide or show it; what is not named stays."""
    thing = thing_of(service, number)
    content = dict(thing.content)
    for key in ABOUT:
        if key in told:
            content[key] = str(told[key] or "")
    content = {key: value for key, value in content.items() if value}
    kind_of(content.get("body", ""), content.get("kind"))
    if content != thing.content:
        service.collection.items.edit(number, content, actor=actor)
    if told.get("hidden") is not None and bool(told["hidden"]) != thing.hidden:
        if told["hidden"]:
            service.collection.items.hide(number, actor=actor, reason=str(told.get("reason") or ""))
        else:
            service.collection.items.show(number, actor=actor)
    service.live.catch_up()


def thing_of(service: Service, number: int) -> Thing:
    things = service.live.catch_up().items
    if number not in things:
        raise UnknownNameError("item", number, list(things)[:9])
    return things[number]


def person_of(service: Service, number: int) -> Person:
    people = service.live.catch_up().people
    if number not in people:
        raise UnknownNameError("annotator", number, list(people)[:9])
    return people[number]


def add_people(service: Service, told: Sequence[tuple[str, int | None]], actor: str) -> list[Json]:
    """Annotators by name and quota, each with a new link; a link of before is replaced by it."""
    people = service.collection.annotators
    about = {name: {} if quota is None else {"quota": quota} for name, quota in told}
    before = {person.name for person in service.live.catch_up().people.values()}
    numbers = people.add([name for name, _ in told], actor=actor, about=about)
    for (name, quota), number in zip(told, numbers, strict=True):
        if name in before:
            service.collection.access.revoke_all(number, actor=actor)
            if quota is not None:
                set_quota(service, number, quota, actor)
    tokens = service.collection.access.issue(numbers, actor=actor)
    service.live.catch_up()
    return [{"id": n, "name": name, "token": token} for n, (name, _), token in zip(numbers, told, tokens, strict=True)]


def reissue(service: Service, number: int, actor: str) -> str:
    """A new link in place of the old one."""
    person_of(service, number)
    service.collection.access.revoke_all(number, actor=actor)
    fresh = service.collection.access.issue([number], actor=actor)[0]
    service.live.catch_up()
    return fresh


def revoke(service: Service, number: int, actor: str) -> None:
    person_of(service, number)
    service.collection.access.revoke_all(number, actor=actor)
    service.collection.questions.release(number)
    service.live.catch_up()


def set_quota(service: Service, number: int, quota: int | None, actor: str) -> None:
    about = {key: value for key, value in person_of(service, number).about.items() if key != "quota"}
    service.collection.annotators.edit(number, about | ({} if quota is None else {"quota": quota}), actor=actor)
    service.live.catch_up()


def exclude(service: Service, number: int, out: bool, actor: str, reason: str = "") -> None:
    person = person_of(service, number)
    if person.excluded == out:
        return
    if out:
        service.collection.annotators.exclude(number, actor=actor, reason=reason)
    else:
        service.collection.annotators.include(number, actor=actor)
    service.live.catch_up()


def set_state(service: Service, state: Literal["open", "paused", "closed"], actor: str) -> None:
    if service.live.catch_up().state == state:
        return
    settings = service.collection.settings
    {"open": settings.resume, "paused": settings.pause, "closed": settings.close}[state](actor=actor)
    service.live.catch_up()


def void(service: Service, votes: Iterable[int], actor: str, reason: str = "") -> list[int]:
    done = service.collection.questions.void(votes, actor=actor, reason=reason)
    service.live.catch_up()
    return done


def add_webhook(service: Service, url: str, events: Sequence[str], actor: str) -> str:
    """Gives the secret that it is signed with, which is shown nowhere else."""
    hooks = service.live.catch_up().settings.as_dict()["webhooks"]
    if any(hook["url"] == url for hook in hooks):
        raise SettingError(f"webhooks: {url} is told already; remove it first.")
    secret = secrets.token_urlsafe(32)
    added = {"url": url, "secret": secret, "events": list(events)}
    service.change_settings({"webhooks": [*hooks, added]}, actor)
    return secret


def remove_webhook(service: Service, url: str, actor: str) -> None:
    hooks = service.live.catch_up().settings.as_dict()["webhooks"]
    service.change_settings({"webhooks": [hook for hook in hooks if hook["url"] != url]}, actor)


def keep_picture(service: Service, name: str, content: bytes, actor: str) -> str:
    """Into the media folder, under the name it came with, or another where that is taken; gives it."""
    import hashlib
    import re

    folder = service.options.media
    if folder is None:
        raise Problem(422, "There is no folder for pictures: one must be named when the server is started.")
    ending = check_upload(name, content)
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", Path(name).stem).strip("-")[:60] or "picture"
    kept = f"{stem}-{hashlib.sha256(content).hexdigest()[:10]}{ending}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / kept).write_bytes(content)
    service.collection.log.note("picture uploaded", actor=actor, detail={"file": kept, "bytes": len(content)})
    return kept


def items_table(service: Service) -> list[Json]:
    live = service.live.catch_up()
    return [
        {
            **shown(thing),
            "body": str(thing.content.get("body", thing.label)),
            "query": thing.query,
            "context": str(thing.content.get("context", "")),
            "group": str(thing.content.get("group", "")),
            "owner": thing.owner,
            "hidden": thing.hidden,
            "votes": int(live.seen[thing.code]),
        }
        for thing in list(live.items.values())
    ]


def totals(service: Service) -> Json:
    live = service.live.catch_up()
    budget, decided = live.settings.budget, live.decided
    return {
        "votes": len(live.folding),
        "decided": decided,
        "skipped": sum(live.answered(person)[1] for person in live.people.values()),
        "annotators": len(live.people),
        "items": sum(not thing.hidden for thing in live.items.values()),
        "money": round(decided * budget.price, 2),
        "budget_votes": budget.votes,
        "budget_money": budget.money,
    }


def audit(service: Service, before: int | None, limit: int) -> tuple[list[Json], int | None]:
    """The latest first; and where the next page begins."""
    up_to = None if before is None else before - 1
    rows = service.collection.log.events(up_to=up_to) if up_to is None or up_to > 0 else []
    some = rows[::-1][:limit]
    return [_told(event) for event in some], (some[-1].seq if len(rows) > limit else None)


def _told(event: Event) -> Json:
    detail = {key: value for key, value in event.detail.items() if value not in ("", {}, None)}
    if isinstance(detail.get("webhooks"), list):
        detail["webhooks"] = [{**hook, "secret": HIDDEN} for hook in detail["webhooks"]]
    return {
        "seq": event.seq,
        "at": iso(event.at),
        "kind": event.kind,
        "actor": event.actor,
        "subject": event.subject or None,
        "detail": detail,
    }
