"""A reader can follow one ranking, one fit and one vote: each runs through few files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import crowdrank

SOURCE = Path(crowdrank.__file__).parent
VOTES = SOURCE.parents[1] / "examples" / "cities" / "votes.csv"

# Notes the file of every function that runs, without code that runs at import. The second run counts, because the first
# one imports what it needs. A loop that Numba compiles is seen as one call, without the functions that it calls.
RECORD = """\
import json, sys, threading
from contextlib import redirect_stdout
from io import StringIO

files, recording = set(), threading.Event()


def note(frame, event, argument):
    if event == "call" and frame.f_code.co_name != "<module>" and recording.is_set():
        files.add(frame.f_code.co_filename)


def record(run, times=1):
    threading.setprofile(note)
    recorded = []
    with redirect_stdout(StringIO()):
        run()
        sys.setprofile(note)
        for _ in range(times):
            files.clear()
            recording.set()
            run()
            recording.clear()
            recorded.append(sorted(files))
        sys.setprofile(None)
    print(json.dumps(max(recorded, key=len)))
"""
RANK = f"""
import crowdrank.cli
record(lambda: crowdrank.cli._run(["rank", {str(VOTES)!r}]))
"""
RANK_BY_TPP = f"""
import crowdrank.cli
words = ["rank", {str(VOTES)!r}, "--model", "tpp", "--set", "max_sweeps=20"]
def run():
    try:
        crowdrank.cli._run(words)
    except SystemExit as end:
        assert not end.code
record(run)
"""
FIT_TPP = f"""
import crowdrank as cr
votes = cr.read({str(VOTES)!r})
record(lambda: cr.TPP(max_sweeps=20).fit(votes).table())
"""
# Each run answers the question that the run before returned, and gets the next one. Once every item was shown, most
# questions are chosen by what they would teach. The longest of the journeys counts.
VOTE = """
threading.setprofile(note)  # before any thread starts
from fastapi.testclient import TestClient
from crowdrank.server.admin_actions import change_settings
from crowdrank.server.app import create_app
from crowdrank.server.service import Options
from crowdrank.storage import Collection, NewItem
collection = Collection.open("votes.db")
collection.items.add([NewItem(label=name) for name in "abcdefghijkl"], actor="test")
key = {"Authorization": "Bearer " + collection.access.issue_role("admin", actor="test")}
app = create_app(collection, Options(background=False))
change_settings(app.state.service, {"questions": {"min_appearances": 1}}, "test")
client = TestClient(app)
joined = client.post("/api/v1/annotators", json={"annotators": [{"name": "ann"}]}, headers=key).json()
ann = {"Authorization": "Bearer " + joined["annotators"][0]["token"]}
question = client.get("/api/v1/question", headers=ann).json()
def vote():
    global question
    body = {"token": question["assignment"]["token"], "outcome": "left"}
    answer = client.post("/api/v1/votes", json=body, headers=ann)
    assert answer.status_code == 200, answer.text
    question = answer.json()["next"]
record(vote, times=12)
"""


@pytest.mark.parametrize(
    ("journey", "most", "passed"),
    [
        pytest.param(RANK, 45, "pipeline/running.py", id="rank"),
        pytest.param(RANK_BY_TPP, 45, "models/thurstonian/sampler.py", id="rank by tpp"),
        pytest.param(FIT_TPP, 45, "models/thurstonian/sampler.py", id="fit of tpp"),
        pytest.param(VOTE, 25, "storage/votes.py", id="vote"),
    ],
)
def test_a_reader_can_follow(journey, most, passed, tmp_path):
    """`passed` is a file that must be among those recorded: the recording has seen the journey itself."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RECORD + journey],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    paths = (Path(path) for path in json.loads(run.stdout.splitlines()[-1]))
    files = [path.relative_to(SOURCE).as_posix() for path in paths if path.is_relative_to(SOURCE)]
    assert passed in files
    assert len(files) <= most, files
