"""Shared code of the CrowdAgg scripts."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "papers")]

from topics import METHODS, OF_GRADES, TOPICS, Paired, Topic, can_read, fit, less, p_value  # noqa: E402

FOUND = {("a", "x"): [0.9, 0.8, 0.7], ("b", "x"): [0.5, 0.6, 0.4], ("a", "y"): [0.5], ("b", "y"): [0.5]}


def test_true_grades_have_as_many_items_each():
    topic = Topic(lambda seed: None, levels=5)
    grades = topic.grades(np.random.default_rng(0).normal(size=30))
    assert np.bincount(grades.astype(int)).tolist() == [6] * 5
    assert topic.grades(np.array([0.3, -1.0, 2.0, 0.1, 0.2])).tolist() == [3, 0, 4, 1, 2]


@pytest.mark.parametrize("name", TOPICS)
def test_crowds_are_as_their_names_say(name):
    crowd = TOPICS[name].draw(seed=1)
    items, annotators, each = map(int, name.split()[-1].split("/"))
    assert len(crowd.judgments.items) == items
    assert np.bincount(crowd.judgments.annotator).tolist() == [each] * annotators
    assert can_read("mean-rating", crowd.judgments) == name.endswith(("30/15/20", "100/40/10"))


def test_the_p_of_a_difference_is_that_of_a_paired_t_test():
    (difference,) = (values for (_, column), values in less(FOUND, "b").items() if column == "x")
    assert difference == pytest.approx([0.4, 0.2, 0.3])
    assert p_value(difference) == pytest.approx(ttest_rel(FOUND["a", "x"], FOUND["b", "x"]).pvalue)
    assert p_value([0.0, 0.0]) == 1.0


def test_a_table_of_differences_shows_it():
    table = Paired(less(FOUND, "b"))
    assert "| a less b | .300 ± .058 (p .035) | .000 |" in table.markdown()


def test_borda_reads_grades_as_lists():
    grades = TOPICS["5 levels 30/15/20"].draw(seed=2).judgments
    expected = METHODS["borda"].fit(grades.to_rankings()).scores
    np.testing.assert_array_equal(fit(METHODS["borda"], grades).scores, expected)
    assert len(OF_GRADES) == 4


def test_the_page_on_real_data_has_the_numbers_that_are_kept():
    with (ROOT / "papers" / "crowd-agg" / "results" / "real.csv").open(encoding="utf-8") as file:
        kept = {
            (row["table"], row["row"], row["column"]): f"{float(row['mean']):.3f} ± {float(row['standard_error']):.3f}"
            for row in csv.DictReader(file)
        }
    page = (ROOT / "docs" / "real-data.md").read_text(encoding="utf-8")
    told = page.partition("\n## Ratings\n")[2].partition("\n## ")[0]
    columns = ("Spearman", "Spearman, less graded-response", "Kendall")
    places = [(table, column) for table in ("Grades: snow2008", "Grades: peergrading_aaai15") for column in columns]
    compared = 0
    for line in re.findall(r"^\| (.*±.*) \|$", told, re.MULTILINE):
        name, *cells = (cell.strip() for cell in re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", line).split("|"))
        for cell, (table, column) in zip(cells, places, strict=True):
            assert cell == kept.get((table, name, column), ""), (table, name, column)
            compared += bool(cell)
    assert compared == 25 * 6 - 2
