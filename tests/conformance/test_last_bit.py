"""No result depends on the last bit: judgments that differ by rounding, in their order or in their labels give
the same ranking, within the model's own uncertainty.

Processors round differently, so a model that breaks this promise gives different results on different machines.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdrank.data import Comparisons, Rankings, Ratings
from crowdrank.inference.mcmc import effective_sample_size
from crowdrank.models import REGISTRY, Borda, Model
from crowdrank.models.bootstrap import REPLICATES
from crowdrank.results.parts import Uncertainty
from tests.conformance.test_promises import every_model, fit, order_dependent, quick
from tests.strategies import COUNT_WHOLE_JUDGMENTS, judgments_for, kinds_read, precise, samples, weighted

RELATIVE = 1e-12
"""Rounding of a long sum, which is what one processor's answer differs by from another's."""
MONTE_CARLO_ERRORS = 5.0
"""How many standard errors of their difference two sampled means may lie apart."""
FEWEST_WEIGHTED = 300
"""What the weighted draws of importance sampling are worth at least, in independent ones."""
LARGEST_SHARE = 0.5
"""Of an item's standard error: a sampler that moves further has not converged, whatever it says of itself."""

# 0.1 + 0.2 > 0.3: sums of such weights depend on their order, so a tie may look like a narrow win.
ROUNDED_WEIGHTS = st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.0])


# Changes that must not affect the result


def rounded(judgments, rng):
    """The same judgments with every weight changed by rounding."""
    return weighted(judgments, judgments.weights * (1 + RELATIVE * rng.choice([-1, 1], len(judgments))))


def reordered(judgments, rng):
    """The judgments in another order."""
    return judgments.take(rng.permutation(len(judgments)))


def other_annotator_codes(judgments, rng):
    """The same judgments with other annotator codes, as if the annotators had other names."""
    code = rng.permutation(len(judgments.annotators)).astype(np.int32)
    return replace(judgments, annotators=judgments.annotators[np.argsort(code)], annotator=code[judgments.annotator])


def other_item_codes(judgments, rng):
    """The same judgments with other item codes, as if the items had other names."""
    items = judgments.items
    code = np.lexsort((rng.random(len(items)), items.query)).astype(np.int32)
    columns = ("left", "right") if isinstance(judgments, Comparisons) else ("item",)
    return replace(
        judgments,
        items=replace(items, labels=items.labels[np.argsort(code)]),
        **{column: code[getattr(judgments, column)] for column in columns},
    )


CHANGES = (rounded, reordered, other_annotator_codes, other_item_codes)


def changes_for(kind):
    """The changes that must not affect this model."""
    refused = {
        rounded: kind.__name__ in COUNT_WHOLE_JUDGMENTS,
        reordered: order_dependent(kind),
    }
    return [change for change in CHANGES if not refused.get(change)]


# Tolerances


def by_label(ranking, values):
    """One value per item, in the order of the labels, which all numberings share."""
    return values[..., np.lexsort((ranking.items.labels, ranking.items.query))]


def allowed(model, ranking):
    """Tolerance per item: the distance to the optimum or, for a sampler, the Monte Carlo error of a difference."""
    error = by_label(ranking, ranking.uncertainty.std_error)
    if not samples(type(model)):
        return np.maximum(1e-6, 4 * getattr(model, "tolerance", 0.0) * error)
    draws = by_label(ranking, ranking.uncertainty.draws)
    independent = FEWEST_WEIGHTED
    if hasattr(model, "chains"):
        independent = effective_sample_size(draws.reshape(model.chains, -1, draws.shape[-1]))
    return np.minimum(MONTE_CARLO_ERRORS * np.sqrt(2 / independent), LARGEST_SHARE) * error


def assert_same_answer(model, one, other):
    """Assert equal scores, the same order of separated items, and the same separated pairs."""
    gap = np.abs(by_label(one, one.scores) - by_label(other, other.scores))
    limit = np.maximum(allowed(model, one), allowed(model, other))
    assert (gap <= limit).all(), f"scores differ by {gap}, allowed are {limit}"
    # two shares of n draws each, at worst one half of them
    few = MONTE_CARLO_ERRORS * np.sqrt(0.5 / min(independent_draws(ranking.uncertainty) for ranking in (one, other)))
    np.testing.assert_allclose(
        probabilities(one), probabilities(other), rtol=0, atol=few, err_msg="P(a above b) differs"
    )


def independent_draws(uncertainty):
    """How many independent draws there are: those of a bootstrap come from its replicates."""
    return REPLICATES if uncertainty.method.startswith("bootstrap") else len(uncertainty.draws)


def probabilities(ranking):
    """P(a above b) of every two items of a query."""
    names = [
        (query, sorted(ranking.items.labels[ranking.items.of_query(n)]))
        for n, query in enumerate(ranking.items.queries)
    ]
    return [ranking.probability(a, b, query) for query, labels in names for a, b in combinations(labels, 2)]


# The promise


@functools.cache
def crowd(reads):
    """Typical data: nine annotators, one careless and one reversed, on two queries of six items."""
    rng = np.random.default_rng(7)
    quality, noise = np.linspace(1.5, -1.5, 6), np.array([1.0] * 7 + [4.0, 1.0])
    sense = np.array([1.0] * 8 + [-1.0])
    query, annotator = (part.ravel() for part in np.meshgrid([0, 1], np.arange(9), indexing="ij"))
    seen = sense[annotator, None] * quality + noise[annotator, None] * rng.normal(size=(len(query), 6))
    names = np.array([f"item {n}" for n in range(6)])
    of = {"query": [f"query {n}" for n in query], "annotator": [f"annotator {n}" for n in annotator]}
    if reads is Rankings:
        return Rankings.of_lists([[[name] for name in names[np.argsort(-row)]] for row in seen], **of)
    if reads is Ratings:
        grades = np.clip(np.rint(seen + 3), 1, 5)
        return Ratings.of(np.tile(names, len(seen)), grades.ravel(), **{k: np.repeat(v, 6) for k, v in of.items()})
    left, right = np.triu_indices(6, 1)
    margin = seen[:, left] - seen[:, right]
    winner = np.where(np.abs(margin) < 0.2, "tie", np.where(margin > 0, names[left], names[right]))
    return Comparisons.of(
        np.tile(names[left], len(seen)),
        np.tile(names[right], len(seen)),
        winner.ravel(),
        **{k: np.repeat(v, len(left)) for k, v in of.items()},
    )


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        pytest.param(kind, change, id=f"{name}-{change.__name__}")
        for name, kind in REGISTRY.items()
        for change in changes_for(kind)
    ],
)
def test_a_crowd_is_ranked_alike(kind, change):
    for reads in kinds_read(kind):
        changed = change(crowd(reads), np.random.default_rng(0))
        assert_same_answer(kind(), unchanged(kind, reads), fit(kind(), changed))


@functools.cache
def unchanged(kind, reads):
    return fit(kind(), crowd(reads))


@every_model
@quick
@given(data=st.data())
def test_rounding_decides_nothing(kind, data):
    """Few judgments with many ties: the last bits of the weights break none of them."""
    if samples(kind):
        pytest.skip("a few draws of anything have not met: a crowd is ranked alike")
    judgments = data.draw(judgments_for(kind, weights=ROUNDED_WEIGHTS))
    changed = rounded(judgments, np.random.default_rng(data.draw(st.integers(0, 99))))
    if not order_dependent(kind):
        changed = reordered(changed, np.random.default_rng(data.draw(st.integers(0, 99))))
    one, other = fit(precise(kind), judgments), fit(precise(kind), changed)
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-6, atol=1e-6)


# Models that break the promise, to check that the tests can fail


@dataclass(frozen=True, kw_only=True)
class Brittle(Model):
    """Borda points, plus one for the first item if the sum of the weights was rounded up."""

    reads = Comparisons

    def _fit(self, judgments, options):
        ranking = Borda().fit(judgments)
        return replace(ranking, scores=ranking.scores + (np.arange(len(ranking.scores)) == 0) * excess(judgments))


@dataclass(frozen=True, kw_only=True)
class Stuck(Model):
    """A sampler whose chains stay in their starting mode, which depends on the last bit."""

    reads = Comparisons
    samples = True

    chains: int = 4
    draws: int = 250

    def _fit(self, judgments, options):
        size = len(judgments.items)
        draws = np.random.default_rng(0).normal(size=(self.chains * self.draws, size)) + excess(judgments)
        uncertainty = Uncertainty(draws, draws.std(axis=0), "draws", sampled=True)
        return replace(Borda().fit(judgments).with_parts(uncertainty=lambda: uncertainty), scores=draws.mean(axis=0))


def excess(judgments):
    return float(judgments.weights.sum() > len(judgments))


@pytest.mark.parametrize("model", [Brittle(), Stuck()], ids=str)
def test_a_model_that_depends_on_the_last_bit_is_found_out(model):
    judgments = crowd(Comparisons)
    more, less = (weighted(judgments, judgments.weights * (1 + sign * 1e-15)) for sign in (1, -1))
    assert_same_answer(model, model.fit(judgments), model.fit(less))
    with pytest.raises(AssertionError, match="scores differ"):
        assert_same_answer(model, model.fit(judgments), model.fit(more))
