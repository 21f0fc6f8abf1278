"""Check settings before they are stored: lengths, URLs, gold items, and where webhooks are sent to.

These checks apply to changes only. Settings that are in the log already must stay readable.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection as AnyCollection
from collections.abc import Iterable
from urllib.parse import urlsplit

from crowdrank.errors import SettingError
from crowdrank.server.settings import Joining, Settings

_MAX_LENGTHS = {"title": 200, "question": 500, "instructions": 50_000, "consent": 50_000}
_MAX_REASONS, _MAX_REASON_LENGTH = 20, 200
_MAX_CODE_LENGTH, _MAX_URL_LENGTH = 200, 2_000


def check_changes(
    settings: Settings, changed: AnyCollection[str], items: Iterable[tuple[str, str]], *, allow_internal: bool
) -> None:
    """Raise SettingError if a changed setting cannot be used.

    Parameters
    ----------
    settings : Settings
        The new settings.
    changed : collection of str
        The names of the settings to check; others are left as they are.
    items : iterable of (query, label)
        The items of the study.
    allow_internal : bool
        Whether webhooks may be sent to this machine and to the local network.
    """
    for name, most in _MAX_LENGTHS.items():
        if name in changed:
            may_be_empty = name in ("instructions", "consent")
            _check_length(name, getattr(settings, name), most, may_be_empty=may_be_empty)
    if "skip_reasons" in changed:
        if len(settings.skip_reasons) > _MAX_REASONS:
            raise SettingError(f"skip_reasons must be at most {_MAX_REASONS}, got {len(settings.skip_reasons)}.")
        for reason in settings.skip_reasons:
            _check_length("skip_reasons", reason, _MAX_REASON_LENGTH)
    if "task" in changed:
        for name, texts in (("scale", settings.task.scale), ("criteria", settings.task.criteria)):
            for text in texts:
                _check_length(f"task.{name}", text, _MAX_REASON_LENGTH)
    if "joining" in changed:
        _check_joining(settings.joining)
    if "gold" in changed:
        _check_gold(settings.gold, items)
    if "webhooks" in changed:
        for hook in settings.webhooks:
            if not allow_internal and is_internal(hook.url):
                raise SettingError(
                    f"webhooks: {hook.url} is an address of this machine or of the local network. "
                    "Start the server with --allow-internal-webhooks if that is intended."
                )


def is_internal(url: str, *, resolve: bool = False) -> bool:
    """Return whether a URL leads to this machine or to the local network.

    Names are only looked up with `resolve`. A name that cannot be looked up is not internal.
    """
    try:
        host = (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return True
    if not host or host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        pass
    try:
        # Also reads numbers such as 127.1 and 0x7f000001, which are addresses to the operating system.
        found = (
            {str(address[4][0]) for address in socket.getaddrinfo(host, None)} if resolve or _is_numeric(host) else ()
        )
    except OSError:
        return False
    return any(not ipaddress.ip_address(address.partition("%")[0]).is_global for address in found)


def _is_numeric(host: str) -> bool:
    return all(part[:1].isdigit() for part in host.split("."))


def _check_length(name: str, value: str, most: int, *, may_be_empty: bool = False) -> None:
    if not value.strip() and not may_be_empty:
        raise SettingError(f"{name} must not be empty.")
    if len(value) > most:
        raise SettingError(f"{name} must have at most {most:,} characters, got {len(value):,}.")


def _check_joining(joining: Joining) -> None:
    for kind in ("completion", "screen_out"):
        code, url = getattr(joining, f"{kind}_code"), getattr(joining, f"{kind}_url")
        if code is not None:
            _check_length(f"joining.{kind}_code", code, _MAX_CODE_LENGTH)
        if url is not None:
            _check_link(f"joining.{kind}_url", url)


def _check_link(name: str, url: str) -> None:
    _check_length(name, url, _MAX_URL_LENGTH)
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_web = False
    if not is_web or any(letter.isspace() for letter in url):
        raise SettingError(f"{name} must start with https:// or http://, got {url[:60]!r}.")


def _check_gold(gold: tuple[tuple[str, str], ...], items: Iterable[tuple[str, str]]) -> None:
    queries: dict[str, set[str]] = {}
    for query, label in items:
        queries.setdefault(label, set()).add(query)
    for pair in gold:
        for label in pair:
            if label not in queries:
                raise SettingError(f"gold: {label[:60]!r} is not an item of this study.")
        if pair[0] == pair[1] or not queries[pair[0]] & queries[pair[1]]:
            raise SettingError(f"gold: {pair[0]!r} and {pair[1]!r} must be two items of the same query.")
