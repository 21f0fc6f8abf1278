"""Reading any input gives judgments or a CrowdrankError."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdrank.data import Comparisons, Rankings, Ratings
from crowdrank.errors import CrowdrankError
from crowdrank.io import MalformedRow, list_formats, read_with_report
from tests.strategies import EXPLORING

pytestmark = pytest.mark.slow

few = settings(
    max_examples=70 if EXPLORING else 25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

NAMES = st.sampled_from(
    [
        "worker",
        "annotator",
        "left",
        "right",
        "winner",
        "loser",
        "Left",
        "A",
        "b",
        "model_a",
        "model_b",
        "label",
        "item",
        "rank",
        "order",
        "grade",
        "weight",
        "time",
        "query",
        "duration_ms",
        "list",
        "chosen",
        "not_chosen",
        "",
        " ",
        "\ufeffleft",
        '"left"',
        "wörker",
        "a\nb",
    ]
)
HUGE = "\uf8ff"  # stands for a huge cell until it is written
CELLS = st.one_of(
    st.sampled_from(
        [
            "x",
            "y",
            "z",
            "x",
            "y",
            "tie",
            "skip",
            "left",
            "",
            " ",
            "1",
            "2",
            "nan",
            "inf",
            "-1",
            "1e999",
            "x>y=z",
            ">",
            "None",
        ]
    ),
    st.sampled_from(
        ['"', '""', '"x', 'x"y', '"x\ny"', "\r", "\r\n", "\n", ",", ";", "\t", "\u2028", "é", "\U0001f600"]
    ),
    st.text(max_size=5),
    st.just(HUGE),
)
NEWLINES = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])
ENCODINGS = st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1", "cp1252"])


@st.composite
def messy_text(draw: st.DrawFn) -> str:
    """Text that is nearly a table."""
    sign, newline = draw(st.sampled_from([",", ",", ";", "\t", "|"])), draw(NEWLINES)
    width = draw(st.integers(1, 6))
    header = draw(st.lists(NAMES, min_size=width, max_size=width))
    if draw(st.booleans()):
        header = ["left", "right", "winner", *header[3:]]
    rows = draw(st.lists(st.lists(CELLS, min_size=max(width - 1, 1), max_size=width + 1), max_size=8))
    return newline.join(sign.join(row) for row in [header, *rows])


def outcome(path: Path, **options: Any) -> Any:
    """Valid judgments whose report accounts for every row; None if a CrowdrankError was raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found, report = read_with_report(path, **options)
        except CrowdrankError:
            return None
    assert isinstance(found, Comparisons | Ratings | Rankings)
    assert len(found) > 0
    assert report.rows_read == report.kept + report.skips + report.malformed_count + sum(report.set_aside.values())
    assert report.kept > 0
    assert len(report.malformed) == min(report.malformed_count, 100)
    assert all(isinstance(m, MalformedRow) and m.reason for m in report.malformed)
    json.dumps(report.as_dict())
    assert all(isinstance(line, str) for line in report.lines())
    assert found.to_frame().height > 0
    if isinstance(found, Comparisons):
        assert set(np.unique(found.outcome)) <= {-1, 0, 1}
        assert (found.left != found.right).all()
        whole = report.format != "alpaca-eval"  # which splits graded preferences into parts
        assert report.kept == (len(found) if whole else round(float(found.weights.sum()), 2))
    return found


@given(
    data=st.binary(max_size=300), suffix=st.sampled_from(["csv", "tsv", "json", "jsonl", "parquet", "csv.gz", "txt"])
)
@few
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes, suffix: str) -> None:
    path = tmp_path / f"any.{suffix}"
    path.write_bytes(data)
    outcome(path)


@given(text=messy_text(), saved=ENCODINGS, told=st.sampled_from([None, "latin-1", "utf-8"]), strict=st.booleans())
@few
def test_any_text_is_read_or_refused(tmp_path: Path, text: str, saved: str, told: str | None, strict: bool) -> None:
    path = tmp_path / "any.csv"
    path.write_bytes(text.replace(HUGE, "w" * 150_000).encode(saved, "replace"))
    outcome(path, encoding=told, strict=strict)


@given(
    rows=st.lists(
        st.one_of(
            st.dictionaries(NAMES, st.one_of(CELLS, st.none(), st.floats(), st.integers(), st.lists(st.integers()))),
            st.fixed_dictionaries(
                {"left": st.sampled_from("xyz"), "right": CELLS, "winner": st.one_of(CELLS, st.none())}
            ),
            st.none(),
        ),
        max_size=8,
    ),
    as_lines=st.booleans(),
)
@few
def test_any_json_is_read_or_refused(tmp_path: Path, rows: list[Any], as_lines: bool) -> None:
    path = tmp_path / "any.json"
    text = "\n".join(map(json.dumps, rows)) if as_lines else json.dumps(rows)
    path.write_text(text.replace(json.dumps(HUGE)[1:-1], "w" * 150_000))
    outcome(path)


@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["ann", "bob"]), st.text(max_size=4), st.text(max_size=4), st.booleans()),
        min_size=1,
        max_size=8,
    )
)
@few
def test_well_formed_text_is_read_as_it_was_written(tmp_path: Path, rows: list[tuple[str, str, str, bool]]) -> None:
    """For any labels, every row with two different ones is kept, with the right winner."""
    table = pl.DataFrame(
        [(who, left, right, left if first else right) for who, left, right, first in rows],
        schema=["worker", "left", "right", "winner"],
        orient="row",
    )
    sides = table.select(pl.col("left", "right").str.strip_chars()).rows()
    usable = [(a, row[-1]) for row, (a, b) in zip(rows, sides, strict=True) if a and b and a != b]
    buffer = io.BytesIO()
    table.write_csv(buffer)
    path = tmp_path / "votes.csv"
    path.write_bytes(buffer.getvalue())
    found = outcome(path)
    if 2 * len(usable) >= len(rows) and usable and not any("\0" in a + b for _, a, b, _ in rows):
        expected = [(a.replace("\r\n", "\n").replace("\r", "\n"), first) for a, first in usable]
        labels = found.items.labels[found.left].tolist()
        assert list(zip(labels, (found.outcome == 1).tolist(), strict=True)) == expected


@pytest.mark.parametrize("sign", [",", "\t", ";", "|"])
@given(data=st.data())
@few
def test_lines_are_numbered_exactly(tmp_path: Path, sign: str, data: st.DataObject) -> None:
    """Blank lines, quoted newlines and short rows never shift the numbers."""
    lines, wrong = [sign.join(["left", "right", "winner", "note"])], []
    for _ in range(data.draw(st.integers(1, 12))):
        note = data.draw(st.sampled_from(["", "n", '"two\nlines"', '"three\n\nlines"', '"say ""hi"""', 'in"ch']))
        kind = data.draw(st.sampled_from(["good", "good", "good", "wrong", "blank", "short", "long"]))
        start = sum(line.count("\n") + 1 for line in lines) + 1
        if kind in ("wrong", "short", "long"):
            wrong.append(start)
        row = {
            "good": ["x", "y", "x", note],
            "wrong": ["x", "y", "q", note],
            "blank": [],
            "short": ["x", "y"],
            "long": ["x", "y", "x", note, "more"],
        }[kind]
        lines.append(sign.join(row))
    lines += [sign.join("xyx")] * (len(wrong) + 1)
    path = tmp_path / "votes.csv"
    path.write_text("\n".join(lines))
    _, report = read_with_report(path)
    assert [m.line for m in report.malformed] == wrong


FIXTURES = sorted((Path(__file__).parent / "fixtures").iterdir())


@given(data=st.data())
@settings(
    max_examples=150 if EXPLORING else 50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_exports_with_pieces_missing_or_doubled_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    """A cut or a stray word in any export raises nothing but a CrowdrankError."""
    fixture = data.draw(st.sampled_from(FIXTURES))
    text = fixture.read_bytes()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 60)))
    stray = data.draw(st.sampled_from([b"", b"", b"null", b"[]", b"{}", b"7", b'"x"', b",", b"\n", b"-1", b"tie"]))
    path = tmp_path / f"any{fixture.suffix}"
    path.write_bytes(text[:start] + stray + text[end:])
    outcome(path)
    outcome(path, format=data.draw(st.sampled_from([known.name for known in list_formats()])))


@given(data=st.data())
@settings(
    max_examples=100 if EXPLORING else 40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_json_exports_with_odd_values_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    fixture = data.draw(st.sampled_from([f for f in FIXTURES if f.suffix in (".json", ".jsonl")]))
    lines = fixture.read_text().splitlines() if fixture.suffix == ".jsonl" else []
    records = [json.loads(line) for line in lines if line.endswith("}")] or json.loads(fixture.read_text())
    for _ in range(data.draw(st.integers(1, 3))):
        place: Any = records
        while isinstance(place, dict | list) and place:
            key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], dict | list) or data.draw(st.integers(0, 3)) == 0:
                place[key] = data.draw(st.sampled_from([None, 7, 1.5, True, "odd", [], {}, [None], {"odd": 1}, [[1]]]))
                break
            place = place[key]
    path = tmp_path / "any.json"
    path.write_text(json.dumps(records))
    outcome(path)
