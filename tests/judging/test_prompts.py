"""Templates are checked before anything is sent, and texts cannot change them."""

from __future__ import annotations

import pytest

from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.judging.prompts import Item, Template

LEFT = Item(label="a", query="q", text="{right} {{", columns={"length": "3"})
RIGHT = Item(label="b", query="q", text="two", columns={"length": "5"})


def test_every_field_is_filled_and_texts_are_left_as_they_are():
    template = Template("{question}|{query}|{left}|{right}|{left.length}<{right.length}|{{}}")
    assert template.fill("Which?", LEFT, RIGHT) == "Which?|q|{right} {{|two|3<5|{}"


@pytest.mark.parametrize(
    "text", ["{left} {right} {other}", "{left} {right} {", '{left} {right} {"winner": "A"}', "{left} {right} {}"]
)
def test_a_field_that_is_not_known_is_refused(text):
    with pytest.raises(SettingError, match=r"The template has (an unknown field|unbalanced braces).*\{\{"):
        Template(text)


@pytest.mark.parametrize(
    ("text", "question", "queries", "message"),
    [
        ("{question} {left}", "Which?", True, "does not show the right item"),
        ("{left} {right}", "Which?", True, "does not use the question"),
        ("{question} {left} {right}", "", True, "needs a question"),
        ("{query} {left} {right}", "", False, "the items have no queries"),
    ],
)
def test_a_template_that_does_not_fit_is_refused(text, question, queries, message):
    with pytest.raises(SettingError, match=message):
        Template(text).check(question, queries, ["length"])


def test_a_column_that_the_items_lack_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'length'"):
        Template("{left.lenght} {right}").check("", False, ["length"])
