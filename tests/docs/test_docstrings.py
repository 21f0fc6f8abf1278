"""The examples in docstrings run and print what they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import crowdrank

# What Alembic runs cannot be imported by anyone else.
MODULES = [
    found.name for found in pkgutil.walk_packages(crowdrank.__path__, "crowdrank.") if ".migrations." not in found.name
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(importlib.import_module(name), optionflags=flags).failed == 0


def test_there_are_examples_to_run():
    finder = doctest.DocTestFinder()
    examples = [t for name in MODULES for t in finder.find(importlib.import_module(name)) if t.examples]
    assert len(examples) > 10
