"""Everything public is documented in `help()`: models, settings, classes and functions."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields

import pytest

import crowdrank as cr
from crowdrank.models import REGISTRY

PUBLIC = [name for name in cr.__all__ if not inspect.ismodule(getattr(cr, name))]


def parameters_of(docstring: str) -> set[str]:
    """The names in the Parameters section of a NumPy docstring."""
    found = re.search(r"Parameters\n-+\n(.*?)(?:\n\n[A-Z][a-z]+\n-+\n|\Z)", inspect.cleandoc(docstring), re.DOTALL)
    lines = [] if found is None else found[1].splitlines()
    heads = [line.split(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


@pytest.mark.parametrize("name", REGISTRY)
def test_every_setting_of_a_model_is_explained(name):
    model = REGISTRY[name]
    assert {entry.name for entry in fields(model)} <= parameters_of(model.__doc__)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_model_has_an_example(name):
    assert ">>> " in REGISTRY[name].__doc__


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_documented(name):
    found = getattr(cr, name)
    if inspect.isclass(found) or inspect.isfunction(found):
        assert found.__doc__, name
        assert not found.__doc__.startswith(f"{name}("), "the docstring is the one that dataclass makes"


@pytest.mark.parametrize("name", [name for name in PUBLIC if inspect.isfunction(getattr(cr, name))])
def test_every_parameter_of_a_public_function_is_explained(name):
    function = getattr(cr, name)
    wanted = {parameter for parameter in inspect.signature(function).parameters if not parameter.startswith("_")}
    assert wanted <= parameters_of(function.__doc__)


def test_fit_explains_its_parameters():
    assert {"judgments", "engine", "init", "side_information"} <= parameters_of(cr.models.Model.fit.__doc__)


def test_a_setting_without_a_word_is_noticed():
    assert parameters_of("One line.\n\nParameters\n----------\na, b : int\n    Two.\n\nNotes\n-----\nc : no\n") == {
        "a",
        "b",
    }
