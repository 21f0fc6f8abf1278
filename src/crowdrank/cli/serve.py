"""crowdrank serve: a web page where annotators compare items, with a live leaderboard."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli.options import OUTPUT
from crowdrank.cli.output import print_json, require_extra
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.server.service import BackupSchedule
    from crowdrank.storage import Collection


_LOG_LEVELS = ("debug", "info", "warning", "error")
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
_COLLECTION, _ACCESS, _SERVER = "Collection", "Access", "Server"


@dataclass(frozen=True, kw_only=True)
class _Started:
    """The information printed when a collection starts, as text or JSON.

    `database` is None for a PostgreSQL URL, which may contain a password; `admin_link` is None if it was shown before.
    """

    items: int
    annotators: int
    database: str | None
    admin_link: str | None
    judge_link: str
    board: str
    links: str | None


# The options.

Items = Annotated[Path | None, typer.Argument(help="File of items: item, and optionally text, image, query, owner …")]
Config = Annotated[
    Path | None,
    typer.Option(help="Settings of a new collection (.toml).", rich_help_panel=_COLLECTION),
]
ApplyConfig = Annotated[
    bool,
    typer.Option(
        "--apply-config",
        help="Replace the settings of an existing collection by --config and --gold.",
        rich_help_panel=_COLLECTION,
    ),
]
Studies = Annotated[
    Path | None,
    typer.Option(
        help="Serve all studies of this folder; they are created in the browser.", rich_help_panel=_COLLECTION
    ),
]
Database = Annotated[
    str | None,
    typer.Option(help="SQLite file or postgresql:// URL. Default: ITEMS.crowdrank.db.", rich_help_panel=_COLLECTION),
]
Gold = Annotated[
    Path | None,
    typer.Option(help="Pairs whose order is known, in columns better and worse.", rich_help_panel=_COLLECTION),
]
Media = Annotated[Path | None, typer.Option(help="Folder of images.", rich_help_panel=_COLLECTION)]
Annotators = Annotated[
    Path | None, typer.Option(help="File of annotators; each gets a personal link.", rich_help_panel=_ACCESS)
]
Links = Annotated[
    Path | None, typer.Option(help="Where to write the links of --annotators (.csv).", rich_help_panel=_ACCESS)
]
NewAdminLink = Annotated[
    bool, typer.Option("--new-admin-link", help="Replace the admin link.", rich_help_panel=_ACCESS)
]
Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.", rich_help_panel=_SERVER)]
Port = Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65_535, rich_help_panel=_SERVER)]
Processes = Annotated[int, typer.Option(help="Number of server processes.", min=1, max=64, rich_help_panel=_SERVER)]
PublicUrl = Annotated[
    str | None,
    typer.Option(help="Public address, if behind a proxy; it may have a path.", rich_help_panel=_SERVER),
]
TlsCert = Annotated[Path | None, typer.Option(help="Certificate for HTTPS (.pem).", rich_help_panel=_SERVER)]
TlsKey = Annotated[
    Path | None, typer.Option(help="Key of --tls-cert, if it is in another file.", rich_help_panel=_SERVER)
]
TrustedProxies = Annotated[
    int,
    typer.Option(help="Number of proxies whose X-Forwarded-For is trusted.", min=0, max=9, rich_help_panel=_SERVER),
]
Backups = Annotated[
    Path | None,
    typer.Option(help="Folder for daily copies of the SQLite database; 14 are kept.", rich_help_panel=_SERVER),
]
AllowInternalWebhooks = Annotated[
    bool,
    typer.Option(
        "--allow-internal-webhooks",
        help="Send webhooks to this machine and the local network too.",
        rich_help_panel=_SERVER,
    ),
]
LogLevel = Annotated[
    str,
    typer.Option(
        metavar="|".join(_LOG_LEVELS),
        help="Level of logging.",
        autocompletion=lambda incomplete: [name for name in _LOG_LEVELS if name.startswith(incomplete)],
        rich_help_panel=_SERVER,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the links as JSON.", rich_help_panel=OUTPUT)]


def serve(
    items: Items = None,
    config: Config = None,
    apply_config: ApplyConfig = False,
    studies: Studies = None,
    database: Database = None,
    gold: Gold = None,
    media: Media = None,
    annotators: Annotators = None,
    links: Links = None,
    new_admin_link: NewAdminLink = False,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    processes: Processes = 1,
    public_url: PublicUrl = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    trusted_proxies: TrustedProxies = 0,
    backups: Backups = None,
    allow_internal_webhooks: AllowInternalWebhooks = False,
    log_level: LogLevel = "warning",
    as_json: AsJson = False,
) -> None:
    """Start or resume a collection: a web page to compare items, and a live leaderboard."""
    require_extra("fastapi", "sqlalchemy", "uvicorn")
    from crowdrank.server.app import check_port
    from crowdrank.server.app import serve as run
    from crowdrank.server.service import Options
    from crowdrank.storage import Collection

    _check_source(studies, items, database, config, gold, media, annotators)
    _check_options(log_level, annotators, links, apply_config, config or gold)
    origin, prefix = _split_public_url(public_url)
    certificate = _certificate(tls_cert, tls_key)
    check_port(host, port)
    location = str(studies or database or f"{(items or Path()).stem}.crowdrank.db")
    base = (origin or _local_address(host, port, secure=certificate is not None)) + prefix
    options = Options(
        media=media,
        public_url=origin,
        prefix=prefix,
        trusted_proxies=trusted_proxies,
        backups=_backup_schedule(backups, location),
        allow_internal_webhooks=allow_internal_webhooks,
    )
    serving = partial(
        run, location, options, host=host, port=port, processes=processes, log_level=log_level, certificate=certificate
    )
    if studies is not None:
        serving(studies=True, when_ready=lambda: _announce_studies(studies, base, new_admin_link, as_json))
        return
    with Collection.open(location) as collection:
        collection.check_integrity()
        _prepare(collection, items, config, gold, apply_config, allow_internal_webhooks)
        if annotators is not None and links is not None:
            _write_links(collection, annotators, links, base)
        started = _summary(collection, location, base, links)
    is_local = public_url is None and host in _LOCAL_HOSTS
    serving(when_ready=partial(_announce, started, location, base, new_admin_link, as_json, is_local))


def _check_options(
    log_level: str, annotators: Path | None, links: Path | None, apply_config: bool, settings: Path | None
) -> None:
    if log_level not in _LOG_LEVELS:
        raise SettingError(f"--log-level must be debug, info, warning or error, got {log_level!r}.")
    if annotators is not None and links is None:
        raise SettingError("Personal links are shown only once: pass --links FILE to write them to a file.")
    if apply_config and settings is None:
        raise SettingError("--apply-config needs --config or --gold.")


def _local_address(host: str, port: int, *, secure: bool) -> str:
    name = "localhost" if host in ("127.0.0.1", "0.0.0.0", "::") else host
    return f"{'https' if secure else 'http'}://{name}:{port}"


def _summary(collection: Collection, location: str, base: str, links: Path | None) -> _Started:
    return _Started(
        items=sum(not one.hidden for one in collection.items.all().values()),
        annotators=len(collection.annotators.all()),
        database=None if "://" in location else location,
        admin_link=None,
        judge_link=f"{base}/join",
        board=f"{base}/",
        links=None if links is None else str(links),
    )


def _announce(started: _Started, location: str, base: str, new_link: bool, as_json: bool, is_local: bool) -> None:
    """Print the addresses. The admin link is made now: had the server failed to start, it would be lost."""
    from crowdrank.storage import Collection

    with Collection.open(location) as collection:
        secret = _admin_secret(collection, new_link)
    shown = replace(started, admin_link=None if secret is None else f"{base}/admin/{secret}")
    if as_json:
        print_json(asdict(shown))
    else:
        _print_addresses(shown, is_local)
    sys.stdout.flush()


def _check_source(studies: Path | None, items: Path | None, database: str | None, *others: Path | None) -> None:
    if studies is not None and any(one is not None for one in (items, database, *others)):
        raise SettingError("--studies takes no items, settings or database: create the studies in the browser.")
    if studies is None and items is None and database is None:
        raise SettingError("Name a file of items, or the --database of an earlier collection.")


def _split_public_url(url: str | None) -> tuple[str | None, str]:
    """Return the origin of the public address, and its path without the last slash."""
    if url is None:
        return None, ""
    found = re.fullmatch(r"(https?://[^/\s]+)((?:/[A-Za-z0-9._~-]+)*)/?", url)
    if found is None:
        raise SettingError(
            f"--public-url must look like https://rank.example.org or https://example.org/rank, got {url!r}."
        )
    return found[1], found[2]


def _backup_schedule(folder: Path | None, location: str) -> BackupSchedule | None:
    from crowdrank.server.service import BackupSchedule

    if folder is None:
        return None
    if "://" in location:
        raise SettingError("--backups copies SQLite files. For PostgreSQL, run pg_dump on a schedule.")
    return BackupSchedule(folder=folder, name=Path(location).stem)


def _certificate(certificate: Path | None, key: Path | None) -> tuple[str, str | None] | None:
    """Return the files of the certificate and its key, after checking that they can be used."""
    import ssl

    if certificate is None:
        if key is not None:
            raise SettingError("--tls-key needs --tls-cert.")
        return None
    files = (str(certificate), None if key is None else str(key))
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(*files)
    except (OSError, ssl.SSLError) as error:
        raise SettingError(f"--tls-cert {certificate}: the certificate or its key cannot be used ({error}).") from error
    return files


def _announce_studies(folder: Path, base: str, new_link: bool, as_json: bool) -> None:
    from crowdrank.server.routes.studies import ensure_organiser

    secret = ensure_organiser(folder, new=new_link)
    link = None if secret is None else f"{base}/admin/{secret}"
    if as_json:
        print_json({"studies": str(folder), "organiser_link": link, "url": f"{base}/"})
    else:
        typer.echo(f"The studies are in {folder}.")
        if link is None:
            typer.echo(f"  organiser: {base}/    (--new-admin-link creates a new link to sign in)")
        else:
            typer.echo(f"  organiser: {link}    (shown only once: keep it)")
        typer.echo("Stop with Ctrl+C; the same command resumes all studies.")
    sys.stdout.flush()


def _prepare(
    collection: Collection,
    items: Path | None,
    config: Path | None,
    gold: Path | None,
    apply_config: bool,
    allow_internal: bool,
) -> None:
    """Add items that the collection does not have yet, and the settings and gold pairs of a new collection.

    The settings of an existing collection may have been changed on its pages, so they are only replaced on request.
    """
    from crowdrank.server.admin_actions import store_settings
    from crowdrank.server.files import read_gold_file, read_items_file
    from crowdrank.server.projection import Projection
    from crowdrank.server.settings import read_settings

    if items is not None:
        collection.items.add(read_items_file(items), actor="serve")
    projection = Projection(collection).catch_up()
    stored = projection.settings
    opened = [replace(hook, secret=collection.keys.open(hook.secret) or "lost") for hook in stored.webhooks]
    before = replace(stored, webhooks=tuple(opened))
    wanted = before if config is None else read_settings(config)
    if gold is not None:
        wanted = wanted.with_changes({"gold": read_gold_file(gold)})
    if wanted == before:
        return
    if apply_config or not collection.settings.all():
        store_settings(collection, projection, wanted, "serve", allow_internal=allow_internal)
    else:
        typer.echo(_describe_differences(before.as_dict(), wanted.as_dict()), err=True)


def _describe_differences(before: dict[str, Any], wanted: dict[str, Any]) -> str:
    """Say which settings differ from the file. Secrets are not shown."""
    lines = ["The settings of the collection differ from the file. They are kept; --apply-config replaces them:"]
    for key, value in wanted.items():
        old = before[key]
        if value == old:
            continue
        if not isinstance(value, dict):
            lines.append(_difference(key, old, value))
            continue
        lines += [_difference(f"{key}.{name}", old[name], new) for name, new in value.items() if new != old[name]]
    return "\n".join(lines)


def _difference(name: str, old: Any, new: Any) -> str:
    if name == "webhooks":
        old, new = ([hook["url"] for hook in hooks] for hooks in (old, new))
    return f"  {name}: {_short(old)}, in the file {_short(new)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _admin_secret(collection: Collection, new: bool) -> str | None:
    """A new admin secret if there is none yet or `new`; None otherwise, because secrets are stored as hashes."""
    if new:
        collection.access.revoke_all(role="admin", actor="serve")
    elif collection.access.issued("admin"):
        return None
    return collection.access.issue_role("admin", actor="serve")


def _write_links(collection: Collection, annotators: Path, links: Path, base: str) -> None:
    from crowdrank.io import read_annotators
    from crowdrank.server.files import as_csv

    people = read_annotators(annotators)
    about = {name: {"quota": quota} for name, quota in people.quota.items()}
    numbers = collection.annotators.add(people.annotators, actor="serve", metadata=about)
    held = collection.access.holders()
    new = [(n, name) for n, name in zip(numbers, people.annotators, strict=True) if n not in held]
    tokens = collection.access.issue([n for n, _ in new], actor="serve")
    rows = [{"annotator": name, "link": f"{base}/join/{token}"} for (_, name), token in zip(new, tokens, strict=True)]
    links.write_text("".join(as_csv(rows, ("annotator", "link"))), encoding="utf-8")
    links.chmod(0o600)


def _print_addresses(started: _Started, local: bool) -> None:
    where = started.database or "its database"
    typer.echo(f"{started.items:,} items, {started.annotators:,} annotators; everything is stored in {where}.")
    if started.admin_link is None:
        typer.echo("  admin:     use the link shown at the first start (--new-admin-link makes another)")
    else:
        typer.echo(f"  admin:     {started.admin_link}    (shown only once: keep it)")
    typer.echo(f"  judge:     {started.judge_link}")
    if started.links is not None:
        typer.echo(f"  personal links are in {started.links}")
    if local:
        typer.echo("Only this machine can open these. For others: --host 0.0.0.0 --public-url http://HOSTNAME:PORT")
    typer.echo("Stop with Ctrl+C; the same command resumes the collection.")
