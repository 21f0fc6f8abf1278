"""crowdrank serve: a page where annotators compare items, and a board that follows."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.request import ProxyHandler, build_opener

import typer

from crowdrank.cli.progress import needed
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.storage import Collection


@dataclass(frozen=True, kw_only=True)
class _Begun:
    """What whoever starts a collection is told."""

    items: int
    annotators: int
    database: str | None
    """A file; None for an address, which may hold a password."""
    organise: str | None
    """The admin link; None where it was shown before."""
    take_part: str
    board: str
    links: str | None


def serve(
    items: Annotated[Path | None, typer.Argument(help="A file of items: item, and text, image, query, owner …")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings of the collection, in TOML.")] = None,
    database: Annotated[
        str | None, typer.Option(help="A file, or postgresql://…; beside it, ITEMS.crowdrank.db is made.")
    ] = None,
    annotators: Annotated[Path | None, typer.Option(help="A file of annotators, each to get a link.")] = None,
    links: Annotated[Path | None, typer.Option(help="Where to write the links of --annotators, as CSV.")] = None,
    gold: Annotated[Path | None, typer.Option(help="Pairs whose order is known, in columns better and worse.")] = None,
    media: Annotated[Path | None, typer.Option(help="The folder that pictures are in.")] = None,
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 for all of this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen at.", min=1, max=65_535)] = 8000,
    processes: Annotated[int, typer.Option(help="How many processes answer.", min=1, max=64)] = 1,
    public_url: Annotated[str | None, typer.Option(help="The address that people use, behind a proxy.")] = None,
    trusted_proxies: Annotated[
        int, typer.Option(help="How many proxies stand before, whose X-Forwarded-For is to be believed.", min=0, max=9)
    ] = 0,
    new_admin_link: Annotated[bool, typer.Option("--new-admin-link", help="Replace the admin link.")] = False,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "warning",
    as_json: Annotated[bool, typer.Option("--json", help="Print the links as JSON, once it answers.")] = False,
) -> None:
    """Start a collection, or go on with one: a web page to compare items, and a live board."""
    needed("fastapi", "sqlalchemy", "uvicorn")
    from crowdrank.server.main import check_port
    from crowdrank.server.main import serve as run
    from crowdrank.server.service import Options
    from crowdrank.storage import Collection

    if items is None and database is None:
        raise SettingError("Name a file of items, or the --database of a collection that was begun before.")
    if log_level not in ("debug", "info", "warning", "error"):
        raise SettingError(f"--log-level must be debug, info, warning or error, got {log_level!r}.")
    if annotators is not None and links is None:
        raise SettingError("Links of annotators are shown only once: say where to write them, --links links.csv.")
    if public_url is not None and not re.fullmatch(r"https?://[^/\s]+/?", public_url):
        raise SettingError(f"--public-url must be like https://rank.example.org, got {public_url!r}.")
    check_port(host, port)
    place = database or f"{(items or Path()).stem}.crowdrank.db"
    base = (public_url or f"http://{'localhost' if host in ('127.0.0.1', '0.0.0.0', '::') else host}:{port}").rstrip(
        "/"
    )
    with Collection.open(place) as collection:
        _prepare(collection, items, config, gold)
        secret = _admin_secret(collection, new_admin_link)
        if annotators is not None and links is not None:
            _write_links(collection, annotators, links, base)
        told = _Begun(
            items=sum(not one.hidden for one in collection.items.all().values()),
            annotators=len(collection.annotators.all()),
            database=None if "://" in place else place,
            organise=None if secret is None else f"{base}/admin/{secret}",
            take_part=f"{base}/join",
            board=f"{base}/",
            links=None if links is None else str(links),
        )
    if as_json:
        threading.Thread(target=_tell_when_ready, args=(told, host, port), daemon=True).start()
    else:
        _say(told, alone=public_url is None and host in ("127.0.0.1", "localhost", "::1"))
    run(
        place,
        Options(media=media, public_url=public_url, trusted_proxies=trusted_proxies),
        host=host,
        port=port,
        processes=processes,
        log_level=log_level,
    )


def _prepare(collection: Collection, items: Path | None, config: Path | None, gold: Path | None) -> None:
    """Items, settings and gold pairs, as far as they are not there yet."""
    from crowdrank.server.projection import Projection
    from crowdrank.server.settings import read_settings
    from crowdrank.server.uploads import read_gold_file, read_items_file

    if items is not None:
        collection.items.add(read_items_file(items), actor="serve")
    projection = Projection(collection).catch_up()
    before = projection.settings.as_dict()
    told = before if config is None else read_settings(config).as_dict()
    if gold is not None:
        told = {**told, "gold": read_gold_file(gold)}
    if changed := {key: value for key, value in told.items() if value != before[key]}:
        collection.settings.change(changed, actor="serve")


def _admin_secret(collection: Collection, new: bool) -> str | None:
    """A new secret, where there is none or another is wanted: it can be told only now."""
    if new:
        collection.access.revoke_all(role="admin", actor="serve")
    elif collection.access.issued("admin"):
        return None
    return collection.access.issue_role("admin", actor="serve")


def _write_links(collection: Collection, annotators: Path, links: Path, base: str) -> None:
    from crowdrank.io import read_annotators
    from crowdrank.server.exports import as_csv

    people = read_annotators(annotators)
    about = {name: {"quota": quota} for name, quota in people.quota.items()}
    numbers = collection.annotators.add(people.annotators, actor="serve", metadata=about)
    held = collection.access.holders()
    new = [(n, name) for n, name in zip(numbers, people.annotators, strict=True) if n not in held]
    tokens = collection.access.issue([n for n, _ in new], actor="serve")
    rows = [{"annotator": name, "link": f"{base}/join/{token}"} for (_, name), token in zip(new, tokens, strict=True)]
    links.write_text("".join(as_csv(rows, ("annotator", "link"))), encoding="utf-8")
    links.chmod(0o600)


def _say(told: _Begun, alone: bool) -> None:
    where = told.database or "its database"
    typer.echo(f"{told.items:,} items, {told.annotators:,} annotators; everything is kept in {where}.")
    if told.organise is None:
        typer.echo("  organise:  by the link that was shown when this began (--new-admin-link makes another)")
    else:
        typer.echo(f"  organise:  {told.organise}    (shown only now: keep it)")
    typer.echo(f"  take part: {told.take_part}")
    if told.links is not None:
        typer.echo(f"  personal links are in {told.links}")
    if alone:
        typer.echo("Only this machine can open these. For others: --host 0.0.0.0 --public-url http://NAME-OF-IT:PORT")
    typer.echo("Stop with Ctrl+C; the same command goes on where it was.")


def _tell_when_ready(told: _Begun, host: str, port: int) -> None:
    """For programs that start the server: they may ask as soon as they have read the line."""
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    address = f"http://{f'[{here}]' if ':' in here else here}:{port}/healthz"
    direct = build_opener(ProxyHandler({}))
    while True:
        try:
            with direct.open(address, timeout=5):
                break
        except OSError:
            time.sleep(0.05)
    typer.echo(json.dumps(asdict(told), ensure_ascii=False))
    sys.stdout.flush()
