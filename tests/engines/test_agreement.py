"""All engines give the same likelihood and the same order."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.engines import LOCAL, Dask, LocalEngine, OutOfCore
from crowdrank.models.selection import convert_for
from tests.strategies import joint_crowd_bt

MODELS = [
    cr.BradleyTerry(),
    cr.BradleyTerry(ties="drop"),
    cr.Thurstone(),
    cr.CrowdBT(),
    cr.CrowdBT(ties="half"),
    joint_crowd_bt(),
    joint_crowd_bt(solver="alternating"),
    cr.FactorBT(),
    cr.VarianceBT(),
]


@pytest.fixture(scope="module")
def expected(votes):
    """Fits of the votes in memory, each made once: `expected(model)`."""
    return cache(lambda model: model.fit(votes))


def assert_same(found, expected):
    assert_same_estimates(found, expected)
    np.testing.assert_allclose(found.uncertainty.std_error, expected.uncertainty.std_error, rtol=1e-5)


def assert_same_streamed(found, expected):
    """Errors of models that estimate annotators jointly are calibrated on coin tosses in memory only: by one factor."""
    if "coin tosses" not in expected.uncertainty.method:
        assert_same(found, expected)
        return
    assert_same_estimates(found, expected)
    assert "coin tosses" not in found.uncertainty.method
    factor = expected.uncertainty.std_error / found.uncertainty.std_error
    np.testing.assert_allclose(factor, factor[0], rtol=1e-5)
    assert 1 <= factor[0] < 1.5


def assert_same_estimates(found, expected):
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, rel=1e-9)
    np.testing.assert_array_equal(found.order, expected.order)
    np.testing.assert_allclose(found.scores, expected.scores, atol=1e-7)
    assert found.n_judgments.tolist() == expected.n_judgments.tolist()
    assert found.notes == expected.notes
    if expected.has_annotators:
        for name, (estimate, *_) in expected.annotators.estimates.items():
            np.testing.assert_allclose(found.annotators[name], estimate, atol=1e-6)
        assert found.annotators.n_judgments.tolist() == expected.annotators.n_judgments.tolist()


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_files_passed_over_are_as_judgments_in_memory(model, expected, folder, small_parts):
    scanned = cr.scan(folder)
    assert len(scanned.storage.chunks) > 3
    assert_same_streamed(model.fit(scanned, engine=OutOfCore("4GB")), expected(model))


def test_they_are_even_without_room_for_any(expected, folder, small_parts):
    assert_same(joint_crowd_bt().fit(cr.scan(folder), engine=OutOfCore(1)), expected(joint_crowd_bt()))


# Every pass is a round trip to the cluster. Learning the priors makes the same passes as a fit with given ones, but
# hundreds of them, so on the cluster the priors are given.
@pytest.mark.parametrize("model", [cr.BradleyTerry(), joint_crowd_bt()], ids=repr)
def test_a_cluster_is_as_this_machine(model, expected, folder, small_parts, client):
    assert_same(model.fit(cr.scan(folder), engine=Dask(client)), expected(model))


@pytest.mark.parametrize("engine", ["out-of-core", "dask"])
def test_what_is_in_memory_already_is_the_same_anywhere(engine, votes, expected, client):
    place = OutOfCore() if engine == "out-of-core" else Dask(client)
    model = cr.CrowdBT() if engine == "out-of-core" else cr.CrowdBT(prior_scale=3.0, quality_prior=(3.0, 0.5))
    assert_same(model.fit(votes, engine=place), expected(model))
    lists = votes.to_rankings()
    assert_same(cr.PlackettLuce().fit(lists, engine=place), cr.PlackettLuce().fit(lists))
    assert_same(cr.models.MPM().fit(votes, engine=place), cr.models.MPM().fit(votes))


@pytest.mark.parametrize(
    "model", [cr.models.MPM(), cr.models.MPM(given="pair"), cr.PlackettLuce(), cr.models.GradedResponse()], ids=repr
)
def test_in_many_shards_it_is_as_in_one(model, votes):
    judgments, _ = convert_for(model, votes)
    model = replace(model, tolerance=1e-7)
    assert_same(model.fit(judgments, engine=LocalEngine(rows_per_shard=60)), model.fit(judgments))


def test_scanned_judgments_are_passed_over_without_being_asked_for(votes, folder, small_parts):
    assert_same(joint_crowd_bt().fit(cr.scan(folder)), joint_crowd_bt().fit(votes, engine=LOCAL))


def test_models_that_pass_over_nothing_read_the_columns(votes, folder):
    scanned = cr.scan(folder)
    for model in (cr.Borda(), cr.WinRate(), cr.RankCentrality()):
        np.testing.assert_allclose(model.fit(scanned).scores, model.fit(votes).scores, atol=1e-8)


@pytest.mark.parametrize("model", [cr.BradleyTerry(), joint_crowd_bt(), cr.VarianceBT()], ids=repr)
def test_a_fit_from_an_earlier_one_ends_at_the_same_optimum(model, votes, folder, small_parts):
    model = replace(model, tolerance=1e-8)
    first = model.fit(votes.take(slice(0, 800)))
    assert_same_streamed(model.fit(cr.scan(folder), init=first), model.fit(votes))


def test_scores_to_start_from_must_be_of_these_items(votes):
    others = cr.CrowdBT().fit(cr.Comparisons.of(["x"], ["y"], ["x"], annotator=["nobody"]))
    with pytest.raises(cr.errors.DataError, match="No item of the ranking passed as init"):
        cr.CrowdBT().fit(votes, init=others)


def test_repeated_answers_are_passed_over_once():
    """Few items and annotators, many votes: one row an annotator, pair and answer."""
    from crowdrank.models.crowd.encoding import answer_table, encode_answers

    rng = np.random.default_rng(1)
    left = rng.integers(4, size=3000)
    right = (left + rng.integers(1, 4, size=3000)) % 4
    winner = np.where(rng.random(3000) < 0.1, 9, np.where(rng.random(3000) < 0.6, left, right))
    votes = cr.Comparisons.of(left, right, np.where(winner == 9, "tie", winner), annotator=rng.integers(3, size=3000))
    table = answer_table(votes)
    assert table.rows <= 3 * 4 * 3
    assert table.weight.sum() == encode_answers(votes).weight.sum()
    by_row = cr.CrowdBT(ties="half").fit(votes.reweighted(np.full(3000, 1.0)))
    assert cr.CrowdBT(ties="half").fit(votes).log_likelihood == pytest.approx(by_row.log_likelihood, rel=1e-12)
