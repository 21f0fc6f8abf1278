"""Models recover a simulated truth, better with more data, and their standard errors match the actual errors."""

import numpy as np
import pytest
from scipy.special import expit, ndtr

from crowdrank.data import Comparisons, Rankings
from crowdrank.inference import laplace
from crowdrank.models import BradleyTerry, PlackettLuce, Thurstone
from crowdrank.models.lists import plackett_luce as list_models
from crowdrank.models.lists import plackett_luce_likelihood as list_formulas
from crowdrank.models.pairwise import paired
from crowdrank.simulation import crowd_bt

LEVEL, WIDTH = 0.90, 1.6448536269514722


def pairs(truth, rows, rng, chance, ties=None):
    """Answers with P(left) = chance(margin); `ties` is Davidson's θ."""
    size = len(truth)
    left = rng.integers(size, size=rows)
    right = (left + rng.integers(1, size, size=rows)) % size
    margin = truth[left] - truth[right]
    if ties is None:
        outcome = np.where(rng.random(rows) < chance(margin), 1, -1)
    else:
        odds = np.stack((np.exp(margin / 2), np.full(rows, np.exp(ties)), np.exp(-margin / 2)), axis=1)
        luck = rng.random(rows) * odds.sum(axis=1)
        outcome = 1 - (luck[:, None] > np.cumsum(odds, axis=1)).sum(axis=1)
    return comparisons_of_codes(left, right, outcome)


def comparisons_of_codes(left, right, outcome):
    winner = np.where(outcome == 0, "tie", np.where(outcome > 0, left, right).astype(str))
    label = np.array([f"{n:03d}" for n in range(1000)], dtype=object)
    named = [label[int(w)] if w != "tie" else w for w in winner]
    return Comparisons.of(label[left], label[right], named)


def lists(truth, count, rng, length=None):
    keys = truth + rng.gumbel(size=(count, len(truth)))
    orders = np.argsort(-keys, axis=1)
    label = [f"{n:03d}" for n in range(len(truth))]
    made = []
    for order in orders:
        top = [[label[k]] for k in order[:length]]
        rest = [label[k] for k in order[length:]] if length else []
        made.append([*top, rest] if rest else top)
    return Rankings.of_lists(made)


def probit(margin):
    return ndtr(margin / np.sqrt(2))


MODELS = {
    "bradley-terry": (BradleyTerry(), lambda truth, n, rng: pairs(truth, 10 * n, rng, expit)),
    "bradley-terry with ties": (BradleyTerry(), lambda truth, n, rng: pairs(truth, 10 * n, rng, None, ties=0.3)),
    "thurstone": (Thurstone(), lambda truth, n, rng: pairs(truth, 10 * n, rng, probit)),
    "plackett-luce": (PlackettLuce(), lambda truth, n, rng: lists(truth, n, rng)),
    "plackett-luce, top three": (PlackettLuce(), lambda truth, n, rng: lists(truth, n, rng, length=3)),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_error_shrinks_with_the_root_of_the_data(name):
    model, simulate = MODELS[name]
    rng = np.random.default_rng(0)
    truth = rng.normal(size=10)
    truth -= truth.mean()

    def error(n):
        return np.mean([np.sqrt(np.mean((model.fit(simulate(truth, n, rng)).scores - truth) ** 2)) for _ in range(5)])

    few, many = error(40), error(640)
    assert many < 0.15
    assert 2.5 < few / many < 7.0  # four, but for chance


def test_davidsons_tie_is_found():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=10)
    found = BradleyTerry().fit(pairs(truth, 20_000, rng, None, ties=0.3))
    assert found.parameters["tie"] == pytest.approx(0.3, abs=0.06)


def held(ranking, truth):
    error = ranking.uncertainty.std_error
    return np.abs(ranking.scores - (truth - truth.mean())) <= WIDTH * error


def ranks_held(ranking, truth):
    low, high = ranking.rank_intervals(LEVEL)
    rank = 1 + np.argsort(np.argsort(-truth))
    return (low <= rank) & (rank <= high)


COVERED = {
    "bradley-terry": (BradleyTerry(prior_scale=1.0), lambda truth, rng: pairs(truth, 200, rng, expit)),
    "bradley-terry with ties": (BradleyTerry(prior_scale=1.0), lambda t, rng: pairs(t, 200, rng, None, ties=0.0)),
    "thurstone": (Thurstone(prior_scale=1.0), lambda truth, rng: pairs(truth, 200, rng, probit)),
    "plackett-luce": (PlackettLuce(prior_scale=1.0), lambda truth, rng: lists(truth, 15, rng)),
    "plackett-luce, top three": (PlackettLuce(prior_scale=1.0), lambda truth, rng: lists(truth, 30, rng, length=3)),
}


@pytest.mark.parametrize("road", ["inverted", "solved"])
@pytest.mark.parametrize("name", COVERED)
def test_intervals_hold_the_truth_as_often_as_they_say(name, road, monkeypatch):
    """Scores drawn from the prior, judgments from the scores: nine intervals in ten must hold."""
    if road == "solved":
        monkeypatch.setattr(laplace, "LARGEST_BLOCK", 1)
        monkeypatch.setattr(paired, "_LARGEST_FACTORED", 1)
        monkeypatch.setattr(list_models, "_LARGEST_INVERTED", 1)
        monkeypatch.setattr(list_formulas, "_PLAIN_UP_TO", 0)
    model, simulate = COVERED[name]
    rng = np.random.default_rng(1)
    scores, ranks = [], []
    for _ in range(30 if "plackett" in name else 100):
        truth = rng.normal(size=16)
        ranking = model.fit(simulate(truth, rng))
        scores.append(held(ranking, truth))
        ranks.append(ranks_held(ranking, truth))
    assert 0.85 <= np.mean(scores) <= 0.95
    assert np.mean(ranks) >= 0.85


def test_intervals_of_another_width_would_be_found_out():
    """The negative control of the test above."""
    model, simulate = COVERED["bradley-terry"]
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(120):
        truth = rng.normal(size=16)
        ranking = model.fit(simulate(truth, rng))
        away = np.abs(ranking.scores - (truth - truth.mean())) / ranking.uncertainty.std_error
        inside.append((away <= 0.75 * WIDTH, away <= 1.4 * WIDTH))
    narrow, wide = np.mean(inside, axis=(0, 2))
    assert narrow < 0.85
    assert wide > 0.95


def test_probabilities_of_standing_above_are_calibrated():
    rng = np.random.default_rng(2)
    model, simulate = COVERED["bradley-terry"]
    said, true = [], []
    for _ in range(60):
        truth = rng.normal(size=16)
        ranking = model.fit(simulate(truth, rng))
        a, b = 0, 1
        said.append(ranking.probability("000", "001"))
        true.append(truth[a] > truth[b])
    said, true = np.array(said), np.array(true)
    sure = np.abs(said - 0.5) > 0.3
    assert np.mean((said > 0.5)[sure] == true[sure]) > 0.85
    assert np.mean((said - true) ** 2) < 0.22


@pytest.mark.parametrize("kind", [BradleyTerry, Thurstone])
@pytest.mark.parametrize("prior_scale", [2.0, None])
@pytest.mark.parametrize("ties", ["modelled", "half"])
def test_standard_errors_are_those_of_the_whole_hessian(kind, prior_scale, ties):
    """Second differences of the log posterior, inverted by brute force, θ included."""
    from crowdrank.models.pairwise.likelihood import Pairs
    from crowdrank.models.pairwise.paired import Objective

    rng = np.random.default_rng(3)
    votes = pairs(rng.normal(size=6), 150, rng, None, ties=0.0)
    model = kind(prior_scale=prior_scale, ties=kind().ties if ties == "modelled" else ties, tolerance=1e-9)
    ranking = model.fit(votes)
    has_theta = ties == "modelled"
    formula = {(BradleyTerry, False): 0, (Thurstone, False): 1, (BradleyTerry, True): 2, (Thurstone, True): 3}
    from crowdrank.engines import LOCAL

    table = LOCAL.load(Pairs(votes.left, votes.right, votes.outcome, votes.weights))
    objective = Objective(table, votes.items, formula[kind, has_theta], prior_scale, 0.0)
    x = np.append(ranking.scores, [ranking.parameters["tie"]] if has_theta else [])
    step = 1e-3
    hessian = np.zeros((len(x), len(x)))
    for i, a in enumerate(np.eye(len(x)) * step):
        for j, b in enumerate(np.eye(len(x)) * step):
            corners = [objective(x + s * a + t * b).value * s * t for s in (1, -1) for t in (1, -1)]
            hessian[i, j] = sum(corners) / (4 * step**2)
    inverse = np.linalg.pinv(-hessian, rcond=1e-4, hermitian=True)[:6, :6]
    centre = np.eye(6) - 1 / 6
    expected = np.sqrt(np.diag(centre @ inverse @ centre))
    np.testing.assert_allclose(ranking.uncertainty.std_error, expected, rtol=1e-3)


@pytest.mark.parametrize("case", ["full", "top three", "tied", "weighted"])
def test_plackett_luces_two_roads_to_doubt_agree(case, monkeypatch):
    rng = np.random.default_rng(4)
    data = lists(rng.normal(size=12), 80, rng, length=3 if case == "top three" else None)
    if case == "tied":
        data = Rankings.of_lists([[["a", "b", "c"], ["d", "e"], ["f"]], [["f"], ["a", "e"], ["b", "c", "d"]]] * 20)
    if case == "weighted":
        data = data.reweighted(np.full(len(data), 4.0))
    model = PlackettLuce(prior_scale=3.0)  # a learnt spread of few items is integrated out on neither road
    inverted = model.fit(data)
    monkeypatch.setattr(list_models, "_LARGEST_INVERTED", 1)
    monkeypatch.setattr(list_formulas, "_PLAIN_UP_TO", 0)
    solved = model.fit(data)
    np.testing.assert_allclose(solved.uncertainty.std_error, inverted.uncertainty.std_error, rtol=0.3)
    ratio = solved.uncertainty.std_error / inverted.uncertainty.std_error
    assert np.mean(ratio) == pytest.approx(1.0, abs=0.1)
    middle = solved.uncertainty.draws.mean(axis=0) - solved.scores
    assert np.abs(middle / inverted.uncertainty.std_error).max() < 0.5


def test_a_long_list_all_agree_on_is_ranked():
    """Scores spread over a hundred and more: probabilities that underflow must not stop the maximisation."""
    order = [[f"{n:03d}"] for n in range(100)]
    ranking = PlackettLuce().fit(Rankings.of_lists([order] * 30).reweighted(np.full(30, 100.0)))
    assert ranking.convergence.converged
    assert np.ptp(ranking.scores) > 100
    assert (np.diff(ranking.scores) < 0).all()


def test_a_step_from_level_ground_is_cut_as_short_as_need_be():
    """In this crowd an early step lands where the curvature all but vanishes, and the next one points 10⁷ away."""
    crowd = crowd_bt(quality="beta(10,1)", seed=1019)
    ranking = BradleyTerry(prior_scale=None, virtual_weight=0.5).fit(crowd.judgments)
    assert ranking.convergence.converged
    assert np.max(np.abs(ranking.scores)) < 10
