"""LETOR and SVMlight files."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from crowdrank.errors import FormatError
from crowdrank.io.formats.retrieval import looks_like_letor, read_letor

TWO = "2 qid:7 1:0.5 3:-1e-2 #docid = GX-1 inc = 0.1\n\n# a remark\n0 qid:8 2:4 #docid = GX-2 inc = 1\n"


def written(folder: Path, text: str, name: str = "train.letor") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_what_a_line_leaves_out_is_zero(tmp_path: Path) -> None:
    found = read_letor(written(tmp_path, TWO))
    np.testing.assert_array_equal(found.values, [[0.5, 0, -0.01], [0, 4, 0]])
    assert found.grade.tolist() == [2, 0]
    assert found.query is not None
    assert found.query.to_list() == ["7", "8"]
    assert found.item.to_list() == ["GX-1", "GX-2"]
    assert found.line.tolist() == [1, 4]


def test_it_reads_what_scikit_learn_reads(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    values = np.where(rng.random((300, 9)) < 0.4, 0.0, rng.normal(size=(300, 9)))
    values[:, 8] = 1.0
    lines = [
        f"{n % 3} qid:{n // 10} " + " ".join(f"{k + 1}:{v!r}" for k, v in enumerate(row.tolist()) if v)
        for n, row in enumerate(values)
    ]
    path = written(tmp_path, "\n".join(lines) + "\n")
    known, grades, query = load_svmlight_file(str(path), query_id=True)
    found = read_letor(path)
    np.testing.assert_array_equal(found.values, known.toarray())
    np.testing.assert_array_equal(found.grade, grades)
    assert found.query is not None
    assert found.query.cast(int).to_list() == query.tolist()


def test_a_file_is_known_by_its_ending_or_its_first_line(tmp_path: Path) -> None:
    assert looks_like_letor(written(tmp_path, "", "a.svmlight"))
    assert looks_like_letor(written(tmp_path, "# MQ2008\n" + TWO, "train.txt"))
    assert not looks_like_letor(written(tmp_path, "item\trank\na\t1\n", "lists.txt"))
    assert not looks_like_letor(written(tmp_path, TWO, "train.csv"))
    packed = tmp_path / "train.txt.gz"
    packed.write_bytes(gzip.compress(TWO.encode()))
    assert looks_like_letor(packed)
    np.testing.assert_array_equal(read_letor(packed).values, read_letor(written(tmp_path, TWO)).values)


def test_items_without_names_go_by_their_number(tmp_path: Path) -> None:
    found = read_letor(written(tmp_path, "1 qid:b 1:1\n0 qid:a 1:2\n0 qid:b 1:3\n"))
    assert found.item.to_list() == ["1", "1", "2"]
    assert "number" in found.notes[0]


def test_files_without_queries_are_one_query(tmp_path: Path) -> None:
    assert read_letor(written(tmp_path, "1 1:1 # x\n0 1:2 # y\n")).query is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 qid:1 1:1\n1 qid:1 2:x\n", "line 2: a feature must be index:value, such as 3:0.5, got '2:x'"),
        ("1 qid:1 1:1\n1 qid:1 0:1\n", "line 2: a feature must be index:value"),
        ("1 qid:1 1:nan\n", "line 1: a feature must be index:value"),
        ("1 qid:1 999999999:1\n", "line 1: a feature must be index:value"),
        ("1 qid:1 word\n", "line 1: a feature must be index:value"),
        ("1 qid:1 1:1 1:2\n", "line 1: feature 1 is given twice"),
        ("\nbad qid:1 1:1\n", "line 2: the grade must be a number, got 'bad'"),
        ("1 qid:1 1:1\n1 1:1\n", "line 2: no qid:"),
        ("1 qid:1\n", "no line has features"),
        ("# nothing\n\n", "is empty"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read_letor(written(tmp_path, text))
    assert message in str(caught.value)


def test_a_long_file_is_read_a_piece_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(f"{n % 2} qid:{n // 4} {n % 5 + 1}:{n}\n" for n in range(1, 51))
    whole = read_letor(written(tmp_path, lines)).values
    monkeypatch.setattr("crowdrank.io.formats.retrieval._CHUNK", 7)
    np.testing.assert_array_equal(read_letor(written(tmp_path, lines)).values, whole)
    assert whole.shape == (50, 5)
    assert whole.sum() == sum(range(1, 51))


NEARLY = st.from_regex(r"\A([0-2] qid:[ab] ([1-3]:[-.0-9e]{1,3} ?){0,3}(#.{0,5})?\n?){1,4}\Z")


@given(st.one_of(st.text(max_size=60), NEARLY))
def test_any_text_is_read_or_refused(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.letor"
        path.write_text(text, encoding="utf-8", errors="replace")
        try:
            found = read_letor(path)
        except FormatError:
            return
        assert len(found.values) == len(found.grade) == len(found.item) == len(found.line)
        assert np.isfinite(found.values).all()
