"""Public data sets: found in a folder, checked, read, and missed with a message that helps. All files are made here."""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import replace

import polars as pl
import pytest

from crowdrank import datasets
from crowdrank.datasets import CATALOGUE
from crowdrank.errors import DataError, SettingError, UnknownNameError
from tests.docs.pages import DOCS, section, table

ROWS = {
    "comparisons": "query,worker,left,right,winner\nq1,ann,a,b,a\nq1,bob,b,a,tie\n",
    "ratings": "query,worker,item,rating\nq1,ann,a,3\nq1,bob,b,1\n",
    "rankings": "query,worker,item,rank\nq1,ann,a,1\nq1,ann,b,2\n",
}
SPECIAL = {
    "sushi": "worker,order_best_first\nann,eel>egg>tuna\nbob,egg>eel>tuna\n",
    "llmfao": "pair,worker,left,right,winner\n0,ann,a,b,a\n1,bob,b,a,tie\n",
    "llmbar": "subset,instance,judge,prompting,order,left,right,winner,gold\n"
    "N,1,x,plain,0,1,2,2,2\nN,1,x,plain,1,2,1,1,2\n",
}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@pytest.fixture
def folder(tmp_path):
    """A folder with a few rows of every set."""
    for name, info in CATALOGUE.items():
        write(tmp_path / info.file, SPECIAL.get(name, ROWS[info.kind]))
        if info.gold_file and info.gold_file != info.file:
            write(tmp_path / info.gold_file, "query,item,label\nq1,a,2\nq1,b,0\n")
    return tmp_path


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_set_is_read_as_its_kind_with_its_gold(folder, name):
    data = datasets.load(name, folder, verify=False)
    assert type(data.judgments).__name__.lower() == data.info.kind
    assert len(data.judgments) == 2 if data.info.kind != "rankings" or name == "sushi" else 1
    assert "ann" in data.judgments.annotators or name == "llmbar"
    assert (data.gold is not None) == bool(data.info.gold_file)
    assert name in repr(data)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_set_says_where_it_comes_from(name):
    info = CATALOGUE[name]
    assert info.source.startswith("https://")
    assert info.licence
    assert re.search(r"[A-Z]\. \w+", info.citation)
    assert re.fullmatch(r"[0-9a-f]{64}", info.sha256)
    assert bool(info.gold_file) == bool(re.fullmatch(r"[0-9a-f]{64}", info.gold_sha256))


def test_the_better_answer_is_the_gold_of_a_query(folder):
    data = datasets.load("llmbar", folder, verify=False)
    assert dict(zip(data.gold.items.labels, data.gold.value, strict=True)) == {"1": 0.0, "2": 1.0}
    assert data.gold.items.queries.tolist() == data.judgments.items.queries.tolist() == ["N+1"]
    assert data.judgments.annotators.tolist() == ["x+plain"]


def test_another_file_is_refused_by_its_checksum(folder):
    with pytest.raises(DataError, match=r"orders\.csv is not the file.*SHA-256 is [0-9a-f]{64}.*verify=False"):
        datasets.load("sushi", folder)


def test_the_known_file_and_gold_pass(folder, monkeypatch):
    info = CATALOGUE["dots"]
    known = {
        "sha256": hashlib.sha256((folder / info.file).read_bytes()).hexdigest(),
        "gold_sha256": hashlib.sha256((folder / info.gold_file).read_bytes()).hexdigest(),
    }
    monkeypatch.setitem(CATALOGUE, "dots", replace(info, **known))
    assert len(datasets.load("dots", folder).gold) == 2
    (folder / info.gold_file).write_text("query,item,label\nq1,a,3\n")
    with pytest.raises(DataError, match=r"gold\.csv is not the file"):
        datasets.load("dots", folder)


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_missing_set_says_where_to_get_it(tmp_path, name):
    with pytest.raises(DataError) as found:
        datasets.load(name, tmp_path)
    info = CATALOGUE[name]
    for part in (info.source, info.licence, info.file, info.layout):
        assert part in str(found.value)


def test_the_folder_may_come_from_the_environment(folder, monkeypatch):
    monkeypatch.setenv(datasets.VARIABLE, str(folder))
    assert datasets.available() == list(CATALOGUE)
    assert len(datasets.load("llmfao", verify=False).judgments) == 2


def test_a_folder_is_needed(tmp_path, monkeypatch):
    monkeypatch.delenv(datasets.VARIABLE, raising=False)
    with pytest.raises(SettingError, match="CROWDRANK_DATA"):
        datasets.load("sushi")
    with pytest.raises(SettingError, match="There is no folder"):
        datasets.available(tmp_path / "nowhere")
    with pytest.raises(UnknownNameError, match="did you mean 'sushi'"):
        datasets.load("shushi", tmp_path)


def test_preflib_publishes_sushi_in_a_form_that_is_read(tmp_path):
    text = "# TITLE: three\n# NUMBER ALTERNATIVES: 3\n" + "".join(
        f"# ALTERNATIVE NAME {n}: {name}\n" for n, name in enumerate(("eel", "egg", "tuna"), 1)
    )
    write(tmp_path / "preflib_sushi" / "00014-00000001.soc", text + "2: 1,2,3\n1: 2,1,3\n")
    data = datasets.load("sushi", tmp_path)
    assert sorted(data.judgments.items.labels) == ["eel", "egg", "tuna"]
    assert datasets.available(tmp_path) == ["sushi"]


def test_mt_bench_is_read_as_it_is_published(tmp_path):
    row = {"question_id": 81, "turn": 1, "judge": "author_1", "model_a": "x", "model_b": "y", "winner": "model_b"}
    path = tmp_path / "mtbench_human" / "human-00000-of-00001.parquet"
    path.parent.mkdir()
    talk = [[{"content": "hi", "role": "user"}]] * 2
    pl.DataFrame([row, row | {"turn": 2}]).with_columns(conversation_a=pl.Series(talk)).write_parquet(path)
    votes = datasets.load("mtbench-human", tmp_path).judgments
    assert votes.items.queries.tolist() == ["81+1", "81+2"]
    assert votes.annotators.tolist() == ["author_1"]


def test_the_page_has_every_set_with_its_licence_and_files():
    page = DOCS / "reference" / "datasets.md"
    sets = {row[0].strip("`"): row for row in table(section(page, "The sets"))[1:]}
    files = {row[0].strip("`"): row for row in table(section(page, "The files"))[1:]}
    assert list(sets) == list(files) == list(CATALOGUE)
    for name, info in CATALOGUE.items():
        gold = "yes" if info.gold_file else "no"
        assert sets[name][1:-1] == [info.description, info.size, gold, info.licence]
        assert sets[name][-1].endswith(f"]({info.source})")
        assert files[name][1] == f"`{info.file}`: {info.layout}"


@pytest.mark.data
@pytest.mark.parametrize("name", CATALOGUE)
def test_the_sizes_hold_for_the_real_sets(data_folder, name):
    if name not in datasets.available(data_folder):
        pytest.skip(f"{name} is not in {data_folder}")
    data = datasets.load(name, data_folder)
    assert f"{len(data.judgments.annotators):,} annotators" in data.info.size
    if data.gold is not None:
        assert set(data.gold.items.queries) == set(data.judgments.items.queries)
