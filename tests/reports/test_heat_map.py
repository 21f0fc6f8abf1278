"""The heat map of expertise."""

from __future__ import annotations

import re

import numpy as np
import pytest

from crowdrank.errors import DataError, SettingError
from crowdrank.reports import draw_heat_map
from crowdrank.results import Domains

pytest.importorskip("altair", reason="draws the heat map")


def chart(people=3, sizes=(2, 1, 0)):
    """The first annotator is reversed everywhere, and the last judged nothing in the second domain."""
    membership = np.repeat(np.eye(len(sizes)), sizes, axis=0)
    expertise = np.tile(np.linspace(-2.0, 2.0, people)[:, None], len(sizes))
    judged = np.full(expertise.shape, 5)
    judged[-1:, 1] = 0
    return Domains(
        annotators=np.array([f"who{k}" for k in range(people)], dtype=object),
        queries=np.array([f"topic{q}" for q in range(len(membership))], dtype=object),
        expertise=(expertise, expertise - 0.1, expertise + 0.1),
        membership=membership,
        difficulty=(np.ones(len(membership)),) * 3,
        n_judgments=judged,
    )


def drawn(tmp_path, ending, domains=None):
    path = tmp_path / f"heat{ending}"
    draw_heat_map(domains or chart(), path)
    return path


def test_a_picture_has_the_best_first_and_the_unknown_marked(tmp_path):
    picture = drawn(tmp_path, ".svg").read_text(encoding="utf-8")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert [text for text in texts if text.startswith("who")] == ["who2", "who1", "who0"]
    assert sorted(text for text in texts if re.fullmatch(r"0\.\d\d", text)) == ["0.08", "0.08", "0.50", "0.50", "0.92"]
    assert texts.count("?") == 1
    assert picture.count('fill="#D0D0D0"') == 1
    assert "domain" in texts
    assert "3" not in texts  # no query is of the third domain


def test_random_is_pale_experts_are_blue_and_reversed_annotators_orange(tmp_path):
    picture = drawn(tmp_path, ".svg").read_text(encoding="utf-8")
    fills = {}
    for tag in re.findall(r"<path [^>]*>", picture):
        if cell := re.search(r'annotator: (\w+);.*verdict: (\w+);.*fill="rgb\(([^)]*)\)"', tag):
            fills[cell[1], cell[2]] = [int(part) for part in cell[3].split(",")]
    red, _, blue = fills["who2", "expert"]
    assert blue > red
    red, _, blue = fills["who0", "reversed"]
    assert red > blue
    assert min(fills["who1", "random"]) > 240


def test_a_page_needs_no_network_and_tells_the_verdict(tmp_path):
    page = drawn(tmp_path, ".html").read_text(encoding="utf-8")
    assert not re.search(r"<script[^>]*\bsrc=", page)
    assert not re.search(r"<link\b", page)
    assert '"verdict": "reversed"' in page
    assert '"field": "verdict"' in page


def test_a_png_is_a_png(tmp_path):
    assert drawn(tmp_path, ".png").read_bytes().startswith(b"\x89PNG")


def test_a_large_crowd_is_drawn_whole_without_numbers_in_cells(tmp_path):
    picture = drawn(tmp_path, ".svg", chart(people=600, sizes=(1, 1, 1))).read_text(encoding="utf-8")
    assert picture.count("verdict: ") == 3 * 600
    assert picture.index("annotator: who599;") < picture.index("annotator: who598;") < picture.index("who0;")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    assert not [text for text in texts if re.fullmatch(r"0\.\d\d", text)]
    assert len(re.findall(r'opacity="1">who', picture)) < 200  # names that would overlap are hidden


def test_a_heat_map_needs_annotators(tmp_path):
    with pytest.raises(DataError, match="the judgments name none"):
        drawn(tmp_path, ".svg", chart(people=0))


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(SettingError, match=r"drawn as \.html, \.svg, \.png"):
        drawn(tmp_path, ".pdf")
