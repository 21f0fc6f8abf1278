"""Terminal tables."""

from __future__ import annotations

import io

import polars as pl
from rich.console import Console

from crowdrank import BradleyTerry, Comparisons, Gold, Rankings, Ratings, evaluate
from crowdrank.reports import annotators_table, evaluation_table, facts, ranking_tables

VOTES = Comparisons.of(
    query=["x", "x", "y"],
    left=["a", "b", "a"],
    right=["b", "a", "[bold]c"],
    winner=["a", "a", "[bold]c"],
    annotator=["ann", "bob", "ann"],
)


def shown(*renderables: object, width: int = 100) -> str:
    page = io.StringIO()
    console = Console(file=page, width=width)
    for renderable in renderables:
        console.print(renderable)
    return page.getvalue()


def test_each_query_has_its_table():
    tables = list(ranking_tables(BradleyTerry().fit(VOTES), top=5))
    assert len(tables) == 2
    page = shown(*tables)
    assert page.index("x") < page.index("y")
    assert "ranks (95%)" in page


def test_labels_are_shown_as_they_are_not_as_markup():
    assert "[bold]c" in shown(*ranking_tables(BradleyTerry().fit(VOTES), top=5))


def test_only_the_best_are_shown_and_the_rest_counted():
    table = next(iter(ranking_tables(BradleyTerry().fit(VOTES), top=1)))
    page = shown(table)
    assert "… and 1 more" in page


def test_only_some_queries_are_shown_when_there_are_many():
    assert len(list(ranking_tables(BradleyTerry().fit(VOTES), top=1, queries=1))) == 1


def test_verdicts_and_their_reasons_fit_the_page():
    annotators = {"annotator": ["[bold]ann", "bob"], "quality": [0.9, 0.1], "quality_low": [0.8, 0.0]}
    annotators |= {"quality_high": [1.0, 0.2], "judgments": [12, 3000]}
    plain = pl.DataFrame(annotators)
    reason = "agreed with the others on 31 of 120 answers: below half (p < 0.001)"
    with_verdicts = plain.with_columns(verdict=pl.Series(["reliable", "different taste"]), reason=pl.lit(reason))
    assert "verdict" not in shown(annotators_table(plain, top=1))
    page = shown(annotators_table(with_verdicts, top=1), width=80)
    assert max(map(len, page.splitlines())) <= 80
    assert "[bold]ann" in page
    assert "different taste" in page
    assert page.count(f"\n  {reason}") == 2
    assert len(page.splitlines()) == 5
    assert "p_" not in shown(annotators_table(with_verdicts.with_columns(p_hasty=0.5), top=1))


def test_long_names_are_cut_and_columns_stay_in_line():
    frame = pl.DataFrame({"annotator": ["x" * 50, "bob", "cem"], "weight_of_position": [0.9, -0.1, 0.0]})
    frame = frame.with_columns(weight_of_position_low=-1.0, weight_of_position_high=1.0, judgments=7)
    lines = shown(annotators_table(frame, top=1)).splitlines()
    assert [line.split()[0] for line in lines if line.startswith("x")] == ["x" * 39 + "…"]
    assert "x" * 50 in shown(annotators_table(frame, top=1, wide=True))
    assert "… and 1 more" in lines
    assert len({line.index("–") for line in lines if "–" in line}) == 1


def test_metrics_have_errors_where_there_are_several_queries():
    ranking = BradleyTerry().fit(VOTES)
    gold = Gold.of(item=["a", "b", "a", "[bold]c"], value=[2, 1, 0, 1], query=["x", "x", "y", "y"])
    page = shown(evaluation_table(evaluate(ranking, gold)))
    assert "accuracy" in page
    assert "± error" in page
    assert "ndcg@10" in page


def test_facts_count_what_was_said():
    assert facts(VOTES) == "3 comparisons of 4 items in 2 queries by 2 annotators"
    assert facts(Ratings.of(["a"], [1])) == "1 grade of 1 item"
    assert facts(Rankings.of_lists([[["a"], ["b"]]])) == "1 list of 2 items"
