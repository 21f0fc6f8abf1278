"""Benchmarks of large data: growth by size, and the efficiency of workers that share cores."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("psutil")
sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "benchmarks")]

import large  # noqa: E402
import scaling  # noqa: E402

RUN = large.Entry(
    model="crowd-bt",
    uncertainty=True,
    judgments=1_000_000,
    items=100,
    annotators=100,
    limit_megabytes=4_000,
    peak_megabytes=500,
    reading_megabytes=300,
    disk_megabytes=13,
    reading_seconds=1.0,
    fitting_seconds=2.0,
    processor_seconds=3.0,
    parquet_megabytes=9,
    passes=50,
    kendall=0.9,
    log_likelihood=-1.0,
)
TEN_TIMES = replace(
    RUN, judgments=10_000_000, reading_seconds=10.0, fitting_seconds=20.0, processor_seconds=300.0, peak_megabytes=5_000
)


def test_growth_is_the_exponent_between_the_fewest_and_the_most_judgments():
    (line,) = large.growth([TEN_TIMES, RUN])
    assert "from 1,000,000 to 10,000,000 judgments" in line
    assert "reading grows with an exponent of 1.00, fitting 1.00, processor time 2.00, peak memory 1.00" in line


def test_one_size_has_no_growth_and_models_are_not_mixed():
    other = replace(TEN_TIMES, model="bradley-terry")
    assert large.growth([RUN, other]) == []


def test_a_page_says_which_run_exceeded_its_limit():
    page = large.page([RUN, TEN_TIMES], {"made": "now", **dict.fromkeys(DESCRIBED, 1), "libraries": {}})
    rows = [line for line in page.splitlines() if "crowd-bt |" in line]
    assert ["**over**" in row for row in rows] == [False, True]
    assert page.startswith("# 1,000,000 to 10,000,000 judgments on disk")


DESCRIBED = ("processor", "cores", "memory_gigabytes", "system", "python", "load_at_start")


def test_a_disk_that_is_too_small_is_refused_before_it_fills(tmp_path):
    with pytest.raises(SystemExit, match="need 25,?000,?000 GB"):
        large._check_disk(tmp_path, 10**15)


def fit(where, count, seconds, own, workers=()):
    return scaling.Entry("crowd-bt", where, count, 1_000, seconds, 10, 1.0, -1.0, own, workers)


def test_workers_that_share_cores_are_judged_by_their_processor_time():
    thread = fit("threads", 1, 8.0, 8.0)
    alone = fit("workers", 1, 12.0, 1.0, (9.0,))
    four = fit("workers", 4, 11.0, 1.0, (2.0, 2.5, 3.0, 2.5)).compared_with(alone, thread)
    assert four.speed_up == pytest.approx(12 / 11, abs=0.01)
    assert four.work == pytest.approx(8 / 11, abs=0.01)
    assert four.efficiency == pytest.approx(8 / (4 * (1 + 3)), abs=0.01)


def test_threads_are_compared_by_their_work():
    thread = fit("threads", 1, 8.0, 8.0)
    two = fit("threads", 2, 5.0, 10.0).compared_with(thread, thread)
    assert (two.speed_up, two.work, two.efficiency) == (1.6, 0.8, 0.8)
