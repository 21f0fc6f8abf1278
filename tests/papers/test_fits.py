"""Shared code of the TPP scripts."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from crowdrank.errors import ConvergenceWarning

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "papers")]

from fits import Distances, below, crowd_named, keep, less, malicious_told, matched, names_of  # noqa: E402

FOUND, TRUE = np.array([2, 2, 2, 0, 0, 1]), np.array([0, 0, 1, 1, 1, 1])


def test_found_domains_are_matched_one_to_one_so_that_most_queries_agree():
    assert matched(FOUND, TRUE).tolist() == [1, -1, 0]


def test_a_true_domain_without_a_match_is_told_by_where_most_of_it_went():
    found, true = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 2, 1, 1])
    assert names_of(found, true) == {0: 0, 1: 1, 2: 0}


def test_the_area_is_the_share_of_pairs_that_the_malicious_lose():
    true = np.array([[-10.0, 5.0], [5.0, 5.0], [5.0, -10.0]])
    told = np.array([[4.0, -2.0], [5.0, 3.0], [-1.0, 1.0]])  # its second domain is the first of the truth
    # -τ of the malicious: 2 and 1; of the honest: -3, -1, -4, -5
    assert malicious_told(told, true, {0: 1, 1: 0}) == 1.0
    assert malicious_told(-told, true, {0: 1, 1: 0}) == 0.0
    assert malicious_told(np.zeros((3, 2)), true, {0: 1, 1: 0}) == 0.5
    assert np.isnan(malicious_told(told, np.abs(true), {0: 1, 1: 0}))


def test_what_is_kept_is_not_made_again(tmp_path):
    made = []

    def make():
        made.append("once")
        return {"converged": True, "distance": 0.25}

    first = keep(tmp_path, ("DOC5SR0.5DEMO1 of 2 even domains", "TPP, published"), 300, make)
    assert keep(tmp_path, ("DOC5SR0.5DEMO1 of 2 even domains", "TPP, published"), 300, make) == first
    assert made == ["once"]
    files = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*") if path.is_file()]
    assert files == ["DOC5SR0.5DEMO1-of-2-even-domains/TPP-published/300.json"]
    keep(tmp_path, ("DOC5SR0.5DEMO1 of 2 even domains", "TPP, published"), 301, make)
    keep(None, ("DOC5SR0.5DEMO1 of 2 even domains", "TPP, published"), 300, make)
    assert len(made) == 3


def test_a_kept_fit_that_did_not_converge_is_still_warned_of(tmp_path):
    for _ in range(2):
        with pytest.warns(ConvergenceWarning, match="^TPP did"):
            keep(tmp_path, ("crowd", "TPP, published"), 300, lambda: {"converged": False})


def test_a_crowd_has_the_domains_its_name_says():
    even = crowd_named("DOC5SR0.5DEMO1 of 2 even domains", 1)
    assert np.bincount(even.queries["domain"]).tolist() == [50, 50]
    assert crowd_named("DOC5SR0.5DEMO1 of 5 domains", 1).annotators["expertise"].shape == (10, 5)
    assert crowd_named("ANNO100SR0.01", 1).annotators["expertise"].shape == (100, 10)


def test_differences_are_over_the_crowds_that_both_were_fitted_to():
    found = {("a", "x"): [1.0, 2.0, 3.0], ("b", "x"): [3.0, 5.0], ("a", "y"): [1.0]}
    assert less(found, "a", ["b"]) == {("a less b", "x"): [-2.0, -3.0]}


def test_a_difference_is_surely_negative_two_standard_errors_below_zero():
    table = Distances({("a", "x"): [-1.0, -3.0], ("a", "y"): [-1.0, -1.5]})  # errors of 1 and 0.25
    assert [check.met for check in below(table)] == [False, True]


def test_distances_of_ten_and_more_show_a_decimal():
    table = Distances({("a", "x"): [22.25, 22.45], ("a", "y"): [0.25]}, {("a", "x"): 129.156}, title="T")
    assert table.markdown() == (
        "## T\n\n|  | x | y |\n| --- | --- | --- |\n| a | 22.4 ± .100 | .250 |\n| *paper* | *129.2* |  |\n"
    )
