"""A client of OpenAI-compatible chat endpoints: sends one request, and says what became of it."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from crowdrank.errors import EndpointError, SettingError

KEY_VARIABLE, OPENAI_KEY_VARIABLE = "CROWDRANK_API_KEY", "OPENAI_API_KEY"
_OPENAI_HOSTS = ("openai.com", "openai.azure.com")
_RETRIED = frozenset((408, 409, 425, 429))
_REFUSED = frozenset((400, 413, 422))
_MAX_BYTES = 4_000_000
_MAX_MESSAGE = 300
_LONGEST_WAIT = 1e6
_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")


class TransientError(Exception):
    """A request that may succeed if it is sent again.

    Parameters
    ----------
    reason : str
        What happened.
    may_cost : bool
        Whether the endpoint may have worked on the request, and so may charge for it.
    wait : float, default 0.0
        The seconds for which the endpoint asks to send nothing.
    """

    def __init__(self, reason: str, *, may_cost: bool, wait: float = 0.0):
        super().__init__(reason)
        self.reason, self.may_cost, self.wait = reason, may_cost, wait


class RefusedError(Exception):
    """A request that the endpoint refuses as invalid."""


class Reply(NamedTuple):
    """An answer, and what it cost.

    Parameters
    ----------
    text : str or None
        What the model said.
    tokens_in, tokens_out : int or None
        The tokens of the prompt and of the answer, if the endpoint reports them.
    cost : float or None
        The cost, if the endpoint reports it.
    cut : bool
        Whether the answer was cut at the limit of tokens.
    """

    text: str | None
    tokens_in: int | None
    tokens_out: int | None
    cost: float | None
    cut: bool


@dataclass(frozen=True)
class Dialect:
    """What an endpoint understands. The first request finds out, by leaving out what is refused.

    Parameters
    ----------
    answer_format : {"json_schema", "json_object", "text"}
        How the form of the answer is requested.
    limit_name : str
        The parameter that limits the tokens of the answer.
    temperature : bool
        Whether the temperature can be set.
    """

    answer_format: str = "json_schema"
    limit_name: str = "max_tokens"
    temperature: bool = True

    def body(self, request: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a request; `request` has the parameters of the usual dialect."""
        body = dict(request)
        body[self.limit_name] = body.pop("max_tokens")
        if not self.temperature:
            body.pop("temperature", None)
        if self.answer_format == "json_schema":
            wanted = {"name": "verdict", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        elif self.answer_format == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body

    def simpler(self, complaint: str) -> Dialect | None:
        """The dialect to try after a refusal, by what the endpoint complains about; None if there is none left."""
        if "max_completion_tokens" in complaint and self.limit_name == "max_tokens":
            return replace(self, limit_name="max_completion_tokens")
        if "temperature" in complaint and self.temperature:
            return replace(self, temperature=False)
        following = {"json_schema": "json_object", "json_object": "text"}.get(self.answer_format)
        return None if following is None else replace(self, answer_format=following)


class Endpoint:
    """A chat endpoint. Requests are sent with the API key, which appears nowhere else.

    Parameters
    ----------
    url : str
        The base URL, such as ``https://api.openai.com/v1``; ``/chat/completions`` is added.
    key : str
        The API key, "" if none is needed.
    timeout : float
        Seconds to wait for a response.
    """

    def __init__(self, url: str, key: str, timeout: float):
        self.url, self._key, self._timeout = check_url(url), key, timeout

    async def __aenter__(self) -> Self:
        import httpx

        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        limits = httpx.Limits(max_connections=None)
        self._client = httpx.AsyncClient(headers=headers, timeout=self._timeout, limits=limits)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    def redact(self, text: str) -> str:
        """The text without the API key, in case the endpoint sends it back."""
        return text.replace(self._key, "[key]") if self._key else text

    async def send(self, body: Mapping[str, Any]) -> Reply:
        """Send a request and return the answer.

        Raises
        ------
        TransientError
            If it may help to send it again.
        RefusedError
            If the endpoint says that the request is invalid.
        EndpointError
            If no request can succeed, for example because the key is wrong.
        """
        import httpx

        split = urlsplit(self.url)
        url = split._replace(path=f"{split.path.rstrip('/')}/chat/completions").geturl()
        try:
            async with asyncio.timeout(self._timeout):
                async with self._client.stream("POST", url, json=dict(body)) as response:
                    content = await _read(response)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, httpx.UnsupportedProtocol) as error:
            raise TransientError(f"cannot connect ({self.redact(str(error))})", may_cost=False) from error
        except (TimeoutError, httpx.TimeoutException) as error:
            raise TransientError(f"no answer within {self._timeout:g} s", may_cost=True) from error
        except httpx.TransportError as error:
            raise TransientError("the connection was closed", may_cost=True) from error
        except httpx.DecodingError as error:
            raise TransientError("an answer that cannot be decoded", may_cost=True) from error
        if response.status_code == 200:
            return _parse_reply(content)
        raise self._error(response.status_code, response.headers, content)

    def _error(self, status: int, headers: Mapping[str, str], content: bytes) -> Exception:
        # Redacted before it is cut: half a key would not be recognised.
        message = self.redact(_message(content))[:_MAX_MESSAGE] or "no message"
        if status in _RETRIED or status >= 500:
            if b"insufficient_quota" in content:
                return EndpointError(f"The endpoint answers HTTP {status}: {message}")
            return TransientError(f"HTTP {status}", may_cost=False, wait=_retry_after(headers))
        if status in _REFUSED:
            return RefusedError(f"HTTP {status}: {message}")
        if 300 <= status < 400:
            return EndpointError(f"The endpoint redirects to {self.redact(headers.get('location', 'nowhere'))}.")
        hint = ""
        if status in (401, 403):
            hint = " Check the API key." if self._key else f" Set the environment variable {KEY_VARIABLE}."
        elif status == 404:
            hint = " Check the address of the endpoint and the name of the model."
        return EndpointError(f"The endpoint answers HTTP {status}: {message}{hint}")


def check_url(url: str) -> str:
    """Return the URL of an endpoint; raise an error if it is not one, or if it holds a password."""
    try:
        split = urlsplit(url.strip())
        valid = split.scheme in ("http", "https") and bool(split.hostname) and (split.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        raise SettingError("The endpoint must be a URL such as http://localhost:8000/v1.")
    if split.username or split.password:
        raise SettingError(f"The endpoint must not hold a password: set the environment variable {KEY_VARIABLE}.")
    return split._replace(fragment="").geturl()


def is_local(url: str) -> bool:
    """Whether an endpoint runs on this machine, where answers cost no money."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_key(url: str, variable: str | None) -> str:
    """The API key from the environment, "" if there is none.

    Without a variable, CROWDRANK_API_KEY is read. OPENAI_API_KEY is read for OpenAI's own endpoints only, because a
    key must not be sent to a host that it was not meant for.
    """
    host = urlsplit(url).hostname or ""
    name = variable or KEY_VARIABLE
    found = os.environ.get(name)
    if found is None and variable is not None:
        raise SettingError(f"The environment variable {variable} is not set.")
    if found is None and any(host == known or host.endswith(f".{known}") for known in _OPENAI_HOSTS):
        name, found = OPENAI_KEY_VARIABLE, os.environ.get(OPENAI_KEY_VARIABLE)
    key = (found or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise SettingError(f"The environment variable {name} does not hold a valid API key.")
    return key


async def _read(response: Any) -> bytes:
    """The content of a response, at most a few megabytes of it."""
    content = b""
    async for part in response.aiter_bytes():
        content += part
        if len(content) > _MAX_BYTES:
            raise TransientError("an answer of several megabytes", may_cost=True)
    return content


def _parse_reply(content: bytes) -> Reply:
    try:
        found = json.loads(content)
        choice = found["choices"][0]
        text = choice["message"]["content"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise TransientError("an answer that is not a chat completion", may_cost=True) from error
    usage = found.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    tokens_in, tokens_out = (_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    return Reply(
        text=text if isinstance(text, str) else None,
        tokens_in=None if tokens_in is None else int(tokens_in),
        tokens_out=None if tokens_out is None else int(tokens_out),
        cost=_count(usage.get("cost")),
        cut=choice.get("finish_reason") == "length",
    )


def _count(value: Any) -> float | None:
    """A number that is not negative; None for anything else."""
    valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12
    return float(value) if valid else None


def _message(content: bytes) -> str:
    """What an error says, in one line: its message if it is the usual JSON, and else all of it."""
    text = content.decode("utf-8", "replace")
    found = _parse_json(text)
    error = found.get("error") if isinstance(found, dict) else None
    if isinstance(error, dict) and "message" in error:
        text = f"{error['message']} {error.get('code') or ''}"
    elif error:
        text = str(error)
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _parse_json(text: str) -> Any:
    """The value of JSON text; None if it is something else, such as the HTML page of a proxy."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _retry_after(headers: Mapping[str, str]) -> float:
    """The seconds to wait, from a Retry-After header with seconds or a date; 0 without one."""
    value = headers.get("retry-after", "").strip()
    wait = float(value) if _SECONDS.fullmatch(value) else _seconds_until(value)
    return min(max(0.0, wait), _LONGEST_WAIT)


def _seconds_until(date: str) -> float:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return 0.0
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime.now(UTC)).total_seconds()
