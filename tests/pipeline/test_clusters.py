"""Errors that know which votes belong together."""

import json
from dataclasses import replace

import numpy as np
import pytest

import crowdrank as cr
from crowdrank import BradleyTerry, Ratings, Thurstone
from crowdrank.errors import DataError, DataWarning
from crowdrank.models import with_bootstrap
from crowdrank.models.pairwise.covariates import with_sandwich
from crowdrank.results import covariate_effects
from tests.pipeline.arenas import clustered_arena, mean_quality, styled_arena


def held(ranking, truth):
    return np.mean(np.abs(ranking.scores - truth) <= 1.96 * ranking.uncertainty.std_error)


def codes(votes):
    return np.unique(votes.features["prompt"], return_inverse=True)[1]


def test_intervals_by_cluster_hold_where_plain_ones_do_not():
    truth, plain, clustered = mean_quality(), [], []
    for seed in range(300, 340):
        votes = clustered_arena(seed)
        ranking = BradleyTerry().fit(votes)
        plain.append(held(ranking, truth))
        clustered.append(held(with_sandwich(BradleyTerry(), votes, ranking, codes(votes)), truth))
    assert np.mean(plain) < 0.85
    assert 0.92 <= np.mean(clustered) <= 0.97


@pytest.mark.parametrize("model", [BradleyTerry(), Thurstone(), BradleyTerry(prior_scale=None)])
def test_independent_votes_have_the_errors_of_the_model(model):
    votes = styled_arena(1, effect=0.0)
    ranking = model.fit(votes)
    alone = with_sandwich(model, votes, ranking, np.arange(len(votes)))
    np.testing.assert_allclose(alone.uncertainty.std_error, ranking.uncertainty.std_error, rtol=0.08)
    assert alone.uncertainty.draws.shape[1] == 8


def test_ties_and_covariates_have_errors_by_cluster():
    votes = styled_arena(2, votes=2000)
    outcome = np.where(np.arange(len(votes)) % 7 == 0, 0, votes.outcome).astype(np.int8)
    votes = replace(votes, outcome=outcome)
    for ties in ("davidson", "drop"):
        model = BradleyTerry(covariates=("style",), ties=ties)
        ranking = model.fit(votes)
        alone = with_sandwich(model, votes, ranking, np.arange(len(votes)))
        (before,), (after,) = covariate_effects(ranking), covariate_effects(alone)
        assert after.effect == before.effect
        assert after.std_error == pytest.approx(before.std_error, rel=0.1)


def test_the_bootstrap_of_clusters_agrees_with_the_sandwich():
    votes = clustered_arena(7)
    ranking = BradleyTerry(prior_scale=3.0).fit(votes)
    sandwich = with_sandwich(BradleyTerry(prior_scale=3.0), votes, ranking, codes(votes))
    resampled = with_bootstrap(BradleyTerry(prior_scale=3.0), votes, ranking, clusters=codes(votes), replicates=100)
    assert resampled.uncertainty.method == "bootstrap over 100 clusters"
    ratio = resampled.uncertainty.std_error / sandwich.uncertainty.std_error
    assert 0.8 < ratio.mean() < 1.2


def test_the_command_takes_a_column_of_clusters(crowdrank, tmp_path):
    file = tmp_path / "votes.csv"
    votes = clustered_arena(8, clusters=40)
    votes.to_polars().rename({"prompt": "query"}).write_csv(file)
    shown = crowdrank("rank", file, "--cluster", "query")
    assert (shown.code, shown.err) == (0, "")
    assert "Errors by sandwich estimator over 40 clusters." in shown.out
    assert "With 95% probability, the best item is one of m0" in shown.out
    found = json.loads(crowdrank("rank", file, "--cluster", "query", "--json").out)
    assert "m0" in found["best"]
    assert len(found["ranking"]) == 8


def test_annotators_are_clusters():
    crowd = cr.simulation.mixed_crowd(items=8, kinds={"good": 12}, votes_each=20, seed=1).judgments
    with pytest.warns(DataWarning, match="only 12 clusters"):
        ranking = cr.rank(crowd, model="bradley-terry", cluster="annotator")
    assert ranking.uncertainty.method == "sandwich estimator over 12 clusters"
    with pytest.warns(DataWarning, match="only 12 clusters"):
        ranking = cr.rank(crowd, model="win-rate", cluster="annotator")
    assert ranking.uncertainty.method == "bootstrap over 12 clusters"


def test_what_has_no_clusters_is_refused():
    ratings = Ratings.of(item=["a", "b"] * 9, grade=[1, 2] * 9, annotator=[f"w{n // 2}" for n in range(18)])
    with pytest.raises(DataError, match="must be a column of comparisons"):
        cr.rank(ratings, cluster="prompt")
    with pytest.raises(DataError, match="do not name annotators"):
        cr.rank(styled_arena(1, votes=200), cluster="annotator")
    votes = clustered_arena(1, clusters=4)
    with pytest.raises(DataError, match="has 4 clusters; errors by cluster need at least 5"):
        cr.rank(votes, cluster="prompt")
