"""Writing tables."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from crowdrank.errors import FormatError
from crowdrank.io import write_table

TABLE = pl.DataFrame({"item": ["x", 'y, \n"z"'], "score": [1.5, None]})
READERS = {
    ".csv": pl.read_csv,
    ".tsv": lambda path: pl.read_csv(path, separator="\t"),
    ".jsonl": pl.read_ndjson,
    ".ndjson": pl.read_ndjson,
    ".json": pl.read_json,
    ".parquet": pl.read_parquet,
}


@pytest.mark.parametrize("suffix", READERS)
def test_what_is_written_can_be_read(tmp_path: Path, suffix: str) -> None:
    write_table(TABLE, tmp_path / f"table{suffix}")
    assert READERS[suffix](tmp_path / f"table{suffix}").equals(TABLE)


def test_an_unknown_suffix_lists_the_known(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"\.csv, \.tsv, \.jsonl, .*\.xlsx, got '\.docx'"):
        write_table(TABLE, tmp_path / "table.docx")


def test_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    for suffix in READERS:
        with pytest.raises(FormatError, match="cannot be written"):
            write_table(TABLE, tmp_path / "nowhere" / f"table{suffix}")


def test_what_a_format_cannot_hold_says_so(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be written"):
        write_table(pl.DataFrame({"a": [[1]]}), tmp_path / "table.csv")
