"""One leaderboard per category or per criterion, and the overall of them."""

import json

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.pipeline import RankOptions, run
from crowdrank.pipeline.categories import with_weighted_overall
from crowdrank.reports import Leaderboard, leaderboard_html
from crowdrank.results import Ranking, board_table, category_differences, criterion_correlations
from crowdrank.results.categories import _correlation
from tests.pipeline.arenas import NAMES, QUALITY, arena_by_category


@pytest.fixture(scope="module")
def arena():
    columns, _ = arena_by_category(1, spread=0.8, votes=1500)
    return pl.DataFrame(columns)


@pytest.fixture(scope="module")
def ranking(arena):
    return cr.rank(arena, by="topic")


def criteria_table(seed=3, votes=900):
    """Two criteria that disagree, as two columns of winners and as one row per criterion."""
    rng = np.random.default_rng(seed)
    left = rng.integers(8, size=votes)
    right = (left + rng.integers(1, 8, size=votes)) % 8
    winners = {}
    for name, sign in (("helpful", 1.0), ("harmless", -0.6)):
        won = rng.random(votes) < 1 / (1 + np.exp(-sign * (QUALITY[left] - QUALITY[right])))
        winners[name] = np.where(won, NAMES[left], NAMES[right])
    wide = pl.DataFrame({"left": NAMES[left], "right": NAMES[right], **winners})
    long = wide.unpivot(index=["left", "right"], on=list(winners), variable_name="criterion", value_name="winner")
    return wide, long


def test_categories_are_queries_of_the_ranking_with_an_overall(arena, ranking):
    assert ranking.items.queries.tolist() == [f"topic {n}" for n in range(4)]
    assert sorted(ranking.overall) == NAMES.tolist()
    assert ranking.model == "bradley-terry"
    assert ranking.settings["pooling"] == "partial"
    assert ranking.overall.n_judgments.sum() == 2 * arena.height
    table = board_table(ranking)
    assert table["category"].unique(maintain_order=True)[0] == "overall"
    assert table.height == 5 * 8
    assert board_table(ranking.overall).equals(ranking.overall.to_polars())


def test_votes_in_memory_are_ranked_by_a_column_of_theirs(arena, ranking):
    votes = cr.Comparisons.of(arena["left"], arena["right"], arena["winner"], features={"topic": arena["topic"]})
    np.testing.assert_allclose(cr.rank(votes, by="topic").scores, ranking.scores)
    named = cr.Comparisons.of(arena["left"], arena["right"], arena["winner"], query=arena["topic"])
    np.testing.assert_allclose(cr.rank(named, by="query").scores, ranking.scores)
    with pytest.raises(DataError, match="no column"):
        cr.rank(votes, by="language")


def test_a_scale_is_that_of_the_overall(arena):
    ranking = cr.rank(arena, by="topic", score_scale="elo", anchors={"m3": 1100}, min_comparisons=40)
    assert ranking.overall["m3"].score == pytest.approx(1100)
    assert ranking.scale == ranking.overall.scale
    assert ranking.provisional is not None
    assert ranking.overall.provisional is None
    largest = category_differences(ranking)["difference"].abs().max()
    assert 10 < largest < 600
    with pytest.raises(UnknownNameError):
        cr.rank(arena, by="topic", score_scale="elo", anchors={"m99": 1100})


def test_saving_keeps_the_overall(ranking, tmp_path):
    ranking.save(tmp_path / "r.json")
    again = Ranking.load(tmp_path / "r.json")
    np.testing.assert_allclose(again.overall.scores, ranking.overall.scores)
    assert category_differences(again).equals(category_differences(ranking))


def test_annotators_count_alike_and_that_is_said(arena):
    named = arena.with_columns(annotator=pl.Series(["ann", "bob", "cat"] * (arena.height // 3)))
    result = run(named, RankOptions(by="topic"))
    assert "quality of annotators is not modelled" in result.choice.reason
    with pytest.raises(SettingError, match="crowd-bt does not pool categories"):
        cr.rank(named, by="topic", model="crowd-bt")


def test_lists_by_category_are_noted_as_dependent():
    rng = np.random.default_rng(4)
    orders = [">".join(NAMES[np.argsort(-(QUALITY + rng.normal(size=8)))]) for _ in range(60)]
    ranking = cr.rank({"order": orders, "kind": ["x", "y"] * 30}, by="kind")
    assert any("not independent" in note for note in ranking.notes)
    assert ranking.overall.rank[0] <= 2


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"by": "topic", "criteria": "topic"}, "cannot be combined"),
        ({"by": "topic", "query": "left"}, "query="),
        ({"by": "topic", "cluster": "topic"}, "cluster="),
        ({"by": "topic", "features": ["position"], "control": True}, "control=True"),
        ({"by": "topic", "uncertainty": "bootstrap"}, "bootstrap"),
        ({"by": "topic", "model": "auto"}, "auto"),
        ({"weights": {"a": 1}}, "criteria="),
        ({"criteria": "topic", "weights": {"topic 0": -1}}, "zero or more"),
    ],
)
def test_what_cannot_be_combined_is_refused(arena, options, problem):
    with pytest.raises(SettingError, match=problem):
        cr.rank(arena, **options)


def test_a_single_category_is_refused(arena):
    with pytest.raises(DataError, match="at least two different values"):
        cr.rank(arena.with_columns(topic=pl.lit("one")), by="topic")


def test_the_command_shows_overall_categories_and_differences(crowdrank, arena, tmp_path):
    file = tmp_path / "arena.csv"
    arena.write_csv(file)
    shown = crowdrank(
        "rank", file, "--by", "topic", "--leaderboard", tmp_path / "board", "--out", tmp_path / "o.csv"
    ).out
    assert shown.index("overall") < shown.index("topic 0") < shown.index("difference")
    written = pl.read_csv(tmp_path / "o.csv")
    assert written.columns[0] == "category"
    assert written.height == 40
    page = (tmp_path / "board" / "index.html").read_text(encoding="utf-8")
    assert 'value="overall" selected' in page
    found = json.loads(crowdrank("rank", file, "--by", "topic", "--json").out)
    assert {row["category"] for row in found["differences"]} == {f"topic {n}" for n in range(4)}
    assert len(found["overall"]) == 8


def test_a_page_without_an_overall_shows_all(arena):
    page = leaderboard_html(Leaderboard(ranking=cr.rank(arena, query="topic")))
    assert "selected" not in page
    assert "<option" in page


def test_criteria_are_ranked_and_weighted():
    wide, long = criteria_table()
    by_column = cr.rank(wide, criteria=["helpful", "harmless"], weights={"helpful": 3, "harmless": 1})
    by_row = cr.rank(long, criteria="criterion", weights={"helpful": 3, "harmless": 1})
    np.testing.assert_allclose(by_column.scores, by_row.scores)
    own = by_row.scores.reshape(2, 8)
    np.testing.assert_allclose(by_row.overall.scores, 0.25 * own[0] + 0.75 * own[1], atol=1e-12)
    assert by_row.overall.parameters == {"weight_of_harmless": 0.25, "weight_of_helpful": 0.75}
    error = by_row.uncertainty.std_error.reshape(2, 8)
    expected = np.sqrt((0.25 * error[0]) ** 2 + (0.75 * error[1]) ** 2)
    np.testing.assert_allclose(by_row.overall.uncertainty.std_error, expected, rtol=0.15)
    (found,) = criterion_correlations(by_row).to_dicts()
    assert found["high"] < 0
    assert found["items"] == 8
    with pytest.raises(UnknownNameError):
        cr.rank(long, criteria="criterion", weights={"helpfull": 3})


def test_the_overall_leaves_out_items_without_a_criterion():
    _, long = criteria_table()
    seen = long.filter((pl.col("criterion") == "helpful") | ((pl.col("left") != "m0") & (pl.col("right") != "m0")))
    ranking = cr.rank(seen, criteria="criterion")
    assert "m0" not in ranking.overall
    assert any("leaves out 1 of 8 items" in note for note in ranking.overall.notes)
    assert "m0" in cr.rank(seen, criteria="criterion", weights={"harmless": 0}).overall
    with pytest.raises(SettingError, match="all criteria"):
        with_weighted_overall(ranking, {"harmless": 0, "helpful": 0})


def test_the_command_ranks_by_criteria(crowdrank, tmp_path):
    wide, _ = criteria_table()
    wide.write_csv(tmp_path / "votes.csv")
    shown = crowdrank("rank", tmp_path / "votes.csv", "--criteria", "helpful,harmless", "--weight", "helpful=3").out
    assert "The overall score is 25% harmless, 75% helpful." in shown
    assert "correlation" in shown


def test_correlations_are_those_of_true_scores():
    """Errors as large as the scores halve the correlation of the estimates, not the one that is reported."""
    rng, held, reported, raw = np.random.default_rng(8), 0, [], []
    for _ in range(30):
        truth = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=60)
        seen = truth + rng.normal(size=(60, 2))
        value, low, high = _correlation(seen[:, 0], seen[:, 1], np.ones(60), np.ones(60), 0.95)
        held += low <= 0.8 <= high
        reported.append(value)
        raw.append(np.corrcoef(seen.T)[0, 1])
    assert np.mean(raw) < 0.5
    assert abs(np.mean(reported) - 0.8) < 0.15
    assert held >= 25
