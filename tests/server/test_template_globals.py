"""Charts of the pages: SVG that the content security policy allows, and number formats."""

from __future__ import annotations

import re

from crowdrank.server import rendering

ROWS = [
    {"score": 1.5, "low": 1.0, "high": 2.0, "group": 1, "rank_low": 1, "rank_high": 1},
    {"score": 0.5, "low": -1.0, "high": 1.2, "group": 2, "rank_low": 2, "rank_high": 3},
    {"score": 0.4, "low": -1.0, "high": 1.1, "group": 2, "rank_low": 2, "rank_high": 3},
    {"score": None, "low": None, "high": None, "group": None, "rank_low": None, "rank_high": None},
]
HISTORY = [{"votes": 10 * n, "uncertainty": 2 / n, "agreement": None if n == 1 else n / 4} for n in range(1, 5)]


def positions(svg):
    drawn = re.sub(r'<line [^>]*class="grid"/>', "", svg)
    return [float(share) for share in re.findall(r'(?:x1|x2|cx)="([\d.]+)%"', drawn)]


def test_scores_are_drawn_within_their_intervals():
    for row in ROWS[:3]:
        low, high, score = positions(rendering.score_range(row, ROWS))
        assert 0 < low < score < high < 100
    assert positions(rendering.score_range(ROWS[0], ROWS))[1] > positions(rendering.score_range(ROWS[1], ROWS))[1]
    assert rendering.score_range(ROWS[3], ROWS) == ""


def test_all_rows_have_the_grid_of_the_axis():
    axis = dict(re.findall(r'x="([\d.]+)%"[^>]*>([^<]+)<', rendering.score_axis(ROWS)))
    assert {"−1", "0", "1", "2"} <= set(axis.values()) and len(axis) <= 5
    for row in ROWS[:3]:
        lines = re.findall(r'<line x1="([\d.]+)%"[^>]*class="grid"', rendering.score_range(row, ROWS))
        assert lines == list(axis)
    assert rendering.score_axis(ROWS[3:]) == ""


def test_the_leading_items_are_drawn_with_the_first_rank_at_the_top():
    rows = [{"id": 7, "item": "seven"}, {"id": 8, "item": "eight"}]
    points = [[(7, 2), (8, 1)], [(7, 1), (8, 2)]]
    history = [
        {"votes": 10 * n, "at": "2026-01-02T03:04:05Z", "ranks": [{"id": id_, "rank": rank} for id_, rank in some]}
        for n, some in enumerate(points, 1)
    ]
    drawn = rendering.rank_chart(history, rows)
    assert "seven: 2, now 1; eight: 1, now 2" in drawn
    assert "seven: rank 1 after 20 votes (2026-01-02 03:04)" in drawn
    top, bottom = (float(cy) for cy in re.findall(r'cy="([\d.]+)%"', drawn)[:2])
    assert top > bottom, "seven has risen, and the best is at the top"
    assert rendering.rank_chart(history[:1], rows) == "" and rendering.rank_chart(history, []) == ""


def test_totals_are_drawn_over_time_with_their_limit():
    series = [(1_800_000_000.0 + 60 * n, float(n)) for n in range(1, 11)]
    assert "Votes over time: now 10." in rendering.time_chart(series, "votes")
    assert "limit 12" in rendering.time_chart(series, "votes", 12)
    assert "limit" not in rendering.time_chart(series, "votes", 5_000), "it would flatten the curve"
    assert rendering.time_chart(series[:1], "votes") == ""
    assert "most often 2 to 3 s" in rendering.times_chart([0, 1, 5, 0, 0, 0, 0, 0, 0, 1])


def test_a_chart_of_one_point_is_not_drawn():
    assert rendering.history_chart(HISTORY[:1], "uncertainty") == ""
    assert rendering.history_chart(HISTORY[:2], "agreement") == ""


def test_charts_have_text_descriptions():
    assert "2.00 after 10 votes, 0.50 after 40 votes" in rendering.history_chart(HISTORY, "uncertainty")
    assert "most often 2 to 3 s" in rendering.histogram([0, 1, 5, 0, 0, 0, 0, 0, 0, 1])
    assert rendering.histogram([0] * 10) == ""


def test_charts_have_no_inline_styles():
    drawn = [
        rendering.qr_code("http://localhost:8000/join"),
        rendering.score_range(ROWS[0], ROWS),
        rendering.history_chart(HISTORY, "uncertainty"),
        rendering.histogram([1, 2, 3]),
    ]
    assert all("<svg" in one and "style" not in one and "<script" not in one for one in drawn)


def test_different_urls_give_different_qr_codes():
    assert rendering.qr_code("http://localhost/a") != rendering.qr_code("http://localhost/b")


def test_rows_are_split_into_tie_groups():
    assert [len(some) for some in rendering.tie_groups(ROWS)] == [1, 2, 1]


def test_numbers_are_formatted():
    assert [rendering.number(one, 1) for one in (-1234.56, None)] == ["−1,234.6", "–"]
    assert [rendering.percent(one) for one in (0.125, None)] == ["12 %", "–"]
    assert [rendering.p_value(one) for one in (0.0001, 0.034, None)] == ["p < 0.001", "p = 0.034", "–"]
    assert [rendering.seconds(one) for one in (1.26, 34.2, None)] == ["1.3 s", "34 s", "–"]
    assert [rendering.rank_interval(row) for row in ROWS[1:]] == ["2–3", "2–3", "–"]


def test_json_values_are_formatted_as_text():
    told = {"votes": None, "open": True, "codes": ["a", 2], "more": {"ties": False}}
    assert rendering.as_text(told) == "votes –, open yes, codes a, 2, more ties no"
