"""Scales, anchors, links between sessions, aliases and provisional items."""

import json

import numpy as np
import pytest

import crowdrank as cr
from crowdrank import BradleyTerry, Comparisons, Rankings, Ratings, Thurstone
from crowdrank.errors import DataError, DataWarning, SettingError, UnknownNameError
from crowdrank.pipeline.publishing import with_aliases, without_annotators
from crowdrank.results import Ranking, best_items, make_scale
from tests.pipeline.arenas import styled_arena

VOTES = styled_arena(1, effect=0.0)


@pytest.mark.parametrize("model", [BradleyTerry(), Thurstone()])
def test_elo_points_give_the_probability_of_the_model(model):
    ranking = model.fit(VOTES)
    elo = make_scale(ranking, "elo").show(ranking.scores)
    assert elo.mean() == pytest.approx(1000)
    pair = VOTES.take([0])
    expected = model.predict(ranking, pair)[0, 0]
    points = elo[pair.left[0]] - elo[pair.right[0]]
    # Elo is logistic: exact for bradley-terry, and close to the probit link of thurstone
    assert 1 / (1 + 10 ** (-points / 400)) == pytest.approx(expected, abs=1e-9 if model == BradleyTerry() else 0.02)


@pytest.mark.parametrize("model", [BradleyTerry(), Thurstone()])
def test_one_jod_wins_three_times_in_four(model):
    ranking = model.fit(VOTES)
    unit = 1 / make_scale(ranking, "jod").factor
    probability = make_scale(ranking, "probability")
    assert probability.show(np.array([unit, 0.0]))[0] == pytest.approx(0.75)
    error = probability.show_error(ranking.scores, np.ones(8))
    slope = (probability.show(ranking.scores + 1e-3) - probability.show(ranking.scores - 1e-3)) / 2e-3
    np.testing.assert_allclose(error, slope, rtol=1e-4)


def test_anchors_have_their_values_and_ranks_do_not_change():
    plain = cr.rank(VOTES)
    anchored = cr.rank(VOTES, score_scale="elo", anchors={"m3": 1000})
    assert anchored["m3"].score == pytest.approx(1000)
    assert list(anchored) == list(plain)
    np.testing.assert_array_equal(anchored.scores, plain.scores)
    factor = 400 / np.log(10)
    np.testing.assert_allclose(anchored.to_polars()["std_error"], factor * plain.to_polars()["std_error"])
    two = cr.rank(VOTES, score_scale="elo", anchors={"m3": 1000, "m4": 1100})
    assert two["m3"].score + two["m4"].score == pytest.approx(2100)


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"anchors": {"m3": 1000}}, SettingError, "anchors= needs score_scale="),
        ({"score_scale": "elo", "anchors": {"m33": 1000}}, UnknownNameError, "m33"),
        ({"score_scale": "probability", "anchors": {"m3": 1}}, SettingError, "anchors="),
        ({"score_scale": "elos"}, UnknownNameError, "elo"),
        ({"score_scale": "elo", "model": "borda"}, SettingError, "borda give an order but not the probability"),
        ({"min_comparisons": 10**6}, DataError, "No item has 1,000,000 comparisons"),
        ({"aliases": {"x": "y"}}, UnknownNameError, "'x'"),
        ({"exclude": "ann"}, DataError, "exclude= names annotators"),
    ],
)
def test_what_cannot_be_shown_is_refused(options, error, reason):
    with pytest.raises(error, match=reason):
        cr.rank(VOTES, **options)


def test_a_session_is_linked_to_the_scale_of_another():
    before = cr.rank(VOTES, score_scale="elo", anchors={"m0": 1500})
    later = Comparisons.of(*(np.where(c == "m7", "new", c) for c in columns_of(styled_arena(2, effect=0.0))))
    after = cr.rank(later, score_scale="elo", link_to=before)
    common = [f"m{n}" for n in range(7)]
    assert np.mean([after[name].score - before[name].score for name in common]) == pytest.approx(0, abs=3)
    assert after["new"].score == pytest.approx(before["m7"].score, abs=60)
    assert "Linked to the earlier ranking by 7 items. None of them changed significantly." in after.notes


def test_a_link_names_the_items_that_have_changed(tmp_path):
    cr.rank(VOTES).save(tmp_path / "before.json")
    swapped = {"m1": "m6", "m6": "m1"}
    later = Comparisons.of(*([swapped.get(name, name) for name in c] for c in columns_of(styled_arena(2, effect=0.0))))
    after = cr.rank(later, link_to=tmp_path / "before.json")
    assert any("Significant changes: m1, m6." in note for note in after.notes)
    with pytest.raises(SettingError, match="on the scale 'score', not 'elo'"):
        cr.rank(later, link_to=tmp_path / "before.json", score_scale="elo")
    with pytest.raises(DataError, match="there are none"):
        cr.rank(Comparisons.of(["x", "y"] * 5, ["y", "z"] * 5, ["x", "z"] * 5), link_to=tmp_path / "before.json")


def columns_of(votes):
    frame = votes.to_polars()
    return [np.array(frame[name].to_list(), dtype=object) for name in ("left", "right", "winner")]


def test_items_with_few_comparisons_are_set_apart(tmp_path):
    fewest = int(np.sort(cr.rank(VOTES).n_judgments)[2])
    whole, ranking = cr.rank(VOTES, score_scale="elo"), cr.rank(VOTES, score_scale="elo", min_comparisons=fewest)
    assert len(ranking) == 6
    assert len(ranking.provisional) == 2
    assert sorted([*ranking, *ranking.provisional]) == sorted(whole)
    assert [row["rank"] for row in ranking.to_polars().to_dicts()] == list(range(1, 7))
    for name in ranking:
        assert ranking[name].score == whole[name].score
        assert ranking[name].std_error == whole[name].std_error
    ranking.save(tmp_path / "board.json")
    again = Ranking.load(tmp_path / "board.json")
    assert again.to_polars().equals(ranking.to_polars())
    assert list(again.provisional) == list(ranking.provisional)


def test_the_command_lists_provisional_items_apart(crowdrank, tmp_path):
    file = tmp_path / "votes.csv"
    VOTES.to_polars().write_csv(file)
    words = ("--scale", "elo", "--anchor", "m0=1500", "--min-comparisons", 1000, "--alias", "m1=first")
    shown = crowdrank("rank", file, *words)
    assert (shown.code, shown.err) == (0, "")
    assert "Provisional, with fewer than 1,000 comparisons:" in shown.out
    assert "1500" in shown.out
    found = json.loads(crowdrank("rank", file, *words, "--json", "--report", tmp_path / "r.html").out)
    names = [row["item"] for row in found["ranking"] + found["provisional"]]
    assert len(names) == 8
    assert "first" in names
    assert "m1" not in names
    assert found["scale"]["name"] == "elo"
    assert found["best"] == [found["ranking"][0]["item"]]
    wrong = crowdrank("rank", file, "--scale", "elo", "--anchor", "m0=high")
    assert "--anchor takes a number" in wrong.err


def test_aliases_make_two_items_one():
    votes = Comparisons.of(["a", "a2", "a", "c"], ["b", "b", "a2", "a2"], ["a", "b", "a", "c"], annotator=list("wxyz"))
    with pytest.warns(DataWarning, match="left out 1 comparison of an item with itself"):
        renamed = with_aliases(votes, {"a2": "a"})
    rows = renamed.to_polars().select("left", "right", "winner").rows()
    assert rows == [("a", "b", "a"), ("a", "b", "b"), ("c", "a", "c")]
    ratings = Ratings.of(item=["a", "a2"], grade=[1, 2], annotator=["x", "y"])
    assert with_aliases(ratings, {"a2": "a"}).items.labels.tolist() == ["a"]
    lists = Rankings.of_lists([[["a"], ["b"]], [["c"], ["a"]]])
    assert with_aliases(lists, {"c": "z"}).items.labels.tolist() == ["a", "b", "z"]
    with pytest.raises(DataError, match="two items of ranked lists"):
        with_aliases(lists, {"c": "b"})


def test_annotators_are_excluded_with_the_items_that_nobody_else_judged(crowdrank, tmp_path):
    votes = Comparisons.of(["a", "a", "c"], ["b", "b", "b"], ["a", "b", "c"], annotator=["ann", "bob", "bob"])
    rest = without_annotators(votes, ["bob"])
    assert (rest.items.labels.tolist(), rest.annotators.tolist(), len(rest)) == (["a", "b"], ["ann"], 1)
    with pytest.raises(UnknownNameError, match="did you mean 'ann'"):
        without_annotators(votes, ["anne"])
    with pytest.raises(DataError, match="all annotators"):
        without_annotators(votes, ["ann", "bob"])
    votes.to_polars().write_csv(tmp_path / "votes.csv")
    found = json.loads(crowdrank("rank", tmp_path / "votes.csv", "--exclude", "bob", "--json").out)
    assert [row["item"] for row in found["ranking"]] == ["a", "b"]


def test_the_best_items_hold_the_best_one():
    held = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        quality = rng.normal(size=6)
        left, right = np.array([rng.permutation(6)[:2] for _ in range(90)]).T
        won = rng.random(90) < 1 / (1 + np.exp(quality[right] - quality[left]))
        votes = Comparisons.of(left, right, np.where(won, left, right))
        best = best_items(BradleyTerry().fit(votes))
        assert 1 <= len(best) <= 6
        held += str(int(np.argmax(quality))) in best
    assert held >= 36
