"""CrowdAgg: against the paper's equations, optimal assignments, cycles and reversed annotators."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings

from crowdrank.data import Comparisons, Ratings
from crowdrank.errors import DataError, DataWarning, SettingError
from crowdrank.evaluation import ndcg
from crowdrank.models.crowd.contests import rank_distribution
from crowdrank.models.crowd.crowd_agg import CrowdAgg
from tests.strategies import comparisons, comparisons_of, ratings, weighted

quick = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
PUBLISHED = CrowdAgg(quality_prior=None, pooled=False, resolve_sign=False)


def probabilities_by_hand(votes, who, win_rule):
    """Eq. 6 for one annotator of one query, whose pairs are all different: P(s above t)."""
    n = len(votes.items)
    answer = np.full((n, n), np.nan)
    for left, right, outcome, k in zip(votes.left, votes.right, votes.outcome, votes.annotator, strict=True):
        if k == who:
            answer[left, right], answer[right, left] = 0.5 + outcome / 2, 0.5 - outcome / 2
    wins = np.nansum(answer == 1, axis=1)
    lead = wins[:, None] - wins[None, :]
    judged = np.count_nonzero(~np.isnan(answer).all(axis=1))
    chance = {
        "answer": answer,
        "share": 0.5 + lead / (2 * max(judged, 1)),
        "printed": np.select([lead > 0, lead < 0], [lead / n, 1 + lead / n], 0.5),
    }[win_rule]
    return np.where(np.isnan(answer) | (answer == 0.5), 0.5, chance)


def utilities_by_hand(votes, quality, discount, win_rule="answer"):
    """Algorithms 1 and 3: every opponent convolved, every annotator added up."""
    n = len(votes.items)
    total = np.zeros(n)
    for who, right in enumerate(quality):
        chance = probabilities_by_hand(votes, who, win_rule)
        chance = right * chance + (1 - right) * (1 - chance)
        for s in range(n):
            ranks = np.array([1.0])
            for t in range(n):
                if t != s:
                    ranks = np.convolve(ranks, [chance[s, t], 1 - chance[s, t]])
            total[s] += ranks @ discount(np.arange(n))
    return total


def log_discount(above):
    return 1 / np.log2(2 + above)


def distinct(votes):
    """The first answer of every annotator to every pair, unweighted."""
    frame = votes.to_frame().with_columns(
        pair=pl.concat_list("left", "right").list.sort().list.join(" "), row=pl.int_range(pl.len())
    )
    return weighted(votes, np.ones(len(votes))).take(
        frame.unique(["annotator", "pair"], keep="first")["row"].to_numpy()
    )


@pytest.mark.parametrize("win_rule", ["answer", "share", "printed"])
@pytest.mark.filterwarnings("ignore:crowd-agg")
@quick
@given(votes=comparisons(most_queries=1))
def test_scores_are_expected_discounts_at_the_estimated_quality(win_rule, votes):
    votes = distinct(votes)
    model = CrowdAgg(win_rule=win_rule)
    ranking = model.fit(votes)
    if ranking.parameters["cycle"] == 1:
        expected = utilities_by_hand(votes, ranking.annotators["quality"], log_discount, win_rule)
        np.testing.assert_allclose(ranking.scores, expected - expected.mean(), atol=1e-12)


def test_rbp_discounts_by_persistence():
    votes = comparisons_of(None, [0, 1, 0], [1, 2, 3], [1, 1, 1], annotator=[0, 0, 1])
    ranking = CrowdAgg(measure="rbp", persistence=0.7).fit(votes)
    expected = utilities_by_hand(votes, ranking.annotators["quality"], lambda r: 0.3 * 0.7**r)
    np.testing.assert_allclose(ranking.scores, expected - expected.mean(), atol=1e-12)


@quick
@given(votes=comparisons(most_queries=1, weights=None))
def test_quality_is_the_fraction_of_answers_that_agree_with_the_order(votes):
    ranking = PUBLISHED.fit(votes)
    if ranking.parameters["cycle"] > 1:
        return
    for who in range(len(votes.annotators)):
        own = votes.take(np.flatnonzero((votes.annotator == who) & (votes.outcome != 0)))
        margin = own.outcome * (ranking.scores[own.left] - ranking.scores[own.right])
        agreed = np.where(np.abs(margin) < 1e-9 * np.abs(ranking.scores).max(), 0.5, margin > 0)
        assert ranking.annotators["quality"][who] == pytest.approx(agreed.mean() if len(own) else 1.0)


def test_the_prior_adds_pseudo_counts():
    votes = comparisons_of(None, [0] * 5, [1] * 5, [1] * 5, annotator=[0, 1, 2, 3, 3])
    quality, low, high = CrowdAgg().fit(votes).annotators.estimates["quality"]
    np.testing.assert_allclose(quality, [11 / 16, 11 / 16, 11 / 16, 12 / 17])
    assert (low < quality).all()
    assert (quality < high).all()


@pytest.mark.parametrize("measure", ["ndcg", "rbp"])
def test_sorting_is_the_optimal_assignment(measure):
    """Lemma 1: of all permutations, that by expected discount has the largest Σ h(place)·f(item)."""
    from scipy.optimize import linear_sum_assignment

    rng = np.random.default_rng(3)
    left, right = np.triu_indices(12, 1)
    votes = comparisons_of(None, left, right, rng.choice([1, -1], len(left)), annotator=rng.integers(6, size=len(left)))
    ranking = CrowdAgg(measure=measure).fit(votes)
    assert len(np.unique(ranking.scores)) == 12
    kappa = (12 - np.arange(12)) / 12
    gain = 2**kappa - 1 if measure == "ndcg" else kappa
    scores = ranking.scores - ranking.scores.min()
    items, places = linear_sum_assignment(np.outer(scores, gain), maximize=True)
    np.testing.assert_array_equal(items[np.argsort(places)], ranking.order)


def cycling():
    """Where w0 says nothing, i0 and i1 are even, and w0 agrees by half; believed more for it, w0 sets i0 above i1."""
    return comparisons_of(None, [3, 3, 3, 2, 1], [2, 2, 1, 1, 0], [1] * 5, annotator=[0, 1, 0, 0, 0])


def test_a_cycle_is_detected_and_reported():
    votes = cycling()
    ranking = PUBLISHED.fit(votes)
    assert ranking.convergence.converged
    assert ranking.parameters["cycle"] == 2
    assert ranking.convergence.distance == pytest.approx(0.125)
    assert any("a cycle of 2 orders" in note for note in ranking.notes)
    np.testing.assert_allclose(orders_by_hand(votes, 30)[-4:-2], orders_by_hand(votes, 30)[-2:])
    assert not np.array_equal(orders_by_hand(votes, 30)[-1], orders_by_hand(votes, 30)[-2])


def orders_by_hand(votes, steps):
    """The published alternation, left to run: the sign of every answered pair's margin, step by step."""
    quality, found = np.ones(len(votes.annotators)), []
    for _ in range(steps):
        scores = utilities_by_hand(votes, quality, log_discount)
        margin = scores[votes.left] - scores[votes.right]
        sides = np.where(np.abs(margin) < 1e-9, 0, np.sign(margin)) * votes.outcome
        quality = np.array([np.mean(0.5 + 0.5 * sides[votes.annotator == k]) for k in range(len(quality))])
        found.append(sides)
    return found


def test_a_fixed_point_is_not_reported_as_a_cycle():
    ranking = CrowdAgg().fit(comparisons_of(None, [0, 1], [1, 2], [1, 1], annotator=[0, 1]))
    assert ranking.parameters["cycle"] == 1
    assert ranking.convergence.distance == 0
    assert not any("cycle" in note for note in ranking.notes)


def test_eq_6_as_printed_gives_a_warning_and_treats_a_narrow_win_as_a_defeat():
    chain = comparisons_of(None, range(7), range(1, 8), [1] * 7, annotator=[0] * 7)
    one_win = chain.take(slice(0, 1))
    with pytest.warns(DataWarning, match="eq. 6 as printed"):
        printed = CrowdAgg(win_rule="printed", resolve_sign=False).fit(one_win)
    assert printed.scores[0] < printed.scores[1]
    assert CrowdAgg(resolve_sign=False).fit(one_win).scores[0] > 0


def test_the_automatic_win_rule_depends_on_the_kind_of_judgment():
    grades = Ratings.of(["a", "b", "c", "d"], [3, 2, 2, 0], annotator=["x"] * 4)
    votes = grades.to_comparisons()
    for judgments, natural in ((grades, "share"), (votes, "answer")):
        scores = {
            win_rule: CrowdAgg(win_rule=win_rule).fit(judgments).scores for win_rule in ("auto", "answer", "share")
        }
        np.testing.assert_array_equal(scores["auto"], scores[natural])
        assert not np.allclose(scores["answer"], scores["share"])
    np.testing.assert_allclose(CrowdAgg().fit(grades).scores, CrowdAgg(win_rule="share").fit(votes).scores, atol=1e-12)


@quick
@given(grades=ratings())
def test_only_the_order_of_grades_matters(grades):
    other = replace(grades, grade=np.exp(grades.grade))
    np.testing.assert_array_equal(CrowdAgg().fit(grades).scores, CrowdAgg().fit(other).scores)


def test_equal_grades_are_ties_and_single_grades_are_refused():
    even = Ratings.of(["a", "b", "a", "b"], [1, 1, 2, 2], annotator=["x", "x", "y", "y"])
    assert CrowdAgg().fit(even).scores.tolist() == [0, 0]
    alone = Ratings.of(["a", "b"], [1, 2], annotator=["x", "y"])
    with pytest.raises(DataError, match="any two items"):
        CrowdAgg().fit(alone)
    with pytest.raises(DataError, match="no judgments"):
        CrowdAgg().fit(even.take(slice(0, 0)))


def crowd(seed, reversed_ones, honest=30, items=20, pairs=25):
    """Honest annotators of mixed quality, and some who always answer the wrong way round."""
    rng = np.random.default_rng(seed)
    quality = np.append(rng.uniform(0.5, 0.8, honest), np.zeros(reversed_ones))
    first, second = np.triu_indices(items, 1)
    asked = np.concatenate([rng.choice(len(first), pairs, replace=False) for _ in quality])
    who = np.repeat(np.arange(len(quality)), pairs)
    outcome = np.where(rng.random(len(who)) < quality[who], 1, -1)
    return comparisons_of(None, first[asked], second[asked], outcome, annotator=who)


def quality_of_order(model, seeds, reversed_ones):
    """Mean NDCG@10; i0 is the best item, and there are five grades."""
    found = []
    for seed in seeds:
        ranking = model.fit(crowd(seed, reversed_ones))
        truth = [4 - int(label[1:]) // 4 for label in ranking.items.labels]
        found.append(ndcg(ranking.scores, truth, k=10))
    return np.mean(found)


def test_resolving_the_sign_outvotes_reversed_annotators():
    seeds = range(12)
    assert quality_of_order(CrowdAgg(), seeds, reversed_ones=8) > 0.9
    assert quality_of_order(CrowdAgg(resolve_sign=False), seeds, reversed_ones=8) < 0.8
    assert quality_of_order(CrowdAgg(), seeds, reversed_ones=0) > 0.9


def test_reversed_annotators_are_named():
    annotators = CrowdAgg().fit(crowd(0, reversed_ones=8)).annotators
    assert len(set(annotators.reversed) & {f"w{n}" for n in range(30, 38)}) >= 7


def two_queries():
    """In q0 both agree; in q1 they contradict each other, and q0 says nothing of whom to believe there."""
    rows = [("q0", "a", "b", "x"), ("q0", "a", "b", "y"), ("q1", "c", "d", "x"), ("q1", "d", "c", "y")]
    query, winner, loser, who = zip(*(rows + [("q0", "a", "e", "x"), ("q0", "e", "b", "x")] * 5), strict=True)
    return Comparisons.of(winner, loser, winner, query=query, annotator=who)


def test_pooled_quality_carries_over_between_queries():
    votes = two_queries()
    c, d = votes.items.index("c", "q1"), votes.items.index("d", "q1")
    pooled, apart = CrowdAgg().fit(votes).scores, CrowdAgg(pooled=False).fit(votes).scores
    assert pooled[c] > pooled[d]
    assert apart[c] == apart[d] == 0


def test_without_pooling_each_query_is_fitted_alone():
    votes = two_queries()
    apart = CrowdAgg(pooled=False).fit(votes)
    for query in ("q0", "q1"):
        frame = votes.to_frame().filter(pl.col("query") == query)
        alone = CrowdAgg().fit(
            Comparisons.of(frame["left"], frame["right"], frame["winner"], annotator=frame["annotator"])
        )
        np.testing.assert_allclose(apart.scores[votes.items.of_query(votes.items.query_code(query))], alone.scores)
    assert len(apart.annotators) == 2


def test_a_heavier_judgment_counts_for_more():
    votes = comparisons_of(None, [0, 1, 2, 3], [1, 0, 3, 2], [1] * 4, annotator=[0, 1, 2, 3], weight=[3, 1, 1, 1])
    scores = CrowdAgg(resolve_sign=False).fit(votes).scores
    assert scores[0] > scores[1]
    assert scores[2] == pytest.approx(scores[3])


def test_with_few_annotators_grades_are_resampled():
    """As many errors as grades allow, not as few as their many pairs would."""
    rng = np.random.default_rng(0)
    grades = Ratings.of(
        [f"i{n:02d}" for n in range(12)] * 3, rng.integers(5, size=36), annotator=np.repeat([*"xyz"], 12)
    )
    by_grades = CrowdAgg().fit(grades).uncertainty
    by_pairs = CrowdAgg(win_rule="share").fit(grades.to_comparisons()).uncertainty
    assert by_grades.method == "bootstrap over 36 judgments"
    assert by_grades.std_error.mean() > 1.3 * by_pairs.std_error.mean()


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"measure": "map"}, "measure must be ndcg or rbp"),
        ({"persistence": 1.0}, "persistence must lie between 0 and 1"),
        ({"win_rule": "loud"}, "win_rule must be auto"),
        ({"quality_prior": (1.0, 0.0)}, "quality_prior must be two positive numbers"),
        ({"quality_prior": (1.0,)}, "quality_prior must be two positive numbers"),
    ],
)
def test_invalid_settings_are_refused(setting, said):
    with pytest.raises(SettingError, match=said):
        CrowdAgg(**setting)


@quick
@given(votes=comparisons(most_queries=2))
def test_scores_follow_from_the_rank_distributions(votes):
    """The mean over those who compared an item, as many as they are, above what coins promise."""
    votes = distinct(votes)
    items, compared = votes.items, np.zeros(len(votes.items))
    for who in range(len(votes.annotators)):
        own = votes.take(np.flatnonzero(votes.annotator == who))
        compared += own.n_judgments_per_item > 0
    scores = np.zeros(len(items))
    for query, table in enumerate(CrowdAgg().rank_distributions(votes).tables):
        block, discount = items.of_query(query), log_discount(np.arange(len(table)))
        np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-12)
        by_coins = rank_distribution(np.array([]), len(table) - 1) @ discount
        scores[block] = compared[block] * (table @ discount - by_coins)
    np.testing.assert_allclose(CrowdAgg().fit(votes).scores, items.centre(scores), atol=1e-12)


def test_a_rank_distribution_by_hand():
    votes = comparisons_of(None, [0, 0], [1, 1], [1, 1], annotator=[0, 1])
    quality = 11 / 16
    found = CrowdAgg().rank_distributions(votes)
    np.testing.assert_allclose(found.of("i0"), [quality, 1 - quality])
    assert found.frame().columns == ["item", "rank", "probability"]
    np.testing.assert_allclose(found.frame()["probability"], [quality, 1 - quality, 1 - quality, quality])


def test_the_rank_of_an_uncompared_item_is_binomial():
    votes = replace(comparisons_of(None, [0, 1], [1, 2], [1, 1], annotator=[0, 0])).take(slice(0, 1))
    np.testing.assert_allclose(CrowdAgg().rank_distributions(votes).of("i2"), [0.25, 0.5, 0.25])
