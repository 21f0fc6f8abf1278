import numpy as np
import pytest

from crowdrank.errors import SettingError
from crowdrank.simulation import list_crowd


def distances(crowd):
    """Kendall distance of every list to the truth, one row per query, one column per annotator."""
    lists, items = crowd.judgments, int(crowd.judgments.lengths[0])
    scores = crowd.truth[lists.item].reshape(len(lists), items)
    turned = np.triu(scores[:, :, None] < scores[:, None, :], 1).sum(axis=(1, 2))
    return turned.reshape(-1, len(lists.annotators))


def test_every_annotator_orders_all_items_of_every_query():
    crowd = list_crowd(queries=20, items=7, annotators=5)
    lists = crowd.judgments
    assert len(lists) == 100
    rows = lists.item.reshape(20, 5, 7)
    np.testing.assert_array_equal(np.sort(rows, axis=2), np.broadcast_to(np.arange(140).reshape(20, 1, 7), (20, 5, 7)))
    np.testing.assert_array_equal(lists.annotator, np.tile(np.arange(5), 20))
    assert len(lists.items.queries) == 20


def test_scores_are_linear_in_the_features():
    crowd = list_crowd(queries=200, seed=1)
    rest = crowd.truth - crowd.features["x1"] - 10 * crowd.features["x2"]
    assert rest.std() == pytest.approx(0.005, rel=0.1)
    assert 0 <= crowd.features["x1"].min() < 0.01
    assert 0.99 < crowd.features["x2"].max() <= 1


def test_the_first_annotator_is_the_best_and_the_rest_lie_in_range():
    skill = list_crowd(annotators=500).annotators["expertise"]
    assert skill[0] == -2.5
    assert -2.5 <= skill.min() <= skill.max() <= -0.5
    assert skill[1:].mean() == pytest.approx(-1.5, abs=4 * 2 / np.sqrt(12 * 499))
    assert list_crowd(expertise="-0.7", first_expertise=None).annotators["expertise"].tolist() == [-0.7] * 10


def test_distances_follow_equation_56():
    theta = -0.3
    found = distances(list_crowd(queries=3000, items=6, expertise=theta, first_expertise=None, annotators=2, seed=2))
    steps = np.arange(1, 16)
    chance = np.exp(theta * steps) / np.exp(theta * steps).sum()
    counted = np.bincount(found.ravel(), minlength=16)
    assert counted[0] == 0
    assert np.sum((counted[1:] - 6000 * chance) ** 2 / (6000 * chance)) < 36.1  # 14 degrees of freedom, 1 in 1000


def test_mallows_annotators_stray_as_far_as_the_model_says():
    crowd = list_crowd(
        queries=2000, items=8, annotators=4, expertise="uniform(-0.4,-0.02)", first_expertise=None, labels="mallows"
    )
    found = distances(crowd)
    for column, theta in zip(found.T, crowd.annotators["expertise"], strict=True):
        q, j = np.exp(theta), np.arange(1, 9)
        expected = 8 * q / (1 - q) - np.sum(j * q**j / (1 - q**j))
        assert column.mean() == pytest.approx(expected, abs=4 * column.std() / np.sqrt(2000))


def test_the_same_seed_gives_the_same_crowd_and_the_labels_leave_the_points_alone():
    one, same, other = list_crowd(seed=3), list_crowd(seed=3), list_crowd(seed=3, labels="mallows")
    np.testing.assert_array_equal(one.judgments.item, same.judgments.item)
    np.testing.assert_array_equal(one.truth, other.truth)
    np.testing.assert_array_equal(one.annotators["expertise"], other.annotators["expertise"])
    assert not np.array_equal(one.judgments.item, list_crowd(seed=4).judgments.item)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"labels": "order"}, "labels must be 'distance' or 'mallows', got 'order'"),
        ({"items": 1}, "items must be at least 2"),
        ({"queries": 0}, "queries must be at least 1"),
        ({"items": 171}, "at most 170 items, got 171"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        list_crowd(**settings)


def test_some_items_are_shown_to_some_annotators_who_list_the_top():
    crowd = list_crowd(
        queries=8, items=12, annotators=9, shown=6, top=4, annotators_per_query=3, labels="mallows", seed=1
    )
    lists = crowd.judgments
    assert set(lists.lengths) == {4}
    assert len(lists) == 24
    query = lists.items.query[lists.item[lists.offsets[:-1]]]
    assert np.bincount(query).tolist() == [3] * 8
    assert len(set(zip(query.tolist(), lists.annotator.tolist(), strict=True))) == 24
    assert (lists.items.query[lists.item] == np.repeat(query, 4)).all()


def test_the_best_of_the_shown_come_first():
    crowd = list_crowd(queries=30, items=12, shown=6, top=3, expertise=-50, first_expertise=None, labels="mallows")
    told = crowd.truth[crowd.judgments.item].reshape(-1, 3)
    assert (np.diff(told, axis=1) < 0).all()
    assert np.mean(told[:, 0]) < np.mean(crowd.truth.reshape(30, 12).max(axis=1))


@pytest.mark.parametrize("wrong", [{"shown": 16}, {"top": 16}, {"shown": 4, "top": 5}, {"annotators_per_query": 11}])
def test_no_more_can_be_shown_than_there_is(wrong):
    with pytest.raises(SettingError, match="must be at most"):
        list_crowd(**wrong)
