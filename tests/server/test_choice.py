"""The choice of the next pair: gold pairs, repetitions, random pairs and the most informative ones."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from crowdrank.active.information_gain import all_gains
from crowdrank.errors import NothingToAskError
from crowdrank.server.choice import choose_pair
from crowdrank.server.projection import Projection
from crowdrank.storage import Collection, NewItem, PendingPair


@pytest.fixture
def collection(tmp_path):
    with Collection.open(tmp_path / "c.db", durable=False) as opened:
        yield opened


def begun(collection, items=6, votes=0, settings=None, seed=0):
    collection.items.add([f"i{n}" for n in range(items)], actor="test")
    (ann, bob) = collection.annotators.add(["ann", "bob"], actor="test")
    if settings:
        collection.settings.change(settings, actor="test")
    projection, rng = Projection(collection).catch_up(), np.random.default_rng(seed)
    for n in range(votes):
        answer(collection, projection, (ann, bob)[n % 2], rng)
    return projection, projection.annotators[ann], projection.annotators[bob]


def answer(collection, projection, who, rng, outcome="left"):
    chosen = choose_pair(projection, projection.annotators[who], [], rng)
    asked = collection.assignments.create(
        who, chosen.left, chosen.right, policy=chosen.policy, probability=chosen.probability, gold=chosen.gold
    )
    collection.votes.record(asked.token, outcome, annotator=who)
    projection.catch_up()
    return chosen


def question_settings(**values):
    from crowdrank.server.settings import QuestionSettings

    return {"questions": {**vars(QuestionSettings()), **values}}


def test_without_a_random_share_the_most_informative_pair_is_chosen(collection):
    projection, ann, _ = begun(collection, votes=14, settings=question_settings(random_share=0.0, min_appearances=0))
    chosen = choose_pair(projection, ann, [], np.random.default_rng(5))
    gains = all_gains(projection.beliefs, "ann")
    for pair in ann.answered_pairs:
        gains[pair // 2**32, pair % 2**32] = gains[pair % 2**32, pair // 2**32] = np.nan
    one, other = projection.items[chosen.left].code, projection.items[chosen.right].code
    assert gains[one, other] == pytest.approx(np.nanmax(gains), rel=1e-9)
    assert (chosen.policy, chosen.probability) == ("gain", 1.0)


def test_every_item_appears_before_the_most_informative_pairs_are_chosen(collection):
    projection, ann, bob = begun(collection, items=8, settings=question_settings(random_share=0.0, min_appearances=2))
    rng = np.random.default_rng(0)
    for n in range(8):
        assert answer(collection, projection, (ann.id, bob.id)[n % 2], rng).policy == "coverage"
    assert projection.appearances.min() >= 2
    assert answer(collection, projection, ann.id, rng).policy == "gain"


def test_recorded_probabilities_match_the_frequencies(collection):
    """Each pair is chosen as often as its recorded probability says."""
    projection, ann, _ = begun(
        collection, items=4, votes=4, settings=question_settings(random_share=0.5, min_appearances=0)
    )
    rng, times, said = np.random.default_rng(3), Counter(), {}
    for _ in range(2000):
        chosen = choose_pair(projection, ann, [], rng)
        pair = frozenset((chosen.left, chosen.right))
        times[pair] += 1
        said[pair] = chosen.probability
    assert sum(said.values()) == pytest.approx(1)
    for pair, probability in said.items():
        assert times[pair] / 2000 == pytest.approx(probability, abs=4 * np.sqrt(probability * (1 - probability) / 2000))


def test_gold_and_repeat_shares_are_respected(collection):
    settings = {
        **question_settings(gold_share=0.2, repeat_share=0.3, min_appearances=0),
        "gold": [["i0", "i1"], ["i2", "i3"]],
    }
    projection, ann, _ = begun(collection, items=9, votes=24, settings=settings)
    rng = np.random.default_rng(0)
    came = Counter(choose_pair(projection, ann, [], rng).policy for _ in range(1000))
    left = sum(1 for pair in (("i0", "i1"), ("i2", "i3")) if not _answered(projection, ann, pair))
    assert came["repeat"] == pytest.approx(300, abs=60)
    assert came["gold"] == pytest.approx(200 if left else 0, abs=55)


def _answered(projection, annotator, pair):
    codes = sorted(item.code for item in projection.items.values() if item.label in pair)
    return codes[0] * 2**32 + codes[1] in annotator.answered_pairs


def test_gold_is_the_better_item_on_either_side(collection):
    projection, ann, _ = begun(
        collection, settings={**question_settings(gold_share=0.5, repeat_share=0.0), "gold": [["i5", "i0"]]}
    )
    rng, sides = np.random.default_rng(0), set()
    for _ in range(60):
        chosen = choose_pair(projection, ann, [], rng)
        if chosen.gold is not None:
            assert projection.items[chosen.gold].label == "i5"
            sides.add(chosen.left == chosen.gold)
    assert sides == {True, False}


def test_pending_pairs_are_avoided_while_there_are_others(collection):
    projection, ann, bob = begun(collection, items=3, settings=question_settings(random_share=0.0, min_appearances=0))
    i, j, k = projection.items
    rng = np.random.default_rng(0)
    pending = [PendingPair(bob.id, i, j), PendingPair(bob.id, i, k)]
    for _ in range(10):
        chosen = choose_pair(projection, ann, pending, rng)
        assert {chosen.left, chosen.right} == {j, k}
    all_of_them = [*pending, PendingPair(bob.id, j, k)]
    assert choose_pair(projection, ann, all_of_them, rng).left in projection.items


def test_pairs_share_a_query_and_skip_own_and_hidden_items(collection):
    items = [
        NewItem(label=f"{q}{n}", query=q, content={"owner": "ann"} if n == 0 else {}) for q in "xy" for n in range(4)
    ]
    numbers = collection.items.add(items, actor="test")
    collection.items.hide(numbers[1], actor="test")
    (who,) = collection.annotators.add(["ann"], actor="test")
    projection, rng = Projection(collection).catch_up(), np.random.default_rng(0)
    seen = set()
    for _ in range(4):
        chosen = answer(collection, projection, who, rng)
        left, right = projection.items[chosen.left], projection.items[chosen.right]
        assert left.query == right.query
        seen |= {left.label, right.label}
    assert seen == {"x2", "x3", "y1", "y2", "y3"}
    with pytest.raises(NothingToAskError):
        choose_pair(projection, projection.annotators[who], [], rng)


def test_one_item_alone_cannot_be_asked_about(collection):
    projection, ann, _ = begun(collection, items=1)
    with pytest.raises(NothingToAskError):
        choose_pair(projection, ann, [], np.random.default_rng(0))
