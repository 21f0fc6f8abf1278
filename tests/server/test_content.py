"""Items are rendered as safe HTML."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdrank.errors import DataError
from crowdrank.server.files import (
    IMAGE_TYPES,
    MAX_IMAGE_SIZE,
    check_media,
    content_kind,
    media_file,
    render,
    render_markdown,
)

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "[click](javascript:alert(1))",
    "![x](javascript:alert(1))",
    "<svg/onload=alert(1)>",
    "[a](data:text/html;base64,PHNjcmlwdD4=)",
    '<a href="jav&#x09;ascript:alert(1)">x</a>',
    "<style>body{display:none}</style>",
    "<iframe src=//example.org></iframe>",
]


@pytest.mark.parametrize("kind", ["text", "markdown", "image", "link"])
@pytest.mark.parametrize("body", HOSTILE)
def test_items_cannot_run_scripts(kind, body):
    made = render(kind, body, body)
    tags = re.findall(r"<([a-z0-9]+)([^>]*)>", made)
    assert {tag for tag, _ in tags} <= {"p", "img", "a", "em", "strong", "code"}
    for _, attributes in tags:
        assert not re.search(r"\son\w+\s*=", re.sub(r'"[^"]*"', '""', attributes))
    assert not re.search(r'(href|src)="\s*(javascript|data):', made, re.IGNORECASE)


@given(st.text(max_size=80))
def test_text_is_escaped_and_otherwise_unchanged(text):
    import html

    inside = render("text", text, "x").removeprefix('<p class="text">').removesuffix("</p>")
    assert html.unescape(inside) == html.unescape(html.escape(text))
    assert "<" not in inside


def test_markdown_keeps_its_structure_with_lower_headings():
    made = render_markdown("# Head\n\n| a | b |\n|---|---|\n| 1 | **2** |\n\n[site](https://example.org)")
    assert "<h3>Head</h3>" in made
    assert "<td><strong>2</strong></td>" in made
    assert 'rel="noopener noreferrer nofollow"' in made


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("A poem", "text"),
        ("https://example.org/a.png", "image"),
        ("https://example.org/a.png?size=2", "image"),
        ("posters/a.jpg", "image"),
        ("https://example.org/page", "link"),
        ("see https://example.org", "text"),
        ("http://[broken", "text"),
        ("two lines\nending in a.png", "text"),
    ],
)
def test_the_kind_of_an_item_is_detected(body, kind):
    assert content_kind(body) == kind


def test_an_unknown_kind_is_refused():
    with pytest.raises(DataError, match="one of text"):
        content_kind("x", "gif")


def test_images_are_served_from_one_folder_only(tmp_path):
    media, secret = tmp_path / "media", tmp_path / "secret.png"
    media.mkdir()
    (media / "a.png").write_bytes(b"x")
    (media / "notes.txt").write_bytes(b"x")
    secret.write_bytes(b"x")
    (media / "link.png").symlink_to(secret)
    assert media_file(media, "a.png") == (media / "a.png").resolve()
    for name in (
        "../secret.png",
        str(secret),
        "link.png",
        "notes.txt",
        "b.png",
        "a.png/..",
        "\0.png",
        "x" * 5000 + ".png",
    ):
        assert media_file(media, name) is None


def test_uploaded_images_must_match_their_suffix():
    assert check_media("A.PNG", b"\x89PNG\r\n\x1a\n...") == ".png"
    with pytest.raises(DataError, match="does not match the file name"):
        check_media("a.png", b"<script>")
    with pytest.raises(DataError, match="neither an image nor a recording"):
        check_media("a.svg", b"<svg>")
    with pytest.raises(DataError, match="at most 10 MB"):
        check_media("a.png", b"\x89PNG\r\n\x1a\n" + bytes(MAX_IMAGE_SIZE))
    assert ".svg" not in IMAGE_TYPES
