"""The table of methods, and its documentation in the guide."""

from __future__ import annotations

import re

import pytest

from crowdrank.errors import UnknownNameError
from crowdrank.ltr import METHODS
from crowdrank.ltr.crowd_ranker import RANKERS
from crowdrank.ltr.methods import by_name
from tests.docs.pages import DOCS, section, table

GUIDE = DOCS / "guides" / "learning.md"


def test_every_method_is_in_the_guide() -> None:
    rows = table(section(GUIDE, "Methods"))[1:]
    told = {name: row[2] == "yes" for row in rows for name in re.findall(r"`([^`]+)`", row[0])}
    assert told == {name: method.models_annotators for name, method in METHODS.items()}


def test_every_kind_of_function_is_in_the_guide() -> None:
    assert [row[0].strip("`") for row in table(section(GUIDE, "Kinds of function"))[1:]] == list(RANKERS)


def test_a_misspelt_name_suggests_the_nearest_one() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'ltrma-d'"):
        by_name("ltrmad")
