"""The demonstration runs, votes through the server, and stops after the given number of votes."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import httpx

from tests.serving import COMMAND, crowdrank, free_port


def test_it_votes_as_often_as_it_was_told_and_ends(tmp_path):
    said = crowdrank("demo", "--votes", 30, "--rate", 1000, "--port", free_port(), folder=tmp_path)
    assert "8 simulated annotators" in said
    assert "τ with the truth" in said
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_it_in_peace(tmp_path):
    port = free_port()
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [*COMMAND, "demo", "--port", str(port), "--rate", "20"],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as running:
        _wait_for_votes(f"http://localhost:{port}")
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=120)
    assert running.returncode == 0, said
    assert said.endswith("Stopped.\n")
    assert list(tmp_path.glob("crowdrank-demo-*")) == []


def _wait_for_votes(base):
    end = time.monotonic() + 240
    while time.monotonic() < end:
        try:
            if httpx.get(f"{base}/api/v1/board", timeout=60).json()["votes"] > 0:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise AssertionError("Nobody voted.")
