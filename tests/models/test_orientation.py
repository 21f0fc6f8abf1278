"""Which way is up: heads are counted, not answers."""

import numpy as np

from crowdrank.models.crowd.encoding import turned, votes


def test_few_who_are_sure_do_not_outvote_many():
    agreed, judged = np.array([100.0, 100.0, *[8.0] * 5]), np.array([100.0, 100.0, *[20.0] * 5])
    assert agreed.sum() > judged.sum() / 2
    assert turned(agreed, judged)
    assert not turned(judged - agreed, judged)


def test_those_who_guess_do_not_outvote_one_who_knows():
    agreed, judged = np.array([20.0, *[9.0] * 3]), np.full(4, 20.0)
    assert not turned(agreed[:1], judged[:1])
    assert np.abs(votes(agreed, judged)[1:]).max() < 0.9
    assert votes(agreed, judged)[0] == 1


def test_who_said_nothing_does_not_count():
    assert votes(np.zeros(2), np.zeros(2)).tolist() == [0, 0]
    assert not turned(np.zeros(2), np.zeros(2))


def test_turning_the_order_turns_the_votes():
    judged = np.arange(1.0, 9.0)
    agreed = judged * np.linspace(0, 1, 8)
    np.testing.assert_allclose(votes(agreed, judged), -votes(judged - agreed, judged), atol=1e-12)


def test_rounding_does_not_turn_an_order_that_as_many_are_for_as_against():
    agreed, judged = np.array([5.5, 4.5]), np.full(2, 10.0)
    assert not turned(agreed, judged)
    assert not turned(agreed - 1e-12, judged)
    assert turned(agreed - 1e-3, judged)
