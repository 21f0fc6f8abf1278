import time

import numpy as np
import pytest

from crowdrank.data.pair_counts import pair_cells
from crowdrank.errors import SettingError
from crowdrank.simulation import domain_crowd, named_domain_crowd
from crowdrank.simulation.domains import EXPERTISE, EXPERTISE_SHARES, pairs_per_annotator, parse_dataset_name

PAPER = {
    "DOC5SR1.0DEMO1": 10,
    "DOC5SR0.5DEMO2": 5,
    "DOC30SR0.05DEMO3": 21,
    "DOC30SR0.1DEMO1": 43,
    "ANNO100SR0.01": 4,
    "ANNO200SR0.02": 8,
}


@pytest.mark.parametrize(("name", "each"), PAPER.items())
def test_the_data_sets_of_the_paper_have_its_number_of_pairs(name, each):
    crowd = named_domain_crowd(name)
    settings = parse_dataset_name(name)
    votes, items = crowd.judgments, settings["items"]
    assert len(votes) == 100 * settings["annotators"] * each
    cell = votes.items.query[votes.left].astype(np.int64) * settings["annotators"] + votes.annotator
    assert np.all(np.bincount(cell) == each)
    asked = cell * (100 * items) ** 2 + pair_cells(100 * items, votes.left, votes.right)
    assert len(np.unique(asked)) == len(votes), "an annotator is never asked twice"
    assert np.all(votes.items.query[votes.left] == votes.items.query[votes.right])


def test_products_that_are_whole_numbers_are_not_rounded_below_them():
    assert 0.7 * 10 < 7.000001
    assert [pairs_per_annotator(5, 0.7), pairs_per_annotator(5, 0.3), pairs_per_annotator(5, 1.0)] == [7, 3, 10]


@pytest.mark.parametrize("name", ["DOC5", "DOC5SR0.5DEMO4", "doc5sr0.5", ""])
def test_a_name_that_is_not_like_the_papers_is_refused(name):
    with pytest.raises(SettingError, match=r"DOC5SR0\.5DEMO1"):
        parse_dataset_name(name)


def test_true_scores_are_sums_of_gaps_in_no_order_of_labels():
    truth = domain_crowd(queries=2000, items=5, sparsity=0.1).truth.reshape(2000, 5)
    gaps = np.diff(np.sort(truth, axis=1), axis=1)
    assert gaps.mean() == pytest.approx(0.5, abs=4 / np.sqrt(12 * 8000))
    assert gaps.max() <= 1
    assert np.mean(np.argmax(truth, axis=1)) == pytest.approx(2, abs=4 * np.sqrt(2 / 2000))


def test_scores_as_printed_stay_below_one():
    truth = domain_crowd(scores="uniform").truth
    assert 0.99 < truth.max() <= 1
    assert truth.mean() == pytest.approx(0.5, abs=4 / np.sqrt(12 * 3000))


@pytest.mark.parametrize("demographics", EXPERTISE_SHARES)
def test_annotators_fall_into_the_categories_of_their_group(demographics):
    crowd = domain_crowd(queries=2, annotators=5000, items=5, sparsity=0.1, demographics=demographics)
    found = [np.mean(crowd.annotators["expertise"] == value) for value in EXPERTISE.values()]
    np.testing.assert_allclose(found, EXPERTISE_SHARES[demographics], atol=4 * 0.5 / np.sqrt(50_000))


def test_domains_are_drawn_or_even():
    assert crowd_sizes(even=True) == {50}
    assert len(crowd_sizes(even=False)) > 1


def crowd_sizes(even):
    crowd = domain_crowd(items=5, queries=100, domains=2, sparsity=0.5, even_domains=even, seed=3)
    return set(np.bincount(crowd.queries["domain"]).tolist())


def test_answers_have_the_probability_of_the_model():
    crowd = domain_crowd(queries=400, items=5, annotators=100, sparsity=1.0, demographics="DEMO3", seed=1)
    votes, query = crowd.judgments, crowd.judgments.items.query[crowd.judgments.left]
    trust = crowd.annotators["expertise"][votes.annotator, crowd.queries["domain"][query]]
    gap = np.sign(trust) * (crowd.truth[votes.left] - crowd.truth[votes.right])
    z = gap / np.sqrt(2 * crowd.queries["difficulty"][query] + 2 / trust**2)
    from scipy.special import ndtr

    for value in EXPERTISE.values():
        chosen = (trust == value) & (z > 0)
        won = (votes.outcome == 1)[chosen].mean()
        # An annotator's perceived scores are shared by the pairs of a query, so rows count for less than they are.
        assert won == pytest.approx(ndtr(z[chosen]).mean(), abs=4 * 0.5 / np.sqrt(chosen.sum() / 4))


def test_perceived_scores_are_shared_by_the_answers_of_one_annotator():
    """An expert's answers to a hard query may be wrong, but they seldom contradict each other."""
    crowd = domain_crowd(queries=200, items=5, annotators=100, sparsity=1.0, domains=1, seed=2)
    expert = np.flatnonzero(crowd.annotators["expertise"][:, 0] == 10)
    hard = np.flatnonzero(crowd.queries["difficulty"] > 0.08)
    votes, query = crowd.judgments, crowd.judgments.items.query[crowd.judgments.left]
    chosen = votes.take(np.flatnonzero(np.isin(votes.annotator, expert) & np.isin(query, hard)))
    wins = np.zeros((len(crowd.truth), 100))
    np.add.at(wins, (np.where(chosen.outcome == 1, chosen.left, chosen.right), chosen.annotator), 1)
    lists = np.sort(wins.reshape(200, 5, 100)[hard][:, :, expert], axis=1)
    consistent = np.all(lists == np.arange(5)[None, :, None], axis=1).mean()
    assert consistent > 0.93  # answers as accurate but drawn each on its own give 0.86


def test_the_largest_data_set_takes_well_under_a_second():
    begin = time.process_time()
    assert len(named_domain_crowd("ANNO200SR0.02").judgments) == 160_000
    assert time.process_time() - begin < 1


def test_the_same_seed_gives_the_same_crowd_and_demographics_change_the_people_only():
    one, same = named_domain_crowd("DOC5SR0.5DEMO1", seed=4), named_domain_crowd("DOC5SR0.5DEMO1", seed=4)
    assert one.judgments.to_frame().equals(same.judgments.to_frame())
    other = named_domain_crowd("DOC5SR0.5DEMO3", seed=4)
    np.testing.assert_array_equal(one.truth, other.truth)
    np.testing.assert_array_equal(one.judgments.left, other.judgments.left)
    assert not np.array_equal(one.annotators["expertise"], other.annotators["expertise"])
    assert not np.array_equal(one.truth, named_domain_crowd("DOC5SR0.5DEMO1", seed=5).truth)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sparsity": 0.0}, "sparsity must be above 0 and at most 1, got 0.0"),
        ({"sparsity": 1.5}, "at most 1, got 1.5"),
        ({"items": 5, "sparsity": 0.05}, "gives less than one of the 10 pairs"),
        ({"demographics": "DEMO4"}, "demographics must be 'DEMO1' or 'DEMO2' or 'DEMO3', got 'DEMO4'"),
        ({"scores": "normal"}, "scores must be"),
        ({"domains": 0}, "domains must be at least 1"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        domain_crowd(**settings)
