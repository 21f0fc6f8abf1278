"""The audit of a jury: agreement, flips, sides, shared errors, prices and juries."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.data import AnnotatorDetails
from crowdrank.errors import DataError, SettingError
from crowdrank.evaluation import effective_number, kappa
from crowdrank.evaluation.judge_agreement import error_correlations, pair_answers
from crowdrank.evaluation.judge_audit import compare_juries, recommend_jury
from crowdrank.evaluation.psychometrics import OUTCOME_DISTANCE, alpha_of_counts

N = 200


def alpha_of(sign):
    counts = np.stack([(sign == value).sum(axis=0) for value in (-1, 0, 1)], axis=1).astype(float)
    return alpha_of_counts(counts, OUTCOME_DISTANCE, symmetric=True)[0]


def votes_of(answers, both_orders=True, left_bias=0.0, seed=0):
    """Votes of judges on N queries with items 1 and 2; an answer of 1 is for item 1. Some always choose the left."""
    rng = np.random.default_rng(seed)
    rows = []
    for judge, answer in answers.items():
        for n, value in enumerate(answer):
            for left, right in (("1", "2"), ("2", "1"))[: 2 if both_orders else 1]:
                biased = rng.random() < left_bias
                winner = left if biased else "1" if value > 0 else "2"
                rows.append((f"q{n}", judge, left, right, winner))
    return cr.Comparisons.of(
        *([row[k] for row in rows] for k in (2, 3, 4)), annotator=[r[1] for r in rows], query=[r[0] for r in rows]
    )


def gold_of(truth):
    winner = np.where(truth > 0, "1", "2")
    query = [f"q{n}" for n in range(len(truth))]
    return cr.Comparisons.of(["1"] * len(truth), ["2"] * len(truth), winner, query=query)


@pytest.fixture(scope="module")
def truth():
    return np.where(np.random.default_rng(1).random(N) < 0.5, 1.0, -1.0)


def noisy(truth, share_wrong, seed):
    wrong = np.random.default_rng(seed).random(len(truth)) < share_wrong
    return np.where(wrong, -truth, truth)


def test_agreement_kappa_and_price_are_those_of_each_judge(truth):
    votes = votes_of({"good": noisy(truth, 0.1, 2), "coin": noisy(truth, 0.5, 3), "liar": -truth})
    people = {"good": AnnotatorDetails(kind="llm", price=0.5)}
    frame = cr.audit_judges(votes, gold=gold_of(truth), people=people).frame()
    rows = {row["annotator"]: row for row in frame.iter_rows(named=True)}
    assert list(rows) == ["good", "coin", "liar"]
    assert rows["good"]["agreement"] == pytest.approx(0.9, abs=0.05)
    assert rows["good"]["kappa"] == pytest.approx(2 * rows["good"]["agreement"] - 1)
    assert rows["liar"]["kappa"] == -1
    assert rows["coin"]["kappa_low"] < 0 < rows["coin"]["kappa_high"]
    assert rows["good"]["price_per_correct"] == pytest.approx(0.5 * 2 / rows["good"]["agreement"])
    assert rows["coin"]["price_per_correct"] is None


def test_intervals_cover_the_truth(truth):
    held = {"agreement": 0, "kappa": 0}
    for seed in range(60):
        votes = votes_of({"a": noisy(truth, 0.2, 10 + seed), "b": truth}, both_orders=False)
        frame = cr.audit_judges(votes, gold=gold_of(truth), level=0.9).frame()
        row = frame.row(by_predicate=pl.col("annotator") == "a", named=True)
        for name, expected in (("agreement", 0.8), ("kappa", 0.6)):
            held[name] += row[f"{name}_low"] <= expected <= row[f"{name}_high"]
    assert min(held.values()) >= 46
    assert max(held.values()) <= 60


def test_a_judge_who_looks_at_sides_is_seen(truth):
    votes = votes_of({"fair": noisy(truth, 0.1, 4), "x": truth})
    biased = votes_of({"sided": truth}, left_bias=0.6, seed=5)
    both = pl.concat([votes.to_frame(), biased.to_frame()])
    audit = cr.audit_judges(cr.read(both), gold=gold_of(truth))
    rows = {row["annotator"]: row for row in audit.frame().iter_rows(named=True)}
    assert rows["fair"]["flips"] == 0
    assert rows["fair"]["left_low"] < 0.5 < rows["fair"]["left_high"]
    assert rows["sided"]["flips_low"] > 0.3
    assert rows["sided"]["left"] == pytest.approx(0.8, abs=0.06)
    assert any("1 judge is inconsistent" in note and "sided" in note for note in audit.notes())


def test_without_both_orders_there_are_no_flips(truth):
    frame = cr.audit_judges(votes_of({"a": truth, "b": truth}, both_orders=False), gold=gold_of(truth)).frame()
    assert frame["flips"].null_count() == 2


def test_the_only_human_is_the_reference_and_no_independent_judge(truth):
    copied = noisy(truth, 0.3, 6)
    people = {"ann": AnnotatorDetails(kind="human"), **{f"m{k}": AnnotatorDetails(kind="llm") for k in range(3)}}
    audit = cr.audit_judges(votes_of({"ann": truth, "m0": copied, "m1": copied, "m2": copied}), people=people)
    assert [audit.judges[n] for n in audit.compared] == ["m0", "m1", "m2"]
    assert audit.n_effective == pytest.approx(1.0)
    assert any("The 3 judges share errors and are worth only 1.0" in note for note in audit.notes())


def test_copies_of_one_judge_count_as_one(truth):
    copied = noisy(truth, 0.3, 6)
    alone = {f"alone{k}": noisy(truth, 0.3, 20 + k) for k in range(6)}
    together = cr.audit_judges(votes_of({f"copy{k}": copied for k in range(6)}), gold=gold_of(truth))
    apart = cr.audit_judges(votes_of(alone), gold=gold_of(truth))
    mixed = cr.audit_judges(votes_of({**alone, **{f"copy{k}": copied for k in range(6)}}), gold=gold_of(truth))
    assert together.n_effective == pytest.approx(1.0)
    assert apart.n_effective > 5.5
    assert 3 < mixed.n_effective < 4.5
    assert any("worth only 1.0" in note for note in together.notes())
    assert not apart.notes()


def test_the_effective_number_is_not_lowered_by_few_pairs():
    rng = np.random.default_rng(0)
    found = []
    for _ in range(20):
        errors = np.where(rng.random((30, 40)) < 0.3, -1.0, 1.0)
        found.append(effective_number(*error_correlations(errors, np.ones((30, 40)))))
    assert np.mean(found) > 27


def test_missing_answers_are_left_out():
    nan = np.nan
    sign = np.array([[1.0, -1, 1, nan], [1, -1, nan, 1], [nan, 1, 1, 1]])
    assert kappa(sign, np.array([1.0, -1, nan, nan])).tolist()[:2] == [1, 1]
    assert np.isnan(kappa(sign, np.full(4, nan))).all()
    assert -1 < alpha_of(sign) < 1
    correlation, shared = error_correlations(sign, np.ones((3, 4)))
    assert shared.diagonal().tolist() == [3, 3, 3]
    assert np.isfinite(correlation[0, 0])


def test_alpha_is_that_of_a_worked_example():
    """Two judges, ten pairs, eight agreements and no ties: D_o = 0.2, D_e = 2·10·10 / (20·19)."""
    sign = np.array([[1.0] * 5 + [-1] * 5, [1.0] * 4 + [-1] * 5 + [1]])
    assert alpha_of(sign) == pytest.approx(1 - 0.2 / (200 / 380))


def test_alpha_is_zero_by_chance():
    rng = np.random.default_rng(0)
    sign = rng.choice([-1.0, 0.0, 1.0], size=(4, 5000), p=[0.4, 0.2, 0.4])
    assert abs(alpha_of(sign)) < 0.03


def test_humans_are_the_reference_without_gold(truth):
    humans = {f"h{k}": noisy(truth, 0.15, 30 + k) for k in range(5)}
    votes = votes_of({**humans, "good": noisy(truth, 0.05, 40), "liar": -truth}, both_orders=False)
    people = {name: AnnotatorDetails(kind="human") for name in humans}
    people |= {name: AnnotatorDetails(kind="llm", price=1.0) for name in ("good", "liar")}
    audit = cr.audit_judges(votes, people=people)
    assert audit.reference == "humans"
    agreement = dict(audit.frame().select("annotator", "agreement").iter_rows())
    assert agreement["good"] > 0.9
    assert agreement["liar"] < 0.1
    assert set(audit.alpha) == {"all judges", "humans", "language models"}
    assert audit.alpha["language models"].high < 0 < audit.alpha["humans"].low
    assert [audit.judges[n] for n in audit.recommended.members] == ["good"]
    both = cr.audit_judges(votes, people=people, gold=gold_of(truth))
    assert both.reference == "gold"
    assert both.frame()["agreement_humans"].null_count() == 0


def test_without_gold_and_humans_nothing_is_said_about_errors(truth):
    audit = cr.audit_judges(votes_of({f"j{k}": noisy(truth, 0.2, 50 + k) for k in range(3)}))
    assert audit.reference == "others"
    assert np.isnan(audit.n_effective)
    assert audit.recommended is None
    assert "shared errors cannot be seen" in audit.notes()[0]


def test_a_jury_is_as_large_as_helps_and_as_the_budget_allows(truth):
    answers = np.array([noisy(truth, 0.25, 60 + k) for k in range(7)] + [truth * -1])
    reference, everyone = np.broadcast_to(truth, answers.shape), np.arange(8)
    prices = np.full(8, 1.0)
    juries = compare_juries(answers, reference, everyone, prices)
    best = recommend_jury(juries)
    assert len(best.members) >= 3
    assert best.accuracy > juries[0].accuracy
    assert 7 not in best.members
    assert max(jury.price for jury in compare_juries(answers, reference, everyone, prices, budget=3.0)) == 3.0
    assert compare_juries(answers, reference, everyone, prices, budget=0.5) == ()
    assert recommend_jury(()) is None


def test_the_accuracy_of_a_jury_is_not_flattered_by_its_choice(truth):
    """All judges toss coins: the best of 50 on the same pairs would be well above one half."""
    answers = np.array([noisy(truth, 0.5, 100 + k) for k in range(50)])[:, :60]
    reference = np.broadcast_to(truth[:60], answers.shape)
    juries = compare_juries(answers, reference, np.arange(50), np.full(50, np.nan))
    assert all(abs(jury.accuracy - 0.5) < 4 * jury.std_error for jury in juries)


def test_both_orders_are_one_answer():
    votes = cr.Comparisons.of(["a", "b", "a", "b"], ["b", "a", "b", "a"], ["a", "a", "a", "b"], annotator=list("xxyy"))
    found = pair_answers(votes)
    assert found.answer.ravel().tolist() == [1.0, 0.0]
    assert found.both_orders.tolist() == [1, 1]
    assert found.flipped.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("votes", "settings", "error", "message"),
    [
        (cr.Comparisons.of(["a"], ["b"], ["a"]), {}, DataError, "needs annotators"),
        (cr.Comparisons.of(["a"], ["b"], ["a"], annotator=["x"]), {}, DataError, "at least two annotators"),
        (None, {"level": 1.0}, SettingError, "level must be between"),
        (None, {"budget": 1.0, "gold": [("a", "b")]}, SettingError, "needs the prices"),
        (None, {"gold": [("a", "c")]}, DataError, "No gold pair was judged"),
    ],
)
def test_what_cannot_be_audited_is_refused(votes, settings, error, message):
    usual = cr.Comparisons.of(["a", "b", "b"], ["b", "c", "c"], ["a", "b", "b"], annotator=["x", "y", "x"])
    with pytest.raises(error, match=message):
        cr.audit_judges(votes or usual, **settings)


@pytest.mark.data
def test_the_judges_of_llmbar_err_together(data_folder):
    frame = pl.read_csv(data_folder / "llmbar_judges" / "votes.csv.gz", infer_schema=False)
    frame = frame.filter(pl.col("subset").str.starts_with("LLMBar") & pl.col("winner").is_not_null())
    frame = frame.with_columns(
        query=pl.col("subset") + "/" + pl.col("instance"), annotator=pl.col("judge") + "/" + pl.col("prompting")
    )
    known = frame.unique("query", maintain_order=True)
    gold = cr.Comparisons.of(known["left"], known["right"], known["gold"], query=known["query"])
    audit = cr.audit_judges(cr.read(frame.select("query", "annotator", "left", "right", "winner")), gold=gold)
    assert audit.n_reference == 207
    assert audit.frame()["agreement"][0] == pytest.approx(0.867, abs=0.001)
    assert 4 < audit.n_effective < 7
    assert "The 65 judges share errors and are worth only 5" in audit.notes()[0]
    assert audit.recommended.accuracy > 0.84
