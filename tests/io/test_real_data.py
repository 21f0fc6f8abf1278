"""Every real file of judgments loads completely, with the counts given in its README."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdrank.data import Comparisons, Rankings, Ratings
from crowdrank.io import read_gold, read_with_report, write

pytestmark = pytest.mark.data

# file: judgments, items, annotators, ties, queries
COMPARISONS = {
    "country_population/pairwise.csv": (3_184, 15, 199, 0, 1),
    "mirex2005/pairwise.csv": (2_805, 118, 79, 1_405, 11),
    "ukp_convarg/pairwise.csv": (84_445, 1_052, 3_815, 19_105, 32),
    "llmfao/pairwise.csv": (8_931, 59, 124, 3_471, 1),
    "pwcmp/lightfield_pairwise.csv": (26_580, 350, 29, 0, 14),
    "pwcmp/tmo_pairwise.csv": (1_213, 35, 18, 0, 5),
    "xu_crowdrank/age_pairwise.csv": (9_589, 25, 91, 793, 1),
    "xu_crowdrank/college_pairwise.csv": (11_012, 261, 435, 1_603, 1),
    "xu_crowdrank/iqa_ref1_pairwise.csv": (4_129, 16, 305, 391, 1),
    "evalica_fixtures/food.csv": (30, 5, 0, 2, 1),
    "evalica_fixtures/simple.csv": (16, 5, 0, 9, 1),
}
RATINGS = {"snow2008/ratings.csv": (7_300, 730, 48), "peergrading_aaai15/ratings.csv": (2_084, 724, 636)}
# file: lists, rows, items, annotators, queries
RANKINGS = {
    "lee_rankings/rankings.csv": (2_133, 25_136, 305, 2_133, 23),
    "preflib_dots/rankings.csv": (3_183, 12_732, 16, 3_183, 4),
    "mq2008_agg/dev_rankings.csv": (10_516, 82_915, 9_630, 25, 471),
    "preflib_sushi/orders.csv": (5_000, 50_000, 10, 5_000, 1),
}


def load(folder: Path, name: str, **options: Any) -> Any:
    found, report = read_with_report(folder / name, **options)
    assert report.kept == report.rows_read
    assert (report.malformed_count, report.skips, report.malformed) == (0, 0, ())
    return found


@pytest.mark.parametrize("name", COMPARISONS)
def test_real_comparisons_load_whole(data_folder: Path, name: str) -> None:
    found = load(data_folder, name)
    assert isinstance(found, Comparisons)
    assert found.positions_known
    counts = (len(found), len(found.items), len(found.annotators), found.ties, len(found.items.queries))
    assert counts == COMPARISONS[name]


@pytest.mark.parametrize("name", RATINGS)
def test_real_ratings_load_whole(data_folder: Path, name: str) -> None:
    found = load(data_folder, name)
    assert isinstance(found, Ratings)
    assert (len(found), len(found.items), len(found.annotators)) == RATINGS[name]


@pytest.mark.parametrize("name", RANKINGS)
def test_real_rankings_load_whole(data_folder: Path, name: str) -> None:
    found = load(data_folder, name)
    assert isinstance(found, Rankings)
    counts = (len(found), len(found.item), len(found.items), len(found.annotators), len(found.items.queries))
    assert counts == RANKINGS[name]


def test_races_are_lists_of_the_same_drivers_when_told_so(data_folder: Path) -> None:
    found = load(data_folder, "reference_small/nascar2002_rankings.csv", columns={"list": "query", "query": None})
    assert (len(found), len(found.item), len(found.items)) == (36, 1_548, 87)
    assert not found.items.has_queries


def test_races_read_as_queries_earn_a_note(data_folder: Path) -> None:
    _, report = read_with_report(data_folder / "reference_small/nascar2002_rankings.csv")
    assert any("columns={'list': 'query', 'query': None}" in note for note in report.notes)


def test_repeated_trials_are_kept_and_counted(data_folder: Path) -> None:
    _, report = read_with_report(data_folder / "pwcmp/lightfield_pairwise.csv")
    assert (report.duplicates, report.kept) == (8_235, 26_580)


def test_seconds_of_work_are_durations(data_folder: Path) -> None:
    found = load(data_folder, "mirex2005/pairwise.csv", features=["musical_background", "min_listen_seconds"])
    assert found.duration[0] == 23.0
    assert found.features["musical_background"].tolist()[:2] == ["no", ""]
    assert found.features["min_listen_seconds"].dtype == np.float64


def test_compressed_text_is_read(data_folder: Path) -> None:
    found = load(data_folder, "mq2008_ltr/dev_features_train.csv.gz")
    assert isinstance(found, Ratings)
    assert len(found.items.queries) == 471


@pytest.mark.parametrize(
    ("name", "columns", "count", "best"),
    [
        ("country_population/gold.csv", None, 15, None),
        ("snow2008/gold.csv", None, 730, None),
        ("mq2008_agg/dev_gold.csv", None, 9_630, None),
        ("lee_rankings/gold.csv", None, 305, -1.0),
        ("preflib_dots/gold.csv", None, 16, -1.0),
        ("mirex2005/gold_crowd_derived.csv", None, 118, -1.0),
        ("peergrading_aaai15/gold.csv", {"value": "staff_grade"}, 23, None),
        ("ukp_convarg/gold_crowd_derived.csv", {"rank": "pagerank_score"}, 1_052, None),
    ],
)
def test_real_gold_loads_whole(
    data_folder: Path, name: str, columns: dict[str, str | None] | None, count: int, best: float | None
) -> None:
    gold = read_gold(data_folder / name, columns)
    assert len(gold.item) == len(gold.value) == count
    assert best is None or gold.value.max() == best
    if "pagerank" in str(columns):
        assert (gold.value <= 0).all()


@pytest.mark.parametrize("name", ["food", "simple"])
def test_real_files_of_evalica_are_known_as_such(data_folder: Path, name: str) -> None:
    assert read_with_report(data_folder / f"evalica_fixtures/{name}.csv")[1].format == "evalica"


@pytest.mark.parametrize(
    ("name", "to", "suffix"),
    [
        ("llmfao/pairwise.csv", "evalica", ".csv"),
        ("llmfao/pairwise.csv", "lmsys", ".jsonl"),
        ("llmfao/pairwise.csv", "label-studio", ".json"),
        ("country_population/pairwise.csv", "crowd-kit", ".csv"),
        ("country_population/pairwise.csv", "comparative-judgement", ".csv"),
        ("pwcmp/lightfield_pairwise.csv", "pwcmp", ".csv"),
        ("preflib_sushi/orders.csv", "preflib", ".soc"),
        ("mq2008_agg/dev_rankings.csv", "trec-run", ".txt"),
        ("mq2008_ltr/dev_features_train.csv.gz", "trec-qrels", ".qrels"),
    ],
)
def test_real_judgments_survive_a_round_trip(
    data_folder: Path, tmp_path: Path, name: str, to: str, suffix: str
) -> None:
    found = load(data_folder, name)
    write(found, tmp_path / f"again{suffix}", to)
    again, report = read_with_report(tmp_path / f"again{suffix}")
    assert (report.format, report.malformed_count, report.skips) == (to, 0, 0)
    assert again.items.labels.tolist() == found.items.labels.tolist()
    assert (
        again.n_judgments_per_item.tolist() == found.n_judgments_per_item.tolist() or to == "preflib"
    )  # which counts equal lists
    assert np.sum(again.weights) == np.sum(found.weights)
