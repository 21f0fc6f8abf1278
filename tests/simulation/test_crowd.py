import json

import numpy as np
import polars as pl
import pytest

from crowdrank.data import Comparisons, Rankings
from crowdrank.simulation import crowd_bt, domain_crowd, factor_crowd, list_crowd, mixed_crowd

CROWDS = {
    "crowd_bt": lambda: crowd_bt(items=20, annotators=12, pairs=60, votes=3),
    "factor_crowd": lambda: factor_crowd(items=20, annotators=12, pairs=60, votes=3),
    "domain_crowd": lambda: domain_crowd(queries=12, items=5, annotators=10, sparsity=0.5),
    "mixed_crowd": mixed_crowd,
}


@pytest.mark.parametrize("name", CROWDS)
def test_written_votes_read_back_as_the_same_comparisons(name, tmp_path):
    crowd = CROWDS[name]()
    crowd.write(tmp_path)
    votes = pl.read_csv(tmp_path / "votes.csv")
    columns = {c: votes[c] for c in ("query", "annotator") if c in votes.columns}
    features = {c: votes[c] for c in crowd.judgments.features}
    read = Comparisons.of(votes["left"], votes["right"], votes["winner"], **columns, features=features)
    for column in ("left", "right", "outcome", "annotator"):
        np.testing.assert_array_equal(getattr(read, column), getattr(crowd.judgments, column))
    assert read.items.labels.tolist() == crowd.judgments.items.labels.tolist()
    assert read.items.queries.tolist() == crowd.judgments.items.queries.tolist()
    assert read.annotators.tolist() == crowd.judgments.annotators.tolist()
    assert list(read.features) == list(crowd.judgments.features)


def test_written_lists_read_back_as_the_same_rankings(tmp_path):
    crowd = list_crowd(queries=12, items=11, annotators=10)
    crowd.write(tmp_path)
    rows = pl.read_csv(tmp_path / "votes.csv")
    read = Rankings.of(rows["item"], rows["rank"], annotator=rows["annotator"], query=rows["query"])
    for column in ("item", "place", "offsets", "annotator"):
        np.testing.assert_array_equal(getattr(read, column), getattr(crowd.judgments, column))
    items = pl.read_csv(tmp_path / "items.csv")
    assert items.columns == ["query", "item", "x1", "x2"]
    np.testing.assert_array_equal(items["x2"], crowd.features["x2"])


def test_gold_names_every_item_with_its_truth(tmp_path):
    crowd = crowd_bt(items=50, pairs=5, votes=2)
    crowd.write(tmp_path)
    gold = pl.read_csv(tmp_path / "gold.csv")
    assert gold.columns == ["item", "label"]
    assert gold["item"].to_list() == crowd.judgments.items.labels.tolist()
    np.testing.assert_array_equal(gold["label"], crowd.truth)
    assert len(set(pl.read_csv(tmp_path / "votes.csv")["left"])) < 50


def test_queries_and_domains_are_written(tmp_path):
    crowd = domain_crowd(queries=12, items=5, sparsity=0.5)
    written = crowd.write(tmp_path / "deep" / "folder")
    assert [p.name for p in written] == ["votes.csv", "gold.csv", "annotators.csv", "queries.csv", "settings.json"]
    folder = written[0].parent
    assert pl.read_csv(folder / "gold.csv").columns == ["query", "item", "label"]
    assert pl.read_csv(folder / "queries.csv").columns == ["query", "domain", "difficulty"]
    annotators = pl.read_csv(folder / "annotators.csv")
    assert annotators.columns == ["annotator", *(f"expertise_{n:02d}" for n in range(1, 11))]
    np.testing.assert_array_equal(annotators.drop("annotator").to_numpy(), crowd.annotators["expertise"])


def test_annotators_and_settings_are_written(tmp_path):
    crowd = mixed_crowd(kinds={"good": 2, "left": 1}, seed=7)
    crowd.write(tmp_path)
    table = pl.read_csv(tmp_path / "annotators.csv")
    assert table["kind"].to_list() == crowd.annotators["kind"].tolist()
    np.testing.assert_array_equal(table["quality"], crowd.annotators["quality"])
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings == {
        "generator": "mixed_crowd",
        "items": 40,
        "kinds": {"good": 2, "left": 1},
        "votes_each": 50,
        "scale": 3.0,
        "log": False,
        "seed": 7,
    }


def test_settings_make_the_same_crowd_again(tmp_path):
    crowd = crowd_bt(items=np.int64(20), annotators=12, pairs=60, votes=3, seed=9)
    crowd.write(tmp_path)
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings.pop("generator") == "crowd_bt"
    again = crowd_bt(**{k: int(v) if isinstance(v, float) and k != "scale" else v for k, v in settings.items()})
    assert again.judgments.to_frame().equals(crowd.judgments.to_frame())


def test_the_truth_cannot_be_changed():
    crowd = crowd_bt()
    with pytest.raises(ValueError, match="read-only"):
        crowd.truth[0] = 7
    with pytest.raises(ValueError, match="read-only"):
        crowd.annotators["quality"][0] = 1
