"""The behaviour of each policy."""

import numpy as np
import pytest

from crowdrank.active import (
    Adaptive,
    BestAnnotator,
    Coverage,
    EpsilonGreedy,
    InformationGain,
    Question,
    QuestionHistory,
    Random,
    Rules,
    Thompson,
    Uncertainty,
    batch,
    by_name,
    run_collection,
)
from crowdrank.active.candidates import CandidateSet
from crowdrank.active.information_gain import all_gains
from crowdrank.active.policies import BestAnnotatorStrategy, _expected_capacities, z_scores
from crowdrank.data import Comparison, Comparisons
from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.evaluation import accuracy
from crowdrank.online import CrowdBT, SequentialMCMC
from crowdrank.simulation import respondents

ITEMS, PEOPLE = tuple("abcdefgh"), ("ann", "bob", "cid")


def seeded(n=0):
    return np.random.default_rng(n)


def after(model, *said):
    beliefs = model.start(ITEMS, PEOPLE)
    for judgment in said:
        beliefs = model.update(beliefs, judgment)
    return beliefs


def test_random_takes_every_triplet_alike():
    beliefs = CrowdBT().start(("a", "b", "c"), ("ann", "bob"))
    assert Random().next(beliefs, rng=seeded()).probability == pytest.approx(1 / 6)


def test_random_of_a_pool_takes_every_answer_alike():
    beliefs = CrowdBT().start(ITEMS, PEOPLE)
    pool = Comparisons.of(list("abcd"), list("bcde"), list("abcd"), annotator=["ann", "ann", "ann", "bob"])
    history = QuestionHistory(beliefs, Rules(pool=pool))
    drawn = [Random().next(beliefs, history, rng=seeded(n)) for n in range(200)]
    assert {question.probability for question in drawn} == {0.25}
    assert 130 < sum(question.annotator == "ann" for question in drawn) < 170


def test_coverage_asks_about_every_item_before_any_item_twice():
    beliefs = CrowdBT().start(ITEMS, PEOPLE)
    history = QuestionHistory(beliefs)
    questions = list(batch(Coverage(), beliefs, history, 4, seeded()))
    assert sorted(label for q in questions for label in (q.left, q.right)) == sorted(ITEMS)


def test_uncertainty_asks_about_the_pair_that_is_least_clear():
    beliefs = CrowdBT().start(ITEMS, PEOPLE)
    mean = np.array([0.0, 3.0, 6.0, 9.0, 9.5, 13.0, 17.0, 21.0])
    beliefs = beliefs.replace(item_columns={**beliefs.item_columns, "mean": mean})
    question = Uncertainty().next(beliefs, rng=seeded())
    assert {question.left, question.right} == {"d", "e"}
    assert question.probability == pytest.approx(1 / 3)


def test_z_scores_of_draws_use_the_correlation_of_two_items():
    """Two correlated items are separated although each is uncertain."""
    rng = seeded()
    model = SequentialMCMC(draws=400)
    beliefs = model.start(("a", "b", "c"), ("ann",))
    shared = rng.normal(scale=5, size=400)
    scores = np.stack((shared + 1, shared - 1, rng.normal(scale=0.1, size=400)), axis=1)
    scores[:, :2] += rng.normal(scale=0.1, size=(400, 2))
    from crowdrank.online.sequential_mcmc import Draws

    beliefs = beliefs.replace(
        draws=Draws(scores, beliefs.draws.qualities),
        item_columns={"mean": scores.mean(axis=0), "variance": scores.var(axis=0)},
    )
    candidates = CandidateSet(beliefs)
    clear = dict(zip(zip(*candidates.pairs(0), strict=True), z_scores(beliefs, candidates.pairs(0)), strict=True))
    assert clear[0, 1] > 5 > 1 > clear[0, 2]
    assert clear[0, 1] == pytest.approx(
        abs((scores[:, 0] - scores[:, 1]).mean() / (scores[:, 0] - scores[:, 1]).std(ddof=1))
    )


def test_gain_is_the_largest_there_is():
    beliefs = after(CrowdBT(), Comparison("a", "b", "a", "ann"), Comparison("c", "d", "d", "bob"))
    question = InformationGain(exploration=2.0).next(beliefs, rng=seeded())
    gains = all_gains(beliefs, exploration=2.0)
    found = gains[
        beliefs.annotators.index(question.annotator), *(beliefs.items.index(x) for x in (question.left, question.right))
    ]
    assert found == pytest.approx(np.nanmax(gains))


def test_exploration_is_halved_as_the_budget_is_spent():
    policy = InformationGain(exploration=8.0, halve_every=0.25, budget=8)
    beliefs = CrowdBT().start(ITEMS, PEOPLE)
    history, found = QuestionHistory(beliefs), []
    for _ in range(8):
        found.append(policy._current_exploration(CandidateSet(beliefs, history)))
        history.add(Random().next(beliefs, history, rng=seeded(len(found))))
    assert found == [8, 8, 4, 4, 2, 2, 1, 1]
    with pytest.raises(SettingError, match="budget"):
        InformationGain(halve_every=0.25)


def test_gain_takes_pending_answers_into_account():
    """With equal beliefs, the items of a pending question are avoided."""
    beliefs = CrowdBT().start(ITEMS, PEOPLE)
    questions = list(batch(InformationGain(exploration=0.0), beliefs, QuestionHistory(beliefs), 4, seeded()))
    assert sorted(label for q in questions for label in (q.left, q.right)) == sorted(ITEMS)


def test_thompson_asks_the_most_informative_annotators_including_reversed_ones():
    beliefs = CrowdBT().start(ITEMS, PEOPLE)
    counts = {"alpha": np.array([50.0, 1.0, 30.0]), "beta": np.array([50.0, 80.0, 30.0])}
    beliefs = beliefs.replace(annotator_columns=counts)
    assert {Thompson().next(beliefs, rng=seeded(n)).annotator for n in range(20)} == {"bob"}


def test_the_best_annotator_is_the_most_informative_one_per_price_including_reversed_ones():
    beliefs = CrowdBT().start(ITEMS, PEOPLE)
    counts = {"alpha": np.array([9.0, 1.0, 30.0]), "beta": np.array([5.0, 8.0, 30.0])}
    beliefs = beliefs.replace(annotator_columns=counts)
    free, dear = QuestionHistory(beliefs), QuestionHistory(beliefs, Rules(price={"bob": 100.0}))
    asked = [BestAnnotator().next(beliefs, history, rng=seeded(1)).annotator for history in (free, dear)]
    assert asked == ["bob", "ann"]


def test_an_unknown_annotator_is_asked_once_the_known_ones_are_expected_to_be_worse():
    beliefs = CrowdBT(quality_prior=(2.0, 1.0)).start(ITEMS, PEOPLE)
    known = {"alpha": np.array([5.0, 2.0, 2.0]), "beta": np.array([4.0, 1.0, 1.0])}
    better = {"alpha": np.array([9.0, 2.0, 2.0]), "beta": np.array([1.0, 1.0, 1.0])}
    asked = [
        BestAnnotatorStrategy().probabilities(CandidateSet(beliefs.replace(annotator_columns=columns))).tolist()
        for columns in (known, better)
    ]
    assert asked == [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]


def test_annotators_without_answers_are_equally_good_whatever_was_drawn_for_them():
    """Otherwise the one with the luckiest draws would be asked, and later another one."""
    people = [f"annotator{n}" for n in range(40)]
    model = SequentialMCMC(warmup=20, draws=20)
    votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "b"], annotator=["annotator0"] * 2)
    beliefs = model.fold(model.start(ITEMS, people), votes)
    value = _expected_capacities(beliefs)
    assert len(set(value[1:])) == 1
    history = QuestionHistory(beliefs, Rules(available=people[1:]))
    asked = Question(left="a", right="b", annotator="annotator7", probability=1.0, policy="random")
    history.add(asked)
    history.resolve(asked)
    assert BestAnnotatorStrategy().probabilities(CandidateSet(beliefs, history))[6] == 1.0


def test_adaptive_is_ahead_of_random_questions_with_a_few_answers_per_annotator():
    """Thompson sampling would ask nearly all of the annotators, of whom a third are of no use."""
    ahead = []
    for seed in range(4):
        crowd = respondents(30, 60, "beta(2,1)", "order", seed=seed)
        model = SequentialMCMC(seed=seed)
        found = [
            run_collection(policy, crowd, 180, model, seeded(seed)).comparisons() for policy in (Adaptive(), Random())
        ]
        scores = [model.fold(model.start(crowd.items, crowd.annotators), votes).mean for votes in found]
        ahead.append(accuracy(scores[0], crowd.truth) - accuracy(scores[1], crowd.truth))
    assert np.mean(ahead) > 0.05


def test_thompson_takes_prices_into_account():
    beliefs = CrowdBT().start(ITEMS, PEOPLE)
    counts = {"alpha": np.array([90.0, 95.0, 50.0]), "beta": np.array([10.0, 5.0, 50.0])}
    beliefs = beliefs.replace(annotator_columns=counts)
    free, dear = QuestionHistory(beliefs), QuestionHistory(beliefs, Rules(price={"bob": 10.0}))
    assert [Thompson().next(beliefs, history, rng=seeded(1)).annotator for history in (free, dear)] == ["bob", "ann"]


def test_adaptive_covers_every_item_and_then_asks_about_uncertain_pairs():
    beliefs = CrowdBT().start(ITEMS, PEOPLE)
    history, policy = QuestionHistory(beliefs), Adaptive(epsilon=0.0, floor=2)
    names = []
    for n in range(20):
        question = policy.next(beliefs, history, rng=seeded(n))
        history.add(question)
        history.resolve(question)
        names.append(question.policy)
    assert names == ["coverage"] * 8 + ["best-annotator"] * 12
    assert history.item_counts.min() >= 2


@pytest.mark.parametrize("policy", [Adaptive(epsilon=0.3), EpsilonGreedy(epsilon=0.3)], ids=["adaptive", "greedy"])
def test_a_share_is_drawn_at_random_and_says_so(policy):
    beliefs, rng = CrowdBT().start(ITEMS, PEOPLE), seeded()
    drawn = [policy.next(beliefs, rng=rng) for _ in range(300)]
    free = [question for question in drawn if question.policy == "random"]
    assert 60 < len(free) < 120
    assert min(question.probability for question in drawn) > 0.999 * 0.3 / (28 * 3)


def test_pairs_that_wait_for_the_next_refit_are_not_asked_again():
    model = SequentialMCMC(refit_every=100, warmup=5, draws=20, thin=1)
    beliefs = after(model, Comparison("a", "b", "a", "ann"))
    history = QuestionHistory(beliefs)
    questions = list(batch(Uncertainty(), beliefs, history, 27, seeded()))
    assert {"a", "b"} not in [{q.left, q.right} for q in questions]
    assert len(questions) == 27


def test_policies_go_by_name():
    assert by_name("adaptive") is Adaptive
    with pytest.raises(UnknownNameError, match="thompson"):
        by_name("thomson")


@pytest.mark.parametrize("epsilon", [-0.1, 1.5])
def test_a_share_is_a_share(epsilon):
    with pytest.raises(SettingError, match="epsilon"):
        Adaptive(epsilon=epsilon)
