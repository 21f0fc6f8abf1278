"""Plots of rankings."""

from __future__ import annotations

import sys

import pytest

from crowdrank import BradleyTerry, Comparisons
from crowdrank.errors import SettingError
from crowdrank.reports import draw_ranking
from crowdrank.simulation import mixed_crowd

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ranking():
    return BradleyTerry().fit(mixed_crowd(items=12, kinds={"good": 10}, votes_each=40, seed=1).judgments)


def texts(chart, tmp_path):
    chart.save(str(tmp_path / "chart.svg"))
    return (tmp_path / "chart.svg").read_text(encoding="utf-8")


def best_row(chart):
    (rows,) = chart.to_dict()["datasets"].values()
    return rows[0]


def test_a_chart_names_the_first_items_best_first(ranking, tmp_path):
    drawn = texts(ranking.plot(top=5), tmp_path)
    best = ranking.to_polars()["item"].to_list()
    places = [drawn.index(f">{name}</text>") for name in best[:5]]
    assert places == sorted(places)
    assert f">{best[5]}</text>" not in drawn
    assert "the first 5 of 12" in drawn
    assert "95%" in drawn


def test_intervals_are_as_wide_as_the_level_says(ranking):
    narrow, wide = (best_row(ranking.plot(level=level)) for level in (0.5, 0.95))
    assert wide["high"] - wide["low"] > 2.5 * (narrow["high"] - narrow["low"])


def test_without_uncertainty_there_are_only_points(ranking, tmp_path):
    assert "interval" not in texts(ranking.plot(uncertainty=False), tmp_path)


def test_queries_are_drawn_one_by_one_or_one_alone(tmp_path):
    names = [f"q{n % 14:02d}" for n in range(140)]
    votes = Comparisons.of(["a", "b"] * 70, ["b", "a"] * 70, ["a", "a"] * 70, query=names)
    ranking = BradleyTerry().fit(votes)
    every, one = texts(ranking.plot(), tmp_path), texts(ranking.plot("q13"), tmp_path)
    assert "12 of 14 queries" in every
    assert "q11" in every
    assert "q13" not in every
    assert "q13" in one


@pytest.mark.parametrize("ending", [".svg", ".png", ".html"])
def test_a_figure_is_written_by_its_ending(ranking, tmp_path, ending):
    draw_ranking(ranking, tmp_path / f"ranking{ending}", top=3)
    written = (tmp_path / f"ranking{ending}").read_bytes()
    assert written.lstrip().startswith({".svg": b"<svg", ".png": b"\x89PNG", ".html": b"<!DOCTYPE html>"}[ending])


def test_a_missing_library_is_named(ranking, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(SettingError, match=r"pip install 'crowdrank\[reports\]'"):
        ranking.plot()


@pytest.mark.parametrize("wrong", [{"top": 0}, {"level": 1.0}])
def test_invalid_settings_are_refused(ranking, wrong):
    with pytest.raises(SettingError, match=f"{next(iter(wrong))} must be"):
        ranking.plot(**wrong)
