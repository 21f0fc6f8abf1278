"""Queries and chains give the same result to the last bit on every engine."""

import os
import re
import signal

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.engines import LOCAL, Dask, OutOfCore, ProgressEngine
from crowdrank.engines.local import MAX_PIECES, piece_ranges
from crowdrank.errors import SettingError
from crowdrank.ltr import CrowdRanker, Features
from crowdrank.models import REGISTRY
from crowdrank.models.crowd import crowd_agg
from crowdrank.models.selection import convert_for
from crowdrank.simulation import list_crowd, preference_crowd
from tests.docs.pages import DOCS

pytestmark = pytest.mark.filterwarnings("ignore::crowdrank.errors.CrowdrankWarning")


def named(piece, suffix):
    return ([f"{piece}{suffix}"],)


def drawn(state, count):
    """A walk that goes on from where the last one stopped."""
    where, seen = state
    rng = np.random.default_rng([where, len(seen)])
    return (where, (*seen, float(rng.normal()))), ([(where, *seen)[-count:]],)


def struck(piece, marker, victim):
    """The first to come by this piece is killed."""
    if piece == victim and os.path.exists(marker):
        os.remove(marker)
        os.kill(os.getpid(), signal.SIGKILL)
    return ([piece**2],)


@pytest.fixture(scope="module")
def topics():
    """Comparisons in several queries."""
    return preference_crowd(queries=12, items=6, annotators=12, votes_each=5, seed=3).judgments


@pytest.fixture(scope="module")
def training():
    crowd = list_crowd(queries=40, items=12, annotators=5, labels="mallows", first_expertise=None, seed=1)
    items = crowd.judgments.items
    return crowd.judgments, Features.of({"query": items.queries[items.query], "item": items.labels, **crowd.features})


@pytest.fixture(params=["out-of-core", "dask"])
def place(request):
    return OutOfCore() if request.param == "out-of-core" else Dask(request.getfixturevalue("client"))


def test_pieces_come_back_in_their_order(place):
    for engine in (LOCAL, place):
        (found,) = engine.distribute(list(range(20))).sum(named, "!")
        assert found == [f"{n}!" for n in range(20)]


def test_what_a_piece_leaves_is_there_the_next_time(place):
    for engine in (LOCAL, place):
        held = engine.distribute([(n, ()) for n in range(5)])
        for _ in range(3):
            held, (found,) = held.map_and_sum(drawn, 3)
        assert len(found) == 5
        expected = [tuple(float(np.random.default_rng([n, k]).normal()) for k in range(2)) for n in range(5)]
        assert found == [(n, *walk) for n, walk in enumerate(expected)]


@pytest.mark.parametrize("count", [0, 1, MAX_PIECES, MAX_PIECES + 1, 1000])
def test_runs_are_few_and_leave_nothing_out(count):
    found = piece_ranges(count)
    assert len(found) <= MAX_PIECES
    assert [n for run in found for n in run] == list(range(count))


def test_a_watched_engine_counts_what_is_spread():
    passes = []
    held = ProgressEngine(LOCAL, passes.append).distribute([1, 2])
    held.sum(named, "")
    held.map_and_sum(lambda piece: (piece, ()))
    assert passes == [1, 2]


@pytest.mark.parametrize("pooled", [True, False])
def test_crowd_agg_goes_through_its_queries_anywhere(pooled, topics, place, monkeypatch):
    model = cr.CrowdAgg(pooled=pooled)
    whole = model.fit(topics)
    monkeypatch.setattr(crowd_agg, "_MIN_ROWS", len(topics) // 5)
    blocks, there = model.fit(topics), model.fit(topics, engine=place)
    np.testing.assert_allclose(blocks.scores, whole.scores, atol=1e-12)
    np.testing.assert_array_equal(there.scores, blocks.scores)
    np.testing.assert_array_equal(there.annotators["quality"], blocks.annotators["quality"])
    assert there.convergence == blocks.convergence


def test_crowd_agg_is_as_sure_in_blocks_as_in_one_piece(topics, monkeypatch):
    whole = cr.CrowdAgg().fit(topics).uncertainty
    monkeypatch.setattr(crowd_agg, "_MIN_ROWS", len(topics) // 5)
    np.testing.assert_allclose(cr.CrowdAgg().fit(topics).uncertainty.std_error, whole.std_error, atol=1e-12)


def test_queries_without_answers_make_no_block_of_their_own(topics, monkeypatch):
    some = topics.take(np.flatnonzero(topics.items.query[topics.left] < 3))
    monkeypatch.setattr(crowd_agg, "_MIN_ROWS", 5)
    blocks = cr.CrowdAgg().fit(some).scores
    monkeypatch.undo()
    np.testing.assert_allclose(blocks, cr.CrowdAgg().fit(some).scores, atol=1e-12)


@pytest.mark.parametrize(
    "model", [cr.TPP(max_sweeps=60), cr.BayesianCrowdBT(draws=10, warmup=5, max_sweeps=40)], ids=repr
)
def test_chains_are_sampled_anywhere(model, topics, place):
    expected, found = model.fit(topics), model.fit(topics, engine=place)
    np.testing.assert_array_equal(found.scores, expected.scores)
    np.testing.assert_array_equal(found.uncertainty.draws, expected.uncertainty.draws)


@pytest.mark.parametrize("settings", [{"sampler": "gibbs"}, {"top": 3}], ids=repr)
def test_a_function_is_learnt_from_true_lists_found_anywhere(settings, training, place):
    teaching = CrowdRanker(held_out=0, labels="expected", iterations=4, **settings)
    expected, found = teaching.fit(*training), teaching.fit(*training, engine=place)
    np.testing.assert_array_equal(found.annotators["expertise"], expected.annotators["expertise"])
    np.testing.assert_array_equal(found.scores(training[1]), expected.scores(training[1]))


def test_a_worker_killed_at_work_changes_nothing(client, tmp_path):
    marker = tmp_path / "strike"
    marker.touch()
    (found,) = Dask(client).distribute(list(range(8))).sum(struck, str(marker), 5)
    assert found == [n**2 for n in range(8)]
    assert not marker.exists()


def test_a_worker_killed_between_steps_has_its_chains_drawn_again(training, client):
    """With it are lost the queries it held, and where their chains stood."""
    teaching = CrowdRanker(held_out=0, labels="expected", iterations=4, sampler="gibbs")
    (victim, *_), steps = client.run(os.getpid).values(), []

    def progress(step):
        steps.append(step)
        if step == 2:
            os.kill(victim, signal.SIGKILL)

    found, expected = teaching.fit(*training, progress=progress, engine=Dask(client)), teaching.fit(*training)
    assert steps[-1] > 2
    assert victim not in client.run(os.getpid).values()
    np.testing.assert_array_equal(found.scores(training[1]), expected.scores(training[1]))


def test_the_page_on_scale_names_the_models_that_are_spread():
    page = (DOCS / "scale.md").read_text()
    told = set(re.findall(r"\[([a-z-]+)\]\(models/", page))
    assert told == {name for name, model in REGISTRY.items() if model.distributable}


class Spy:
    """Threads here, and whether anything was asked of them."""

    def __init__(self):
        self.asked = False

    def load(self, table):
        self.asked = True
        return LOCAL.load(table)

    def distribute(self, pieces):
        self.asked = True
        return LOCAL.distribute(pieces)


@pytest.mark.parametrize("name", REGISTRY)
def test_distributable_models_use_their_engine_and_others_refuse_it(name, votes):
    model, engine = REGISTRY[name](), Spy()
    judgments = convert_for(model, votes.take(slice(0, 200)))[0]
    if model.distributable:
        model.fit(judgments, engine=engine)
        assert engine.asked
    else:
        with pytest.raises(SettingError, match=f"{name} computes in this process only.*bradley-terry"):
            model.fit(judgments, engine=engine)
