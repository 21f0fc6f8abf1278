from __future__ import annotations

import copy
import pickle

import numpy as np
import polars as pl
import pytest

from crowdrank import BradleyTerry, Comparisons
from crowdrank.data import Items, Ratings
from crowdrank.errors import DataError, SettingError
from crowdrank.evaluation import Gold, accuracy, average_precision, evaluate, evaluate_scores, ndcg, precision_at, rbp

AGREEMENT = ["accuracy", "kendall_distance", "kendall_correlation", "spearman_correlation", "top_k_overlap"]
RELEVANCE = ["ndcg", "precision", "average_precision", "rbp"]


def two_queries() -> tuple[list[float], Items, Gold]:
    """Query p: a above b above c, which is right. Query q: x above y, which is wrong; z has no gold."""
    items = Ratings.of(item=list("abcxyz"), grade=[1] * 6, query=list("pppqqq")).items
    gold = Gold.of(item=["y", "x", "c", "b", "a", "w"], value=[1, 0, 0, 1, 2, 1], query=list("qqpppq"))
    return [3, 2, 1, 2, 1, 0], items, gold


def test_values_are_matched_by_query_and_label_however_the_gold_is_ordered() -> None:
    scores, items, gold = two_queries()
    found = evaluate_scores(scores, items, gold)
    assert found.by_query["query"].to_list() == ["p", "q"]
    assert found.by_query["accuracy"].to_list() == [1, 0]
    assert found.by_query["kendall_distance"].to_list() == [0, 1]


def test_one_label_in_two_queries_is_two_items() -> None:
    gold = Gold.of(item=["a", "b", "a", "b"], value=[5.5, 1, 1, 5.5], query=["p", "p", "q", "q"])
    assert evaluate_scores([2, 1, 2, 1], gold.items, gold).by_query["accuracy"].to_list() == [1, 0]


def test_counts_items_with_gold_and_gold_never_judged() -> None:
    found = evaluate_scores(*two_queries())
    assert (found.items, found.items_with_gold, found.gold_never_judged) == (6, 5, 1)


def test_every_metric_is_the_mean_over_queries_with_its_standard_error() -> None:
    scores, items, gold = two_queries()
    found = evaluate_scores(scores, items, gold, k=2)
    parts = [([3, 2, 1], [2, 1, 0]), ([2, 1], [0, 1])]
    by_hand = {
        "accuracy": [accuracy(*part) for part in parts],
        "ndcg": [ndcg(*part, k=2) for part in parts],
        "precision": [precision_at(*part, k=2) for part in parts],
        "average_precision": [average_precision(*part) for part in parts],
        "rbp": [rbp(*part) for part in parts],
    }
    table = {row["metric"]: row for row in found.table().to_dicts()}
    for name, (first, second) in by_hand.items():
        assert table[name]["value"] == getattr(found, name) == pytest.approx((first + second) / 2)
        assert table[name]["std_error"] == pytest.approx(abs(first - second) / 2)
        assert table[name]["queries"] == 2


def test_the_table_has_one_row_per_metric() -> None:
    table = evaluate_scores(*two_queries()).table()
    assert dict(table.schema) == {
        "metric": pl.String,
        "value": pl.Float64,
        "std_error": pl.Float64,
        "queries": pl.Int64,
    }
    assert table["metric"].to_list() == AGREEMENT + RELEVANCE


def test_queries_in_which_a_metric_is_undefined_are_left_out_of_its_mean() -> None:
    gold = Gold.of(item=["a", "b", "c"], value=[1, 0, 0], query=["p", "p", "q"])
    table = {row["metric"]: row for row in evaluate_scores([2, 1, 0], gold.items, gold).table().to_dicts()}
    assert (table["accuracy"]["value"], table["accuracy"]["queries"]) == (1, 1)
    assert (table["ndcg"]["value"], table["ndcg"]["queries"]) == (1, 1)
    assert (table["precision"]["value"], table["precision"]["queries"]) == (0.05, 2)


def test_a_single_query_has_no_standard_error() -> None:
    gold = Gold.of(item=["a", "b"], value=[1.5, 0.5])
    assert np.isnan(evaluate_scores([2, 1], gold.items, gold).table()["std_error"].to_numpy()).all()


def test_a_metric_defined_nowhere_is_nan() -> None:
    gold = Gold.of(item=["a", "b"], value=[0, 0])
    found = evaluate_scores([2, 1], gold.items, gold)
    assert np.isnan(found.accuracy)
    assert np.isnan(found.ndcg)


@pytest.mark.parametrize(
    ("values", "graded"),
    [
        ([0, 1, 2], True),
        ([0, 1, 10], True),
        ([0, 1, 11], False),
        ([1, 2, 3], False),
        ([0, 0.5, 1], False),
        ([-1, 0, 1], False),
        ([1380.2, 331.0, 82.9], False),
    ],
)
def test_only_whole_numbers_from_zero_to_ten_are_taken_for_grades(values: list[float], graded: bool) -> None:
    gold = Gold.of(item=["a", "b", "c"], value=values)
    assert gold.graded is graded
    metrics = evaluate_scores([1, 2, 3], gold.items, gold).table()["metric"].to_list()
    assert metrics == AGREEMENT + (RELEVANCE if graded else [])


def test_values_of_which_smaller_is_better_are_turned_round_and_are_not_grades() -> None:
    gold = Gold.of(item=["first", "second"], value=[0, 1], larger_is_better=False)
    assert not gold.graded
    assert evaluate_scores([2, 1], gold.items, gold).accuracy == 1


def test_the_user_can_say_whether_values_are_grades() -> None:
    stars = Gold.of(item=["a", "b"], value=[5, 1], graded=True)
    assert evaluate_scores([1, 2], stars.items, stars, threshold=3).average_precision == 0.5
    assert evaluate_scores([1, 2], stars.items, stars).ndcg == pytest.approx(ndcg([1, 2], [5, 1]))
    order = Gold.of(item=["a", "b"], value=[0, 1], graded=False)
    assert evaluate_scores([1, 2], order.items, order).table()["metric"].to_list() == AGREEMENT
    with pytest.raises(DataError, match="Grades must not be negative with larger being better, got -2"):
        Gold.of(item=["a", "b"], value=[1, 2], larger_is_better=False, graded=True)


def test_grades_above_ten_have_linear_gain() -> None:
    percent = Gold.of(item=["a", "b"], value=[80, 40], graded=True)
    assert evaluate_scores([1, 2], percent.items, percent).ndcg == pytest.approx(ndcg([1, 2], [80, 40], gain="linear"))


def test_a_misspelt_metric_names_the_nearest() -> None:
    found = evaluate_scores(*two_queries())
    with pytest.raises(AttributeError, match="No metric named 'acuracy' here; did you mean 'accuracy'"):
        _ = found.acuracy


def test_relevance_metrics_are_absent_without_grades() -> None:
    gold = Gold.of(item=["a", "b"], value=[1.5, 0.5])
    assert not hasattr(evaluate_scores([2, 1], gold.items, gold), "rbp")


def test_an_evaluation_survives_copying_and_pickling() -> None:
    found = evaluate_scores(*two_queries())
    for twin in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert twin.measures == found.measures
        assert twin.accuracy == found.accuracy


def test_gold_and_evaluation_cannot_be_changed() -> None:
    scores, items, gold = two_queries()
    with pytest.raises(AttributeError):
        gold.graded = False  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        gold.value[0] = 9
    with pytest.raises(AttributeError):
        evaluate_scores(scores, items, gold).k = 3  # type: ignore[misc]


def test_gold_refuses_two_truths_for_one_item() -> None:
    with pytest.raises(DataError, match="Row 3: item a already has gold"):
        Gold.of(item=["a", "b", "a"], value=[1, 2, 1])
    with pytest.raises(DataError, match=r"Row 2: item a \(q\) already has gold"):
        Gold.of(item=["a", "a"], value=[1, 2], query=["q", "q"])


def test_gold_refuses_missing_values_and_empty_columns() -> None:
    with pytest.raises(DataError, match="Row 2: value must be a finite number, got nan"):
        Gold.of(item=["a", "b"], value=[1, np.nan])
    with pytest.raises(DataError, match="The gold is empty"):
        Gold.of(item=[], value=[])


def test_says_why_nothing_matches() -> None:
    named = Gold.of(item=["a", "b"], value=[1, 2], query=["q", "q"])
    plain = Gold.of(item=["a", "b"], value=[1, 2])
    other = Gold.of(item=["A", "B"], value=[1, 2])
    with pytest.raises(DataError, match=r"judgments have queries and the gold does not; pass query= to Gold.of"):
        evaluate_scores([1, 2], named.items, plain)
    with pytest.raises(DataError, match="drop the query of the gold"):
        evaluate_scores([1, 2], plain.items, named)
    with pytest.raises(DataError, match="None of the 2 items has gold: for example, 'a' was judged and 'A'"):
        evaluate_scores([1, 2], plain.items, other)


def test_scores_must_be_one_number_per_item() -> None:
    gold = Gold.of(item=["a", "b"], value=[1, 2])
    with pytest.raises(DataError, match="one score per item, got 3 scores for 2 items"):
        evaluate_scores([1, 2, 3], gold.items, gold)
    with pytest.raises(DataError, match="Row 1: scores must be a number, got nan"):
        evaluate_scores([np.nan, 1], gold.items, gold)
    with pytest.raises(SettingError, match="k must be"):
        evaluate_scores([1, 2], gold.items, gold, k=0)


def test_gold_and_evaluation_show_what_they_hold() -> None:
    scores, items, gold = two_queries()
    assert repr(gold) == "Gold(6 grades in 2 queries)"
    assert "accuracy=0.500" in repr(evaluate_scores(scores, items, gold))
    assert "5 of 6 items have gold" in repr(evaluate_scores(scores, items, gold))


def ranking_and_values():
    ranking = BradleyTerry().fit(Comparisons.of(["a", "b", "a"] * 3, ["b", "c", "c"] * 3, ["a", "b", "a"] * 3))
    return ranking, {"a": 30.5, "b": 20.0, "c": 10.0}


def test_a_ranking_is_evaluated_against_gold_from_any_source(tmp_path) -> None:
    ranking, values = ranking_and_values()
    frame = pl.DataFrame({"item": list(values), "value": list(values.values())})
    frame.write_csv(tmp_path / "gold.csv")
    gold = Gold.of(list(values), list(values.values()))
    expected = evaluate_scores(ranking.scores, ranking.items, gold)
    for source in (gold, values, frame, frame.to_pandas(), tmp_path / "gold.csv", str(tmp_path / "gold.csv")):
        assert str(evaluate(ranking, source).measures) == str(expected.measures)


def test_a_dict_may_have_pairs_of_query_and_item_as_keys() -> None:
    gold = Gold.read({("p", "a"): 1.5, ("p", "b"): 0.5, ("q", "a"): 2.5})
    assert gold.items.queries.tolist() == ["p", "q"]
    assert len(gold) == 3


def test_the_table_comes_as_the_kind_of_frame_of_the_judgments() -> None:
    votes = Comparisons.of(["a", "b"], ["b", "a"], ["a", "a"], frame_backend="pandas")
    assert type(evaluate(BradleyTerry().fit(votes), {"a": 2.5, "b": 1.5}).table()).__module__.startswith("pandas")
