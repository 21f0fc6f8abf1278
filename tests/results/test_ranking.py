import json

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

from crowdrank.data import Comparisons, Items
from crowdrank.errors import ConvergenceWarning, DataError, FormatError, SettingError, UnknownNameError
from crowdrank.models import BradleyTerry, WinRate
from crowdrank.results import Convergence, Ranking, Uncertainty

ITEMS = Items(
    np.array(["a", "b", "c", "a", "b"], dtype=object),
    np.array([0, 0, 0, 1, 1], np.int32),
    np.array(["p", "q"], dtype=object),
)


def ranking(scores, items=ITEMS, draws=None, **others):
    scores = np.array(scores, dtype=float)
    measure = None
    if draws is not None:
        draws = np.asarray(draws, dtype=float)
        measure = lambda: Uncertainty(draws, draws.std(axis=0), "by hand")  # noqa: E731
    return Ranking(
        model="by hand",
        settings={"x": 1},
        items=items,
        scores=scores,
        tally=lambda: np.ones(len(scores), np.int64),
        measure=measure,
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
    with pytest.raises(SettingError, match="level must lie between 0 and 1"):
        ranking([1.0, 3.0, 2.0, -1.0, 5.0]).table(level=level)


@pytest.mark.parametrize(("native", "kind"), [("polars", pl.DataFrame), ("pandas", pd.DataFrame)])
def test_the_table_comes_as_the_kind_the_judgments_came_in(native, kind):
    table = BradleyTerry().fit(votes(native)).table()
    assert isinstance(table, kind)
    assert nw.from_native(table).shape == (3, 8)


def test_groups_open_where_an_item_is_surely_below_the_first_of_the_last():
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(2_000, 5)) * 0.5
    # 5 and 4.9 are alike; 3 is surely below 5; 2.6 is not surely below 3; the other query starts again
    found = ranking([5.0, 4.9, 3.0, 3.0, 0.0], draws=draws)
    assert found.groups.tolist() == [1, 1, 2, 1, 2]


def test_a_chain_of_small_steps_is_cut_at_its_own_head():
    """Each is hardly below the one before, yet the last is surely below the first."""
    items = Items.of("abcdef")
    rng = np.random.default_rng(0)
    found = ranking(-0.5 * np.arange(6), items, draws=rng.normal(size=(4_000, 6)) * 0.5)
    assert found.groups.tolist() == [1, 1, 1, 2, 2, 2]


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
    with pytest.raises(DataError, match="by hand: no uncertainty was recorded"):
        _ = ranking([1.0, 3.0, 2.0, -1.0, 5.0]).uncertainty


def test_uncertainty_is_measured_once_and_only_when_asked():
    calls = []

    def measure():
        calls.append(1)
        return Uncertainty(np.zeros((2, 5)), np.zeros(5), "by hand")

    found = Ranking(
        model="m", settings={}, items=ITEMS, scores=np.arange(5.0), tally=lambda: np.ones(5, np.int64), measure=measure
    )
    assert (found.rank[0], calls) == (3, [])
    assert found.uncertainty is found.uncertainty
    assert calls == [1]


def test_repr_tells_the_model_and_its_settings():
    assert repr(ranking([1.0, 3.0, 2.0, -1.0, 5.0])) == "<Ranking of 5 items by by hand(x=1)>"
    assert "bradley-terry(prior_scale=3.0" in repr(BradleyTerry().fit(votes()))


def test_not_converging_is_warned_of():
    with pytest.warns(ConvergenceWarning, match="elsewhere stopped after 3 steps.*: raise max_steps"):
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


def test_saving_without_uncertainty_is_small(tmp_path):
    found = BradleyTerry().fit(votes())
    found.save(tmp_path / "r.json", uncertainty=False)
    again = Ranking.load(tmp_path / "r.json")
    np.testing.assert_array_equal(again.scores, found.scores)
    assert (tmp_path / "r.json").stat().st_size < 2_000
    with pytest.raises(DataError, match="no uncertainty was recorded"):
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
