"""crowdrank models, and the parsing of option values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

import pytest

from crowdrank.cli.options import parse_columns, parse_order, parse_quality, parse_set
from crowdrank.cli.output import with_flags
from crowdrank.errors import SettingError, UnknownNameError
from crowdrank.models import REGISTRY
from crowdrank.models.selection import parse_settings


def test_models_lists_every_model_with_what_it_reads(crowdrank):
    code, out, _ = crowdrank("models")
    assert code == 0
    for name in REGISTRY:
        assert name in out


def test_models_as_json_lists_settings(crowdrank):
    answer = json.loads(crowdrank("models", "--json").out)
    by_name = {entry["model"]: entry for entry in answer}
    assert set(by_name) == set(REGISTRY)
    assert by_name["bradley-terry"]["settings"]["prior_scale"] == "auto"
    assert by_name["borda"]["reads"] == ["rankings", "comparisons"]


@pytest.mark.slow
def test_models_compile_fits_the_models_that_sample(crowdrank):
    code, out, _ = crowdrank("models", "--compile", "--json")
    assert code == 0
    assert list(json.loads(out)["seconds"]) == ["bayesian-crowd-bt", "tpp", "trm"]


@dataclass(frozen=True, kw_only=True)
class Toy:
    scale: float | None = 1.0
    steps: int = 5
    loud: bool = False
    way: Literal["up", "down"] = "up"


def test_values_are_read_by_the_type_of_their_field():
    words = ["scale=none", "steps=7", "loud=yes", "way=down"]
    assert parse_settings(Toy, parse_set(words)) == {"scale": None, "steps": 7, "loud": True, "way": "down"}


@pytest.mark.parametrize("word", ["steps=1.5", "loud=maybe", "steps", "=3", "scale="])
def test_values_that_do_not_fit_are_refused(word):
    with pytest.raises(SettingError):
        parse_settings(Toy, parse_set([word]))


def test_an_unknown_setting_names_the_nearest():
    with pytest.raises(UnknownNameError, match="steps"):
        parse_settings(Toy, {"step": 1})


def test_a_seed_needs_a_model_that_draws():
    with pytest.raises(SettingError, match="omit the seed"):
        parse_settings(Toy, {}, 1)


def test_columns_can_be_named_by_the_former_option(crowdrank, tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("p,q,r\nx,y,x\ny,z,z\nz,x,z\n")
    former = crowdrank("rank", file, "--map", "left=p", "--map=right=q", "--map", "winner=r")
    present = crowdrank("rank", file, "--column", "left=p", "--column", "right=q", "--column", "winner=r")
    assert former.code == 0
    assert former.out == present.out


def test_an_empty_column_means_there_is_none():
    assert parse_columns(["annotator=who", "query="], None) == {"annotator": "who", "query": None}
    assert parse_columns(None, "topic") == {"query": "topic"}


def test_values_that_are_not_text_are_kept():
    assert parse_settings(Toy, {"scale": None, "steps": 7}) == {"scale": None, "steps": 7}


def test_quality_is_a_number_or_a_range():
    assert parse_quality(["ann=0.95", "bob = 0.6..0.9"]) == {"ann": 0.95, "bob": (0.6, 0.9)}
    assert parse_order(["ann > bob"]) == [("ann", "bob")]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("pass columns={'winner': 'COLUMN'}.", "pass --column winner=COLUMN."),
        ("columns={'list': 'Query ID', 'query': None}", "--column list='Query ID' --column query="),
        ("say columns={…}", "say --column ROLE=COLUMN"),
        ("gold_columns={'rank': 'COLUMN'}", "--gold-column rank=COLUMN"),
        ("pass init= or memory='4GB'.", "pass --warm-start or --memory 4GB."),
        ("annotator_quality= and annotator_order=", "--annotator-quality and --annotator-order"),
        ("a level of 0.95, prior_scale=1", "a level of 0.95, prior_scale=1"),
    ],
)
def test_messages_of_the_library_are_shown_with_flags(message, shown):
    assert with_flags(message) == shown
