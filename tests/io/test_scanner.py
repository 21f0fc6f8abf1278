"""Scanning files in batches gives the same judgments as `read`, without loading the files into memory."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crowdrank import data
from crowdrank.data import chunks, pair_counts
from crowdrank.data.comparisons import MAX_CELLS
from crowdrank.errors import DataWarning, FormatError
from crowdrank.io import needs_scan, read, scan, scan_with_report, scanner, sources

ROWS = {
    "worker": ["eve", "bob", "ann", "bob", "eve", "ann", "cid"],
    "left": ["pear", "fig", "apple", "pear", "fig", "kiwi", "apple"],
    "right": ["fig", "apple", "kiwi", "apple", "kiwi", "pear", "fig"],
    "winner": ["pear", "right", "tie", "apple", "fig", "skip", "apple"],
    "topic": ["b", "b", "a", "b", "a", "a", "b"],
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(scanner, "ROWS_PER_BATCH", 2)
    monkeypatch.setattr(chunks, "ROWS_PER_CHUNK", 3)


def written(tmp_path, rows=ROWS, suffix="parquet", parts=2):
    frame = pl.DataFrame(rows)
    for n in range(parts):
        part = frame[n * len(frame) // parts : (n + 1) * len(frame) // parts]
        path = tmp_path / f"part-{n}.{suffix}"
        part.write_parquet(path) if suffix == "parquet" else part.write_csv(path, separator=",;"[suffix == "tsv"])
    return tmp_path


def assert_equal(found, expected):
    for name in ("left", "right", "outcome", "annotator", "weight"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("labels", "query", "queries"):
        assert getattr(found.items, name).tolist() == getattr(expected.items, name).tolist()
    assert found.annotators.tolist() == expected.annotators.tolist()
    assert found.positions_known == expected.positions_known


@pytest.mark.parametrize("suffix", ["parquet", "csv", "tsv"])
def test_a_folder_of_parts_is_what_reading_them_together_gives(tmp_path, suffix):
    found = scan(written(tmp_path, suffix=suffix))
    assert_equal(found, read(ROWS))
    assert len(found.storage.chunks) == 2


def test_weights_and_winners_named_first_are_read(tmp_path):
    rows = {"winner": ["a", "b", "c"], "loser": ["b", "c", "a"], "weight": [1.0, 2.0, 0.5]}
    assert_equal(scan(written(tmp_path, rows)), read(rows))


def test_a_file_and_a_pattern_will_do(tmp_path, monkeypatch):
    folder = written(tmp_path)
    assert len(scan(folder / "part-0.parquet")) == 3
    assert len(scan(str(folder / "part-*.parquet"))) == 6
    assert not needs_scan(folder)  # small enough to be read
    monkeypatch.setattr(sources, "MAX_FOLDER_BYTES", 100)
    assert needs_scan(folder)
    assert needs_scan(str(folder / "*.parquet"))
    assert not needs_scan(folder / "part-0.parquet")


def test_scores_and_joined_columns_are_scanned(tmp_path):
    rows = {"type1": ["a", "b"], "level1": ["1", "2"], "home": ["b", "a"], "score1": [3, 1], "score2": [2, 1]}
    columns = {"left": "type1+level1", "right": "home", "left_score": "score1", "right_score": "score2"}
    assert_equal(scan(written(tmp_path, rows), columns=columns), read(rows, columns=columns))


def test_counts_over_parts_are_those_of_the_whole(tmp_path, monkeypatch):
    found, expected = scan(written(tmp_path)), read(ROWS)
    for most in (MAX_CELLS, 7):  # all pairs at once, and one item at a time
        monkeypatch.setattr(pair_counts, "MAX_CELLS", most)
        for name in ("first", "second", "first_wins", "second_wins", "ties"):
            np.testing.assert_array_equal(getattr(replace(found).counts, name), getattr(expected.counts, name))
    monkeypatch.setattr(data.comparisons, "MAX_CELLS", 7)
    from crowdrank.models.pairwise.likelihood import LOGISTIC
    from crowdrank.models.pairwise.paired import pairs_of_counts

    def pairs(given):
        return pairs_of_counts(given, LOGISTIC)

    table = found.map_count_chunks(pairs)
    together = [recipe() for recipe in table.loaders]
    assert table.rows == len(expected.counts) == sum(part.rows for part in together)
    assert [part.start for part in together] == [0, 3]
    np.testing.assert_array_equal(np.concatenate([part.weight for part in together]), pairs(expected.counts).weight)


def test_what_is_counted_and_what_is_decided_agree_with_rows_in_memory(tmp_path):
    found, expected = scan(written(tmp_path)), read(ROWS)
    assert found.ties == expected.ties == 1
    assert found.n_judgments_per_item.tolist() == expected.n_judgments_per_item.tolist()
    assert found.n_judgments_per_annotator.tolist() == np.bincount(expected.annotator).tolist()
    assert_equal(found.decided, expected.decided)
    assert len(found.decided.storage.chunks) == 2
    assert data.DataDiagnostics(found).notes() == data.DataDiagnostics(expected).notes()


def test_every_row_is_accounted_for(tmp_path):
    rows = {
        "left": ["a", "b", None, "a", "b", "c"],
        "right": ["b", "b", "c", "c", "c", "a"],
        "winner": ["a", "b", "c", "banana", "tie", "skip"],
    }
    found, report = scan_with_report(written(tmp_path, rows))
    assert len(found) == report.kept == 2
    assert (report.rows_read, report.malformed_count, report.self_comparisons, report.skips) == (6, 3, 1, 1)
    where = [(m.line, m.column) for m in report.malformed]
    assert where == [(2, "right"), (3, "left"), (1, "winner")]
    assert "(part-1.parquet)" in report.malformed[2].reason
    with pytest.warns(DataWarning, match="3 of 6 rows could not be used"):
        scan(tmp_path)
    with pytest.raises(FormatError, match="Row 2"):
        scan(tmp_path, strict=True)


def test_progress_is_told(tmp_path):
    heard = []
    scan_with_report(written(tmp_path), progress=heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 7


def test_the_files_go_with_the_judgments(tmp_path):
    found = scan(written(tmp_path))
    beside = found.storage.folder.path
    later = found.take(np.array([0])).left[0]
    assert beside.exists()
    del found
    assert not beside.exists()
    assert later >= 0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"left": ["a", "b"], "right": ["b", "a"], "winner": ["plum", "plum"]}, "2 of 2 rows cannot be used"),
        ({"left": ["a"], "right": ["b"], "who": ["a"]}, "no column for winner"),
    ],
)
def test_nothing_is_left_behind_where_it_fails(tmp_path, rows, message):
    beside = tmp_path / "codes"
    beside.mkdir()
    with pytest.raises(FormatError, match=message):
        scan(written(tmp_path, rows, parts=1) / "part-0.parquet", folder=beside)
    assert list(beside.iterdir()) == []


def test_parts_must_have_the_same_columns(tmp_path):
    written(tmp_path, parts=1)
    pl.DataFrame({"left": ["a"], "right": ["b"]}).write_parquet(tmp_path / "part-1.parquet")
    with pytest.raises(FormatError, match="part-1.parquet: no column"):
        scan(tmp_path)


def test_a_folder_without_judgments_is_refused(tmp_path):
    Path(tmp_path / "notes.md").write_text("nothing")
    with pytest.raises(FormatError, match="no file with one of the suffixes"):
        scan(tmp_path)
