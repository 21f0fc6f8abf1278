"""kill -9 in the middle, resume: nothing is asked twice, nothing is lost, and the budget holds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

import crowdrank as cr
from tests.judging.conftest import KEY
from tests.judging.fake_endpoint import verdict

CONCURRENCY, COST, MOST_COST = 4, 0.11, 0.5
N_ITEMS = 9
N_QUESTIONS = N_ITEMS * (N_ITEMS - 1)


@pytest.fixture
def command(endpoint, tmp_path):
    """Start `crowdrank judge` in a process of its own; returns the process."""
    items = tmp_path / "items.csv"
    items.write_text("item,text\n" + "".join(f"i{n},text number {n}\n" for n in range(N_ITEMS)))
    words = [sys.executable, "-m", "crowdrank", "judge", items, "--question", "Which?", "--endpoint", endpoint.url]
    words += ["--llm", "m", "--both-orders", "--out", tmp_path / "votes.csv", "--backoff", 0.01]
    words += ["--price-in", 1000, "--price-out", 1000, "--max-tokens", 10, "--concurrency", CONCURRENCY]

    def start(*more):
        environment = os.environ | {"CROWDRANK_API_KEY": KEY}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([str(word) for word in (*words, *more)], env=environment, **pipes)

    return start


def wait_for_answers(endpoint, count, process):
    limit = time.monotonic() + 60
    while len(endpoint.answered) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.005)


def answers_in(journal):
    lines = [json.loads(line) for line in journal.read_text().splitlines() if line.endswith("}")]
    return [line["answer"] for line in lines if "answer" in line]


def test_killed_twice_and_resumed(command, endpoint, tmp_path):
    endpoint.behaviour = lambda number, body: verdict("A")._replace(delay=0.02)
    journal = tmp_path / "votes.csv.journal"
    for target in (15, 40):
        process = command()
        wait_for_answers(endpoint, target, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        before = len(answers_in(journal))
        assert before >= target - 2 * CONCURRENCY
    process = command("--json")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert json.loads(out)["from_journal"] == before
    recorded = answers_in(journal)
    assert len(recorded) == len(set(recorded)) == N_QUESTIONS, "an answer was paid for twice, or lost"
    times_sent = Counter(endpoint.prompts)
    assert len(times_sent) == N_QUESTIONS
    again = sum(count - 1 for count in times_sent.values())
    assert again <= 2 * CONCURRENCY, "more was asked again than was in flight at the kills"
    assert len(cr.read(tmp_path / "votes.csv")) == N_QUESTIONS


def test_the_budget_holds_over_kills(command, endpoint, tmp_path):
    """Charged is every answer that the endpoint has made, also for a client that was killed before it came."""
    endpoint.behaviour = lambda number, body: verdict("A")._replace(delay=0.02)
    budget = 4.0
    for target in (8, 14):
        process = command("--budget", budget)
        wait_for_answers(endpoint, target, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    process = command("--budget", budget, "--json")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    charged = COST * len(endpoint.answered)
    assert charged <= budget + COST
    assert charged <= json.loads(out)["spent"] + 1e-9, "what was in flight is counted at its highest cost"
    assert json.loads(out)["spent"] <= budget + COST
    assert charged > budget / 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupted_run_waits_for_what_is_in_flight(command, endpoint, tmp_path):
    endpoint.behaviour = lambda number, body: verdict("A")._replace(delay=0.1)
    process = command()
    wait_for_answers(endpoint, 6, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert len(endpoint.answered) == len(answers_in(tmp_path / "votes.csv.journal")) < N_QUESTIONS
    assert len(cr.read(tmp_path / "votes.csv")) == len(endpoint.answered)
    assert len(endpoint.prompts) == len(set(endpoint.prompts))
