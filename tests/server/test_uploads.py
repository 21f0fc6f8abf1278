"""Items from several files at once: pictures, sounds, videos, texts, and HTML in a frame without rights."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient

HTML = {"Accept": "text/html"}
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
FILES = {
    "sunset.png": PNG,
    "song.mp3": b"ID3" + bytes(20),
    "bell.wav": b"RIFF\0\0\0\0WAVEfmt ",
    "clip.webm": b"\x1a\x45\xdf\xa3" + bytes(20),
    "essay.txt": "Ein Aufsatz über Öl.".encode(),
    "notes.md": b"Some **bold** words.",
    "page.html": b"<style>p{color:red}</style><p>Hello</p><script>alert(1)</script>",
}


def csrf_of(page):
    return re.search(r'name="csrf" value="([0-9a-f]{32})"', page.text)[1]


def upload(browser, files, **fields):
    csrf = csrf_of(browser.get("/admin/items", headers=HTML))
    sent = [("files", (name, content)) for name, content in files.items()]
    return browser.post("/admin/items/files", data={"csrf": csrf, **fields}, files=sent, headers=HTML)


@pytest.fixture
def played(start, tmp_path):
    return start(items=(), media=tmp_path / "media")


@pytest.fixture
def admin(played):
    return played.enter(played.secret, "admin")


def items(played):
    found = played.client.get("/api/v1/items", headers=played.admin).json()["items"]
    return {item["label"]: item for item in found}


def test_each_file_becomes_an_item_of_its_kind(played, admin):
    assert upload(admin, FILES, query="all").status_code == 200
    found = items(played)
    assert {label: item["kind"] for label, item in found.items()} == {
        "sunset": "image",
        "song": "audio",
        "bell": "audio",
        "clip": "video",
        "essay": "text",
        "notes": "markdown",
        "page": "html",
    }
    assert {item["query"] for item in found.values()} == {"all"}
    assert "Öl" in found["essay"]["html"]
    assert "<strong>bold</strong>" in found["notes"]["html"]
    for label, tag, media_type in (("song", "audio", "audio/mpeg"), ("clip", "video", "video/webm")):
        address = re.search(rf'<{tag} src="([^"]+)" aria-label="[^"]+" controls', found[label]["html"])[1]
        answer = played.client.get(address, headers={"Range": "bytes=0-3"})
        assert (answer.status_code, answer.headers["content-type"]) == (206, media_type)
    assert "media-src 'self'" in admin.get("/admin/items", headers=HTML).headers["content-security-policy"]


def test_html_is_shown_in_a_frame_that_may_do_nothing(played, admin):
    upload(admin, {"page.html": FILES["page.html"]})
    shown = items(played)["page"]["html"]
    address = re.fullmatch(r'<iframe src="([^"]+)" title="page" sandbox loading="lazy"></iframe>', shown)[1]
    answer = admin.get(address)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'")
    assert "script" not in policy
    assert answer.headers["x-frame-options"] == "SAMEORIGIN"
    assert TestClient(played.app).get(address).status_code == 401  # items are for participants
    (ann,) = played.join("ann")
    assert played.enter(ann).get(address).status_code == 200
    (id_,) = played.collection.items.add(["plain"], actor="test")
    assert admin.get(f"/items/{id_}.html").status_code == 404


def test_a_wrong_file_adds_nothing(played, admin):
    for name, content, said in (
        ("a.exe", b"MZ", "neither an image nor a recording"),
        ("a.mp4", b"<html>", "does not match the file name"),
        ("a.txt", b"\xff\xfe\xfa", "UTF-8"),
        ("a.html", b"x" * ((1 << 20) + 1), "at most 1 MB"),
    ):
        page = upload(admin, {"ok.txt": b"ok", name: content})
        assert (page.status_code, said in page.text) == (422, True), name
    csrf = csrf_of(admin.get("/admin/items", headers=HTML))
    assert admin.post("/admin/items/files", data={"csrf": csrf}, headers=HTML).status_code == 422
    assert items(played) == {}


def test_annotators_get_files_without_their_names(played, admin):
    upload(admin, {"model-x.mp3": b"ID3a", "model-y.mp3": b"ID3b"})
    (ann,) = played.join("ann")
    asked = played.question(ann)["assignment"]
    assert [asked[side]["label"] for side in ("left", "right")] == [None, None]
    assert "model" not in str(asked)
    contents = set()
    for side in ("left", "right"):
        address = re.fullmatch(r'<audio src="([^"]+)" aria-label="Audio" .*', asked[side]["html"])[1]
        heard = played.client.get(address)
        assert (heard.status_code, heard.headers["content-type"]) == (200, "audio/mpeg")
        assert "model" not in str(heard.headers)
        contents.add(heard.content)
    assert contents == {b"ID3a", b"ID3b"}
    assert played.question(ann)["assignment"]["left"] == asked["left"], "browsers can cache it"


def test_a_table_may_have_recordings_and_html(played, admin):
    csrf = csrf_of(admin.get("/admin/items", headers=HTML))
    table = b"item,html\na,<b>one</b>\nb,<i>two</i>\n"
    admin.post("/admin/items/upload", data={"csrf": csrf}, files={"file": ("t.csv", table)}, headers=HTML)
    video = b"item,video\nc,https://videos.example/c.mp4\n"
    admin.post("/admin/items/upload", data={"csrf": csrf}, files={"file": ("v.csv", video)}, headers=HTML)
    found = items(played)
    assert [found[label]["kind"] for label in "abc"] == ["html", "html", "video"]
    policy = admin.get("/admin/items", headers=HTML).headers["content-security-policy"]
    assert "media-src 'self' https://videos.example" in policy
