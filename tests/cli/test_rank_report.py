"""crowdrank rank --report and --plot."""

from __future__ import annotations

import json
import re
import sys
from html import unescape
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "cities"


def codes(page: str) -> list[str]:
    return [unescape(code) for code in re.findall(r"<pre><code>(.*?)</code></pre>", page, re.DOTALL)]


def test_a_report_is_written_beside_the_tables(crowdrank, tmp_path):
    path = tmp_path / "report.html"
    code, out, err = crowdrank("rank", EXAMPLE / "votes.csv", "--gold", EXAMPLE / "gold.csv", "--report", path)
    assert (code, err) == (0, "")
    assert f"Written to {path}" in out
    page = path.read_text(encoding="utf-8")
    assert "votes.csv, ranked by crowd-bt" in page
    for part in ("order", "gold", "annotators", "disagreement", "coverage", "position", "calibration", "dropped"):
        assert f'id="{part}"' in page
    assert "SHA-256" in page


def test_the_page_says_how_to_get_the_same_again(crowdrank, votes, tmp_path):
    path = tmp_path / "report.html"
    words = ["--model", "bradley-terry", "--set", "prior_scale=0.5", "--seed", "3", "--uncertainty", "none", "--json"]
    first = crowdrank("rank", votes, *words, "--report", path)
    command, python = codes(path.read_text(encoding="utf-8"))
    again = crowdrank(*command.split()[1:])
    assert json.loads(again.out) == json.loads(first.out)
    names: dict[str, object] = {}
    exec(python, names)
    expected = [row["score"] for row in json.loads(first.out)["ranking"]]
    assert names["ranking"].to_polars(uncertainty=False)["score"].to_list() == pytest.approx(expected)  # type: ignore[attr-defined]


def test_lists_and_their_conversion_are_repeated_in_python(crowdrank, tmp_path):
    lists = tmp_path / "lists.csv"
    lists.write_text(
        "judge,item,rank\n" + "".join(f"p{n},i{k},{(k + n % 2) % 3 + 1}\n" for n in range(6) for k in range(3))
    )
    path = tmp_path / "report.html"
    done = crowdrank("rank", lists, "--model", "bradley-terry", "--column", "annotator=judge", "--report", path)
    assert done.code == 0, done.err
    python = codes(path.read_text(encoding="utf-8"))[1]
    assert "columns={'annotator': 'judge'}" in python
    names: dict[str, object] = {}
    exec(python, names)
    assert names["ranking"].model == "bradley-terry"  # type: ignore[attr-defined]


def test_a_figure_is_drawn(crowdrank, votes, tmp_path):
    path = tmp_path / "ranking.svg"
    code, out, _ = crowdrank("rank", votes, "--plot", path, "--top", "2")
    assert code == 0
    assert f"Written to {path}" in out
    drawn = path.read_text(encoding="utf-8")
    assert ">a</text>" in drawn
    assert ">c</text>" not in drawn


def test_what_cannot_be_written_is_refused_before_anything_is_read(crowdrank, tmp_path):
    for option, name, said in (("--report", "r.pdf", ".html"), ("--plot", "p.pdf", ".png")):
        code, _, err = crowdrank("rank", "nowhere.csv", option, tmp_path / name)
        assert code == 1
        assert said in err


def test_a_figure_without_the_extra_says_what_to_install(crowdrank, votes, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    code, _, err = crowdrank("rank", votes, "--plot", tmp_path / "p.svg")
    assert code == 1
    assert "pip install 'crowdrank[reports]'" in err


def test_a_report_needs_no_extra(crowdrank, votes, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    assert crowdrank("rank", votes, "--report", tmp_path / "r.html").code == 0


def test_the_page_shows_reliability_if_asked(crowdrank, votes, tmp_path):
    words = ("rank", votes, "--model", "bradley-terry", "--report", tmp_path / "r.html")
    assert crowdrank(*words, "--reliability").code == 0
    page = (tmp_path / "r.html").read_text()
    assert "Scale separation reliability" in page
    assert "Judges, largest infit first" in page
    assert crowdrank(*words).code == 0
    assert "Scale separation" not in (tmp_path / "r.html").read_text()
