"""The bundled example equals the output of its script."""

import runpy
from pathlib import Path

import polars as pl
import pytest

CITIES = Path(__file__).parents[2] / "examples" / "cities"
FILES = ["votes.csv", "gold.csv", "annotators.csv", "settings.json"]


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(CITIES / "make_example.py"))


def test_the_files_are_made_again_byte_for_byte(example, tmp_path):
    written = example["make"]().write(tmp_path)
    assert [path.name for path in written] == FILES
    for path in written:
        assert path.read_bytes() == (CITIES / path.name).read_bytes(), path.name


def test_gold_is_the_population_of_forty_cities(example):
    gold = pl.read_csv(CITIES / "gold.csv")
    assert dict(gold.iter_rows()) == example["PEOPLE"]
    assert len(gold) == 40


def test_the_crowd_is_worth_looking_at():
    votes, annotators = pl.read_csv(CITIES / "votes.csv"), pl.read_csv(CITIES / "annotators.csv")
    people = dict(pl.read_csv(CITIES / "gold.csv").iter_rows())
    assert 1400 < len(votes) < 1600
    larger = [
        left if people[left] > people[right] else right for left, right in votes.select("left", "right").iter_rows()
    ]
    right = votes.with_columns(right=votes["winner"] == pl.Series(larger)).join(annotators, on="annotator")
    by_kind = dict(right.group_by("kind").agg(pl.col("right").mean()).iter_rows())
    assert by_kind["good"] > 0.8
    assert by_kind["reversed"] < 0.3
    assert 0.55 < by_kind["noisy"] < 0.75


def test_the_readme_says_that_it_is_simulated_and_counts_the_kinds(example):
    text = (CITIES / "README.md").read_text(encoding="utf-8")
    assert "simulated" in text
    for kind, count in example["KINDS"].items():
        assert f"| {kind} | {count} |" in text
