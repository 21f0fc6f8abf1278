import json
from dataclasses import replace
from itertools import pairwise

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

from crowdrank.data import Comparisons, Items, Ratings
from crowdrank.errors import ConvergenceWarning, DataError, FormatError, SettingError, UnknownNameError
from crowdrank.models import BradleyTerry, CrowdBT, MeanRating, WinRate
from crowdrank.results import Convergence, LazyParts, Ranking, Uncertainty
from crowdrank.simulation import mixed_crowd

ITEMS = Items(
    np.array(["a", "b", "c", "a", "b"], dtype=object),
    np.array([0, 0, 0, 1, 1], np.int32),
    np.array(["p", "q"], dtype=object),
)


def ranking(scores, items=ITEMS, draws=None, **others):
    scores = np.array(scores, dtype=float)
    uncertainty = None
    if draws is not None:
        draws = np.asarray(draws, dtype=float)
        uncertainty = lambda: Uncertainty(draws, draws.std(axis=0), "by hand")  # noqa: E731
    return Ranking(
        model="by hand",
        settings={"x": 1},
        items=items,
        scores=scores,
        _lazy=LazyParts(n_judgments=lambda: np.ones(len(scores), np.int64), uncertainty=uncertainty),
        **others,
    )


def votes(native="polars"):
    return Comparisons.of(
        ["a", "b", "c", "a", "b"], ["b", "c", "a", "c", "a"], ["a", "b", "c", "a", "b"], frame_backend=native
    )


def test_order_and_rank_go_query_by_query():
    found = ranking([1.0, 3.0, 2.0, -1.0, 5.0])
    assert found.order.tolist() == [1, 2, 0, 4, 3]
    assert found.rank.tolist() == [3, 1, 2, 2, 1]


def test_equal_scores_share_the_better_rank():
    assert ranking([2.0, 2.0, 1.0, 0.0, 0.0]).rank.tolist() == [1, 1, 3, 1, 1]
    assert ranking([1.0, 2.0, 2.0, 0.0, 1.0]).rank.tolist() == [3, 1, 1, 2, 1]


def test_equal_scores_at_a_border_of_queries_do_not_meet():
    assert ranking([2.0, 1.0, 0.0, 0.0, 0.0]).rank.tolist() == [1, 2, 3, 1, 1]


def test_the_table_is_one_query_when_asked():
    found = ranking([1.0, 3.0, 2.0, -1.0, 5.0])
    table = found.table("q")
    assert table["item"].to_list() == ["b", "a"]
    assert table["query"].to_list() == ["q", "q"]
    assert found.table()["item"].to_list() == ["b", "c", "a", "b", "a"]
    with pytest.raises(UnknownNameError, match="No query named 'r'"):
        found.table("r")


def test_the_table_has_its_columns_in_order():
    assert BradleyTerry().fit(votes()).table().columns == [
        "rank",
        "item",
        "score",
        "std_error",
        "rank_low",
        "rank_high",
        "group",
        "comparisons",
    ]
    assert WinRate().fit(votes()).table(uncertainty=False).columns == ["rank", "item", "score", "comparisons"]


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95])
def test_a_level_is_a_probability(level):
    with pytest.raises(SettingError, match="level must be between 0 and 1"):
        ranking([1.0, 3.0, 2.0, -1.0, 5.0]).table(level=level)


@pytest.mark.parametrize(("native", "kind"), [("polars", pl.DataFrame), ("pandas", pd.DataFrame)])
def test_the_table_comes_as_the_kind_the_judgments_came_in(native, kind):
    table = BradleyTerry().fit(votes(native)).table()
    assert isinstance(table, kind)
    assert nw.from_native(table).shape == (3, 8)


def around(scores, spread, count=2_000):
    return np.asarray(scores) + np.random.default_rng(0).normal(size=(count, len(scores))) * spread


def test_groups_open_where_an_item_is_surely_below_the_first_of_the_last():
    # 5 and 4.9 are alike; 3 is surely below 5; the other query starts again
    scores = [5.0, 4.9, 3.0, 3.0, 0.0]
    assert ranking(scores, draws=around(scores, 0.5)).groups.tolist() == [1, 1, 2, 1, 2]


def test_a_chain_of_small_steps_is_cut_at_its_own_head():
    """Each is hardly below the one before, yet the last is surely below the first."""
    scores = -0.5 * np.arange(6)
    found = ranking(scores, Items.of("abcdef"), draws=around(scores, 0.4))
    assert found.groups.tolist() == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_all_that_groups_claim_is_true_together(unit):
    """The first item of each group is above all later groups; in 95 % of the draws, all of it."""
    scores = -0.15 * np.arange(80) * unit
    items = Items.of([f"i{n:02d}" for n in range(80)])
    draws = around(scores, 0.3 * unit)
    group = ranking(scores, items, draws=draws).groups
    assert group.max() > 3
    assert (np.diff(group) >= 0).all()
    first = np.searchsorted(group, np.arange(1, group.max() + 1))
    claims = [draws[:, a] > draws[:, b:].max(axis=1) for a, b in pairwise(first)]
    assert np.mean(np.all(claims, axis=0)) >= 0.945
    assert min(np.mean(claim) for claim in claims) > 0.96  # so many claims need more than 95 % each


def test_coin_tosses_are_one_group():
    items = Items.of([f"i{n:02d}" for n in range(40)])
    draws = np.random.default_rng(0).normal(size=(1000, 40))
    assert ranking(draws.mean(axis=0), items, draws=draws).groups.max() == 1


def test_probability_asks_for_items_by_name():
    found = BradleyTerry().fit(votes())
    assert found.probability("a", "c") == pytest.approx(1 - found.probability("c", "a"))
    assert found.probability("a", "a") == 0.5
    assert found.probability("a", "c") > 0.5
    with pytest.raises(UnknownNameError, match="No item named 'd'"):
        found.probability("a", "d")


def test_probability_wants_a_query_where_there_are_several():
    found = ranking([1.0, 3.0, 2.0, -1.0, 5.0], draws=np.random.default_rng(0).normal(size=(50, 5)))
    with pytest.raises(DataError, match="There are 2 queries: name one"):
        found.probability("a", "b")
    assert found.probability("a", "b", query="q") < 0.5


def test_without_uncertainty_it_says_so():
    with pytest.raises(DataError, match="ranking by by hand was made or saved without uncertainty"):
        _ = ranking([1.0, 3.0, 2.0, -1.0, 5.0]).uncertainty


def test_uncertainty_is_computed_once_and_only_when_used():
    calls = []

    def compute():
        calls.append(1)
        return Uncertainty(np.zeros((2, 5)), np.zeros(5), "by hand")

    found = ranking(np.arange(5.0)).with_parts(uncertainty=compute)
    assert (found.rank[0], calls) == (3, [])
    assert found.uncertainty is found.uncertainty
    assert calls == [1]


def test_repr_shows_the_model_and_the_best_items():
    found = repr(ranking([1.0, 3.0, 2.0, -1.0, 5.0]))
    assert found == "<Ranking of 5 items in 2 queries by by hand: p: b 3.00, c 2.00, a 1.00, …>"
    assert repr(BradleyTerry().fit(votes())).startswith("<Ranking of 3 items by bradley-terry: ")
    assert repr(ranking(np.arange(7.0), Items.of("abcdefg"))).endswith(": g 6.00, f 5.00, e 4.00, d 3.00, c 2.00, …>")


def test_not_converging_is_warned_of():
    with pytest.warns(
        ConvergenceWarning,
        match=r"elsewhere did not converge in 3 steps \(0.2 standard errors from the optimum\). Increase max_steps",
    ):
        Convergence(False, 3, 0.2).warn("elsewhere")
    Convergence(True, 3, 0.2).warn("elsewhere")


def test_what_was_saved_is_read_again(tmp_path):
    found = BradleyTerry(prior_scale=None).fit(votes())
    found.save(tmp_path / "r.json")
    again = Ranking.load(tmp_path / "r.json")
    assert again.table().equals(found.table())
    assert again.notes == found.notes
    assert again.settings["prior_scale"] is None
    assert again.uncertainty.method == found.uncertainty.method
    assert again.probability("a", "b") == pytest.approx(found.probability("a", "b"), abs=1e-6)


def test_simultaneous_intervals_are_wider_and_remembered(tmp_path):
    found = BradleyTerry().fit(mixed_crowd(kinds={"good": 8}, items=12, votes_each=30, seed=1).judgments)
    single, together = found.to_polars(), found.to_polars(simultaneous=True)
    assert (together["rank_low"] <= single["rank_low"]).all()
    assert (together["rank_high"] >= single["rank_high"]).all()
    assert not together.equals(single)
    published = replace(found, simultaneous=True)
    assert published.to_polars().equals(together)
    assert published.to_polars(simultaneous=False).equals(single)
    published.save(tmp_path / "r.json")
    assert Ranking.load(tmp_path / "r.json").simultaneous


def test_saving_without_uncertainty_is_small(tmp_path):
    found = BradleyTerry().fit(votes())
    found.save(tmp_path / "r.json", uncertainty=False)
    again = Ranking.load(tmp_path / "r.json")
    np.testing.assert_array_equal(again.scores, found.scores)
    assert (tmp_path / "r.json").stat().st_size < 2_000
    with pytest.raises(DataError, match="without uncertainty"):
        _ = again.uncertainty


@pytest.mark.parametrize("content", ["", "{}", "[1]", "not json", '{"crowdrank_ranking": 999}'])
def test_other_files_are_refused(content, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(content)
    with pytest.raises(FormatError, match="not a ranking saved by crowdrank|version 999"):
        Ranking.load(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(FormatError, match=r"nowhere\.json is not a ranking"):
        Ranking.load(tmp_path / "nowhere.json")


def test_saved_files_are_plain_json(tmp_path):
    BradleyTerry().fit(votes()).save(tmp_path / "r.json")
    content = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert content["item"] == ["a", "b", "c"]
    assert content["model"] == "bradley-terry"


def test_a_ranking_is_a_small_mapping():
    found = ranking([1.0, 3.0, 2.0], Items.of("abc"), draws=np.tile([1.0, 3.0, 2.0], (40, 1)))
    assert len(found) == 3
    assert list(found) == ["b", "c", "a"]
    assert "a" in found
    assert "d" not in found
    row = found["c"]
    assert (row.rank, row.item, row.score, row.std_error) == (2, "c", 2.0, 0.0)
    assert (row.rank_low, row.rank_high, row.group, row.query) == (2, 2, 2, None)
    with pytest.raises(AttributeError):
        row.rank = 1


def test_a_row_has_no_errors_without_uncertainty():
    assert ranking([1.0, 2.0, 3.0], Items.of("abc"))["a"].std_error is None


def test_items_of_queries_are_found_by_pairs_or_alone_if_unambiguous():
    found = ranking([1.0, 3.0, 2.0, -1.0, 5.0])
    assert list(found) == [("p", "b"), ("p", "c"), ("p", "a"), ("q", "b"), ("q", "a")]
    assert found["q", "a"].rank == 2
    assert found["c"].query == "p"
    assert ("q", "c") not in found
    with pytest.raises(KeyError, match=r"'a' is an item of 2 queries: name the query too, as in ranking\['p', 'a'\]"):
        found["a"]
    with pytest.raises(UnknownNameError, match="No query named 'x'"):
        found["x", "a"]
    with pytest.raises(UnknownNameError, match="No item named 'c'"):
        found["q", "c"]


def test_a_misspelt_item_suggests_the_nearest():
    found = BradleyTerry().fit(Comparisons.of(["Tokyo", "Delhi"], ["Delhi", "Tokyo"], ["Tokyo", "Tokyo"]))
    with pytest.raises(UnknownNameError, match="No item named 'Tokio'; did you mean 'Tokyo'"):
        found["Tokio"]


def test_a_notebook_shows_an_escaped_table_with_the_notes():
    shown = Comparisons.of(["<b>", "a", "c", "a"] * 4, ["a", "<b>", "d", "<b>"] * 4, ["a", "a", "c", "<b>"] * 4)
    with pytest.warns(match="never compared"):
        found = BradleyTerry().fit(shown)
    page = found._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b></td>" not in page
    for head in ("rank", "item", "score", "± error", "rank interval", "group"):
        assert f"<th>{head}</th>" in page
    assert found.notes
    assert page.count("<li>") == len(found.notes)
    assert "± error" not in found.without_uncertainty()._repr_html_()


def test_a_notebook_shows_the_best_items_of_the_first_queries():
    items = Items(
        np.array([f"i{n}" for n in range(100)], dtype=object),
        np.repeat(np.arange(4), 25).astype(np.int32),
        np.array(["p", "q", "r", "s"], dtype=object),
    )
    page = ranking(np.arange(100.0), items)._repr_html_()
    assert page.count("<caption>") == 3
    assert "… and 5 more" in page
    assert "… and 1 more queries" in page


def crowd(native="polars"):
    made = mixed_crowd(kinds={"good": 8, "reversed": 3}, items=12, votes_each=40, seed=1)
    return replace(made.judgments, frame_backend=native), made.annotators["kind"]


def test_notes_name_reversed_annotators_and_failed_convergence(tmp_path):
    judgments, kind = crowd()
    names = ", ".join(map(str, judgments.annotators[kind == "reversed"]))
    found = CrowdBT().fit(judgments)
    sentence = f"3 annotators appear to answer in reverse, so their answers count in the opposite direction: {names}."
    assert found.notes[-1] == sentence
    found.save(tmp_path / "r.json")
    assert Ranking.load(tmp_path / "r.json").notes == found.notes
    with pytest.warns(ConvergenceWarning):
        stopped = CrowdBT(estimation="joint", max_steps=1).fit(judgments)
    assert stopped.notes[0].startswith("crowd-bt did not converge in 1 steps (")


def test_annotators_are_found_by_name_and_estimates_by_theirs():
    judgments, _ = crowd()
    found = CrowdBT().fit(judgments).annotators
    name = str(judgments.annotators[2])
    assert name in found
    row = found[name]
    assert row.annotator == name
    assert row.n_judgments == 40
    assert row["quality"].value == found.estimate("quality")[2] == found["quality"][2]
    assert row["quality"].low <= row["quality"].value <= row["quality"].high
    with pytest.raises(UnknownNameError, match=f"No annotator named '{name}x'; did you mean '{name}'"):
        found[f"{name}x"]
    with pytest.raises(UnknownNameError, match="did you mean 'quality'"):
        found.estimate("qualty")


def test_verdicts_are_those_on_the_judgments_of_the_fit():
    judgments, kind = crowd()
    found = CrowdBT().fit(judgments).verdicts(seed=0)
    assert set(found.verdict[kind == "reversed"]) == {"reversed"}
    grades = Ratings.of(["a", "b", "a", "b"], [1, 2, 1, 3], annotator=["x", "x", "y", "y"])
    with pytest.raises(DataError, match="need comparisons that annotators made one by one, got Ratings"):
        MeanRating().fit(grades).verdicts()


def test_a_loaded_ranking_does_not_know_its_judgments(tmp_path):
    BradleyTerry().fit(votes()).save(tmp_path / "r.json")
    with pytest.raises(DataError, match="has no judgments"):
        Ranking.load(tmp_path / "r.json").verdicts()


def test_every_table_comes_as_the_kind_the_judgments_came_in():
    found = CrowdBT().fit(crowd("pandas")[0])
    tables = (found.table(), found.annotators.frame(), found.verdicts().frame(), found.to_pandas())
    assert all(isinstance(table, pd.DataFrame) for table in tables)
    assert all(isinstance(table, pl.DataFrame) for table in (found.to_polars(), found.annotators.to_polars()))


def test_a_ranking_says_what_it_has():
    found = BradleyTerry().fit(votes())
    assert (found.has_uncertainty, found.has_annotators, found.has_domains) == (True, False, False)
    assert not found.without_uncertainty().has_uncertainty
    with pytest.raises(DataError, match="bradley-terry has no estimates of annotators"):
        _ = found.annotators


def test_a_report_is_written(tmp_path):
    BradleyTerry().fit(votes()).report(tmp_path / "r.html", title="Three letters")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<h1>Three letters</h1>" in page
    assert 'id="calibration"' in page


def test_uncertainty_does_not_show_its_draws():
    assert repr(BradleyTerry().fit(votes()).uncertainty) == (
        "<Uncertainty: 1,000 draws of 3 scores by Laplace approximation, averaged over the spread of scores>"
    )
