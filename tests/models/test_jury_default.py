"""When jury is the default, what is said about shared errors, and the verdicts on the judges."""

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank import AnnotatorDetails
from crowdrank.evaluation import compare_models, verdicts
from crowdrank.models.selection import default_model
from tests.models.jury.simulated import gold_pairs, graded_gold, graded_jury, jury, share_right
from tests.models.test_camps import crowd


def llm(votes, **kinds):
    return {str(name): AnnotatorDetails(kind=kinds.get(str(name), "llm")) for name in votes.annotators}


def test_both_orders_make_a_jury():
    votes, _ = jury()
    assert default_model(votes).name == "jury"
    assert default_model(votes, win_probabilities=True).name != "jury"


def test_one_order_needs_to_be_told():
    votes, _ = jury(orders=("first",))
    assert default_model(votes).name != "jury"
    assert default_model(votes, people=llm(votes)).name == "jury"
    assert default_model(votes, people=llm(votes, good0="human")).name != "jury"
    assert default_model(votes, gold=True).name == "jury"


def test_gold_decides_among_humans_and_language_models_who_err_together():
    votes, truth = jury()
    people = llm(votes, good0="human")
    ranking = cr.rank(votes, people=people, gold_pairs=gold_pairs(truth, 12), uncertainty="none")
    assert ranking.model == "jury"
    assert share_right(ranking, truth) > 0.85


def test_gold_pairs_of_a_crowd_with_two_camps_are_used():
    votes, _, scores = crowd((18, 12), likeness=0.0)
    order = [str(votes.items.labels[n]) for n in np.argsort(-scores[0])]
    ranking = cr.rank(votes, gold_pairs=[(order[0], order[-1])], uncertainty="none")
    assert ranking.model == "crowd-bt"
    assert any("two camps" in note for note in ranking.notes)


def test_ordinary_crowds_are_no_jury_even_with_gold():
    votes = cr.simulation.crowd_bt(items=12, annotators=8, pairs=60, votes=6, seed=3).judgments
    assert default_model(votes, gold=True).name == "crowd-bt"


@pytest.mark.parametrize("kind", ["ratings", "lists"])
def test_gold_decides_whom_to_believe_about_grades_and_lists(kind):
    judged, truth = graded_jury(kind)

    def right(ranking):
        scores = ranking.scores.reshape(truth.shape)[12:]  # queries without gold
        first, second = np.triu_indices(truth.shape[1], 1)
        return np.mean((scores[:, first] > scores[:, second]) == (truth[12:, first] > truth[12:, second]))

    assert right(cr.rank(judged, uncertainty="none")) < 0.65
    ranking = cr.rank(judged, gold_pairs=graded_gold(truth, 12), uncertainty="none")
    assert ranking.model == "jury"
    assert right(ranking) > 0.78
    assert any("Gold pairs decide whom to believe" in note for note in ranking.notes)


def test_gold_pairs_of_an_ordinary_crowd_that_grades_are_used():
    judged, truth = graded_jury("ratings", good=6, bad=0, queries=8)
    gold = graded_gold(truth, 5)
    ranking = cr.rank(judged, gold_pairs=gold, uncertainty="none")
    assert ranking.model == "graded-response"
    plain = cr.rank(judged, uncertainty="none")
    assert ranking.scores.tolist() != plain.scores.tolist()


def test_rank_warns_of_shared_errors_whatever_the_model():
    votes, truth = jury()
    ranking = cr.rank(votes, gold_pairs=gold_pairs(truth, 10))
    assert ranking.model == "jury"
    assert "independent ones. Gold pairs decide" in ranking.notes[0]
    notes = " ".join(cr.rank(votes, model="crowd-bt", uncertainty="none").notes)
    assert "independent ones. crowd-bt assumes that judges are independent: use jury." in notes
    assert "camps" not in notes


def test_rank_warns_of_shared_errors_if_language_models_saw_one_order():
    votes, _ = jury(orders=("first",))
    told, untold = (cr.rank(votes, model="crowd-bt", people=p, uncertainty="none") for p in (llm(votes), None))
    assert "independent ones. crowd-bt assumes that judges are independent: use jury." in " ".join(told.notes)
    assert "use jury" not in " ".join(untold.notes)
    mixed = cr.rank(votes, model="crowd-bt", people=llm(votes, good0="human"), uncertainty="none")
    assert "use commensurate-bt." in " ".join(mixed.notes)


def test_compare_recommends_jury_and_says_why():
    votes, _ = jury(questions=40)
    found = compare_models(votes, ["bradley-terry", "factor-bt"], folds=2).recommendation
    assert found.model == "jury"
    assert "share errors" in found.notes[0]


def test_compare_is_told_who_is_a_language_model():
    votes, _ = jury(orders=("first",), questions=40)
    assert compare_models(votes, ["bradley-terry", "crowd-bt"], folds=2).recommendation.model != "jury"
    found = compare_models(votes, ["bradley-terry", "crowd-bt"], people=llm(votes), folds=2).recommendation
    assert found.model == "jury"
    assert "share errors" in found.notes[0]


def test_compare_predicts_humans_if_the_ranking_is_theirs():
    votes, _ = jury(questions=40)
    people = llm(votes, good0="human", good1="human", good2="human")
    found = compare_models(votes, ["crowd-bt"], people=people, folds=4)
    assert found.recommendation.default == "commensurate-bt"
    assert found.answers == {"judgment": 240, "annotator": 240}  # of 3 humans on 40 questions in both orders
    by_humans, by_all = (found[name].agreement["judgment"].mean.value for name in ("commensurate-bt", "crowd-bt"))
    assert by_humans > by_all
    assert any("Only the humans' answers were predicted" in note for note in found.recommendation.notes)


def test_compare_does_not_hold_out_the_only_human():
    votes, _ = jury(questions=40)
    found = compare_models(votes, ["crowd-bt"], people=llm(votes, good0="human"), folds=2)
    assert found.answers == {"judgment": 80}
    assert "commensurate-bt" in [score.model for score in found.models]


def test_no_judge_is_reliable_for_agreeing_with_the_wrong_ones():
    votes, truth = jury()
    assert "reliable" not in verdicts(votes).verdict
    mixed = cr.SideInformation(people=llm(votes, good0="human"))
    assert "reliable" not in verdicts(votes, side_information=mixed).verdict
    found = verdicts(votes, side_information=cr.SideInformation(gold=gold_pairs(truth, 15)))
    reliable = {
        str(name) for name, verdict in zip(found.annotators, found.verdict, strict=True) if verdict == "reliable"
    }
    assert reliable == {"good0", "good1", "good2"}
    assert "by gold answers" in found["good0"].reason


def test_both_orders_of_mt_bench_make_one_judgment(tmp_path):
    rows = [
        f'{{"judge": "{judge}", "model_1": "a", "model_2": "b", "g1_winner": "model_1", "g2_winner": "model_1", '
        f'"question_id": {n}, "tstamp": 1}}'
        for judge in ("x", "y", "z")
        for n in range(3)
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(rows))
    votes = cr.read(tmp_path / "pairs.jsonl")
    assert default_model(votes).name == "jury"


@pytest.mark.parametrize(("gold", "least"), [(0, 0.80), (10, 0.86)])
def test_language_models_on_llmbar(data_folder, gold, least):
    votes = pl.read_csv(data_folder / "llmbar_judges" / "votes.csv.gz", infer_schema_length=0)
    votes = votes.filter(pl.col("subset").str.starts_with("LLMBar")).with_columns(
        query=pl.col("subset") + "/" + pl.col("instance"),
        annotator=pl.col("judge") + "/" + pl.col("prompting"),
        winner=pl.col("winner").fill_null("tie"),
    )
    truth = votes.select("query", "gold").unique().sort("query")
    judged = cr.Comparisons.of(**{name: votes[name] for name in ("left", "right", "winner", "query", "annotator")})
    rng, found = np.random.default_rng(4), []
    for _ in range(3 if gold else 1):
        chosen = truth[rng.choice(len(truth), gold, replace=False)] if gold else None
        pairs = None
        if chosen is not None:
            worse = (3 - chosen["gold"].cast(int)).cast(str)
            pairs = cr.Comparisons.of(chosen["gold"], worse, chosen["gold"], query=chosen["query"])
        ranking = cr.rank(judged, gold_pairs=pairs, uncertainty="none")
        assert ranking.model == "jury"
        assert "share errors" in ranking.notes[0]
        found.append(share_right(ranking, np.where(truth["gold"] == "1", 1, -1)))
    assert np.mean(found) >= least
