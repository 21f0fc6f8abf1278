"""Promises that every online model keeps."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdrank.data import Comparison, Comparisons
from crowdrank.errors import DataError, DataWarning
from crowdrank.online import Beliefs, CrowdBT, Elo, Glicko2, TrueSkill
from crowdrank.online import beliefs as beliefs_module
from tests.strategies import comparisons

MODELS = {
    "crowd-bt": CrowdBT(),
    "crowd-bt, closed": CrowdBT(moments="closed", ties="half"),
    "crowd-bt, as printed": CrowdBT(moments="closed", win_probability="taylor"),
    "trueskill": TrueSkill(),
    "elo": Elo(),
    "glicko-2": Glicko2(),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
few = settings(max_examples=15, deadline=None)


def random_votes(rows=300, items=12, annotators=5, seed=0):
    rng = np.random.default_rng(seed)
    left = rng.integers(items, size=rows)
    right = (left + rng.integers(1, items, size=rows)) % items
    winner = np.where(rng.random(rows) < 0.1, "tie", np.where(rng.random(rows) < 0.6, left, right).astype(str))
    return Comparisons.of(
        left.astype(str),
        right.astype(str),
        winner,
        annotator=rng.integers(annotators, size=rows).astype(str),
        query=np.zeros(rows, int).astype(str),
        time=rng.permutation(rows),
    )


def one_by_one(votes):
    """The rows of a table as single judgments, in the order of time."""
    for row in votes.sorted_by_time().to_frame().iter_rows(named=True):
        judgment = Comparison(row["left"], row["right"], row["winner"])
        yield judgment._replace(annotator=row.get("annotator", ""), query=row.get("query", ""))


def believed(beliefs):
    """All beliefs, by name."""
    found = {"judged": beliefs.n_judgments, "left out": beliefs.n_ties_dropped}
    for vocabulary, columns in ((beliefs.items, beliefs.item_columns), (beliefs.annotators, beliefs.annotator_columns)):
        for name, column in columns.items():
            found |= {
                (name, *key): x for *key, x in zip(vocabulary.queries, vocabulary.labels, column.tolist(), strict=True)
            }
    return found


def after(model, judgments, beliefs=None):
    beliefs = model.start() if beliefs is None else beliefs
    for judgment in judgments:
        beliefs = model.update(beliefs, judgment)
    return beliefs


@every_model
@pytest.mark.parametrize("compile_above", [0, 2_000], ids=["compiled", "plain"])
def test_a_fold_is_its_updates(model, compile_above, monkeypatch):
    votes = random_votes()
    begun = model.update(model.start(["z"], ["zoe", "3"]), Comparison("5", "1", "5", "2", "0"))
    single = after(model, one_by_one(votes), begun)
    monkeypatch.setattr(beliefs_module, "COMPILE_ABOVE", compile_above)
    assert believed(model.fold(begun, votes)) == pytest.approx(believed(single), rel=1e-12, abs=1e-12)


@every_model
def test_another_order_of_judgments_gives_other_beliefs(model):
    """Negative control of the test above: it detects a different order."""
    votes = random_votes()
    turned = votes.take(slice(None, None, -1))
    backwards = after(model, reversed(list(one_by_one(votes))))
    assert believed(model.fold(model.start(), turned)) != pytest.approx(believed(backwards), rel=1e-6)


@every_model
@few
@given(votes=comparisons())
def test_sides_do_not_matter(model, votes):
    turned = [j._replace(left=j.right, right=j.left) for j in one_by_one(votes)]
    assert believed(after(model, turned)) == pytest.approx(believed(after(model, one_by_one(votes))), rel=1e-12)


by_answer = pytest.mark.parametrize("model", [m for m in MODELS.values() if not isinstance(m, Elo | Glicko2)], ids=repr)
"""Those that take in a judgment of weight three as three; in the others the step or the evidence is multiplied."""


@by_answer
@few
@given(votes=comparisons(weights=None), times=st.integers(2, 3))
def test_weight_counts_as_repetition(model, votes, times):
    heavy = model.fold(model.start(), votes.reweighted(np.full(len(votes), float(times))))
    again = after(model, [j for j in one_by_one(votes) for _ in range(times)])
    same = {"n_judgments": len(votes), "n_ties_dropped": votes.ties}
    assert believed(again.replace(**same)) == pytest.approx(believed(heavy.replace(**same)), rel=1e-9, abs=1e-12)


@by_answer
@few
@given(votes=comparisons(weights=None))
def test_half_an_answer_moves_half_as_far(model, votes):
    votes = votes.take(slice(0, 1))
    start = model.start(votes.items, votes.annotators)
    half, whole = (model.fold(start, votes.reweighted(np.array([weight]))) for weight in (0.5, 1.0))
    for kind in ("item_columns", "annotator_columns"):
        for name, before in getattr(start, kind).items():
            middle = (before + getattr(whole, kind)[name]) / 2
            np.testing.assert_allclose(getattr(half, kind)[name], middle, rtol=1e-12, atol=1e-12)


@every_model
def test_an_update_changes_nothing_of_what_was_believed(model):
    start = model.start(["a", "b", "c"], ["ann"])
    before = believed(start)
    later = model.update(start, Comparison("a", "b", "a", "ann"))
    assert believed(start) == before != believed(later)
    for column in (*later.item_columns.values(), *later.annotator_columns.values()):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1.0


@every_model
def test_beliefs_of_long_ago_are_as_they_were_in_whatever_order_they_are_read(model):
    """The numbers of earlier beliefs are restored from those of later ones: 700 judgments, so copies are made too."""
    judgments = list(one_by_one(random_votes(rows=700)))
    names = sorted({(judgment.query, label) for judgment in judgments for label in judgment[:2]})
    start = model.start([label for _, label in names], sorted({judgment.annotator for judgment in judgments}))
    start = start.replace(items=beliefs_module.Vocabulary(start.items.labels, ("0",) * len(names)))
    kept, read_at_once = [start], [believed(start)]
    other = start
    for judgment in judgments:
        kept.append(model.update(kept[-1], judgment))
        other = model.update(other, judgment)
        read_at_once.append(believed(other))
    for place in np.random.default_rng(1).permutation(len(kept)):
        assert believed(kept[place]) == read_at_once[place]


@every_model
def test_two_updates_of_the_same_beliefs_do_not_meet(model):
    begun = after(model, one_by_one(random_votes(rows=40)))
    first, second = (Comparison("1", "2", winner, "3", "0") for winner in ("1", "2"))
    one, other = model.update(begun, first), model.update(begun, second)
    again = after(model, one_by_one(random_votes(rows=40)))
    assert believed(other) == believed(model.update(again, second)) != believed(one)
    assert believed(begun) == believed(pickle.loads(pickle.dumps(begun))) == believed(copy.deepcopy(begun))


def test_an_update_that_fails_leaves_the_beliefs_as_they_were():
    model = CrowdBT(moments="closed", win_probability="taylor")
    columns = {"mean": np.array([2.0, 0.0, 2.0, 0.0]), "variance": np.full(4, 20.0)}
    start = model.start("abcd", ["ann"]).replace(item_columns=columns)
    with pytest.warns(DataWarning, match=r"Eq\. 19 left"):
        begun, again = (model.update(start, Comparison("a", "b", "a", "ann")) for _ in range(2))
    with warnings.catch_warnings(action="error"), pytest.raises(DataWarning, match=r"Eq\. 19 left"):
        model.update(begun, Comparison("c", "d", "c", "ann"))
    assert believed(begun) == believed(again)


@every_model
def test_items_nobody_judged_stay_as_they_are(model):
    later = model.update(model.start(["a", "b", "c"]), Comparison("a", "b", "a"))
    assert {name: column[2] for name, column in later.item_columns.items()} == model.new_item


@every_model
def test_the_winner_rises(model):
    beliefs = model.update(model.start(), Comparison("a", "b", "b"))
    assert beliefs.mean[1] > beliefs.mean[0]
    assert beliefs.mean[beliefs.items.index("b")] - model.new_item["mean"] > 0


@every_model
def test_new_names_join_at_the_end_with_the_prior(model):
    beliefs = after(model, [Comparison("b", "a", "b", "bob"), Comparison("c", "a", "a", "ann")])
    assert beliefs.items.labels == ("b", "a", "c")
    assert beliefs.annotators.labels == ("bob", "ann")
    known = after(model, [Comparison("b", "a", "b", "bob"), Comparison("c", "a", "a", "ann")], model.start("abc"))
    assert {k: v for k, v in believed(known).items() if k[0] in model.new_item} == {
        k: v for k, v in believed(beliefs).items() if k[0] in model.new_item
    }


@every_model
def test_an_item_is_a_label_within_a_query(model):
    beliefs = after(model, [Comparison("a", "b", "a", query="x"), Comparison("a", "b", "b", query="y")])
    assert beliefs.items.queries == ("x", "x", "y", "y")
    lead = beliefs.mean - model.new_item["mean"]
    assert lead[0] > 0 > lead[1]
    assert lead[2] < 0 < lead[3]


@every_model
def test_beliefs_come_back_as_they_were_saved(model, tmp_path):
    beliefs = model.fold(model.start(["ä, ”", "z"]), random_votes(40))
    beliefs.save(tmp_path / "beliefs.json")
    again = Beliefs.load(tmp_path / "beliefs.json")
    assert believed(again) == believed(beliefs)
    assert (again.items.labels, again.items.queries) == (beliefs.items.labels, beliefs.items.queries)
    judgment = Comparison("ä, ”", "z", "z")
    assert believed(model.update(again, judgment)) == believed(model.update(beliefs, judgment))


@every_model
def test_judgments_without_annotators_are_those_of_one(model):
    votes = Comparisons.of(["a", "b"], ["b", "c"], ["a", "c"])
    beliefs = model.fold(model.start(), votes)
    assert beliefs.annotators.labels == ("",)
    assert believed(beliefs) == pytest.approx(believed(after(model, one_by_one(votes))))


@every_model
def test_impossible_judgments_are_refused(model):
    with pytest.raises(DataError, match="winner must be 'a', 'b', 'tie' or 'both_bad', got 'c'"):
        model.update(model.start(), Comparison("a", "b", "c"))
    with pytest.raises(DataError, match="'a' is compared with itself"):
        model.update(model.start(), Comparison("a", "a", "a"))


@every_model
def test_duplicate_names_are_refused(model):
    with pytest.raises(DataError, match="'a' is named twice"):
        model.start(["b", "a", "a"])


@pytest.mark.parametrize("mine", [CrowdBT(), TrueSkill(), Elo(), Glicko2()])
@pytest.mark.parametrize("yours", [CrowdBT(), TrueSkill(), Elo(), Glicko2()])
def test_beliefs_of_another_model_are_refused(mine, yours):
    judgment = Comparison("a", "b", "a")
    if mine == yours:
        assert mine.update(yours.start(), judgment).n_judgments == 1
        return
    with pytest.raises(DataError, match=f"another model's. Begin with {type(mine).__name__}"):
        mine.update(yours.start(), judgment)


@every_model
def test_nothing_folded_changes_nothing(model):
    votes = random_votes()
    beliefs = model.fold(model.start(), votes)
    assert believed(model.fold(beliefs, votes.take(slice(0, 0)))) == believed(beliefs)
