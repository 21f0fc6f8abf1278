"""Resampling counts has the same moments as resampling rows."""

import numpy as np
import pytest

from crowdrank.data import Comparisons, Items, Rankings, Ratings
from crowdrank.models import BradleyTerry, GradedResponse, PlackettLuce, WinRate
from crowdrank.models.bootstrap import (
    FEWEST_ANNOTATORS,
    bootstrap_counts,
    by_annotator,
    count_replicates,
    shrunken_draws,
    weight_replicates,
    with_bootstrap,
)

REPLICATES = 3_000


def votes(annotators=None, weighted=False, seed=0):
    rng = np.random.default_rng(seed)
    left = rng.integers(5, size=120)
    right = (left + rng.integers(1, 5, size=120)) % 5
    who = None if annotators is None else rng.integers(annotators, size=120)
    # annotators differ: the first few always side with the left
    side = rng.random(120) < (0.5 if who is None else np.where(who < (annotators or 0) / 3, 0.95, 0.4))
    winner = np.where(side, left, right)
    return Comparisons.of(
        left.astype(str),
        right.astype(str),
        winner.astype(str),
        annotator=None if who is None else [f"w{a:02d}" for a in who],
        weight=rng.choice([0.5, 1.0, 4.0], 120) if weighted else None,
    )


def net_wins(counts):
    return counts.net_wins


def naive(judgments, units):
    """Draw units with replacement, lay their rows end to end, count again."""
    rng = np.random.default_rng(99)
    names = np.unique(units)
    rows_of = {name: np.flatnonzero(units == name) for name in names}
    draws = []
    for _ in range(REPLICATES):
        chosen = rng.choice(names, size=len(names))
        rows = np.concatenate([rows_of[name] for name in chosen])
        draws.append(judgments.take(rows).counts.net_wins)
    return np.array(draws)


def same_moments(ours, theirs):
    scale = theirs.std(axis=0)
    np.testing.assert_allclose(ours.mean(axis=0), theirs.mean(axis=0), atol=5 * scale.max() * np.sqrt(2 / REPLICATES))
    a, b = np.cov(ours.T), np.cov(theirs.T)
    return np.allclose(a, b, atol=6 * scale.max() ** 2 * np.sqrt(2 / REPLICATES))


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("annotators", [None, 3, 24], ids=["nobody named", "few annotators", "many annotators"])
def test_counts_resample_as_rows_do(annotators, weighted):
    judgments = votes(annotators, weighted)
    units = judgments.annotator if by_annotator(judgments) else np.arange(len(judgments))
    found = count_replicates(judgments, net_wins, 0, REPLICATES)
    assert found.shape == (REPLICATES, 5)
    assert same_moments(found, naive(judgments, units))
    measured = bootstrap_counts(judgments, net_wins, seed=0, replicates=REPLICATES)
    np.testing.assert_allclose(measured.std_error, found.std(axis=0, ddof=1))


def test_annotators_that_differ_make_more_noise_than_rows_alone():
    """The negative control: resampling the wrong unit is told apart."""
    judgments = votes(24)
    by_row = naive(judgments, np.arange(len(judgments)))
    found = count_replicates(judgments, net_wins, 0, REPLICATES)
    assert not same_moments(found, by_row)


@pytest.mark.parametrize("annotators", [None, 24], ids=["rows", "annotators"])
def test_refitting_on_weights_is_refitting_on_rows(annotators):
    judgments = votes(annotators)
    units = judgments.annotator if by_annotator(judgments) else np.arange(len(judgments))
    found = weight_replicates(judgments, lambda w: judgments.reweighted(w).counts.net_wins, 0, REPLICATES)
    assert same_moments(found, naive(judgments, units))


def test_batches_are_as_good_as_one(monkeypatch):
    from crowdrank.models import bootstrap as file

    judgments = votes(24)
    monkeypatch.setattr(file, "_CELLS_AT_ONCE", 100)
    found = count_replicates(judgments, net_wins, 0, REPLICATES)
    assert found.shape == (REPLICATES, 5)
    assert same_moments(found, naive(judgments, judgments.annotator))


def test_says_over_what_it_resampled():
    assert WinRate().fit(votes()).uncertainty.method == "bootstrap over 120 judgments"
    assert WinRate().fit(votes(3)).uncertainty.method == "bootstrap over 120 judgments"
    assert WinRate().fit(votes(24)).uncertainty.method == "bootstrap over 24 annotators"
    assert FEWEST_ANNOTATORS == 10


def test_lists_are_resampled_whole():
    lists = Rankings.of_lists([[["a"], ["b"]], [["b"], ["a"]], [["a"], ["b"]], [["a"], ["b"]]])
    found = weight_replicates(lists, lambda w: np.array([w.sum(), np.count_nonzero(w)]), 0, 500)
    assert (found[:, 0] == 4).all()
    assert found[:, 1].max() <= 4
    assert found[:, 1].mean() == pytest.approx(4 * (1 - (3 / 4) ** 4), abs=0.15)


def test_a_seed_decides_the_replicates():
    judgments = votes(24)
    one, two, other = (bootstrap_counts(judgments, net_wins, seed=s, replicates=20).draws for s in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


def test_any_model_can_be_bootstrapped():
    judgments = votes()
    model = BradleyTerry()
    ranking = model.fit(judgments)
    again = with_bootstrap(model, judgments, ranking, replicates=60)
    assert again.uncertainty.method == "bootstrap over 120 judgments, 60 resamples"
    assert again.uncertainty.draws.shape == (1000, 5)
    np.testing.assert_array_equal(again.scores, ranking.scores)
    np.testing.assert_allclose(again.uncertainty.std_error, ranking.uncertainty.std_error, rtol=0.4)


def test_what_a_resample_tears_apart_is_no_news_of_the_data():
    """Nothing warns: the chain itself hangs together."""
    chain = Comparisons.of(["a", "b", "c", "d"], ["b", "c", "d", "e"], ["a", "b", "c", "d"])
    model = BradleyTerry()
    again = with_bootstrap(model, chain, model.fit(chain), replicates=20)
    assert np.isfinite(again.uncertainty.std_error).all()


@pytest.mark.parametrize("model", [GradedResponse(), PlackettLuce()], ids=["graded-response", "plackett-luce"])
def test_a_resample_that_orders_no_two_items_ties_them(model):
    """Of three judgments, about a third of the resamples hold one grade only, or nothing but ties."""
    if isinstance(model, GradedResponse):
        few = Ratings.of(["a", "b", "b"], [1, 2, 2], annotator=["x", "x", "y"])
    else:
        few = Rankings.of_lists([[["a"], ["b"]], [["a", "b"]], [["a", "b"]]])
    again = with_bootstrap(model, few, model.fit(few), replicates=100)
    assert again.uncertainty.std_error.min() > 0
    assert 0.05 < again.probability("a", "b") < 0.95


def test_the_spread_of_replicates_is_not_taken_for_signal():
    """Estimates as far apart as their errors explain are shrunk together; those far apart stay where they are."""
    rng, items = np.random.default_rng(0), Items.of("abcdefgh")
    counts = np.full(8, 50)
    noise = rng.normal(size=(200, 8))
    alike, apart = (noise + scale * items.centre(rng.normal(size=8)) for scale in (1.0, 20.0))
    kept = shrunken_draws(alike, items, counts, 200, 0).mean(axis=0)
    assert np.linalg.norm(kept) < 0.6 * np.linalg.norm(items.centre(alike).mean(axis=0))
    np.testing.assert_allclose(shrunken_draws(apart, items, counts, 200, 0).mean(axis=0), apart.mean(axis=0), atol=1.0)


def test_draws_follow_the_unit_of_the_scores():
    rng, items = np.random.default_rng(0), Items.of("abcdef")
    replicates = items.centre(rng.normal(size=(200, 6)) + np.arange(6.0))
    counts = np.arange(10, 16)
    one, scaled = (shrunken_draws(unit * replicates, items, counts, 60, 0) for unit in (1.0, 400.0))
    np.testing.assert_allclose(scaled, 400 * one, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("times", [1, 3])
def test_an_item_that_always_won_is_not_certain(times):
    """Every resample of unanimous judgments is the same; few of them prove little."""
    ranking = WinRate().fit(Comparisons.of(["a", "b"] * times, ["b", "a"] * times, ["a", "a"] * times))
    assert ranking.uncertainty.std_error.max() == 0
    assert 0.5 < ranking.probability("a", "b") < 0.99
    assert ranking.groups.tolist() == [1, 1]
