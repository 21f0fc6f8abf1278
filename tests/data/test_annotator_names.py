"""Kinds of annotators that their names make plain."""

import pytest

import crowdrank as cr
from crowdrank.data.side_information import describe_kinds, model_family, people_from_names


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("gpt-4-0125-preview", "gpt"),
        ("gpt4_pair", "gpt"),
        ("ChatGPT-0301/CoT", "gpt"),
        ("openai/gpt-4o", "gpt"),
        ("claude-3-opus", "claude"),
        ("Llama 2", "llama"),
        ("LLM", "llm"),
        ("Claudette", None),
        ("Gemini?", "gemini"),
        ("palmer", None),
        ("ann", None),
        ("", None),
    ],
)
def test_families_of_language_models(name, family):
    assert model_family(name) == family


def test_kinds_are_taken_from_names_only_if_all_are_plain():
    kinds = {name: who.kind for name, who in people_from_names(["human", "expert_12", "author 3", "gpt-4"]).items()}
    assert kinds == {"human": "human", "expert_12": "human", "author 3": "human", "gpt-4": "llm"}
    assert people_from_names(["gpt-4", "humanist"]) == {}
    assert people_from_names(["expert_1", "expert_2"]) == {}


def test_the_sentence_names_a_few():
    said = describe_kinds(people_from_names([f"gpt-{n}" for n in range(6)]))
    assert said == (
        "By their names, 6 annotators are language models (gpt-0, gpt-1, gpt-2, gpt-3 and 2 more): people= can say "
        "otherwise."
    )


def votes():
    pairs = [("a", "b", "a"), ("b", "c", "b"), ("a", "c", "a"), ("c", "d", "c"), ("a", "d", "a"), ("b", "d", "d")]
    left, right, winner = zip(*(pairs * 6), strict=True)
    return cr.Comparisons.of(left, right, winner, annotator=["human"] * 12 + ["gpt-4"] * 24)


def test_rank_takes_kinds_from_names_and_says_so():
    ranking = cr.rank(votes())
    assert ranking.model == "commensurate-bt"
    assert ranking.notes[0].startswith("By their names, 1 annotator is a language model (gpt-4) and 1 is human")


def test_rank_does_not_guess_if_it_is_told():
    ranking = cr.rank(votes(), people={})
    assert ranking.model != "commensurate-bt"
    assert not any("By their names" in note for note in ranking.notes)


def test_the_audit_knows_humans_by_name():
    assert cr.audit_judges(votes()).reference == "humans"
