"""Answers that both items are bad: ties with a mark, which no operation loses."""

from dataclasses import replace

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.data import Comparisons, chunks
from crowdrank.errors import DataError
from crowdrank.io import read, scan, scanner, write
from crowdrank.simulation import with_spammers

ROWS = {
    "worker": ["ann", "bob", "ann", "bob", "cid"],
    "left": ["x", "y", "x", "z", "y"],
    "right": ["y", "z", "z", "x", "z"],
    "winner": ["x", "tie", "both_bad", "z", "both_bad"],
}
BOTH_BAD = [False, False, True, False, True]


def votes():
    return Comparisons.of(ROWS["left"], ROWS["right"], ROWS["winner"], annotator=ROWS["worker"])


def test_both_bad_is_a_tie_with_a_mark():
    found = votes()
    assert found.outcome.tolist() == [1, 0, 0, 1, 0]
    assert found.both_bad.tolist() == BOTH_BAD
    assert (found.ties, found.n_both_bad) == (3, 2)
    assert found.to_frame()["winner"].to_list() == ROWS["winner"]


def test_without_any_there_is_no_column():
    found = replace(votes(), both_bad=np.zeros(5, bool))
    assert found.both_bad is None
    assert found.n_both_bad == 0


def test_an_item_may_be_called_both_bad():
    found = Comparisons.of(["both_bad", "both_bad"], ["a", "a"], ["both_bad", "a"])
    assert found.outcome.tolist() == [1, -1]
    assert found.both_bad is None


@pytest.mark.parametrize(
    ("both_bad", "said"),
    [
        (np.array([False, False, False, True, False]), "Row 4: both_bad is set, but the comparison is not a tie"),
        (np.array([True]), "differ in length"),
        (np.array([0, 0, 1, 0, 1]), "both_bad must be an array of True and False, got int64"),
    ],
)
def test_it_is_refused_on_decided_rows_of_another_length_or_type(both_bad, said):
    with pytest.raises(DataError, match=said):
        replace(votes(), both_bad=both_bad)


def test_it_goes_with_its_rows():
    found = votes()
    assert found.take(np.array([4, 0])).both_bad.tolist() == [True, False]
    assert found.reweighted(np.array([1.0, 0.0, 2.0, 1.0, 0.0])).both_bad.tolist() == [False, True, False]
    assert found.with_outcomes_reversed().both_bad.tolist() == BOTH_BAD
    assert found.with_item_features({"length": [1, 2, 3]}).both_bad.tolist() == BOTH_BAD
    assert found.decided.both_bad is None
    assert with_spammers(found, 1, seed=0).both_bad.tolist()[:5] == BOTH_BAD


@pytest.mark.parametrize(
    "word", ["both_bad", "Both bad", "bothbad", "tie (bothbad)", "bothbad_vote", "both are bad", "neither"]
)
def test_the_words_of_files_are_known(word):
    found = read({"left": ["p", "p"], "right": ["q", "q"], "winner": [word, "p"]})
    assert found.both_bad.tolist() == [True, False]
    report = found.import_report
    assert (report.ties, report.both_bad) == (1, 1)
    assert report.lines()[1] == "2 rows read, 2 kept (1 tie, of which 1 both bad)."


def test_a_tie_and_both_bad_are_not_the_same_answer_twice():
    table = {"worker": ["ann"] * 2, "left": ["p"] * 2, "right": ["q"] * 2, "winner": ["tie", "both_bad"]}
    assert read(table).import_report.duplicates == 0


@pytest.mark.parametrize(("name", "format_name"), [("v.csv", "tidy"), ("v.jsonl", "lmsys"), ("v.json", "label-studio")])
def test_it_is_written_and_read_again(tmp_path, name, format_name):
    assert not [note for note in write(votes(), tmp_path / name, format_name) if "bad" in note]
    assert read(tmp_path / name).both_bad.tolist() == BOTH_BAD


def test_a_format_without_the_answer_says_so(tmp_path):
    notes = write(votes(), tmp_path / "votes.csv", "evalica")
    assert notes == ["2 answers that both items are bad are plain ties in evalica."]
    assert read(tmp_path / "votes.csv").ties == 3


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_batches_with_and_without_it_are_streamed_alike(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(scanner, "ROWS_PER_BATCH", rows)
    monkeypatch.setattr(chunks, "ROWS_PER_CHUNK", 2)
    write(votes(), tmp_path / "votes.parquet")
    found = scan(tmp_path / "votes.parquet")
    assert np.asarray(found.both_bad).tolist() == BOTH_BAD
    assert (found.n_both_bad, found.import_report.both_bad) == (2, 2)
    assert [chunk.n_both_bad for chunk in found.chunks()] == [0, 1, 1]
    assert found.decided.both_bad is None


def test_no_file_holds_a_column_of_nothing(tmp_path):
    plain = replace(votes(), both_bad=None)
    write(plain, tmp_path / "votes.parquet")
    assert "both_bad" not in dict(scan(tmp_path / "votes.parquet").storage.dtypes)


def test_a_ranking_says_how_they_are_counted():
    ranking = cr.rank(votes(), model="bradley-terry")
    assert "2 answers say that both are bad; bradley-terry counts them as ties." in ranking.notes
    plain = cr.rank(replace(votes(), both_bad=None), model="bradley-terry")
    np.testing.assert_array_equal(ranking.scores, plain.scores)
    assert not [note for note in plain.notes if "bad" in note]
