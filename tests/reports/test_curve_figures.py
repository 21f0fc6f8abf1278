"""Figures of learning curves."""

from __future__ import annotations

import re
import sys

import polars as pl
import pytest

from crowdrank.errors import SettingError
from crowdrank.reports import check_drawable, draw_curves

pytest.importorskip("altair", reason="draws the curves")
CURVES = pl.DataFrame(
    {
        "policy": ["random"] * 3 + ["gain:exploration=5"] * 3,
        "votes": [100, 200, 300] * 2,
        "accuracy": [0.6, 0.7, 0.75, 0.65, 0.8, 0.9],
        "std_error": [0.02, 0.02, 0.01] * 2,
    }
)


def drawn(tmp_path, ending, frame=CURVES):
    path = tmp_path / f"curves{ending}"
    draw_curves(frame, path)
    return path


def test_a_page_needs_no_network(tmp_path):
    page = drawn(tmp_path, ".html").read_text(encoding="utf-8")
    assert "gain:exploration=5" in page
    assert not re.search(r"<script[^>]*\bsrc=", page)
    assert not re.search(r"<link\b", page)
    assert not re.search(r"(import|fetch)\s*\(?\s*[\"']https?:", page)
    assert '"editor": false' in page


def test_a_picture_says_what_it_shows(tmp_path):
    picture = drawn(tmp_path, ".svg").read_text(encoding="utf-8")
    for words in ("share of pairs in the right order", "votes", "random", "bands: ± one standard error"):
        assert f">{words}</text>" in picture
    assert "#0072B2" in picture
    assert picture.index(">gain:exploration=5<") < picture.index(">random<")  # the legend, best first


def test_a_single_trial_has_no_bands_to_explain(tmp_path):
    frame = CURVES.with_columns(std_error=pl.lit(None, pl.Float64))
    assert "bands" not in drawn(tmp_path, ".svg", frame).read_text(encoding="utf-8")


def test_a_png_is_a_png(tmp_path):
    assert drawn(tmp_path, ".PNG").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["curves.pdf", "curves"])
def test_other_endings_are_refused(tmp_path, name):
    with pytest.raises(SettingError, match=r"drawn as \.html, \.svg, \.png"):
        draw_curves(CURVES, tmp_path / name)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SettingError, match="does not exist"):
        check_drawable(tmp_path / "nowhere" / "curves.svg")


@pytest.mark.parametrize("missing", ["altair", "vl_convert"])
def test_a_missing_library_is_named(tmp_path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SettingError, match=r"pip install 'crowdrank\[reports\]'"):
        draw_curves(CURVES, tmp_path / "curves.svg")


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "curves.svg").mkdir()
    with pytest.raises(SettingError, match="cannot be written"):
        draw_curves(CURVES, tmp_path / "curves.svg")
