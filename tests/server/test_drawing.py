"""Figures of the pages: SVG that the content policy lets through, and numbers as people read them."""

from __future__ import annotations

import re

from crowdrank.server import svg

ROWS = [
    {"score": 1.5, "low": 1.0, "high": 2.0, "group": 1, "rank_low": 1, "rank_high": 1},
    {"score": 0.5, "low": -1.0, "high": 1.2, "group": 2, "rank_low": 2, "rank_high": 3},
    {"score": 0.4, "low": -1.0, "high": 1.1, "group": 2, "rank_low": 2, "rank_high": 3},
    {"score": None, "low": None, "high": None, "group": None, "rank_low": None, "rank_high": None},
]
HISTORY = [{"votes": 10 * n, "uncertainty": 2 / n, "agreement": None if n == 1 else n / 4} for n in range(1, 5)]


def places(svg):
    return [float(share) for share in re.findall(r'(?:x1|x2|cx)="([\d.]+)%"', svg)]


def test_scores_lie_within_their_intervals_on_one_axis():
    for row in ROWS[:3]:
        low, high, score = places(svg.score_range(row, ROWS))
        assert 0 < low < score < high < 100
    assert places(svg.score_range(ROWS[0], ROWS))[1] > places(svg.score_range(ROWS[1], ROWS))[1]
    assert svg.score_range(ROWS[3], ROWS) == ""


def test_a_figure_of_one_point_is_not_drawn():
    assert svg.history_figure(HISTORY[:1], "uncertainty") == ""
    assert svg.history_figure(HISTORY[:2], "agreement") == ""


def test_figures_say_in_words_what_they_show():
    assert "2.00 after 10 votes, 0.50 after 40 votes" in svg.history_figure(HISTORY, "uncertainty")
    assert "most often 2 to 3 s" in svg.histogram([0, 1, 5, 0, 0, 0, 0, 0, 0, 1])
    assert svg.histogram([0] * 10) == ""


def test_nothing_that_is_drawn_has_a_style_of_its_own():
    drawn = [
        svg.qr("http://localhost:8000/join"),
        svg.score_range(ROWS[0], ROWS),
        svg.history_figure(HISTORY, "uncertainty"),
        svg.histogram([1, 2, 3]),
    ]
    assert all("<svg" in one and "style" not in one and "<script" not in one for one in drawn)


def test_another_address_is_another_code():
    assert svg.qr("http://localhost/a") != svg.qr("http://localhost/b")


def test_rows_of_one_group_stand_together():
    assert [len(some) for some in svg.grouped(ROWS)] == [1, 2, 1]


def test_numbers_are_written_for_people():
    assert [svg.number(one, 1) for one in (-1234.56, None)] == ["−1,234.6", "–"]
    assert [svg.percent(one) for one in (0.125, None)] == ["12 %", "–"]
    assert [svg.chance(one) for one in (0.0001, 0.034, None)] == ["p < 0.001", "p = 0.034", "–"]
    assert [svg.seconds(one) for one in (1.26, 34.2, None)] == ["1.3 s", "34 s", "–"]
    assert [svg.ranks(row) for row in ROWS[1:]] == ["2–3", "2–3", "–"]
    assert svg.moment(0) == "1970-01-01 00:00:00"


def test_what_was_noted_is_said_plainly():
    told = {"votes": None, "open": True, "codes": ["a", 2], "more": {"ties": False}}
    assert svg.plainly(told) == "votes –, open yes, codes a, 2, more ties no"
