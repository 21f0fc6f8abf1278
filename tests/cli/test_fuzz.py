"""No file, however broken, causes a traceback on the command line."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from crowdrank.cli import main

ODD_CELLS = ["a", "b", "c", "tie", "", " ", "left", "right", "NaN", "inf", "-inf", "1", "1.0", "0", "-1", "1e400"]
CELLS = st.one_of(st.sampled_from(ODD_CELLS), st.text(max_size=8), st.just("x" * 100_000))
NAMES = "worker left right winner loser query item rating rank weight time order Left LEFT label score"
ODD_NAMES = ["", " winner ", "model_a", "model_b", "time_taken", "ünïcode", '"', "a,b"]
HEADERS = st.lists(st.sampled_from([*NAMES.split(), *ODD_NAMES]), max_size=7)
ENCODINGS = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1", "utf-32"])
SUFFIXES = st.sampled_from([".csv", ".tsv", ".txt", ".jsonl", ".json", ".parquet", ".csv.gz", "", ".xlsx"])


@st.composite
def broken_tables(draw: st.DrawFn) -> bytes:
    header = draw(HEADERS)
    rows = draw(st.lists(st.lists(CELLS, max_size=len(header) + 1), max_size=6))
    quote = draw(st.sampled_from(['"', "'", ""]))
    comma = draw(st.sampled_from([",", "\t", ";", "|"]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))
    lines = [comma.join(header), *(comma.join(quote + cell + quote for cell in row) for row in rows)]
    return end.join(lines).encode(draw(ENCODINGS), errors="replace")


def run(path: Path, *words: str) -> tuple[int, str]:
    """The exit code and the text on stderr; any exception except SystemExit is raised."""
    err = io.StringIO()
    argv = mock.patch.object(sys, "argv", ["crowdrank", "rank", str(path), *words])
    with argv, contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as stop:
            return int(stop.code or 0), err.getvalue()
    return 0, err.getvalue()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(content=st.one_of(broken_tables(), st.binary(max_size=400)), suffix=SUFFIXES)
@example(content=b"", suffix=".csv")
@example(content=b"left,right,winner\n", suffix=".csv")
@example(content=b"left,right,winner\na,b,a\n", suffix=".csv")
@example(content=b"left,left,winner\na,b,a\n", suffix=".csv")
@example(content=b"left,right,winner\na,a,a\n", suffix=".csv")
@example(content=b"left,right,winner,weight\na,b,a,nan\na,b,b,inf\n", suffix=".csv")
@example(content=b"left,right,winner,weight\na,b,a,1e308\na,b,b,1e308\n", suffix=".csv")
@example(content=b"item,rating,worker\na,1e308,x\nb,-1e308,x\n", suffix=".csv")
@example(content=b"item,rank,worker\na,1,x\n", suffix=".csv")
@example(content=b'left,right,winner\n"a,b,a\n', suffix=".csv")
@example(content="left,right,winner\na,b,a\nb,a,a\n".encode("utf-16"), suffix=".csv")
@example(content=b"\x00\x00\x00", suffix=".csv")
@example(content=b"{}", suffix=".json")
@example(content=b"[1, 2]", suffix=".json")
@example(content=b'{"left": {"x": 1}, "right": [1], "winner": null}', suffix=".jsonl")
def test_no_file_draws_a_traceback(tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str):
    path = tmp_path_factory.mktemp("fuzz") / f"votes{suffix}"
    path.write_bytes(content)
    code, err = run(path)
    assert code in (0, 1)
    assert "Traceback" not in err
    assert (code == 1) == err.startswith("crowdrank: ")


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(words=st.lists(st.text(min_size=1, max_size=12).filter(lambda w: "\x00" not in w), min_size=1, max_size=4))
def test_no_words_draw_a_traceback(tmp_path_factory: pytest.TempPathFactory, words: list[str]):
    path = tmp_path_factory.mktemp("words") / "votes.csv"
    path.write_text("left,right,winner\na,b,a\nb,a,a\n")
    pairs = [part for word in words for part in ("--set", word)] + ["--column", words[0], "--model", words[-1]]
    code, err = run(path, *pairs)
    assert code in (1, 2)
    assert "Traceback" not in err
