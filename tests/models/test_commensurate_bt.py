"""commensurate-bt: the humans' ranking, with the votes of language models as a prior whose weight is learnt."""

import json
import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import crowdrank as cr
from crowdrank.cli import app
from crowdrank.errors import DataError, DataWarning, SettingError
from crowdrank.models import selection
from crowdrank.models.commensurate.judge_scores import (
    MOST_JUDGES,
    OTHERS,
    UNKNOWN,
    HumanVoteEquivalent,
    describe_equivalents,
    find_sources,
    fit_judge,
)
from crowdrank.models.commensurate.posterior import Votes
from crowdrank.results.parts import Interval

ITEMS = 16


def answers(rng, name, scores, count, ties=0.0, left=0.0):
    """Columns of votes: Bradley-Terry with some ties, and with a preference for the left side."""
    size = len(scores)
    a = rng.integers(0, size, count)
    b = (a + rng.integers(1, size, count)) % size
    wins = rng.random(count) < 1 / (1 + np.exp(scores[b] - scores[a] - left))
    winner = np.where(wins, a, b)
    labels = np.array([f"item {n:02d}" for n in range(size)] + ["tie"], object)
    winner = np.where(rng.random(count) < ties, size, winner)
    return [labels[a], labels[b], labels[winner], np.full(count, name, object)]


def votes_of(*parts):
    left, right, winner, annotator = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return cr.Comparisons.of(left, right, winner, annotator=annotator)


def known(**kinds):
    return cr.SideInformation(people={name: cr.AnnotatorDetails(kind=kind) for name, kind in kinds.items()})


TWO = known(ann="human", gpt="llm")


def crowd(seed, *, humans=150, judge=2000, apart=0.2, size=ITEMS, **bias):
    """Votes of one human and of one judge, whose scores differ by N(0, apart²), and the human's true scores."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 1, size)
    truth -= truth.mean()
    other = truth + rng.normal(0, apart, size)
    return votes_of(answers(rng, "ann", truth, humans), answers(rng, "gpt", other, judge, **bias)), truth


def fit(votes, people=TWO, **settings):
    return cr.CommensurateBT(**settings).fit(votes, side_information=people)


def humans_alone(votes):
    return cr.BradleyTerry().fit(votes.take(votes.annotators[votes.annotator] == "ann"))


def error(ranking, truth):
    return float(np.sqrt(np.mean((ranking.scores - truth) ** 2)))


def with_outcomes(votes, name, outcome):
    """The votes with other outcomes of one annotator."""
    mine = votes.annotators[votes.annotator] == name
    return replace(votes, outcome=np.where(mine, outcome, votes.outcome).astype(np.int8))


def test_gradient_and_hessian_are_those_of_the_objective():
    rng = np.random.default_rng(0)
    votes = votes_of(answers(rng, "gpt", rng.normal(0, 1, 5), 200, ties=0.3, left=0.5))
    counted = Votes.of(votes, np.ones(200, bool), "davidson", side=True)
    precision = np.eye(5) + 0.1
    x = np.append(rng.normal(0, 1, 5), [0.3, -0.4])
    here, step = counted.objective(x, precision), 1e-5
    for n, unit in enumerate(np.eye(7)):
        up, down = (counted.objective(x + sign * step * unit, precision) for sign in (1, -1))
        assert here.gradient[n] == pytest.approx((up.value - down.value) / (2 * step), rel=1e-5, abs=1e-5)
        np.testing.assert_allclose(
            here.curvature.matrix[n], (down.gradient - up.gradient) / (2 * step), rtol=1e-5, atol=1e-5
        )


def test_a_judge_who_agrees_brings_the_scores_closer_and_the_intervals_down():
    found, alone = [], []
    for seed in range(5):
        votes, truth = crowd(seed)
        found.append(fit(votes))
        alone.append(humans_alone(votes))
        assert error(found[-1], truth) < error(alone[-1], truth)
    errors = [np.mean([r.uncertainty.std_error.mean() for r in rankings]) for rankings in (found, alone)]
    assert errors[0] < 0.7 * errors[1]


def test_a_judge_who_tosses_coins_changes_nothing():
    votes, _ = crowd(0)
    tossed = with_outcomes(votes, "gpt", np.random.default_rng(1).choice([1, -1], len(votes)))
    ranking = fit(tossed)
    np.testing.assert_allclose(ranking.scores, humans_alone(votes).scores, atol=1e-9)
    assert any("no better than coin tosses" in note for note in ranking.notes)
    assert ranking.model == "commensurate-bt"


def test_a_judge_who_answers_in_reverse_is_worth_as_much():
    votes, _ = crowd(1)
    there, back = fit(votes), fit(with_outcomes(votes, "gpt", -votes.outcome))
    np.testing.assert_allclose(there.scores, back.scores, atol=1e-3)
    assert back.parameters["weight[gpt]"] == pytest.approx(-there.parameters["weight[gpt]"], abs=1e-3)
    assert any("gpt answers against the humans" in note for note in back.notes)
    assert not any("against" in note for note in there.notes)


def test_a_judge_with_other_preferences_is_not_trusted():
    ratio = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        truth = rng.normal(0, 1, ITEMS)
        votes = votes_of(answers(rng, "ann", truth, 400), answers(rng, "gpt", rng.normal(0, 1, ITEMS), 4000))
        ratio.append(error(fit(votes), truth - truth.mean()) / error(humans_alone(votes), truth - truth.mean()))
    assert np.mean(ratio) < 1.1


def test_more_human_votes_lessen_the_weight_of_the_prior():
    few, many = (fit(crowd(3, humans=n, apart=0.6)[0]) for n in (100, 3000))
    alone = [humans_alone(crowd(3, humans=n, apart=0.6)[0]) for n in (100, 3000)]
    moved = [np.std(r.scores - a.scores) for r, a in zip((few, many), alone, strict=True)]
    assert moved[1] < 0.5 * moved[0]


@pytest.mark.parametrize("apart", [0.0, 0.3])
def test_intervals_hold_the_truth(apart):
    inside = []
    for seed in range(12):
        votes, truth = crowd(seed, apart=apart, humans=250)
        ranking = fit(votes)
        inside.append(np.mean(np.abs(ranking.scores - truth) < 1.645 * ranking.uncertainty.std_error))
    assert 0.82 < np.mean(inside) <= 1


def test_the_discrepancy_is_found():
    votes, _ = crowd(5, humans=6000, judge=12000, apart=0.4, size=60)
    assert 0.25 < fit(votes).parameters["discrepancy"] < 0.5


def test_a_preference_for_the_left_is_removed():
    errors = []
    for seed in range(6):
        votes, truth = crowd(seed, left=3.0, judge=1500, apart=0.1)
        ranking = fit(votes)
        assert ranking.parameters["side[gpt]"] == pytest.approx(3.0, abs=0.5)
        errors.append((error(ranking, truth), error(fit(votes, side_effects=False), truth)))
    removed, kept = np.mean(errors, axis=0)
    assert removed < kept


def test_an_item_that_was_always_on_the_left_has_no_side_effect():
    votes, _ = crowd(2)
    first = votes.items.index("item 00")
    rows = (votes.left == first) | (votes.annotators[votes.annotator] == "ann")
    judge = fit_judge("gpt", Votes.of(votes, rows & (votes.left == first), "davidson", True), votes.items, 1e-4, 100)
    assert not judge.effects


@pytest.mark.parametrize("ties", ["davidson", "half", "drop"])
def test_ties_of_humans_and_judges(ties):
    rng = np.random.default_rng(4)
    truth = np.linspace(1.5, -1.5, ITEMS)
    votes = votes_of(answers(rng, "ann", truth, 300, ties=0.3), answers(rng, "gpt", truth, 1500, ties=0.1))
    ranking = fit(votes, ties=ties)
    assert np.corrcoef(ranking.scores, truth)[0, 1] > 0.9
    assert ("tie" in ranking.parameters) == (ties == "davidson")
    probabilities = cr.CommensurateBT(ties=ties).predict(ranking, votes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-9)


def test_without_judges_it_is_bradley_terry():
    votes, _ = crowd(0)
    plain = cr.BradleyTerry().fit(votes)
    for people in (None, known(ann="human", gpt="human")):
        np.testing.assert_allclose(fit(votes, people).scores, plain.scores, atol=1e-12)


def test_several_judges_are_weighted_together():
    rng = np.random.default_rng(6)
    truth = rng.normal(0, 1, ITEMS)
    good, poor = truth + rng.normal(0, 0.1, ITEMS), truth + rng.normal(0, 1.5, ITEMS)
    votes = votes_of(
        answers(rng, "ann", truth, 600), answers(rng, "good", good, 3000), answers(rng, "poor", poor, 3000)
    )
    ranking = fit(votes, known(ann="human", good="llm", poor="llm"))
    found = ranking.parameters
    assert found["worth[good]"] > 3 * found["worth[poor]"]
    assert found["weight[good]"] > abs(found["weight[poor]"])
    assert found["worth_low[judges]"] <= found["worth[judges]"] <= found["worth_high[judges]"]
    assert any(note.startswith("The votes of good and poor together count for") for note in ranking.notes)


def equivalent_of(name, votes, *, is_shown=True):
    return HumanVoteEquivalent((name,), Interval(votes, votes / 2, 2 * votes), np.ones(1), is_shown)


def test_the_worth_of_a_judge_in_words():
    worth = HumanVoteEquivalent(("gpt-4",), Interval(1894, 1213, 2630), np.ones(1), True)
    assert describe_equivalents(worth) == ["gpt-4's votes count for about 1,900 human votes here (1,200 to 2,600)."]
    assert "do not show" in describe_equivalents(equivalent_of("gpt-4", 900, is_shown=False))[0]


def test_the_worth_of_several_judges_is_not_said_to_be_less_than_that_of_one():
    alone = [equivalent_of("a", 4600), equivalent_of("b", 800)]
    less, more = (HumanVoteEquivalent(("a", "b"), Interval(n, n / 2, 2 * n), np.ones(2), True) for n in (4000, 5000))
    assert describe_equivalents(less, alone) == [
        "The votes of a and b together count for no more human votes here than a's alone: "
        "about 4,600 (2,300 to 9,200).",
        "Alone, b's would count for about 800 (400 to 1,600).",
    ]
    assert describe_equivalents(more, alone)[0].startswith(
        "The votes of a and b together count for about 5,000 human votes"
    )
    assert (
        "do not show that b alone" in describe_equivalents(more, [alone[0], equivalent_of("b", 9, is_shown=False)])[-1]
    )


def test_the_weight_of_a_judge_beside_others_does_not_make_it_one_in_reverse():
    together = HumanVoteEquivalent(("a", "b"), Interval(5000, 2500, 9000), np.array([-0.1, 1.0]), True)
    assert not any("against the humans" in note for note in describe_equivalents(together))
    alone = HumanVoteEquivalent(("a",), Interval(500, 250, 900), np.array([-0.9]), True)
    assert "a answers against the humans" in describe_equivalents(alone)[-1]


def test_ten_human_votes_do_not_show_what_a_judge_is_worth():
    ranking = fit(crowd(0, humans=10)[0])
    assert ranking.parameters["worth_low[gpt]"] == 0
    assert any("do not show" in note for note in ranking.notes)


def test_annotators_of_unknown_kind_are_a_judge_unless_no_human_is_named():
    votes, _ = crowd(0)
    people = known(ann="human", gpt="llm").encode(votes).people
    gpt = {code: details for code, details in people.items() if details.kind == "llm"}
    other = votes_of(*[answers(np.random.default_rng(0), name, np.zeros(5), 20) for name in ("ann", "gpt", "x")])
    assert set(find_sources(votes, people).judges) == {"gpt"}
    assert find_sources(votes, gpt).human.sum() == 150
    assert set(find_sources(other, known(ann="human", gpt="llm").encode(other).people).judges) == {"gpt", UNKNOWN}


def test_many_judges_are_pooled_by_family_and_then_by_size():
    rng = np.random.default_rng(0)
    names = [f"llm {n:02d}" for n in range(30)]
    votes = votes_of(
        answers(rng, "ann", np.zeros(4), 20), *[answers(rng, name, np.zeros(4), 30 - n) for n, name in enumerate(names)]
    )

    def details(family):
        people = {name: cr.AnnotatorDetails(kind="llm", family=family(n)) for n, name in enumerate(names)}
        return cr.SideInformation(people={"ann": cr.AnnotatorDetails(kind="human"), **people}).encode(votes).people

    assert set(find_sources(votes, details(lambda n: f"family {n % 3}")).judges) == {f"family {n}" for n in range(3)}
    pooled = find_sources(votes, details(lambda n: None)).judges
    assert len(pooled) == MOST_JUDGES
    assert set(pooled) == {*names[: MOST_JUDGES - 1], OTHERS}
    assert sum(rows.sum() for rows in pooled.values()) == len(votes) - 20


def test_it_is_the_default_where_humans_and_language_models_judged():
    votes, _ = crowd(0)
    choice = selection.default_model(votes, people=TWO.people)
    assert choice.name == "commensurate-bt"
    assert "the ranking is that of the humans" in choice.reason
    assert selection.default_model(votes, people=known(ann="human", gpt="human").people).name != "commensurate-bt"
    assert cr.rank(votes, people=TWO.people, gold_pairs=[("item 00", "item 01")]).model == "crowd-bt"


def test_only_language_models_are_refused():
    votes, _ = crowd(0)
    with pytest.raises(DataError, match="Only language models judged"):
        fit(votes, known(ann="llm", gpt="llm"))


def test_gold_pairs_are_refused():
    votes, _ = crowd(0)
    gold = replace(TWO, gold=[("item 00", "item 01")])
    with pytest.raises(SettingError, match="commensurate-bt cannot use side information"):
        fit(votes, gold)


@pytest.mark.parametrize("value", [0.0, -1.0, "large"])
def test_a_discrepancy_is_positive(value):
    with pytest.raises(SettingError, match="discrepancy must be positive"):
        cr.CommensurateBT(discrepancy=value)


def test_items_that_no_human_saw_are_ranked_by_the_judges():
    rng = np.random.default_rng(3)
    truth = np.linspace(2, -2, ITEMS)
    human = answers(rng, "ann", truth[:-2], 400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        ranking = fit(votes_of(human, answers(rng, "gpt", truth, 3000)))
    assert set(ranking.order[-3:]) >= {ITEMS - 1, ITEMS - 2}


def test_queries_are_ranked_on_their_own():
    rng = np.random.default_rng(0)
    truth = np.linspace(1.5, -1.5, 8)
    parts = [answers(rng, name, sign * truth, n) for sign in (1, -1) for name, n in (("ann", 200), ("gpt", 800))]
    left, right, winner, annotator = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    query = ["up"] * 1000 + ["down"] * 1000
    votes = cr.Comparisons.of(left, right, winner, annotator=annotator, query=query)
    ranking = fit(votes)
    assert np.corrcoef(ranking.scores, np.concatenate((-truth, truth)))[0, 1] > 0.9
    np.testing.assert_allclose([ranking.scores[:8].mean(), ranking.scores[8:].mean()], 0, atol=1e-9)


def test_the_command_reads_people_and_prints_what_judges_are_worth(tmp_path):
    votes, _ = crowd(0)
    votes.to_frame().write_csv(tmp_path / "votes.csv")
    pl.DataFrame({"annotator": ["ann", "gpt"], "kind": ["human", "llm"]}).write_csv(tmp_path / "people.csv")
    options = [str(tmp_path / "votes.csv"), "--people", str(tmp_path / "people.csv")]
    shown = CliRunner().invoke(app, ["rank", *options])
    assert shown.exit_code == 0
    assert "commensurate-bt" in shown.output
    assert "human votes here" in " ".join(shown.output.split())
    told = json.loads(CliRunner().invoke(app, ["rank", *options, "--json"]).output)
    assert told["parameters"]["worth[gpt]"] > 0
