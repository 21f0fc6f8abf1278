"""The parser accepts the documented answers and nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdrank.judging import Verdict, parse_answer
from crowdrank.judging.prompts import answer_instruction, answer_schema

SIDES = {"A": "left", "B": "right", "tie": "tie"}


@given(st.sampled_from(list(SIDES)), st.text(), st.booleans(), st.sampled_from(["{}", "```json\n{}\n```", " {}\n"]))
def test_documented_answers_are_understood(winner, reason, with_reason, around):
    answer = {"reason": reason, "winner": winner} if with_reason else {"winner": winner}
    text = around.replace("{}", json.dumps(answer))
    assert parse_answer(text, ties=True) == Verdict(SIDES[winner], reason if with_reason else "")


@given(st.text())
def test_text_that_is_not_json_is_refused(text):
    assert parse_answer(text, ties=True) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["A", "B", "tie", "C", "a"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["winner", "reason", "x"]), inner),
    max_leaves=6,
)


@given(json_values, st.booleans())
def test_only_the_documented_form_is_a_verdict(value, ties):
    found = parse_answer(json.dumps(value), ties=ties)
    documented = (
        isinstance(value, dict)
        and value.keys() <= {"winner", "reason"}
        and value.get("winner") in (["A", "B", "tie"] if ties else ["A", "B"])
        and isinstance(value.get("reason", ""), str)
    )
    assert (found is not None) == documented


@given(st.text(min_size=1).filter(str.strip), st.booleans())
def test_a_word_around_the_object_is_refused(word, before):
    answer = '{"winner": "A"}'
    text = f"{word} {answer}" if before else f"{answer} {word}"
    assert parse_answer(text, ties=True) is None


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "A",
        '"A"',
        '["A"]',
        '{"winner": "a"}',
        '{"winner": "left"}',
        '{"winner": "A", "winner": "B"}',
        '{"winner": "A"}{"winner": "A"}',
        '{"winner": ["A"]}',
        '{"winner": {"A": 1}}',
        '{"winner": "A", "reason": null}',
        '{"winner": "A", "confidence": 1}',
        '{"Winner": "A"}',
        '{"winner": "A"',
        "```json\n" + '{"winner": "A"}\n``` and more',
        "[" * 100_000,
        '{"winner": "A"}' + " " * 200_000,
    ],
)
def test_other_answers_are_refused(text):
    assert parse_answer(text, ties=True) is None


def test_a_tie_is_an_answer_only_where_it_is_allowed():
    assert parse_answer('{"winner": "tie"}', ties=True) == Verdict("tie")
    assert parse_answer('{"winner": "tie"}', ties=False) is None
    assert "tie" in answer_instruction(ties=True, reasons=False)
    assert "tie" not in answer_instruction(ties=False, reasons=True)
    assert answer_schema(ties=False, reasons=True)["properties"]["winner"]["enum"] == ["A", "B"]


def test_thoughts_ahead_of_the_answer_are_ignored():
    assert parse_answer('<think>\n{"winner": "B"}?\n</think>\n{"winner": "A"}', ties=True) == Verdict("left")
    assert parse_answer('<think>never closed {"winner": "A"}', ties=True) is None


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("reasons", [True, False])
def test_the_instruction_shows_answers_that_the_parser_understands(ties, reasons):
    instruction = answer_instruction(ties, reasons)
    shown = [part.partition("}")[0] for part in instruction.split("{")[1:]]
    found = [parse_answer("{" + part + "}", ties=ties) for part in shown]
    assert [verdict.winner for verdict in found] == (["left", "right", "tie"] if ties else ["left", "right"])
    assert all(bool(verdict.reason) == reasons for verdict in found)
