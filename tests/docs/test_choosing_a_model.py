"""The page about choosing a model agrees with the code that chooses one."""

from __future__ import annotations

import re

import numpy as np
import pytest
from tools.figures import _ARROWS, _BOXES

from crowdrank import AnnotatorDetails, Comparisons, Rankings, Ratings
from crowdrank.models import REGISTRY
from crowdrank.models.selection import default_model
from tests.docs.pages import DOCS, section, table
from tests.models.jury.simulated import jury
from tests.models.test_camps import crowd

PAGE = DOCS / "explanation" / "choosing-a-model.md"
ROWS = {row[0]: re.match(r"\[([\w-]+)\]", row[1])[1] for row in table(section(PAGE, "What you have"))[1:]}

_PAIR = {"left": ["a", "b", "a"] * 4, "right": ["b", "c", "c"] * 4, "winner": ["a", "b", "a"] * 4}
_NAMES = ["x", "y", "z", "x"] * 3
_GRADES = {"item": ["a", "b", "c"] * 4, "grade": [3, 2, 1] * 4}
_LISTS = [[["a"], ["b"], ["c"]], [["b"], ["a"], ["c"]]]


def kinds(**found):
    return {name: AnnotatorDetails(kind=kind) for name, kind in found.items()}


def named():
    return Comparisons.of(**_PAIR, annotator=_NAMES)


EXAMPLES = {
    "comparisons without annotators": lambda: (Comparisons.of(**_PAIR), None),
    "comparisons by several annotators": lambda: (named(), None),
    "comparisons by a crowd that falls into two camps": lambda: (crowd((30, 20), votes=60)[0], None),
    "comparisons by three judges who saw both orders": lambda: (jury()[0], None),
    "comparisons by language models": lambda: (named(), kinds(x="llm", y="llm", z="llm")),
    "comparisons by people and language models": lambda: (named(), kinds(x="human", y="llm", z="llm")),
    "ratings without annotators": lambda: (Ratings.of(**_GRADES), None),
    "ratings by several annotators": lambda: (Ratings.of(**_GRADES, annotator=_NAMES), None),
    "lists without annotators": lambda: (Rankings.of_lists(_LISTS), None),
    "lists by several annotators": lambda: (Rankings.of_lists(_LISTS, annotator=["x", "y"]), None),
}


@pytest.mark.parametrize("have", EXAMPLES)
def test_the_decision_table_is_what_rank_does(have):
    judgments, people = EXAMPLES[have]()
    assert default_model(judgments, people=people).name == ROWS[have]


def test_every_row_of_the_table_is_tested():
    assert set(ROWS) == set(EXAMPLES)


def test_the_flow_chart_ends_at_the_models_of_the_table():
    ends = {_BOXES[end].text for _, end, _ in _ARROWS if _BOXES[end].is_model}
    assert ends == set(ROWS.values())
    assert ends <= set(REGISTRY)
    drawn = (DOCS / "images" / "choosing-a-model.svg").read_text(encoding="utf-8")
    lines = [line for box in _BOXES.values() for line in box.lines]
    assert all(f">{line}</text>" in drawn for line in lines)


def test_every_question_of_the_flow_chart_has_two_answers():
    questions = [name for name, box in _BOXES.items() if not box.is_model and name != "start"]
    answers = {name: sorted(word for start, _, word in _ARROWS if start == name) for name in questions}
    assert all(found == ["no", "yes"] for found in answers.values()), np.unique(list(answers))
