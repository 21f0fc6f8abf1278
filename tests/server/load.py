"""Start a server in its own processes, and let a simulated crowd vote over HTTP with retries."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field

_SERVE = """
import sys, json
from crowdrank.server.app import serve
from crowdrank.server.service import Options
arguments = json.loads(sys.argv[1])
options = Options(timeout=arguments["timeout"])
serve(arguments["location"], options, port=arguments["port"], processes=arguments["processes"], log_level="error")
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Served:
    """Starts, stops and kills a server."""

    def __init__(self, location, processes=1, port=None, timeout=10.0, log=None):
        self.port = port or free_port()
        self._arguments = json.dumps(
            {"location": location, "port": self.port, "processes": processes, "timeout": timeout}
        )
        self._output = log
        self.process = None

    def start(self, seconds=240.0):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        out = subprocess.DEVNULL if self._output is None else open(self._output, "ab")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, self._arguments],
            stdout=out,
            stderr=out,
            start_new_session=True,
            env=environment,
        )
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"The server ended by itself ({self.process.returncode}).")
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5):
                return self
            time.sleep(0.05)
        self.kill()
        raise RuntimeError("The server did not come up.")

    def kill(self):
        """Kill all processes at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """Stop the server as an admin would."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=90)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def members(self):
        """Return the ids of its processes."""
        found = subprocess.run(["ps", "-o", "pid=", "--sid", str(self.process.pid)], capture_output=True, text=True)
        return [int(number) for number in found.stdout.split()]


@dataclass
class CrowdLog:
    """Acknowledged votes, latencies, retries and errors of a crowd."""

    acknowledged: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By token: the number of the vote and its outcome or answer, as the server confirmed them."""
    seconds: list[float] = field(default_factory=list)
    """Duration of each vote with its next question, from the first attempt on."""
    retries: int = 0
    errors: list[str] = field(default_factory=list)


class Connection:
    """One keep-alive connection with minimal HTTP, so that the crowd uses little CPU next to the server."""

    def __init__(self, port, token):
        self._port, self._token = port, token
        self._reader = self._writer = None

    async def ask(self, method, path, body=None):
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {self._token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        try:
            if self._writer is None:
                self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
            self._writer.write(head.encode() + content)
            answer = await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), 30)
            status, length = int(answer[9:12]), 0
            for line in answer.split(b"\r\n"):
                if line.lower().startswith(b"content-length:"):
                    length = int(line[15:])
            return status, json.loads(await self._reader.readexactly(length))
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            self.close()
            raise ConnectionError from None

    def close(self):
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


class Voter:
    """One annotator, who answers questions until the crowd stops."""

    def __init__(self, port, token, log, answer):
        self._connection, self._log, self._answer = Connection(port, token), log, answer

    async def run(self, going, pace=0.0, offset=0.0):
        """Vote; `pace` is the number of seconds between two answers, if the server keeps up."""
        question = await self._request_until_answered("GET", "/api/v1/question", going)
        due = time.perf_counter() + offset
        while going() and question is not None and "assignment" in question:
            if pace:
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                due = max(due + pace, time.perf_counter())
            asked = question["assignment"]
            outcome = self._answer(asked)
            start = time.perf_counter()
            field = "outcome" if asked["task"] == "pair" or outcome == "skip" else "answer"
            body = {"token": asked["token"], field: outcome, "response_ms": 1000}
            answer = await self._request_until_answered("POST", "/api/v1/votes", going, body)
            if answer is None:
                break
            self._log.seconds.append(time.perf_counter() - start)
            self._log.acknowledged[asked["token"]] = (answer["recorded"]["seq"], outcome)
            question = answer["next"]
        self._connection.close()

    async def _request_until_answered(self, method, path, going, body=None):
        """Repeat a request until it is answered; None if the crowd stops first."""
        while True:
            try:
                status, answer = await self._connection.ask(method, path, body)
            except ConnectionError:
                status, answer = 0, None
            if status == 200:
                return answer
            if status not in (0, 429, 503):
                self._log.errors.append(f"{status} {answer}")
                return None
            if not going():
                return None
            self._log.retries += 1
            await asyncio.sleep(0.2 if status == 0 else 0.5)


def vote_for(port, tokens, seconds, *, answer, pace=0.0, going=None):
    """Let a crowd vote for some time; return its log and the elapsed time."""
    log, start = CrowdLog(), time.perf_counter()
    end = start + seconds
    is_going = going or (lambda: time.perf_counter() < end)

    async def everyone():
        await asyncio.gather(
            *(
                Voter(port, token, log, answer).run(is_going, pace, pace * n / len(tokens))
                for n, token in enumerate(tokens)
            )
        )

    asyncio.run(everyone())
    return log, time.perf_counter() - start
