"""Promises that every model of the registry keeps, on any judgments."""

import warnings
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from crowdrank.data import Comparisons, Rankings, Ratings
from crowdrank.errors import ConvergenceWarning, SettingError
from crowdrank.models import REGISTRY, Borda, RankCentrality, by_name, name_of
from crowdrank.results import Ranking
from tests.strategies import (
    EXACT_WEIGHTS,
    FINE_WEIGHTS,
    brief,
    comparisons_of,
    disconnected_allowed,
    few_draws_allowed,
    judgments_for,
    kinds_read,
    precise,
    samples,
    weighted,
)

quick = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
few = settings(quick, max_examples=4)
every_model = pytest.mark.parametrize("kind", [pytest.param(kind, id=name) for name, kind in REGISTRY.items()])
short_bootstrap = pytest.mark.usefixtures("few_replicates")


def order_only(kind):
    return kind.order_only


def order_dependent(kind):
    return kind.order_dependent


def fit(model, judgments):
    with disconnected_allowed(), few_draws_allowed():
        return model.fit(judgments)


def rows_of(judgments):
    """One entry per judgment: a row of comparisons or ratings, or a whole list."""
    return np.arange(len(judgments))


def arrays_of(judgments):
    values = {entry.name: getattr(judgments, entry.name) for entry in fields(judgments)}
    return {name: np.array(v) for name, v in values.items() if isinstance(v, np.ndarray)}


def renamed(judgments, name):
    """The same judgments about items called `name[label]`."""
    frame = judgments.to_frame()

    def called(column):
        return [name.get(label, label) for label in frame[column]]

    columns = {c: frame[c] for c in ("query", "annotator", "weight") if c in frame.columns}
    if isinstance(judgments, Comparisons):
        return Comparisons.of(called("left"), called("right"), called("winner"), **columns)
    keys = (
        {"rank": frame["rank"], "list": frame["list"]} if isinstance(judgments, Rankings) else {"grade": frame["grade"]}
    )
    return type(judgments).of(called("item"), **keys, **columns)


def score_of(ranking):
    items = ranking.items
    keys = zip(items.query.tolist(), items.labels, strict=True)
    return dict(zip(keys, ranking.scores.tolist(), strict=True))


@every_model
@quick
@given(data=st.data())
def test_names_every_item(kind, data):
    judgments = data.draw(judgments_for(kind))
    ranking = fit(brief(kind), judgments)
    assert ranking.items is judgments.items
    assert len(ranking.scores) == len(judgments.items)
    assert np.isfinite(ranking.scores).all()
    table = ranking.table(uncertainty=False)
    assert sorted(table["item"].to_list()) == sorted(judgments.items.labels)
    assert ranking.model == name_of(kind())


@every_model
@quick
@given(data=st.data())
def test_ranks_within_queries(kind, data):
    judgments = data.draw(judgments_for(kind, most_queries=3))
    ranking = fit(brief(kind), judgments)
    for query in range(len(judgments.items.queries)):
        block = judgments.items.of_query(query)
        scores, rank = ranking.scores[block], ranking.rank[block]
        np.testing.assert_array_equal(rank, [1 + np.count_nonzero(scores > s) for s in scores])
    ordered = judgments.items.query[ranking.order]
    assert (np.diff(ordered) >= 0).all()


@every_model
@quick
@given(data=st.data())
def test_one_query_says_nothing_of_another(kind, data):
    """Judgments of one query affect only its own scores, except through estimates of annotators."""
    if kind.models_annotators:
        pytest.skip("annotators are shared by all queries, and so is what is learnt of them")
    if samples(kind):
        pytest.skip("fewer queries, other random numbers; and how far scores are spread is learnt of all together")
    if kind.shares_scores:
        pytest.skip("how far items differ is learnt of all queries together")
    judgments = data.draw(judgments_for(kind, most_queries=2, ties=False))
    assume(len(judgments.items.queries) == 2)
    first = judgments.items.of_query(0)
    item = judgments.left if isinstance(judgments, Comparisons) else judgments.item[judgments.offsets[:-1]]
    alone = judgments.take(np.flatnonzero(item < first.stop))
    whole, part = fit(precise(kind), judgments), fit(precise(kind), renamed(alone, {}))
    np.testing.assert_allclose(whole.scores[first], part.scores, rtol=1e-6, atol=1e-6)


@every_model
@quick
@given(data=st.data())
def test_ignores_the_order_of_judgments(kind, data):
    if order_dependent(kind):
        pytest.skip("order is what it is about")
    judgments = data.draw(judgments_for(kind, weights=EXACT_WEIGHTS))
    shuffled = judgments.take(np.array(data.draw(st.permutations(rows_of(judgments).tolist()))))
    a, b = fit(precise(kind), judgments), fit(precise(kind), shuffled)
    np.testing.assert_allclose(a.scores, b.scores, rtol=1e-6, atol=1e-6)


@every_model
@quick
@given(data=st.data())
def test_ignores_the_names_of_items(kind, data):
    if samples(kind):
        pytest.skip("other names, other random numbers: tests/models allow for them")
    judgments = data.draw(judgments_for(kind, weights=FINE_WEIGHTS))
    if order_only(kind):  # exact ties are broken by label
        points = Borda().fit(judgments).scores
        assume(all(len(np.unique(points[b])) == b.stop - b.start for b in blocks_of(judgments.items)))
    labels = sorted(set(judgments.items.labels))
    name = dict(zip(labels, data.draw(st.permutations(labels)), strict=True))
    before = score_of(fit(precise(kind), judgments))
    after = score_of(fit(precise(kind), renamed(judgments, name)))
    assert after == pytest.approx({(q, name[label]): s for (q, label), s in before.items()}, rel=1e-6, abs=1e-6)


def blocks_of(items):
    return [items.of_query(query) for query in range(len(items.queries))]


@every_model
@quick
@given(data=st.data())
def test_counts_weight_as_repetition(kind, data):
    if order_dependent(kind):
        pytest.skip("two small steps are not one large one")
    judgments = data.draw(judgments_for(kind, weights=None))
    times = data.draw(st.lists(st.integers(1, 3), min_size=len(judgments), max_size=len(judgments)))
    repeated = judgments.take(np.repeat(rows_of(judgments), times))
    a, b = fit(precise(kind), weighted(judgments, times)), fit(precise(kind), repeated)
    np.testing.assert_allclose(a.scores, b.scores, rtol=1e-6, atol=1e-6)
    if a.log_likelihood is not None:
        assert a.log_likelihood == pytest.approx(b.log_likelihood, rel=1e-7)


MIRROR_ONLY = {
    # Plackett-Luce draws lists from the top, so only lists of two are symmetric
    "plackett-luce": {"pairs": True},
    # a reversed random walk has the reversed order only without cycles
    "rank-centrality": {"most_more": 0},
    # the top of a list counts more than its bottom, except with two items
    "rrf": {"pairs": True, "most_items": 2, "most_queries": 1},
    "markov-chain": {"pairs": True, "most_items": 2},
    "crowd-agg": {"most_items": 2},
}


@every_model
@quick
@given(data=st.data())
def test_reverses_when_reversed(kind, data):
    """Reversing all judgments mirrors the scores around the middle of the model's scale.

    Models that give only an order do not promise this for cyclic majorities, so they get every pair of a true order.
    """
    if samples(kind):
        pytest.skip("turned round, other random numbers: tests/models allow for them")
    wishes = MIRROR_ONLY.get(name_of(kind()), {})
    judgments = data.draw(unanimous(kind) if order_only(kind) else judgments_for(kind, **wishes))
    ahead, back = fit(precise(kind), judgments), fit(precise(kind), judgments.with_outcomes_reversed())
    middle = ahead.scores + back.scores
    np.testing.assert_allclose(middle, middle.mean(), rtol=1e-6, atol=1e-6)


@st.composite
def unanimous(draw, kind):
    """Every pair, or the whole list, at least once, always won by the better item."""
    order = draw(st.permutations(range(draw(st.integers(2, 6)))))
    times = draw(st.integers(1, 3))
    if Comparisons not in kinds_read(kind):
        return Rankings.of_lists([[[f"i{item}"] for item in order]] * times)
    rows = [(0, a, b, 1) for n, a in enumerate(order) for b in order[n + 1 :]] * times
    return comparisons_of(*zip(*rows, strict=True), annotator=[n % 3 for n in range(len(rows))])


def hard(kind):
    """A chain of hundreds of items, each beating the next nine times in ten."""
    size = 2_100 if kind is RankCentrality else 400  # up to 2,000 items it needs no iterations
    pairs = [(n, n + 1) for n in range(size - 1)]
    rows = [(0, a, b, outcome) for a, b in pairs for outcome in [1] * 9 + [-1]]
    annotator = [n % 3 for n in range(len(rows))]
    votes = comparisons_of(*zip(*rows, strict=True), annotator=annotator)
    if Comparisons in kinds_read(kind):
        return votes
    if Ratings in kinds_read(kind):
        return votes.to_ratings()
    return Rankings.of_lists([[[f"i{a}"], [f"i{b}"]][::outcome] for _, a, b, outcome in rows], annotator=annotator)


@every_model
def test_admits_when_it_stops_short(kind):
    if "max_steps" not in {entry.name for entry in fields(kind)}:
        pytest.skip("has a closed form")
    with pytest.warns(ConvergenceWarning, match=f"{name_of(kind())} did not converge in 1 steps"):
        ranking = kind(max_steps=1).fit(hard(kind))
    assert not ranking.convergence.converged
    assert ranking.convergence.steps == 1
    assert ranking.convergence.distance > 0


@every_model
@pytest.mark.parametrize("setting", [{"max_steps": 0}, {"tolerance": 0.0}, {"tolerance": float("nan")}], ids=str)
def test_refuses_to_solve_without_a_step_or_an_end(kind, setting):
    if not set(setting) <= {entry.name for entry in fields(kind)}:
        pytest.skip("has a closed form")
    with pytest.raises(SettingError, match="tolerance must be positive and max_steps at least 1"):
        kind(**setting)


@every_model
@quick
@given(data=st.data())
def test_says_so_when_it_has_converged(kind, data):
    if samples(kind):
        pytest.skip("a few draws of anything may not have met: tests/models ask for more")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert fit(brief(kind), data.draw(judgments_for(kind))).convergence.converged


@every_model
@few
@given(data=st.data())
def test_uncertainty_is_finite_and_covers_the_estimate(kind, data):
    judgments = data.draw(judgments_for(kind))
    ranking = fit(brief(kind), judgments)
    uncertainty = ranking.uncertainty
    assert uncertainty.draws.shape[1] == len(judgments.items)
    assert np.isfinite(uncertainty.draws).all()
    assert np.isfinite(uncertainty.std_error).all()
    assert (uncertainty.std_error >= 0).all()
    low, high = ranking.rank_intervals(0.95)
    sizes = np.diff(judgments.items.starts)[judgments.items.query]
    assert ((low >= 1) & (low <= ranking.rank) & (ranking.rank <= high) & (high <= sizes)).all()
    assert ranking.to_polars().height == len(judgments.items)
    if not order_dependent(kind):  # shuffled rows give another result
        least, most = uncertainty.draws.min(axis=0), uncertainty.draws.max(axis=0)
        # a class without draws may still have a positive probability; draws of a bootstrap are shrunk, scores are not
        near = 0.05 if getattr(kind, "draws_classes", False) else 1e-9
        if uncertainty.method.startswith("bootstrap"):
            near = near + 2 * uncertainty.std_error.max()
        assert ((least - near <= ranking.scores) & (ranking.scores <= most + near)).all()


@every_model
def test_is_its_settings(kind):
    model = kind()
    assert eval(repr(model), {kind.__name__: kind}) == model
    assert hash(model) == hash(kind())
    assert by_name(name_of(model)) is kind
    with pytest.raises(FrozenInstanceError):
        model.seed = 1
    with pytest.raises(TypeError):
        kind(1)
    if "seed" in {entry.name for entry in fields(kind)}:
        other = replace(model, seed=7)
        assert other != model
        assert eval(repr(other), {kind.__name__: kind}) == other


@every_model
@few
@given(data=st.data())
def test_records_the_settings_that_made_it(kind, data):
    model = brief(kind)
    ranking = fit(model, data.draw(judgments_for(kind)))
    assert kind(**ranking.settings) == model


@every_model
@short_bootstrap
@few
@given(data=st.data())
def test_same_seed_same_answer(kind, data):
    judgments = data.draw(judgments_for(kind))
    seeds = (3, 3, 4) if "seed" in {entry.name for entry in fields(kind)} else ()
    one, two, other = (
        (fit(brief(kind, seed=seed), judgments) for seed in seeds) if seeds else (fit(brief(kind), judgments),) * 3
    )
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_array_equal(one.uncertainty.draws, two.uncertainty.draws)
    if samples(kind):
        assert np.any(one.scores != other.scores)
    else:
        np.testing.assert_array_equal(one.scores, other.scores)


@every_model
@short_bootstrap
@few
@given(data=st.data())
def test_leaves_the_judgments_unchanged(kind, data):
    judgments = data.draw(judgments_for(kind))
    before = arrays_of(judgments)
    _ = fit(brief(kind), judgments).uncertainty
    for name, array in arrays_of(judgments).items():
        np.testing.assert_array_equal(array, before[name])


@every_model
@few
@given(data=st.data())
def test_scores_cannot_be_changed_afterwards(kind, data):
    ranking = fit(brief(kind), data.draw(judgments_for(kind)))
    with pytest.raises(ValueError, match="read-only"):
        ranking.scores[0] = 1.0
    with pytest.raises(FrozenInstanceError):
        ranking.scores = np.zeros(1)


@every_model
@short_bootstrap
@few
@given(data=st.data())
def test_survives_a_round_trip(kind, data, tmp_path_factory):
    ranking = fit(brief(kind), data.draw(judgments_for(kind)))
    path = tmp_path_factory.mktemp("ranking") / "ranking.json"
    ranking.save(path)
    loaded = Ranking.load(path)
    np.testing.assert_array_equal(loaded.scores, ranking.scores)
    assert loaded.items.labels.tolist() == ranking.items.labels.tolist()
    assert loaded.items.queries.tolist() == ranking.items.queries.tolist()
    np.testing.assert_array_equal(loaded.items.query, ranking.items.query)
    assert (loaded.model, dict(loaded.settings)) == (ranking.model, dict(ranking.settings))
    assert loaded.convergence == ranking.convergence
    assert dict(loaded.parameters) == dict(ranking.parameters)
    assert loaded.log_likelihood == ranking.log_likelihood
    assert loaded.has_annotators == ranking.has_annotators
    if ranking.has_annotators:
        assert loaded.annotators.frame().equals(ranking.annotators.frame())
    np.testing.assert_array_equal(loaded.n_judgments, ranking.n_judgments)
    assert loaded.table(uncertainty=False).equals(ranking.table(uncertainty=False))
    # draws are kept in single precision
    np.testing.assert_allclose(loaded.uncertainty.draws, ranking.uncertainty.draws, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(loaded.uncertainty.std_error, ranking.uncertainty.std_error)
