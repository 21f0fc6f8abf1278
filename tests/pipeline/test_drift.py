"""Strengths that drift: the smoother against dense algebra, curves against the truth, and the test of change."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank import BradleyTerry, Comparisons, Ranking, Thurstone
from crowdrank.errors import DataError, DataWarning, SettingError
from crowdrank.models.pairwise.random_walk import _count_votes, _Factors, _Smoother, fit_over_time, period_edges
from crowdrank.reports import Leaderboard, leaderboard_html, write_leaderboard

NAMES = np.array([f"m{n}" for n in range(6)])
QUALITY = np.array([1.0, 0.6, 0.2, -0.2, -0.5, -1.1])


def arena(seed: int, votes: int = 2400, jump: float = 0.0, ties: float = 0.0) -> Comparisons:
    """Votes over 100 days; in the middle, m3 becomes better by `jump`."""
    rng = np.random.default_rng(seed)
    day = np.sort(rng.random(votes)) * 100
    strength = QUALITY + np.outer(day >= 50, NAMES == "m3") * jump
    left = rng.integers(6, size=votes)
    right = (left + rng.integers(1, 6, size=votes)) % 6
    rows = np.arange(votes)
    chance = 1 / (1 + np.exp(strength[rows, right] - strength[rows, left]))
    winner = np.where(rng.random(votes) < chance, NAMES[left], NAMES[right])
    winner = np.where(rng.random(votes) < ties, "tie", winner)
    return Comparisons.of(NAMES[left], NAMES[right], winner, time=1.7e9 + 86_400 * day)


def over_time(votes: Comparisons, model=None, period=10) -> Ranking:
    model = model or BradleyTerry()
    return fit_over_time(model, votes, model.fit(votes), period)


@pytest.mark.parametrize(("model", "ties"), [(BradleyTerry(), 0.0), (BradleyTerry(), 0.2), (Thurstone(), 0.0)])
def test_a_jump_is_seen_and_named(model, ties):
    ranking = over_time(arena(1, jump=1.5, ties=ties), model)
    drift = ranking.drift
    assert drift.p_value < 1e-4
    assert drift.probability > 0.99
    assert "m3" in drift.changed
    assert "m3" in drift.sentence()
    assert drift.changes()["item"][0] == "m3"
    assert drift.changes()["low"][0] > 0
    # the ranking is that of the end
    np.testing.assert_allclose(ranking.scores, drift.scores[-1])
    np.testing.assert_allclose(ranking.uncertainty.std_error, drift.std_errors[-1])
    np.testing.assert_allclose(ranking.uncertainty.draws.std(axis=0), drift.std_errors[-1], rtol=0.2)
    assert ranking["m3"].rank <= 3 < model.fit(arena(1, jump=0.0, ties=ties))["m3"].rank


def test_bands_hold_the_truth():
    held = []
    for seed in range(6):
        drift = over_time(arena(seed, jump=1.5)).drift
        truth = QUALITY + np.outer(np.arange(10) >= 5, NAMES == "m3") * 1.5
        truth = truth - truth.mean(axis=1, keepdims=True)
        held.append(np.abs(drift.scores - truth) < 1.96 * drift.std_errors)
    assert 0.88 < np.mean(held) < 0.995


def test_a_steady_arena_raises_few_false_alarms():
    found = [over_time(arena(100 + seed, votes=600)).drift for seed in range(20)]
    assert sum(drift.p_value < 0.05 for drift in found) <= 4
    assert sum(bool(drift.changed) for drift in found) <= 3
    assert np.mean([drift.probability for drift in found]) < 0.5


def test_without_drift_it_is_the_model_without_time():
    votes = arena(2, votes=500)
    model = BradleyTerry(prior_scale=0.8)
    steady = model.fit(votes)
    smoother = _Smoother(_count_votes(votes, np.zeros(500, np.int64)), 5, votes.items, 0, 0.0, 0.8)
    mode = smoother.mode(0.0, np.zeros(6))
    np.testing.assert_allclose(mode.scores, np.tile(steady.scores, (5, 1)), atol=1e-3)
    np.testing.assert_allclose(np.sqrt(mode.variances[0]), steady.uncertainty.std_error, rtol=0.02)
    # a tiny rate tends to the same
    votes_of = _count_votes(votes, np.arange(500) // 100)
    nearly = _Smoother(votes_of, 5, votes.items, 0, 0.0, 0.8).mode(1e-3, np.zeros(6))
    np.testing.assert_allclose(nearly.scores, mode.scores, atol=1e-2)
    assert nearly.log_evidence == pytest.approx(mode.log_evidence, abs=0.05)


def test_the_mode_is_where_the_gradient_vanishes():
    votes = arena(3, votes=400)
    smoother = _Smoother(_count_votes(votes, np.arange(400) // 100), 4, votes.items, 0, 0.0, 1.0)
    scores = smoother.mode(0.3, np.zeros(6)).scores
    _, gradient, _ = smoother._posterior(scores, smoother.prior(4, 0.3))
    assert np.abs(gradient).max() < 0.02


def test_the_factors_are_those_of_the_whole_matrix():
    rng = np.random.default_rng(0)
    blocks = np.array([np.eye(3) * 6 + (a @ a.T) for a in rng.normal(size=(4, 3, 3))])
    whole = np.zeros((12, 12))
    for t in range(4):
        whole[3 * t : 3 * t + 3, 3 * t : 3 * t + 3] = blocks[t]
    for t in range(3):
        whole[3 * t : 3 * t + 3, 3 * t + 3 : 3 * t + 6] = whole[3 * t + 3 : 3 * t + 6, 3 * t : 3 * t + 3] = -2 * np.eye(
            3
        )
    factors = _Factors.of(blocks, 2.0)
    vector = rng.normal(size=(4, 3))
    np.testing.assert_allclose(factors.solve(vector).ravel(), np.linalg.solve(whole, vector.ravel()))
    assert factors.log_determinant == pytest.approx(np.linalg.slogdet(whole)[1])
    diagonal, corner = factors.covariances()
    inverse = np.linalg.inv(whole)
    for t in range(4):
        np.testing.assert_allclose(diagonal[t], inverse[3 * t : 3 * t + 3, 3 * t : 3 * t + 3])
    np.testing.assert_allclose(corner, inverse[:3, 9:])


def test_rank_with_time_in_python_and_on_disk(tmp_path):
    votes = arena(4, jump=1.5)
    ranking = cr.rank(votes, time="week", score_scale="elo", min_comparisons=1)
    frame = ranking.drift.frame()
    assert frame.columns == ["period", "item", "score", "low", "high", "judgments"]
    assert frame["judgments"].sum() == 2 * len(votes)
    assert frame["period"][0].startswith("2023-")
    assert "drift" in ranking.parameters
    ranking.save(tmp_path / "r.json")
    loaded = Ranking.load(tmp_path / "r.json")
    np.testing.assert_allclose(loaded.drift.scores, ranking.drift.scores)
    assert loaded.drift.changed == ranking.drift.changed
    shown = ranking.drift.to_polars(scale=ranking.scale)
    last = dict(shown.tail(6).select("item", "score").iter_rows())
    assert last["m0"] == pytest.approx(ranking["m0"].score)


def test_provisional_items_have_curves_of_their_own():
    ranking = cr.rank(arena(5), time=6, min_comparisons=800)
    assert ranking.provisional is not None
    assert ranking.drift.scores.shape == (6, len(ranking))
    assert ranking.provisional.drift.scores.shape == (6, len(ranking.provisional))


def test_versions_are_new_items_or_one_curve():
    rows = arena(6, jump=1.5).to_frame().with_columns(pl.col("time"))
    late = pl.col("time") > 1.7e9 + 50 * 86_400
    renamed = rows.with_columns(
        pl.when(late & (pl.col(name) == "m3")).then(pl.lit("m3-v2")).otherwise(pl.col(name)).alias(name)
        for name in ("left", "right", "winner")
    )
    apart = cr.rank(renamed, time=8)
    assert {"m3", "m3-v2"} <= set(apart)
    assert "m3" not in apart.drift.changed
    together = cr.rank(renamed, time=8, aliases={"m3-v2": "m3"})
    assert "m3" in together.drift.changed


def test_the_page_shows_the_curves(tmp_path):
    ranking = cr.rank(arena(7, jump=1.5), time=6)
    page = leaderboard_html(Leaderboard(ranking=ranking))
    assert "Change over time" in page
    assert page.count("<polygon") == 6
    write_leaderboard(Leaderboard(ranking=ranking), tmp_path / "board")
    assert pl.read_csv(tmp_path / "board" / "curves.csv").height == 36


def test_periods():
    time = np.linspace(0, 30 * 86_400, 1000)
    assert len(period_edges(time, "week", 5)) == 6
    assert len(period_edges(time, 7, 5)) == 8
    assert len(period_edges(time, True, 5)) == 25
    assert len(period_edges(time[:60], True, 5)) == 5
    with pytest.raises(SettingError, match="periods"):
        period_edges(time, "month", 5)
    with pytest.raises(DataError, match="same time"):
        period_edges(np.ones(5), True, 5)


def test_what_cannot_drift_is_refused():
    votes = arena(8, votes=100)
    untimed = Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"])
    with pytest.raises(DataError, match="time of each judgment"):
        cr.rank(untimed, time=True)
    with pytest.raises(SettingError, match="needs bradley-terry or thurstone"):
        cr.rank(votes, time=True, model="elo")
    with pytest.raises(SettingError, match="number of periods"):
        cr.rank(votes, time="year")
    with pytest.raises(SettingError, match="cannot be combined"):
        cr.rank(votes, time=True, cluster="annotator")


def test_judgments_without_a_time_are_left_out_of_the_curves():
    votes = arena(9, votes=300)
    time = votes.time.copy()
    time[:20] = np.nan
    from dataclasses import replace

    with pytest.warns(DataWarning, match="20 judgments have no time"):
        ranking = cr.rank(replace(votes, time=time), time=4)
    assert ranking.drift.n_judgments.sum() == 2 * 280


def test_the_command(crowdrank, tmp_path):
    arena(10, jump=1.5).to_frame().write_csv(tmp_path / "votes.csv")
    words = ("rank", tmp_path / "votes.csv", "--time", "--period", "5")
    code, out, err = crowdrank(*words, "--report", tmp_path / "r.html")
    assert (code, err) == (0, "")
    assert "Strengths changed over time" in out
    assert "Change over time" in (tmp_path / "r.html").read_text()
    answer = json.loads(crowdrank(*words, "--json").out)
    assert answer["drift"]["p_value"] < 1e-3
    assert len(answer["drift"]["curves"]) == 30
