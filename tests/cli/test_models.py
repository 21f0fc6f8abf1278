"""crowdrank models, and words into settings."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

import pytest

from crowdrank.cli.options import parse_columns, parse_settings
from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.models import REGISTRY


def test_models_lists_every_model_with_what_it_reads(crowdrank):
    code, out, _ = crowdrank("models")
    assert code == 0
    for name in REGISTRY:
        assert name in out


def test_models_as_json_lists_settings(crowdrank):
    answer = json.loads(crowdrank("models", "--json").out)
    by_name = {entry["model"]: entry for entry in answer}
    assert set(by_name) == set(REGISTRY)
    assert by_name["bradley-terry"]["settings"]["prior_scale"] == 3.0
    assert by_name["borda"]["reads"] == ["rankings", "comparisons"]


@dataclass(frozen=True, kw_only=True)
class Toy:
    scale: float | None = 1.0
    steps: int = 5
    loud: bool = False
    way: Literal["up", "down"] = "up"


def test_values_are_read_by_the_type_of_their_field():
    words = ["scale=none", "steps=7", "loud=yes", "way=down"]
    assert parse_settings(Toy, words, None) == {"scale": None, "steps": 7, "loud": True, "way": "down"}


@pytest.mark.parametrize("word", ["steps=1.5", "loud=maybe", "steps", "=3", "scale="])
def test_values_that_do_not_fit_are_refused(word):
    with pytest.raises(SettingError):
        parse_settings(Toy, [word], None)


def test_an_unknown_setting_names_the_nearest():
    with pytest.raises(UnknownNameError, match="steps"):
        parse_settings(Toy, ["step=1"], None)


def test_a_seed_needs_a_model_that_draws():
    with pytest.raises(SettingError, match="--seed"):
        parse_settings(Toy, None, 1)


def test_an_empty_column_means_there_is_none():
    assert parse_columns(["annotator=who", "query="], None) == {"annotator": "who", "query": None}
    assert parse_columns(None, "topic") == {"query": "topic"}
