"""Choosing for many annotators at once gives the questions and probabilities of the policy for one."""

import numpy as np
import pytest

from crowdrank.active import EpsilonGreedy, QuestionHistory
from crowdrank.active.branch_and_bound import QueryBlocks
from crowdrank.active.candidates import CandidateSet
from crowdrank.active.concurrent_choice import ConcurrentChoice
from crowdrank.active.gain_formulas import expected_gain
from crowdrank.active.policies import InformationGain
from crowdrank.online import Beliefs, Vocabulary


def crowd(seed, n=24, queries=2, asked=20):
    """Beliefs about items of some queries and one annotator, and pairs that they have answered."""
    rng = np.random.default_rng(seed)
    labels = tuple(f"i{k}" for k in range(n))
    items = Vocabulary(labels, tuple(str(k % queries) for k in range(n)))
    beliefs = Beliefs(
        items=items,
        annotators=Vocabulary.of(["ann"]),
        item_columns={"mean": rng.normal(size=n), "variance": rng.uniform(0.1, 1, n)},
        annotator_columns={"alpha": np.array([6.0]), "beta": np.array([2.0])},
    )
    pairs = np.sort(rng.permuted(np.tile(np.arange(0, n, queries), (asked, 1)), axis=1)[:, :2], axis=1)
    return beliefs, np.unique(pairs, axis=0).T, rng


def policy_and_candidates(beliefs, answered, counts, floor):
    history = QuestionHistory(beliefs)
    history._asked_pairs[0] = np.sort(answered[0] * 2**32 + answered[1])
    history.item_counts = counts
    policy = EpsilonGreedy(epsilon=0.4, floor=floor, best=InformationGain())
    return policy, CandidateSet(beliefs, history, "ann")


@pytest.mark.parametrize("floor", [0, 3])
def test_probabilities_are_those_of_the_policy(floor):
    for seed in range(5):
        beliefs, answered, rng = crowd(seed)
        counts = rng.integers(1, 4, len(beliefs.items))
        choice = ConcurrentChoice(
            QueryBlocks.of(beliefs.items.query), beliefs.mean, beliefs.variance, counts, np.zeros((2, 0), int)
        )
        policy, candidates = policy_and_candidates(beliefs, answered, counts, floor)
        taken, policies = set(map(tuple, answered.T.tolist())), set()
        for _ in range(60):
            chosen = choice.choose(answered, (6.0, 2.0), 0.4, floor, rng)
            assert (chosen.first, chosen.second) not in taken
            assert beliefs.items.query[chosen.first] == beliefs.items.query[chosen.second]
            expected = policy.probability(candidates, chosen.first, chosen.second, 0)
            assert chosen.probability == pytest.approx(expected, rel=1e-12)
            policies.add(chosen.policy)
        assert policies == {"random", "coverage" if floor else "gain"}


def test_pairs_are_drawn_as_often_as_they_say():
    beliefs, answered, rng = crowd(9, n=8, queries=1, asked=3)
    counts = np.array([0, 0, 1, 0, 2, 1, 0, 3])
    choice = ConcurrentChoice(
        QueryBlocks.of(beliefs.items.query), beliefs.mean, beliefs.variance, counts, np.zeros((2, 0), int)
    )
    drawn = [choice.choose(answered, (6.0, 2.0), 0.5, 5, rng) for _ in range(4000)]
    said = {(one.first, one.second): one.probability for one in drawn}
    assert sum(said.values()) == pytest.approx(1)
    for pair, probability in said.items():
        share = sum((one.first, one.second) == pair for one in drawn) / len(drawn)
        assert share == pytest.approx(probability, abs=5 * np.sqrt(probability / len(drawn)))


def test_questions_that_are_handed_out_change_the_next_choice_exactly():
    beliefs, answered, rng = crowd(4, n=40, asked=5)
    variance, pending = beliefs.variance.copy(), []
    choice = ConcurrentChoice(
        QueryBlocks.of(beliefs.items.query), beliefs.mean, variance, np.full(40, 9), np.zeros((2, 0), int)
    )
    first, second = np.triu_indices(40, 1)
    same = beliefs.items.query[first] == beliefs.items.query[second]
    first, second = first[same], second[same]
    for _ in range(12):
        chosen = choice.choose(answered, (6.0, 2.0), 0.0, 0, rng)
        gains = expected_gain(
            beliefs.mean[first] - beliefs.mean[second], variance[first], variance[second], 6.0, 2.0, 1
        )
        for one, other in (*answered.T, *pending):
            gains[(first == one) & (second == other)] = -1
        best = (first == chosen.first) & (second == chosen.second)
        assert gains[best][0] == pytest.approx(gains.max(), rel=1e-9)
        pending.append((chosen.first, chosen.second))
        variance[list(pending[-1])] *= 0.6
        choice.add(chosen.first, chosen.second, tuple(variance[list(pending[-1])]))


def test_boxes_stay_tight_while_questions_are_handed_out():
    """Loose boxes still give the right pair, but every search then looks at all items that were just asked about."""
    beliefs, answered, rng = crowd(3, n=60, queries=3)
    zeros = np.zeros(60, int)
    choice = ConcurrentChoice(
        QueryBlocks.of(beliefs.items.query), beliefs.mean, beliefs.variance, zeros, np.zeros((2, 0), int)
    )
    for _ in range(25):
        chosen = choice.choose(answered, (6.0, 2.0), 0.0, 0, rng)
        choice.add(chosen.first, chosen.second, tuple(rng.uniform(0.05, 0.1, 2)))
        tree = choice._tree
        for node, (start, stop) in enumerate(zip(tree.start, tree.stop, strict=True)):
            variances = tree.variance[start:stop]
            assert tuple(tree.box[node, 2:]) == (variances.min(), variances.max())


def test_few_remaining_pairs_are_left_to_the_policy():
    beliefs, _, rng = crowd(0, n=4, queries=1, asked=0)
    choice = ConcurrentChoice(
        QueryBlocks.of(beliefs.items.query), beliefs.mean, beliefs.variance, np.zeros(4, int), np.zeros((2, 0), int)
    )
    assert choice.choose(np.array([[0, 0, 1], [1, 2, 2]]), (6.0, 2.0), 0.5, 0, rng) is None
