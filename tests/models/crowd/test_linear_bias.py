"""The linear model with position bias: the optimum of the lasso, biased annotators, standard errors."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdrank import LinearBias
from crowdrank.data import Comparisons
from crowdrank.engines import LOCAL
from crowdrank.errors import ConvergenceWarning, DataError, SettingError
from crowdrank.evaluation import accuracy
from crowdrank.models.crowd import linear_bias
from crowdrank.models.crowd.linear_bias import LassoProblem
from crowdrank.simulation import crowd_bt, with_spammers
from tests.strategies import comparisons, comparisons_of, disconnected_allowed

quick = settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
NO_PRIOR = 1e4


def design(votes):
    """Rows of √weight·(left − right), √weight·annotator, and √weight·answer."""
    rows, root = np.arange(len(votes)), np.sqrt(votes.weights)
    items, people = np.zeros((len(votes), len(votes.items))), np.zeros((len(votes), len(votes.annotators)))
    items[rows, votes.left], items[rows, votes.right] = root, -root
    people[rows, votes.annotator] = root
    return items, people, root * votes.outcome


def linear_crowd(seed=0, items=15, people=12, rows=600, biased=3, one_way=False):
    """Answers whose mean is a line: left − right + bias."""
    rng = np.random.default_rng(seed)
    scores, biases = np.linspace(-0.3, 0.3, items), np.zeros(people)
    biases[:biased] = 0.6
    left = rng.integers(items, size=rows)
    right = (left + rng.integers(1, items, size=rows)) % items
    if one_way:
        left, right = np.minimum(left, right), np.maximum(left, right)
    who = rng.integers(people, size=rows)
    chance = (1 + scores[left] - scores[right] + biases[who]) / 2
    said = np.where(rng.random(rows) < np.clip(chance, 0, 1), 1, -1)
    names = [f"{n:02d}" for n in range(max(items, people))]
    votes = comparisons_of(
        None, [names[a] for a in left], [names[b] for b in right], said, annotator=[names[k] for k in who]
    )
    return votes, scores, biases


@pytest.mark.parametrize("prior_scale", [1.0, NO_PRIOR])
@quick
@given(data=st.data())
def test_the_conditions_of_the_optimum_hold(prior_scale, data):
    votes, penalty = data.draw(comparisons()), data.draw(st.sampled_from([0.01, 0.3, 2.0]))
    ranking = LinearBias(penalty=penalty, prior_scale=prior_scale).fit(votes)
    items, people, answer = design(votes)
    scores, biases = ranking.scores, ranking.annotators["bias"]
    residual = answer - items @ scores - people @ biases
    np.testing.assert_allclose(items.T @ residual, scores / prior_scale**2, atol=1e-6)
    gradient = people.T @ residual
    assert (np.abs(gradient) <= penalty + 1e-7).all()
    free = biases != 0
    np.testing.assert_allclose(gradient[free], penalty * np.sign(biases[free]), atol=1e-7)
    assert ranking.convergence.converged


@pytest.mark.parametrize("one_way", [False, True], ids=["sides shuffled", "one way round"])
@pytest.mark.parametrize("penalty", [1.0, 8.0, 25.0])
def test_it_is_the_lasso_of_scikit_learn_with_scores_projected_out(penalty, one_way):
    lasso = pytest.importorskip("sklearn.linear_model").Lasso
    votes, _, _ = linear_crowd(one_way=one_way)
    items, people, answer = design(votes)
    rest = np.eye(len(votes)) - items @ np.linalg.pinv(items)
    peer = lasso(alpha=penalty / len(votes), fit_intercept=False, tol=1e-12, max_iter=100_000)
    peer.fit(rest @ people, rest @ answer)
    ranking = LinearBias(penalty=penalty, prior_scale=NO_PRIOR).fit(votes)
    np.testing.assert_allclose(ranking.annotators["bias"], peer.coef_, atol=1e-6)
    expected = np.linalg.pinv(items) @ (answer - people @ peer.coef_)
    np.testing.assert_allclose(ranking.scores, expected, atol=1e-6)


def plain_errors(votes, penalty):
    problem = LassoProblem(votes, NO_PRIOR)
    return problem.uncertainty(problem.fit(penalty), 0, LOCAL).std_error


def test_a_huge_penalty_leaves_least_squares():
    votes, _, _ = linear_crowd()
    items, _, answer = design(votes)
    ranking = LinearBias(penalty=1e9, prior_scale=NO_PRIOR).fit(votes)
    assert not ranking.annotators["bias"].any()
    expected = np.linalg.lstsq(items, answer, rcond=None)[0]
    np.testing.assert_allclose(ranking.scores, expected - expected.mean(), atol=1e-7)
    # and the textbook's errors, apart from the one random answer that is added
    residual = answer - items @ expected
    noise = np.sqrt((residual @ residual + 1) / (len(votes) - 14 + 1))
    errors = noise * np.sqrt(np.diag(np.linalg.pinv(items.T @ items)))
    np.testing.assert_allclose(plain_errors(votes, 1e9), errors, rtol=1e-5)
    # calibration on coin tosses widens them all alike
    ratio = ranking.uncertainty.std_error / errors
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-5)
    assert 1 <= ratio[0] < 1.5


def test_a_penalty_too_small_to_matter_leaves_least_squares_with_all_biases():
    votes, _, _ = linear_crowd()
    items, people, answer = design(votes)
    ranking = LinearBias(penalty=1e-8, prior_scale=NO_PRIOR).fit(votes)
    whole = np.hstack((items, people))
    expected = np.linalg.lstsq(whole, answer, rcond=None)[0]
    np.testing.assert_allclose(ranking.annotators["bias"], expected[15:], atol=1e-6)
    errors = ranking.parameters["noise"] * np.sqrt(np.diag(np.linalg.pinv(whole.T @ whole)))[:15]
    np.testing.assert_allclose(plain_errors(votes, 1e-8), errors, rtol=1e-5)


def test_the_penalty_chosen_has_the_least_expected_error():
    votes, _, _ = linear_crowd()
    ranking, problem = LinearBias().fit(votes), LassoProblem(votes, 3.0)
    items, people, answer = design(votes)

    def expected_error(penalty):
        found = LinearBias(penalty=penalty).fit(votes)
        biases = found.annotators["bias"]
        residual = answer - items @ found.scores - people @ biases
        return np.mean(residual**2) / (1 - (14 + np.count_nonzero(biases)) / len(votes)) ** 2

    highest = np.max(np.abs(problem.gradient(np.zeros(12))))
    path = highest * np.geomspace(1, 1e-3, 30)
    assert ranking.parameters["penalty"] == pytest.approx(path[np.argmin([expected_error(p) for p in path])])


def test_the_first_penalty_of_the_path_allows_no_bias_and_the_next_does():
    problem = LassoProblem(linear_crowd()[0], 3.0)
    highest = float(np.max(np.abs(problem.gradient(np.zeros(12)))))
    assert not problem.fit(highest).biases.any()
    assert np.count_nonzero(problem.fit(0.999 * highest).biases) == 1


@pytest.mark.parametrize("one_way", [False, True], ids=["sides shuffled", "one way round"])
def test_who_leans_left_is_found(one_way):
    votes, scores, biases = linear_crowd(seed=3, rows=4000, one_way=one_way)
    ranking = LinearBias().fit(votes)
    estimate, low, high = ranking.annotators.estimates["bias"]
    assert estimate[:3].min() > 0.4
    assert np.abs(estimate[3:]).max() < 0.2
    assert ((low <= estimate) & (estimate <= high)).all()
    assert low[:3].min() > 0
    assert np.corrcoef(ranking.scores, scores)[0, 1] > 0.9
    assert ranking.annotators.frame()["annotator"].to_list()[:3] == sorted(
        ["w00", "w01", "w02"], key=lambda name: -estimate[int(name[1:])]
    )
    assert np.mean((low <= biases) & (biases <= high)) > 0.8


def test_always_left_spammers_are_found_and_move_little():
    crowd = crowd_bt(items=30, annotators=20, pairs=200, votes=6, quality="beta(10,1)", seed=5)
    before = accuracy(LinearBias().fit(crowd.judgments).scores, crowd.truth)
    spoilt = with_spammers(crowd.judgments, 20, side="left", seed=1)
    ranking = LinearBias().fit(spoilt)
    blind = LinearBias(penalty=1e9).fit(spoilt)
    assert accuracy(ranking.scores, crowd.truth) > before - 0.02
    assert accuracy(ranking.scores, crowd.truth) > accuracy(blind.scores, crowd.truth)
    assert ranking.annotators["bias"][-20:].min() > 0.5
    assert ranking.annotators["bias"][:20].max() < 0.4


def test_errors_hold_the_truth():
    """90 % intervals of the scores, in 85 to 95 % of cases."""
    inside = []
    for seed in range(12):
        votes, scores, _ = linear_crowd(seed=seed)
        ranking = LinearBias(prior_scale=100.0).fit(votes)
        inside.append(np.abs(ranking.scores - scores) < 1.645 * ranking.uncertainty.std_error)
    assert 0.85 <= np.mean(inside) <= 0.95


def test_many_items_are_measured_given_the_biases(monkeypatch):
    votes, _, _ = linear_crowd()
    exact = LinearBias().fit(votes).uncertainty
    monkeypatch.setattr(linear_bias, "_MAX_INVERTED_ITEMS", 1)
    near = LinearBias().fit(votes).uncertainty
    assert "given the biases" in near.method
    np.testing.assert_allclose(near.std_error, exact.std_error, rtol=0.05)
    np.testing.assert_allclose(near.draws.std(axis=0), near.std_error, rtol=0.2)


def test_a_few_answers_that_fit_are_not_certain():
    ranking = LinearBias().fit(comparisons_of(None, [0, 1], [1, 2], [1, 1], annotator=[0, 1]))
    assert ranking.uncertainty.std_error.min() > 0.3


def test_judgments_that_name_nobody_share_one_bias():
    votes, _, _ = linear_crowd(biased=12)
    nameless = Comparisons(items=votes.items, left=votes.left, right=votes.right, outcome=votes.outcome)
    ranking = LinearBias().fit(nameless)
    assert 0.45 < ranking.parameters["bias"] < 0.75
    assert not ranking.has_annotators


def test_annotators_without_an_answer_have_no_bias():
    votes = comparisons_of(None, [0, 1, 0], [1, 2, 1], [1, 1, -1], annotator=[0, 0, 1]).take(np.array([0, 1]))
    estimate, low, high = (part[1] for part in LinearBias().fit(votes).annotators.estimates["bias"])
    assert estimate == 0
    assert low < -1 < 1 < high


def test_stopping_short_is_warned_of_and_recorded(monkeypatch):
    monkeypatch.setattr(linear_bias, "_MAX_STEPS", 1)
    votes, _, _ = linear_crowd()
    with pytest.warns(ConvergenceWarning, match="linear-bias did not converge in 1 steps.*Set a larger penalty"):
        ranking = LinearBias(penalty=1.0).fit(votes)
    assert not ranking.convergence.converged


@quick
@given(votes=comparisons())
def test_no_nearby_biases_cost_less(votes):
    """With a step of the solver that had to cut its way short, too."""
    problem = LassoProblem(votes, 3.0)
    with disconnected_allowed():
        found = problem.fit(0.05)
    rng = np.random.default_rng(0)
    best = problem._cost(found.biases, 0.05)
    for _ in range(20):
        away = found.biases + 0.01 * rng.normal(size=len(found.biases))
        assert problem._cost(away, 0.05) >= best - 1e-12


def test_judgments_without_sides_are_refused():
    with pytest.raises(DataError, match="left and right"):
        LinearBias().fit(Comparisons.of(["a"], ["b"], ["a"], annotator=["x"], positions_known=False))


@pytest.mark.parametrize(
    "wrong", [{"penalty": 0.0}, {"penalty": np.inf}, {"prior_scale": 0.0}, {"prior_scale": np.inf}]
)
def test_settings_that_mean_nothing_are_refused(wrong):
    with pytest.raises(SettingError, match=f"{next(iter(wrong))} must be positive"):
        LinearBias(**wrong)
