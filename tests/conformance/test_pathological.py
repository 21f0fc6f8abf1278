"""Edge cases: every model returns finite scores, or an error that explains why it cannot."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from crowdrank.data import Comparisons, Rankings, Ratings
from crowdrank.errors import ConvergenceWarning, DataError, DataWarning, DisconnectedError, SeparationError
from crowdrank.models import REGISTRY
from tests.strategies import brief, comparisons_of, few_draws_allowed, kinds_read, samples

pytestmark = pytest.mark.usefixtures("few_replicates")
every_model = pytest.mark.parametrize("kind", [pytest.param(kind, id=name) for name, kind in REGISTRY.items()])

CYCLE = [(0, 1), (1, 2), (2, 0)]

# Rows of (query, left, right, outcome).
PATHOLOGICAL = {
    "one judgment": [(0, 0, 1, 1)],
    "one pair many times": [(0, 0, 1, 1)] * 30,
    "all agree": [(0, a, b, 1) for a in range(6) for b in range(a + 1, 6)] * 20,
    "one item always wins": [(0, 0, b, 1) for b in range(1, 6)] * 10 + [(0, a, a % 5 + 1, 1) for a in range(1, 6)],
    "one item always loses": [(0, 0, b, -1) for b in range(1, 6)] * 10 + [(0, a, a % 5 + 1, 1) for a in range(1, 6)],
    "a circle": [(0, a, b, 1) for a, b in CYCLE] * 10,
    "all but one tied": [(0, a, b, 0) for a, b in CYCLE] * 10 + [(0, 0, 1, 1)],
    "half and half": [(0, 0, 1, 1), (0, 0, 1, -1)] * 10 + [(0, 1, 2, 1)],
    "many queries of one pair": [(q, 0, 1, 1 if q % 2 else -1) for q in range(50)],
}


def judgments(kind, rows, annotators=1):
    """Answers of one annotator; for list models each answer is a list of two, for rating models it is two grades."""
    annotator = [n % annotators for n in range(len(rows))]
    query, left, right, outcome = zip(*rows, strict=True)
    asked = query if any(query) else None
    votes = comparisons_of(asked, left, right, outcome, annotator=annotator)
    if Comparisons in kinds_read(kind):
        return votes
    if Ratings in kinds_read(kind):
        return votes.to_ratings()
    lists = [[[f"i{a}", f"i{b}"]] if o == 0 else [[f"i{a}"], [f"i{b}"]][::o] for _, a, b, o in rows]
    asked = asked and [f"q{q}" for q in asked]
    return Rankings.of_lists(lists, query=asked, annotator=[f"w{a}" for a in annotator])


def fit(kind, data):
    """Fit and ignore warnings: some models warn about components that are connected by ties only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.filterwarnings("ignore", "bayesian|tpp|trm", ConvergenceWarning)
        return brief(kind).fit(data)


@every_model
@pytest.mark.parametrize("case", PATHOLOGICAL)
@pytest.mark.parametrize("annotators", [1, 12], ids=["one annotator", "twelve annotators"])
def test_gives_finite_scores(kind, case, annotators):
    data = judgments(kind, PATHOLOGICAL[case], annotators)
    ranking = fit(kind, data)
    assert np.isfinite(ranking.scores).all()
    assert ranking.convergence.converged or samples(kind)
    assert np.isfinite(ranking.uncertainty.std_error).all()
    assert np.isfinite(ranking.uncertainty.draws).all()
    assert ranking.to_polars().height == len(data.items)
    assert isinstance(ranking.notes, list)


RIGHT = [(0, a, b, 1) for a in range(6) for b in range(a + 1, 6)]


def stands_above(ranking, a, b):
    order = ranking.table(uncertainty=False)["item"].to_list()
    return order.index(a) < order.index(b)


@every_model
@pytest.mark.parametrize("reversed_ones", [12, 8], ids=["all reversed", "most reversed"])
def test_a_reversed_crowd_is_believed(kind, reversed_ones):
    """Without gold nothing reveals that the crowd is reversed: the ranking follows its answers."""
    rows = [(q, a, b, -o if n % 12 < reversed_ones else o) for n, (q, a, b, o) in enumerate(RIGHT * 12)]
    ranking = fit(kind, judgments(kind, rows, annotators=12))
    assert np.isfinite(ranking.scores).all()
    assert np.isfinite(ranking.uncertainty.std_error).all()
    if reversed_ones == 12:
        assert stands_above(ranking, "i5", "i0")


@every_model
@pytest.mark.parametrize("agrees", [True, False], ids=["with the others", "against them"])
def test_an_annotator_with_one_vote_changes_little(kind, agrees):
    rows = RIGHT * 12
    data = judgments(kind, [*rows, (0, 0, 5, 1 if agrees else -1)], annotators=12)
    names, code = np.append(data.annotators, "once"), np.array(data.annotator)
    code[-1] = len(names) - 1
    ranking = fit(kind, replace(data, annotators=names, annotator=code))
    assert np.isfinite(ranking.scores).all()
    assert np.isfinite(ranking.uncertainty.std_error).all()
    assert stands_above(ranking, "i0", "i5")
    if kind.models_annotators:
        for parts in ranking.annotators.estimates.values():
            assert np.isfinite([part[-1] for part in parts]).all()


@every_model
def test_all_ties_leave_all_scores_equal(kind):
    data = judgments(kind, [(0, a, b, 0) for a, b in CYCLE] * 4)
    try:
        ranking = fit(kind, data)
    except DataError as refused:
        assert "any two items" in str(refused)
        return
    if samples(kind):
        assert (np.abs(ranking.scores) < 3 * ranking.uncertainty.std_error).all()
    elif kind.order_only:
        assert ranking.table(uncertainty=False)["item"].to_list() == ["i0", "i1", "i2"]
    else:
        np.testing.assert_allclose(ranking.scores, ranking.scores[0], atol=1e-9)
    assert np.isfinite(ranking.uncertainty.std_error).all()


@every_model
def test_warns_of_disconnected_components(kind):
    """A warning, unless the result does not depend on the pairs that were never compared; in any case a note."""
    rows = [(0, 0, 1, 1), (0, 0, 1, -1), (0, 0, 1, 1), (0, 2, 3, 1), (0, 2, 3, -1)]
    data = judgments(kind, rows)
    if isinstance(data, Ratings):  # items graded by one annotator are connected
        data = replace(data, annotators=np.array(["w0", "w1"], object), annotator=data.item // 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with few_draws_allowed():
                ranking = brief(kind).fit(data)
        except DisconnectedError as refused:
            assert "i0, i1; i2, i3" in str(refused)
            return
    assert np.isfinite(ranking.scores).all()
    assert np.isfinite(ranking.uncertainty.std_error).all()
    assert any("i0, i1; i2, i3" in note for note in ranking.notes)
    if hasattr(kind(), "prior_scale"):
        assert [w.category for w in caught] == [DataWarning]


def can_do_without_prior(kind):
    """Models with annotators always need one."""
    return hasattr(kind(), "prior_scale") and not kind.models_annotators


with_prior = pytest.mark.parametrize(
    "kind", [pytest.param(kind, id=name) for name, kind in REGISTRY.items() if can_do_without_prior(kind)]
)


@with_prior
def test_refuses_disconnected_components_without_a_prior(kind):
    data = judgments(kind, [(0, 0, 1, 1), (0, 0, 1, -1), (0, 2, 3, 1), (0, 2, 3, -1)])
    with pytest.raises(DisconnectedError, match="i0, i1; i2, i3.*prior_scale"):
        kind(prior_scale=None).fit(data)


@with_prior
@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([(0, 0, 1, 1)], "i0, i1"),
        ([(0, 0, 1, 1), (0, 1, 2, 1), (0, 1, 2, -1)], "i0"),
        ([(0, a, b, 1) for a, b in [(0, 1), (1, 0), (2, 3), (3, 2), (0, 2)]], "i[02], i[13]"),
    ],
    ids=["one pair", "never lost", "two circles of one size"],
)
def test_refuses_separation_without_a_prior(kind, rows, named):
    with pytest.raises(SeparationError, match=f"{named}.*prior_scale"):
        kind(prior_scale=None).fit(judgments(kind, rows))


@with_prior
def test_needs_no_prior_where_every_item_wins_and_loses(kind):
    ranking = kind(prior_scale=None).fit(judgments(kind, [(0, a, b, 1) for a, b in CYCLE] * 3 + [(0, 0, 1, 1)]))
    assert ranking.convergence.converged
    assert np.isfinite(ranking.scores).all()


@every_model
def test_refuses_no_judgments(kind):
    empty = judgments(kind, [(0, 0, 1, 1)]).take(np.array([], np.int64))
    with pytest.raises(DataError, match="no judgments"):
        kind().fit(empty)


@every_model
def test_refuses_judgments_it_does_not_read(kind):
    if Comparisons in kinds_read(kind) and Rankings in kinds_read(kind):
        pytest.skip("reads both")
    data = comparisons_of(None, [0], [1], [1])
    wrong = data if Comparisons not in kinds_read(kind) else data.to_rankings()
    with pytest.raises(DataError, match=rf"{kind.__name__} reads \w+, got {type(wrong).__name__}: .*\.to_\w+\(\)"):
        kind().fit(wrong)
