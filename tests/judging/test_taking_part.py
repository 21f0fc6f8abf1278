"""A language model takes part in a study on a server: it votes once per question, whatever happens in between."""

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
from crowdrank.errors import EndpointError, SettingError
from tests.judging.conftest import KEY
from tests.judging.fake_endpoint import completion, verdict
from tests.serving import serving

pytest.importorskip("fastapi")
N_ITEMS = 5
N_QUESTIONS = N_ITEMS * (N_ITEMS - 1)
ITEMS = "item,text\n" + "".join(f"secret-{n},A stone of {n} kg.\n" for n in range(1, N_ITEMS + 1))
CONFIG = """
question = "Which stone is heavier?"
instructions = "Read both."
board_public = true
ties = true
skips = true
"""
COST = 0.11


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("study"), ITEMS, CONFIG) as served:
        yield served


@pytest.fixture
def invite(study):
    """Add an annotator and return their link: `invite("gpt")`."""

    def add(name, **more):
        given = {"annotators": [{"name": name, "kind": "llm", **more}]}
        (made,) = study.ask("POST", "/annotators", json=given)["annotators"]
        return f"{study.base}/join/{made['token']}"

    return add


@pytest.fixture
def take_part(endpoint, tmp_path):
    def run(link, **settings):
        usual = {"endpoint": endpoint.url, "llm": "m", "journal": tmp_path / "m.journal", "backoff": 0.01}
        return cr.judging.take_part(link=link, **{**usual, **settings})

    return run


def heavier(number, body):
    prompt = body["messages"][0]["content"]
    left, right = (int(prompt.split(f"<{side}>")[1].split(" kg")[0].split()[-1]) for side in "AB")
    return verdict("A" if left > right else "B")


def votes_of(study, name):
    found = study.ask("GET", "/votes?limit=1000")["votes"]
    return [vote for vote in found if vote["annotator"] == name]


def test_a_model_answers_every_pair_in_both_orders(study, invite, take_part, endpoint):
    endpoint.behaviour = heavier
    done = take_part(invite("gpt-4", family="gpt"))
    assert (done.n_votes, done.n_skipped, done.finished) == (N_QUESTIONS, 0, "no_pairs_left")
    votes = votes_of(study, "gpt-4")
    assert Counter((vote["left"], vote["right"]) for vote in votes).most_common(1)[0][1] == 1
    assert len(votes) == N_QUESTIONS
    assert all(vote["winner"] == max(vote["left"], vote["right"]) for vote in votes)
    for first, second in zip(votes[::2], votes[1::2], strict=True):
        assert (first["left"], first["right"]) == (second["right"], second["left"])
        assert second["policy"] == "swapped"
    assert all("Which stone is heavier?" in prompt and "Read both." in prompt for prompt in endpoint.prompts)
    assert not any("secret" in prompt for prompt in endpoint.prompts), "labels are often names of models"
    (row,) = [one for one in study.ask("GET", "/annotators")["annotators"] if one["name"] == "gpt-4"]
    assert (row["kind"], row["family"], row["consistency"]) == ("llm", "gpt", 1.0)


def test_the_quota_of_the_link_ends_it(invite, take_part, study):
    done = take_part(invite("few", quota=3))
    assert (done.n_votes, done.finished) == (3, "quota")


def test_answers_that_are_not_understood_are_skipped(study, invite, take_part, endpoint):
    endpoint.behaviour = lambda number, body: completion("I prefer A.")
    done = take_part(invite("chatty", quota=2), asks=2)
    assert (done.n_votes, done.n_skipped) == (0, 2)
    assert len(endpoint.prompts) == 4
    assert {vote["winner"] for vote in votes_of(study, "chatty")} == {"skip"}


def test_the_link_of_a_person_is_refused(study, take_part, endpoint):
    (made,) = study.ask("POST", "/annotators", json={"annotators": [{"name": "ann"}]})["annotators"]
    with pytest.raises(EndpointError, match="link is that of a person"):
        take_part(f"{study.base}/join/{made['token']}")
    assert not endpoint.prompts
    with pytest.raises(EndpointError, match="does not exist or was revoked"):
        take_part(f"{study.base}/join/no-such-token")
    with pytest.raises(SettingError, match="CROWDRANK_LINK"):
        take_part(study.base)


def test_an_excluded_model_stops(study, invite, take_part, endpoint):
    link = invite("bad")

    def exclude(number, body):
        if number == 3:
            (row,) = [one for one in study.ask("GET", "/annotators")["annotators"] if one["name"] == "bad"]
            study.ask("PATCH", f"/annotators/{row['id']}", json={"excluded": True})
        return verdict("A")

    endpoint.behaviour = exclude
    assert take_part(link).finished == "closed"
    assert len(endpoint.prompts) == 4


@pytest.fixture
def command(endpoint, tmp_path):
    """Start `crowdrank judge --server` in a process of its own; returns the process."""
    words = [sys.executable, "-m", "crowdrank", "judge", "--server", "--endpoint", endpoint.url, "--llm", "m"]
    words += ["--price-in", 1000, "--price-out", 1000, "--max-tokens", 10, "--backoff", 0.01]
    words += ["--journal", tmp_path / "m.journal", "--json"]

    def start(link, *more):
        environment = os.environ | {"CROWDRANK_API_KEY": KEY, "CROWDRANK_LINK": link}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([str(word) for word in (*words, *more)], env=environment, **pipes)

    return start


def kill_after(process, endpoint, answers):
    limit = time.monotonic() + 120
    while len(endpoint.answered) < answers:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_killed_twice_and_resumed(study, invite, command, endpoint, tmp_path):
    endpoint.behaviour = lambda number, body: heavier(number, body)._replace(delay=0.02)
    link = invite("killed")
    for target in (4, 9):
        kill_after(command(link), endpoint, target)
    process = command(link)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    votes = votes_of(study, "killed")
    assert len({(vote["left"], vote["right"]) for vote in votes}) == len(votes) == N_QUESTIONS
    times_sent = Counter(endpoint.prompts)
    assert len(times_sent) == N_QUESTIONS
    assert sum(times_sent.values()) <= N_QUESTIONS + 2, "more was asked again than was in flight at the kills"
    written = (tmp_path / "m.journal").read_text()
    for secret in (KEY, link.rpartition("/")[2]):
        assert secret not in written + out + err


def test_the_budget_holds_over_kills(invite, command, endpoint):
    endpoint.behaviour = lambda number, body: heavier(number, body)._replace(delay=0.02)
    link, budget = invite("costly"), 1.5
    for target in (3, 6):
        kill_after(command(link, "--budget", budget), endpoint, target)
    process = command(link, "--budget", budget)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    done, charged = json.loads(out), COST * len(endpoint.answered)
    assert charged <= done["spent"] + 1e-9
    assert done["spent"] <= budget + COST
    assert charged > budget / 3
    assert "budget" in " ".join(done["notes"])


def test_options_of_a_run_with_items_are_refused(command, study):
    process = command(f"{study.base}/join/x", "--both-orders", "--out", "votes.csv")
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "leave out --out, --both-orders" in " ".join(err.split())
