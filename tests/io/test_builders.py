"""Weights of ratings, from a file and back."""

from __future__ import annotations

import polars as pl
import pytest

import crowdrank as cr

GRADES = {
    "worker": ["ann", "ann", "bob"],
    "item": ["a", "b", "a"],
    "rating": ["3", "1", "2"],
    "weight": ["1", "2.5", "0.5"],
}


def test_a_weight_column_weighs_the_grades() -> None:
    found = cr.read(GRADES, kind="ratings")
    assert isinstance(found, cr.Ratings)
    assert found.weights.tolist() == [1.0, 2.5, 0.5]
    assert cr.MeanRating(prior_count=0).fit(found).scores.tolist() == pytest.approx([8 / 3, 1.0])


def test_weights_come_back_from_what_was_written(tmp_path) -> None:
    found = cr.read(GRADES, kind="ratings")
    found.to_frame().write_csv(tmp_path / "grades.csv")
    assert cr.read(tmp_path / "grades.csv").weights.tolist() == found.weights.tolist()


def test_a_row_whose_weight_is_no_positive_number_is_left_out_and_named() -> None:
    again = pl.concat([pl.DataFrame(GRADES)] * 2).with_columns(weight=pl.Series(["1", "2.5", "0.5", "1", "1", "-1"]))
    found, report = cr.read_with_report(again, kind="ratings")
    assert len(found) == 5
    (problem,) = report.malformed
    assert problem.reason.startswith("the weight must be a positive number")
