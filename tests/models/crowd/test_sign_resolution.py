"""The sign of the scores: every annotator has one vote, however many answers they gave."""

import numpy as np

from crowdrank.models.crowd.encoding import annotator_votes, is_reversed


def test_a_few_certain_annotators_do_not_outvote_many():
    agreed, judged = np.array([100.0, 100.0, *[8.0] * 5]), np.array([100.0, 100.0, *[20.0] * 5])
    assert agreed.sum() > judged.sum() / 2
    assert is_reversed(agreed, judged)
    assert not is_reversed(judged - agreed, judged)


def test_those_who_guess_do_not_outvote_one_who_knows():
    agreed, judged = np.array([20.0, *[9.0] * 3]), np.full(4, 20.0)
    assert not is_reversed(agreed[:1], judged[:1])
    assert np.abs(annotator_votes(agreed, judged)[1:]).max() < 0.9
    assert annotator_votes(agreed, judged)[0] == 1


def test_annotators_without_answers_have_no_vote():
    assert annotator_votes(np.zeros(2), np.zeros(2)).tolist() == [0, 0]
    assert not is_reversed(np.zeros(2), np.zeros(2))


def test_reversing_the_order_reverses_the_votes():
    judged = np.arange(1.0, 9.0)
    agreed = judged * np.linspace(0, 1, 8)
    np.testing.assert_allclose(annotator_votes(agreed, judged), -annotator_votes(judged - agreed, judged), atol=1e-12)


def test_rounding_does_not_reverse_an_order_with_equal_votes():
    agreed, judged = np.array([5.5, 4.5]), np.full(2, 10.0)
    assert not is_reversed(agreed, judged)
    assert not is_reversed(agreed - 1e-12, judged)
    assert is_reversed(agreed - 1e-3, judged)
