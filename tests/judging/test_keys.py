"""The API key is read from the environment, sent to the endpoint, and appears nowhere else."""

from __future__ import annotations

import json
import logging

import pytest

from crowdrank.errors import EndpointError, SettingError
from crowdrank.judging.endpoint import read_key
from tests.judging.conftest import KEY
from tests.judging.fake_endpoint import Response, completion, error

LOCAL, OPENAI = "http://localhost:8000/v1", "https://api.openai.com/v1"


def written(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_the_key_is_sent_and_not_written(ask, endpoint, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    ask(people_out=tmp_path / "people.csv", reasons=True)
    assert endpoint.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert b"answer" in written(tmp_path)
    assert KEY.encode() not in written(tmp_path)
    out, err = capfd.readouterr()
    assert KEY not in caplog.text + out + err


def test_a_key_that_the_endpoint_sends_back_is_not_kept(ask, endpoint, tmp_path):
    answer = json.dumps({"reason": f"You sent {KEY}.", "winner": "A"})
    endpoint.behaviour = lambda number, body: completion(answer) if number else completion(f"{KEY}?")
    run = ask(reasons=True)
    assert set(run.votes["reason"]) == {"You sent [key]."}
    assert KEY.encode() not in written(tmp_path)


@pytest.mark.parametrize("status", [400, 401, 404, 500])
@pytest.mark.parametrize("padding", [0, 270, 290])
def test_a_key_in_an_error_is_not_shown(status, padding, ask, endpoint, tmp_path):
    endpoint.behaviour = lambda number, body: error(status, "x" * padding + f" wrong key {KEY}")
    with pytest.raises(EndpointError) as raised:
        ask(retries=0)
    seen = str(raised.value).encode() + written(tmp_path)
    assert KEY.encode() not in seen
    assert KEY[:10].encode() not in seen


def test_a_key_in_a_redirect_is_not_shown(ask, endpoint):
    endpoint.behaviour = lambda number, body: Response(302, headers={"location": f"https://x.org/{KEY}"})
    with pytest.raises(EndpointError, match=r"redirects to https://x\.org/\[key\]"):
        ask()


@pytest.mark.parametrize("key", ["sk-line\nbreak", "sk-ключ", "sk-\x07bell"])
def test_a_key_that_cannot_be_sent_is_not_shown(key, ask, endpoint, monkeypatch):
    monkeypatch.setenv("CROWDRANK_API_KEY", key)
    with pytest.raises(SettingError, match="CROWDRANK_API_KEY does not hold a valid API key") as raised:
        ask()
    assert key not in str(raised.value)
    assert not endpoint.requests


def test_where_the_key_is_read(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "openai")
    monkeypatch.setenv("OTHER", " other\n")
    assert read_key(LOCAL, None) == KEY
    assert read_key(LOCAL, "OTHER") == "other"
    monkeypatch.delenv("CROWDRANK_API_KEY")
    assert read_key(LOCAL, None) == "", "a key of OpenAI is not sent to others"
    assert read_key("https://notopenai.com/v1", None) == ""
    assert read_key(OPENAI, None) == "openai"
    assert read_key(LOCAL, "OPENAI_API_KEY") == "openai"


def test_without_a_key_none_is_sent(ask, endpoint, monkeypatch):
    monkeypatch.delenv("CROWDRANK_API_KEY")
    ask()
    assert "authorization" not in endpoint.requests[0].headers
    endpoint.behaviour = lambda number, body: error(401, "who are you?")
    with pytest.raises(EndpointError, match="Set the environment variable CROWDRANK_API_KEY"):
        ask(question="Which is nicer?")
