import numpy as np
import pytest

from crowdrank.active.stopping import Accuracy, Kendall, Order, Pair, Top, decision, is_confirmed
from crowdrank.data import Comparisons
from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.online import SequentialMCMC, Vocabulary

ABC = Vocabulary.of("abc")
DRAWS = np.array([[3.0, 2, 1], [3, 2, 1], [3, 1, 2], [1, 2, 0]])
"""By their means a, b, c; b is before a once, c before b once."""
TWO_QUERIES = Vocabulary(("a", "b", "a", "b"), ("x", "x", "y", "y"))


@pytest.mark.parametrize(
    ("target", "chance"),
    [
        (Top(1), 3 / 4),
        (Top(2), 3 / 4),
        (Top(3), 1.0),
        (Top(9), 1.0),
        (Order(), 2 / 4),
        (Pair("a", "b"), 3 / 4),
        (Pair("c", "a"), 1.0),
        (Accuracy(0.9), 10 / 12),
        (Kendall(0.9), 10 / 12),
    ],
)
def test_the_probability_is_the_share_of_draws_that_agree_with_the_means(target, chance):
    assert target.probability(DRAWS, ABC) == pytest.approx(chance)


@pytest.mark.parametrize("target", [Top(1), Order()])
def test_a_decision_must_be_right_in_every_query_at_once(target):
    draws = np.array([[2.0, 1, 2, 1], [2, 1, 2, 1], [0, 1, 2, 1], [2, 1, 0, 1]])
    assert target.probability(draws, TWO_QUERIES) == 0.5


def test_accuracy_compares_only_items_of_the_same_query():
    draws = np.array([[2.0, 1, 5, 4], [2, 1, 4, 5], [2, 1, 5, 4]])
    assert Accuracy(0.9).probability(draws, TWO_QUERIES) == pytest.approx(5 / 6)


def test_the_codes_of_items_do_not_matter():
    shuffled = [2, 0, 1]
    items = Vocabulary.of([ABC.labels[n] for n in shuffled])
    for target in (Top(1), Top(2), Order(), Pair("b", "a"), Kendall(0.5)):
        assert target.probability(DRAWS[:, shuffled], items) == target.probability(DRAWS, ABC)


def test_kendalls_tau_of_all_draws_is_what_the_accuracy_says():
    rng = np.random.default_rng(1)
    draws = np.arange(8.0) + 2 * rng.standard_normal((50, 8))
    order, pairs = np.argsort(draws.mean(axis=0)), np.triu_indices(8, 1)
    taus = [np.sign(row[order][pairs[1]] - row[order][pairs[0]]).mean() for row in draws]
    assert 2 * Kendall(0.5).probability(draws, Vocabulary.of("abcdefgh")) - 1 == pytest.approx(np.mean(taus))
    assert Kendall(0.9).threshold(0.5) == pytest.approx(0.95)
    assert Accuracy(0.9).threshold(0.5) == 0.9


def test_items_that_are_never_among_the_best_are_not_relevant():
    draws = np.array([[9.0, 8, 5, 1, 0], [9, 5, 8, 1, 0], [9, 8, 5, 1, 0]])
    assert Top(2).relevant_items(draws, Vocabulary.of("abcde")).tolist() == [0, 1, 2]
    assert Top(1).relevant_items(draws, Vocabulary.of("abcde")).tolist() == [0, 1]
    assert Pair("e", "a").relevant_items(draws, Vocabulary.of("abcde")).tolist() == [4, 0]


def test_accuracy_is_forecast_from_a_sample_of_items():
    draws, many = np.zeros((3, 1000)), Vocabulary.of(range(1000))
    assert len(np.unique(Accuracy(0.9).relevant_items(draws, many))) == 40
    assert Accuracy(0.9).relevant_items(DRAWS, ABC).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("top 3", Top(3)),
        ("order", Order()),
        ("tau 0.9", Kendall(0.9)),
        ("accuracy 0.95", Accuracy(0.95)),
        ("a over b", Pair("a", "b")),
        (" New York  over Los Angeles ", Pair("New York", "Los Angeles")),
        ("top 3 over b", Pair("top 3", "b")),
    ],
)
def test_a_decision_is_read_from_words(text, meant):
    assert decision(text) == meant


@pytest.mark.parametrize("text", ["", "top", "top three", "best 3", "tau", "tau high", "a over", "a over b over c"])
def test_an_unknown_decision_is_answered_with_the_known_ones(text):
    with pytest.raises(SettingError, match='Use "top 3"'):
        decision(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("top 0", "one or more, got 0"),
        ("tau 1", "between 0 and 1, got 1.0"),
        ("accuracy 0.5", "0.5 and 1, got 0.5"),
        ("accuracy nan", "got nan"),
        ("a over a", "'a' twice"),
    ],
)
def test_a_number_that_cannot_be_is_named(text, complaint):
    with pytest.raises(SettingError, match=complaint):
        decision(text)


def test_an_unknown_item_is_named():
    with pytest.raises(UnknownNameError, match="'bb'"):
        Pair("a", "bb").probability(DRAWS, ABC)


@pytest.fixture(scope="module")
def model():
    return SequentialMCMC(draws=50, warmup=20, thin=1)


def told(model, wins, losses=0):
    """Two items, one of which won this often."""
    count = wins + losses
    votes = Comparisons.of(
        ["a"] * count, ["b"] * count, ["a"] * wins + ["b"] * losses, annotator=[f"p{n % 5}" for n in range(count)]
    )
    return model.fold(model.start(), votes)


def test_many_votes_decide_which_of_two_is_better_and_few_do_not(model):
    clear, even = told(model, 40), told(model, 6, 6)
    assert Top(1).decided_by(clear)
    assert is_confirmed(Top(1), clear, model)
    assert not Top(1).decided_by(even)
    assert not is_confirmed(Top(1), even, model)


@pytest.mark.parametrize("probability", [0.2, 1.0, float("nan")])
def test_an_impossible_probability_is_refused(model, probability):
    with pytest.raises(SettingError, match="probability must be"):
        Top(1).decided_by(model.start("ab"), probability)


class OneLook:
    """A model that returns a given posterior when it draws again."""

    def __init__(self, resampled):
        self.resampled = resampled

    def resample(self, posterior):
        return self.resampled


def test_a_decision_must_be_confirmed_by_new_draws(model):
    clear, even = told(model, 40), told(model, 6, 6)
    assert not is_confirmed(Top(1), clear, OneLook(even))
    assert is_confirmed(Top(1), clear, OneLook(clear))
    assert not is_confirmed(Top(1), even, OneLook(clear))


def test_resampling_gives_more_and_other_draws(model):
    beliefs = told(model, 5, 3)
    longer = model.resample(beliefs)
    assert longer.draws.scores.shape == (200, 2)
    assert not np.isin(longer.draws.scores[:, 0], beliefs.draws.scores[:, 0]).any()
    assert longer.n_judgments == beliefs.n_judgments
