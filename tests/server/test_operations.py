"""Health, metrics, logs, and the commands serve, backup and export."""

from __future__ import annotations

import json
import logging
import re
import resource
import shutil
import signal
import sqlite3
import ssl
import subprocess
import time
from contextlib import closing, contextmanager

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from typer.testing import CliRunner

from crowdrank.cli import app
from crowdrank.server.app import JsonFormatter
from crowdrank.server.errors import log_internal_error
from crowdrank.storage import Collection
from tests.server.load import free_port
from tests.serving import COMMAND

runner = CliRunner()


def test_health_names_the_database(played):
    told = played.client.get("/healthz").json()
    assert (told["status"], told["database"]) == ("ok", "sqlite")


def test_metrics_have_the_prometheus_format(played, two):
    played.play(two.ann, ["left", "right"])
    text = played.client.get("/metrics", headers=played.admin).text
    assert "crowdrank_votes 2" in text
    assert re.search(
        r'crowdrank_requests_total\{process="\d+",method="POST",route="/api/v1/votes",status="200"\} 2', text
    )
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) \S+ .+|[a-z_]+(\{[^}]*\})? -?[0-9.e+-]+", line), line


def test_a_log_line_is_json_with_the_route_pattern(played, caplog):
    caplog.set_level(logging.INFO, "crowdrank.requests")
    played.client.get("/join/some-token")
    (record,) = [one for one in caplog.records if one.name == "crowdrank.requests"]
    told = json.loads(JsonFormatter().format(record))
    assert (told["route"], told["status"], told["method"]) == ("/join/{token}", 404, "GET")
    assert "some-token" not in json.dumps(told)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_errors_of_the_database_are_logged_without_its_contents(start, kind, caplog):
    played = start(kind)
    name = "Wilhelmina"
    played.join(name)
    statement = text("INSERT INTO annotator (id, name) VALUES (:id, :name)")

    def fail(transaction):
        transaction.connection.execute(statement, {"id": 10**6, "name": name})

    with pytest.raises(IntegrityError) as raised:
        played.collection.writer.run(fail)
    log_internal_error("/join", raised.value)
    logged = "\n".join(JsonFormatter().format(record) for record in caplog.records)
    assert "INSERT INTO annotator" in logged
    assert "unique" in logged.lower()
    assert name not in logged


def test_the_api_page_describes_every_endpoint_without_scripts(played):
    shown = played.client.get("/api").text
    for path, methods in played.client.get("/api/v1/openapi.json").json()["paths"].items():
        for method in methods:
            assert f'<span class="badge">{method.upper()}</span> <code>{path}</code>' in shown
    assert "<script" not in shown
    assert "<code>response_ms</code>" in shown
    assert "The response time in milliseconds." in shown
    assert "left, right, tie, both_bad, skip, answered" in shown


def test_openapi_lists_every_endpoint_and_no_page(played):
    paths = played.client.get("/api/v1/openapi.json").json()["paths"]
    assert all(path.startswith("/api/v1/") for path in paths)
    assert {"/api/v1/question", "/api/v1/votes", "/api/v1/items", "/api/v1/audit", "/api/v1/export.parquet"} <= set(
        paths
    )


def test_serve_creates_a_collection_and_shows_the_admin_link_once(tmp_path, monkeypatch):
    (tmp_path / "items.csv").write_text("item,text,owner\na,first,\nb,second,bob\n")
    (tmp_path / "people.csv").write_text("annotator,quota\nann,5\nbob,\n")
    (tmp_path / "gold.csv").write_text("better,worse\na,b\n")
    (tmp_path / "c.toml").write_text('title = "Mine"\n[questions]\nmin_appearances = 3\n')
    monkeypatch.chdir(tmp_path)
    ran = []
    monkeypatch.setattr("crowdrank.server.app.serve", lambda *told, **more: ran.append(told) or more["when_ready"]())
    command = [
        "serve",
        "items.csv",
        "--config",
        "c.toml",
        "--annotators",
        "people.csv",
        "--links",
        "links.csv",
        "--gold",
        "gold.csv",
        "--port",
        str(free_port()),
    ]
    first = runner.invoke(app, command)
    assert first.exit_code == 0, first.output
    secret = re.search(r"/admin/([\w-]{22})", first.output)[1]
    links = (tmp_path / "links.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in links] == ["annotator", "ann", "bob"]
    assert ran[0][0] == "items.crowdrank.db"
    assert "Only this machine can open these." in first.output
    with Collection.open("items.crowdrank.db") as collection:
        assert collection.access.find_token(secret).role == "admin"
        assert collection.access.find_token(links[1].rpartition("/")[2]).role == "annotator"
        assert collection.settings.all()["title"] == "Mine"
        assert [item.content for item in collection.items.all().values()] == [
            {"body": "first"},
            {"body": "second", "owner": "bob"},
        ]
        before = collection.log.head()
    again = runner.invoke(app, [*command[:2], "--port", command[-1], "--public-url", "http://here:8000"])
    assert "/admin/" not in again.output
    assert "Only this machine" not in again.output
    assert "judge:     http://here:8000/join" in again.output
    with Collection.open("items.crowdrank.db") as collection:
        assert collection.log.head() == before
    renewed = runner.invoke(
        app, ["serve", "--database", "items.crowdrank.db", "--new-admin-link", "--port", command[-1]]
    )
    with Collection.open("items.crowdrank.db") as collection:
        assert collection.access.find_token(secret) is None
        assert collection.access.find_token(re.search(r"/admin/([\w-]{22})", renewed.output)[1]).role == "admin"


CONFIG = """
title = "Mine"
question = "From the file?"

[budget]
per_annotator = 5

[[webhooks]]
url = "https://example.org/hook"
secret = "from the file"
"""


def test_a_restart_keeps_what_the_admin_changed(tmp_path, monkeypatch):
    (tmp_path / "items.csv").write_text("item\na\nb\n")
    (tmp_path / "c.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("crowdrank.server.app.serve", lambda *told, **more: None)
    command = ["serve", "items.csv", "--config", "c.toml", "--port", str(free_port())]
    assert runner.invoke(app, command).exit_code == 0
    changed = {"question": "By the admin?", "budget": {"per_annotator": 9}, "joining": {"open": False}, "webhooks": []}
    with Collection.open("items.crowdrank.db") as collection:
        collection.settings.change(changed, actor="admin")
        before = collection.settings.all()
    again = runner.invoke(app, command)
    assert again.exit_code == 0, again.output
    with Collection.open("items.crowdrank.db") as collection:
        assert collection.settings.all() == before
    for line in (
        'question: "By the admin?", in the file "From the file?"',
        "budget.per_annotator: 9, in the file 5",
        "joining.open: false, in the file true",
        'webhooks: [], in the file ["https://example.org/hook"]',
        "--apply-config",
    ):
        assert line in again.output
    assert "secret" not in again.output
    assert "title" not in again.output
    runner.invoke(app, [*command, "--apply-config"])
    with Collection.open("items.crowdrank.db") as collection:
        assert collection.settings.all()["question"] == "From the file?"
        assert collection.settings.all()["joining"]["open"] is True


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["items.csv", "--apply-config"], "--apply-config needs"),
        ([], "Name a file of items"),
        (["items.csv", "--log-level", "loud"], "--log-level"),
        (["items.csv", "--annotators", "items.csv"], "--links"),
        (["items.csv", "--public-url", "example.org"], "--public-url"),
    ],
)
def test_invalid_options_of_serve_are_refused(tmp_path, monkeypatch, arguments, said):
    (tmp_path / "items.csv").write_text("item\na\nb\n")
    monkeypatch.chdir(tmp_path)
    done = runner.invoke(app, ["serve", *arguments])
    assert done.exit_code == 1
    assert said in str(done.exception)
    assert not list(tmp_path.glob("*.db"))


def a_damaged_one(path):
    with Collection.open(path.with_name("whole.db")) as collection:
        collection.items.add([f"item {n}" for n in range(300)], actor="test")
        collection.backup(path)
    content = bytearray(path.read_bytes())
    content[4096 : 3 * 4096] = b"\xff" * (2 * 4096)
    path.write_bytes(content)


def a_foreign_one(path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE invoices (id INTEGER)")


def notes(path):
    path.write_text("These are notes. " * 100)


def limit_files():
    """Make writing beyond 100 kB fail, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (a_damaged_one, "The database is damaged."),
        (a_foreign_one, "belongs to another program"),
        (notes, "not an SQLite database"),
        (lambda path: None, "Nothing was stored"),
    ],
    ids=["damaged", "foreign", "not a database", "full disk"],
)
def test_a_database_that_cannot_be_used_ends_with_a_sentence_and_an_exit_code(tmp_path, make, said, request):
    is_full = "full disk" in request.node.name
    (tmp_path / "items.csv").write_text("item\n" + "".join(f"item {n} {'x' * 200}\n" for n in range(900)))
    make(tmp_path / "c.db")
    done = subprocess.run(
        [*COMMAND, "serve", "items.csv", "--database", "c.db", "--port", str(free_port())],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=240,
        preexec_fn=limit_files if is_full else None,
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 3, "one sentence, perhaps in several lines"
    assert "Traceback" not in done.stderr
    assert "http://" not in done.stdout, "no links before the server answers"


def test_a_port_in_use_is_reported(tmp_path, monkeypatch):
    import socket

    (tmp_path / "items.csv").write_text("item\na\nb\n")
    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = runner.invoke(app, ["serve", "items.csv", "--port", str(taken.getsockname()[1])])
    assert "cannot be used" in str(done.exception)


def test_a_backup_is_a_complete_collection(tmp_path):
    with Collection.open(tmp_path / "c.db") as collection:
        collection.items.add(["a", "b"], actor="test")
        done = runner.invoke(app, ["backup", str(tmp_path / "c.db"), "--out", str(tmp_path / "copy.db")])
        assert done.exit_code == 0, done.output
        assert "2 log entries" in done.output
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute("SELECT count(*) FROM item").fetchone() == (2,)


def test_backup_and_export_report_as_json(tmp_path):
    with Collection.open(tmp_path / "c.db") as collection:
        collection.items.add(["a", "b"], actor="test")
        (who,) = collection.annotators.add(["ann"], actor="test")
        one, two = collection.items.all()
        asked = collection.assignments.create(who, one, two, policy="random", probability=1.0)
        collection.votes.record(asked.token, "tie", annotator=who)
    copy, votes = tmp_path / "copy.db", tmp_path / "my votes.csv"
    told = json.loads(runner.invoke(app, ["backup", str(tmp_path / "c.db"), "--out", str(copy), "--json"]).stdout)
    assert told["out"] == str(copy)
    assert told["rows"] > 4
    export = ["export", str(tmp_path / "c.db"), "--out", str(votes), "--json"]
    told = json.loads(runner.invoke(app, export).stdout)
    command = f"crowdrank rank '{votes}' --model bradley-terry"
    assert told == {"out": str(votes), "votes": 1, "board": command}
    assert json.loads(runner.invoke(app, [*export, "--all"]).stdout)["board"] is None


@pytest.mark.parametrize("processes", [1, 2])
def test_serve_prints_its_links_as_json_once_it_responds(tmp_path, processes):
    (tmp_path / "items.csv").write_text("item\na\nb\n")
    port = free_port()
    command = [*COMMAND, "serve", "items.csv", "--json", "--port", str(port), "--processes", str(processes)]
    with subprocess.Popen(command, cwd=tmp_path, text=True, stdout=subprocess.PIPE) as running:
        told = json.loads(running.stdout.readline())
        secret = told["admin_link"].rpartition("/")[2]
        answer = httpx.get(f"{told['board']}api/v1/items", headers={"Authorization": f"Bearer {secret}"}, timeout=60)
        running.send_signal(signal.SIGINT)
        rest = running.stdout.read()
    assert [item["label"] for item in answer.json()["items"]] == ["a", "b"]
    assert told == {
        "items": 2,
        "annotators": 0,
        "database": "items.crowdrank.db",
        "admin_link": told["admin_link"],
        "judge_link": f"http://localhost:{port}/join",
        "board": f"http://localhost:{port}/",
        "links": None,
    }
    assert rest == ""


def asked(url, **how):
    """Ask until the server answers: a process that ends drops connections on which nothing was sent."""
    for _ in range(20):
        try:
            return httpx.get(url, timeout=60, **how)
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("no answer")


@contextmanager
def started(folder, *options):
    """Run `crowdrank serve` while the block lasts; return the process and what it printed."""
    (folder / "items.csv").write_text("item\na\nb\n")
    command = [*COMMAND, "serve", "items.csv", "--json", "--port", str(free_port()), *options]
    with subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE) as running:
        try:
            yield running, json.loads(running.stdout.readline())
        finally:
            running.terminate()


@pytest.mark.slow
def test_processes_are_replaced_while_the_server_answers(tmp_path):
    with started(tmp_path, "--processes", "2") as (running, told):
        headers = {"Authorization": f"Bearer {told['admin_link'].rpartition('/')[2]}"}

        def process():
            found = re.search(r'process="(\d+)"', asked(f"{told['board']}metrics", headers=headers).text)
            return None if found is None else found[1]  # a process without requests so far

        asked(f"{told['board']}healthz")
        before, end = {None} | {process() for _ in range(20)}, time.monotonic() + 900
        running.send_signal(signal.SIGHUP)
        while process() in before and time.monotonic() < end:
            assert asked(f"{told['board']}healthz").status_code == 200
        assert asked(f"{told['board']}api/v1/items", headers=headers).status_code == 200
    assert time.monotonic() < end, "a new process answers"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_the_server_speaks_https(tmp_path):
    make = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost"
    subprocess.run([*make.split(), "-addext", "subjectAltName=DNS:localhost"], cwd=tmp_path, check=True)
    with started(tmp_path, "--tls-cert", "cert.pem", "--tls-key", "key.pem") as (_, told):
        assert told["admin_link"].startswith("https://localhost:")
        answer = asked(told["admin_link"], verify=ssl.create_default_context(cafile=tmp_path / "cert.pem"))
    assert "; Secure" in answer.headers["set-cookie"]
    assert "strict-transport-security" in answer.headers


def test_export_and_backup_need_an_existing_collection(tmp_path):
    for command in (["export", "nothing.db", "--out", "x.csv"], ["backup", "nothing.db", "--out", "x.db"]):
        done = runner.invoke(app, command)
        assert "nothing.db: no such collection" in str(done.exception)
