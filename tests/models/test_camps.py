"""Camps: two camps are found and described, and crowds of one taste are left alone, spammers or not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.data import Comparisons, Items
from crowdrank.evaluation import find_camps
from crowdrank.models.camps import AnswerTable, fit_mixture
from crowdrank.models.selection import default_model


def crowd(sizes, likeness=-1.0, votes=30, items=12, scale=2.0, quality=1.0, spammers=0, seed=0):
    """Two camps; the scores of the smaller one are alike to the larger one's by this correlation."""
    rng = np.random.default_rng(seed)
    one, other = np.linalg.qr(np.column_stack((np.ones(items), rng.standard_normal((items, 2)))))[0][:, 1:].T
    other = likeness * one + np.sqrt(1 - likeness**2) * other
    camp = np.repeat([0, 1], sizes)
    scores = scale * np.sqrt(items) * np.array([one, other])[camp]
    honest = np.where(np.arange(len(camp)) < spammers, quality, 1.0)
    who = np.repeat(np.arange(len(camp)), votes)
    left = rng.integers(items, size=len(who))
    right = (left + rng.integers(1, items, size=len(who))) % items
    sees_left = rng.random(len(who)) < 1 / (1 + np.exp(scores[who, right] - scores[who, left]))
    says_left = sees_left == (rng.random(len(who)) < honest[who])
    judgments = Comparisons(
        items=Items.of([f"item {n:03}" for n in range(items)]),
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        outcome=np.where(says_left, 1, -1).astype(np.int8),
        annotators=np.array([f"annotator {n:03}" for n in range(len(camp))], dtype=object),
        annotator=who.astype(np.int32),
    )
    return judgments, camp, np.array([one, other])


@pytest.fixture(scope="module")
def camps():
    return crowd((18, 12), likeness=0.0)


@pytest.mark.parametrize("likeness", [-1.0, -0.5, 0.0, 0.5])
def test_two_camps_are_found_with_their_members_and_preferences(likeness):
    judgments, camp, scores = crowd((18, 12), likeness, votes=40, seed=1)
    found = find_camps(judgments)
    assert found is not None
    assert np.mean(found.camp == camp + 1) > 0.9
    assert found.opposite == (likeness == -1)
    for n in (0, 1):
        assert np.corrcoef(found.scores[n], scores[n])[0, 1] > 0.85


@pytest.mark.parametrize(
    ("quality", "spammers"), [(1.0, 0), (0.5, 3), (0.5, 9), (0.0, 3), (0.0, 9), (0.5, 30)], ids=str
)
def test_one_taste_is_left_alone_whoever_spams(quality, spammers):
    for seed in range(3):
        assert find_camps(crowd((30, 0), quality=quality, spammers=spammers, seed=seed)[0]) is None


def test_a_few_people_are_not_a_camp():
    assert find_camps(crowd((30, 3), likeness=0.0, votes=40)[0]) is None


def test_few_answers_or_few_annotators_show_no_camps():
    assert find_camps(crowd((60, 40), votes=9)[0]) is None
    assert find_camps(crowd((5, 4), votes=60)[0]) is None
    assert find_camps(Comparisons.of(["a"], ["b"], ["a"])) is None


def test_the_order_of_the_rows_does_not_matter_for_opposite_camps():
    judgments, camp, _ = crowd((18, 12))
    shuffled = find_camps(judgments.take(np.random.default_rng(3).permutation(len(judgments))))
    assert shuffled is not None
    assert shuffled.camp.tolist() == (camp + 1).tolist()


def test_the_description_names_sizes_and_items(camps):
    judgments, camp, _ = camps
    found = find_camps(judgments)
    assert found is not None
    assert found.sizes == (18, 12)
    assert found.members[1] == judgments.annotators[camp == 1].tolist()
    first, prefers, differ = found.describe()
    assert "two camps of 18 and 12 annotators" in first
    assert prefers.count(found.preferences[0][0]) == prefers.count(found.preferences[1][0]) == 1
    assert found.disputed[0] in differ
    frame = found.frame()
    assert frame["item"][0] == found.disputed[0]
    assert frame["difference"].abs().is_sorted(descending=True)


def test_such_a_crowd_is_ranked_with_all_alike_and_the_notes_say_so_first(camps):
    judgments, _, _ = camps
    choice = default_model(judgments)
    assert choice.name == "bradley-terry"
    assert choice.reason.startswith("The annotators fall into two camps of 18 and 12")
    ranking = cr.rank(judgments)
    assert ranking.model == "bradley-terry"
    assert ranking.notes[0].startswith("This crowd has tastes")
    named = cr.rank(judgments, model="crowd-bt")
    assert named.notes[0].startswith("This crowd has tastes")
    assert any("use bradley-terry" in note for note in named.notes)


def test_streamed_judgments_are_not_searched(camps, tmp_path):
    path = tmp_path / "taste.csv"
    camps[0].to_polars().write_csv(path)
    assert find_camps(cr.scan(path)) is None


def test_annotators_with_few_answers_belong_to_no_camp(camps):
    judgments, camp, _ = camps
    rows = np.flatnonzero((judgments.annotator != 0) | (np.arange(len(judgments)) < 5))
    found = find_camps(replace(judgments.take(rows)))
    assert found is not None
    assert found.camp[0] == 0
    assert "1 more gave too few answers" in found.describe()[0]
    assert np.all(found.camp[1:] == camp[1:] + 1)


def test_em_raises_the_likelihood(camps):
    judgments, _, _ = camps
    table = AnswerTable(
        judgments.left.astype(np.int64),
        judgments.right.astype(np.int64),
        judgments.outcome.astype(float),
        judgments.annotator.astype(np.int64),
        len(judgments.items),
        len(judgments.annotators),
    )
    start = np.random.default_rng(0).dirichlet([1, 1], table.n_annotators)
    values = [fit_mixture(table, start, max_steps=steps).log_likelihood for steps in (2, 5, 10, 40)]
    assert values[0] + 10 < values[-1]
    assert np.all(np.diff(values) > -0.5)  # the prior may cost a little likelihood
