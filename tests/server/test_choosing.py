"""What is asked next: shares that keep it honest, and the rest by what it teaches."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from crowdrank.active.information_gain import all_gains
from crowdrank.errors import NothingToAskError
from crowdrank.server.choice import choose
from crowdrank.server.projection import Live
from crowdrank.storage import Collection, NewItem, Pending


@pytest.fixture
def collection(tmp_path):
    with Collection.open(tmp_path / "c.db", durable=False) as opened:
        yield opened


def begun(collection, items=6, votes=0, settings=None, seed=0):
    collection.items.add([f"i{n}" for n in range(items)], actor="test")
    (ann, bob) = collection.annotators.add(["ann", "bob"], actor="test")
    if settings:
        collection.settings.change(settings, actor="test")
    live, rng = Live(collection).catch_up(), np.random.default_rng(seed)
    for n in range(votes):
        answer(collection, live, (ann, bob)[n % 2], rng)
    return live, live.people[ann], live.people[bob]


def answer(collection, live, who, rng, outcome="left"):
    chosen = choose(live, live.people[who], [], rng)
    asked = collection.questions.assign(
        who, chosen.left, chosen.right, policy=chosen.policy, probability=chosen.probability, gold=chosen.gold
    )
    collection.questions.vote(asked.token, outcome, annotator=who)
    live.catch_up()
    return chosen


def asking(**told):
    from crowdrank.server.settings import Asking

    return {"asking": {**vars(Asking()), **told}}


def test_without_a_random_share_the_most_informative_pair_is_chosen(collection):
    live, ann, _ = begun(collection, votes=14, settings=asking(random_share=0.0, floor=0))
    chosen = choose(live, ann, [], np.random.default_rng(5))
    gains = all_gains(live.beliefs, "ann")
    for pair in ann.had:
        gains[pair // 2**32, pair % 2**32] = gains[pair % 2**32, pair // 2**32] = np.nan
    one, other = live.items[chosen.left].code, live.items[chosen.right].code
    assert gains[one, other] == pytest.approx(np.nanmax(gains), rel=1e-9)
    assert (chosen.policy, chosen.probability) == ("gain", 1.0)


def test_every_item_is_seen_before_pairs_are_chosen_by_what_they_teach(collection):
    live, ann, bob = begun(collection, items=8, settings=asking(random_share=0.0, floor=2))
    rng = np.random.default_rng(0)
    for n in range(8):
        assert answer(collection, live, (ann.id, bob.id)[n % 2], rng).policy == "coverage"
    assert live.seen.min() >= 2
    assert answer(collection, live, ann.id, rng).policy == "gain"


def test_probabilities_are_those_of_the_choice(collection):
    """Each pair comes as often as it says it would."""
    live, ann, _ = begun(collection, items=4, votes=4, settings=asking(random_share=0.5, floor=0))
    rng, times, said = np.random.default_rng(3), Counter(), {}
    for _ in range(2000):
        chosen = choose(live, ann, [], rng)
        pair = frozenset((chosen.left, chosen.right))
        times[pair] += 1
        said[pair] = chosen.probability
    assert sum(said.values()) == pytest.approx(1)
    for pair, probability in said.items():
        assert times[pair] / 2000 == pytest.approx(probability, abs=4 * np.sqrt(probability * (1 - probability) / 2000))


def test_shares_of_gold_and_of_repeats_are_kept(collection):
    settings = {**asking(gold_share=0.2, repeat_share=0.3, floor=0), "gold": [["i0", "i1"], ["i2", "i3"]]}
    live, ann, _ = begun(collection, items=9, votes=24, settings=settings)
    rng = np.random.default_rng(0)
    came = Counter(choose(live, ann, [], rng).policy for _ in range(1000))
    left = sum(1 for pair in (("i0", "i1"), ("i2", "i3")) if not _had(live, ann, pair))
    assert came["repeat"] == pytest.approx(300, abs=60)
    assert came["gold"] == pytest.approx(200 if left else 0, abs=55)


def _had(live, person, pair):
    codes = sorted(thing.code for thing in live.items.values() if thing.label in pair)
    return codes[0] * 2**32 + codes[1] in person.had


def test_gold_names_the_better_item_whichever_side_it_is_on(collection):
    live, ann, _ = begun(collection, settings={**asking(gold_share=0.5, repeat_share=0.0), "gold": [["i5", "i0"]]})
    rng, sides = np.random.default_rng(0), set()
    for _ in range(60):
        chosen = choose(live, ann, [], rng)
        if chosen.gold is not None:
            assert live.items[chosen.gold].label == "i5"
            sides.add(chosen.left == chosen.gold)
    assert sides == {True, False}


def test_pairs_that_someone_looks_at_are_left_alone_while_there_are_others(collection):
    live, ann, bob = begun(collection, items=3, settings=asking(random_share=0.0, floor=0))
    i, j, k = live.items
    rng = np.random.default_rng(0)
    pending = [Pending(bob.id, i, j), Pending(bob.id, i, k)]
    for _ in range(10):
        chosen = choose(live, ann, pending, rng)
        assert {chosen.left, chosen.right} == {j, k}
    all_of_them = [*pending, Pending(bob.id, j, k)]
    assert choose(live, ann, all_of_them, rng).left in live.items


def test_queries_are_not_mixed_and_own_and_hidden_items_left_out(collection):
    items = [
        NewItem(label=f"{q}{n}", query=q, content={"owner": "ann"} if n == 0 else {}) for q in "xy" for n in range(4)
    ]
    numbers = collection.items.add(items, actor="test")
    collection.items.hide(numbers[1], actor="test")
    (who,) = collection.annotators.add(["ann"], actor="test")
    live, rng = Live(collection).catch_up(), np.random.default_rng(0)
    seen = set()
    for _ in range(4):
        chosen = answer(collection, live, who, rng)
        left, right = live.items[chosen.left], live.items[chosen.right]
        assert left.query == right.query
        seen |= {left.label, right.label}
    assert seen == {"x2", "x3", "y1", "y2", "y3"}
    with pytest.raises(NothingToAskError):
        choose(live, live.people[who], [], rng)


def test_nothing_is_asked_of_one_item(collection):
    live, ann, _ = begun(collection, items=1)
    with pytest.raises(NothingToAskError):
        choose(live, ann, [], np.random.default_rng(0))
