"""Promises that every policy keeps."""

from itertools import combinations

import numpy as np
import pytest

from crowdrank.active import POLICIES, QuestionHistory, Rules, batch
from crowdrank.active.candidates import CandidateSet
from crowdrank.data import Comparison, Comparisons, Items
from crowdrank.errors import NothingToAskError, UnknownNameError
from crowdrank.online import CrowdBT, SequentialMCMC

every_policy = pytest.mark.parametrize("policy", [kind() for kind in POLICIES.values()], ids=POLICIES)
LABELS, PEOPLE = ("a", "b", "c", "d", "e"), ("ann", "bob", "cid")
SAID = [
    Comparison("a", "b", "a", "ann"),
    Comparison("b", "c", "b", "bob"),
    Comparison("c", "d", "d", "cid"),
    Comparison("a", "d", "a", "ann"),
    Comparison("b", "d", "b", "bob"),
    Comparison("e", "a", "a", "cid"),
]
MODELS = {"online": CrowdBT(prior_scale=1.0), "mcmc": SequentialMCMC(refit_every=6, warmup=20, draws=40, thin=1)}
DRAWN = 200
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def believed(model, items=LABELS, people=PEOPLE, said=SAID):
    beliefs = model.start(items, people)
    for judgment in said:
        beliefs = model.update(beliefs, judgment)
    return beliefs


def told(said=SAID):
    left, right, winner, annotator, _ = zip(*said, strict=True)
    return Comparisons.of(left, right, winner, annotator=annotator)


def triplets(beliefs):
    return [(i, j, k) for i, j in combinations(range(len(beliefs.items)), 2) for k in range(len(beliefs.annotators))]


@every_model
@every_policy
def test_the_probabilities_of_all_questions_sum_to_one(policy, model):
    beliefs = believed(model)
    candidates = CandidateSet(beliefs, QuestionHistory(beliefs, comparisons=told()))
    probabilities = [
        policy.probability(candidates, *triplet) for triplet in triplets(beliefs) if candidates.allows(*triplet)
    ]
    assert sum(probabilities) == pytest.approx(1.0)
    assert min(probabilities) >= 0


@every_model
@every_policy
def test_questions_come_as_often_as_their_probability_says(policy, model):
    beliefs, rng = believed(model), np.random.default_rng(1)
    history = QuestionHistory(beliefs, comparisons=told())
    drawn = [policy.pick(CandidateSet(beliefs, history), rng) for _ in range(DRAWN)]
    candidates = CandidateSet(beliefs, history)
    for candidate in set(drawn):
        assert policy.probability(candidates, *candidate[:3]) == pytest.approx(candidate.probability)
    # observed frequencies over the recorded probabilities: the mean is 1 if the probabilities are right
    seen = np.array([sum(other[:3] == candidate[:3] for other in drawn) / DRAWN for candidate in drawn])
    expected = np.array([candidate.probability for candidate in drawn])
    spread = np.sqrt(expected * (1 - expected) / DRAWN)
    assert np.all(np.abs(seen - expected) <= 5 * spread + 5 / DRAWN)


@every_policy
def test_a_question_for_one_annotator_is_for_that_one(policy):
    beliefs, rng = believed(MODELS["online"]), np.random.default_rng(0)
    assert {policy.next(beliefs, annotator="bob", rng=rng).annotator for _ in range(10)} == {"bob"}


@every_policy
def test_the_rules_are_kept(policy):
    beliefs, rng = believed(MODELS["mcmc"]), np.random.default_rng(0)
    rules = Rules(available=["ann", "bob"], quota={"ann": 5, "bob": 9}, own={"bob": ["a", "c"]})
    history = QuestionHistory(beliefs, rules, told())
    questions = list(batch(policy, beliefs, history, 50, rng))
    had = {(q.annotator, frozenset((q.left, q.right))) for q in questions}
    assert len(had) == len(questions) > 0
    assert not had & {(j.annotator, frozenset((j.left, j.right))) for j in SAID}
    assert {q.annotator for q in questions} <= {"ann", "bob"}
    assert sum(q.annotator == "ann" for q in questions) <= 3  # two of the five were used up before
    assert not any(q.annotator == "bob" and {"a", "c"} & {q.left, q.right} for q in questions)
    assert history.annotator_counts.tolist()[0] <= 5


@every_policy
def test_no_pair_is_put_to_two_annotators_at_a_time_while_others_are_left(policy):
    beliefs, rng = MODELS["online"].start(LABELS, PEOPLE), np.random.default_rng(0)
    questions = list(batch(policy, beliefs, QuestionHistory(beliefs), 50, rng))
    assert len({frozenset((q.left, q.right)) for q in questions[:10]}) == 10
    assert len({(q.annotator, frozenset((q.left, q.right))) for q in questions}) == len(questions) == 30


@every_policy
def test_a_small_collection_continues_although_the_next_refit_is_far(policy):
    """With three pairs and a refit after fifty answers, questions are still asked."""
    model, rng = SequentialMCMC(refit_every=50, warmup=5, draws=10, thin=1), np.random.default_rng(0)
    beliefs = model.start(("a", "b", "c"), [f"person{n}" for n in range(20)])
    history = QuestionHistory(beliefs)
    for _ in range(55):
        question = policy.next(beliefs, history, rng=rng)
        history.add(question)
        beliefs = model.update(beliefs, question.answered(question.left))
        history.resolve(question)
    assert beliefs.n_judgments == 55
    assert beliefs.n_pending == 5


@every_policy
def test_pairs_are_of_one_query(policy):
    items = Items(
        np.array(["a", "b", "a", "b", "c"], dtype=object),
        np.array([0, 0, 1, 1, 1], np.int32),
        np.array(["one", "two"], dtype=object),
    )
    beliefs, rng = MODELS["mcmc"].start(items, PEOPLE), np.random.default_rng(0)
    questions = list(batch(policy, beliefs, QuestionHistory(beliefs), 50, rng))
    pairs = {(q.query, *sorted((q.left, q.right))) for q in questions[:4]}
    assert pairs == {("one", "a", "b"), ("two", "a", "b"), ("two", "a", "c"), ("two", "b", "c")}


@every_policy
def test_a_pool_is_asked_for_each_answer_once(policy):
    beliefs, rng = MODELS["online"].start(LABELS, PEOPLE), np.random.default_rng(0)
    pool = told([*SAID, Comparison("b", "a", "b", "ann")])
    history = QuestionHistory(beliefs, Rules(pool=pool, repeats=True))
    found = []
    for _ in range(len(pool)):
        question = policy.next(beliefs, history, rng=rng)
        history.add(question)
        history.resolve(question)
        found.append((question.annotator, *sorted((question.left, question.right))))
    expected = [(row["annotator"], *sorted((row["left"], row["right"]))) for row in pool.to_frame().to_dicts()]
    assert sorted(found) == sorted(expected)
    with pytest.raises(NothingToAskError, match="No pair is left"):
        policy.next(beliefs, history, rng=rng)


@every_policy
def test_the_same_seed_asks_the_same_and_beliefs_stay_as_they_were(policy):
    beliefs = believed(MODELS["mcmc"])
    before = beliefs.mean.copy(), beliefs.alpha.copy()
    first, second = (
        list(batch(policy, beliefs, QuestionHistory(beliefs), 5, np.random.default_rng(3))) for _ in range(2)
    )
    assert first == second
    np.testing.assert_array_equal(beliefs.mean, before[0])
    np.testing.assert_array_equal(beliefs.alpha, before[1])


@every_policy
def test_sides_are_random(policy):
    beliefs, rng = MODELS["online"].start(("a", "b"), ("ann",)), np.random.default_rng(0)
    left = sum(policy.next(beliefs, rng=rng).left == "a" for _ in range(100))
    assert 30 < left < 70


@every_policy
def test_the_error_says_why_nothing_can_be_asked(policy):
    beliefs = MODELS["online"].start(LABELS, PEOPLE)
    with pytest.raises(UnknownNameError, match="annotator"):
        policy.next(beliefs, annotator="zoe")
    with pytest.raises(NothingToAskError, match="quota"):
        policy.next(beliefs, QuestionHistory(beliefs, Rules(quota=0)))
    with pytest.raises(NothingToAskError, match="name annotators"):
        policy.next(MODELS["online"].start(LABELS))
    with pytest.raises(NothingToAskError, match="No pair is left"):
        policy.next(MODELS["online"].start(["a"], PEOPLE))


@every_policy
def test_new_annotators_are_asked_and_new_items_are_asked_about(policy):
    model, rng = MODELS["online"], np.random.default_rng(0)
    beliefs = believed(model)
    history = QuestionHistory(beliefs, comparisons=told())
    grown = model.update(beliefs, Comparison("new", "a", "new", "zoe"))
    questions = list(batch(policy, grown, history, 100, rng))
    assert any("new" in (q.left, q.right) for q in questions)
    assert len(questions) > 10


@every_policy
def test_thousands_of_items_are_possible(policy):
    beliefs = MODELS["online"].start([f"item{n}" for n in range(2_000)], PEOPLE)
    question = policy.next(beliefs, annotator="ann", rng=np.random.default_rng(0))
    assert question.left != question.right
    assert 0 < question.probability <= 1
