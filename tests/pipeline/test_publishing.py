"""Tables for documents, and the page of a leaderboard."""

import os
import re
import zipfile

import numpy as np
import polars as pl
import pytest

import crowdrank as cr
from crowdrank.errors import SettingError
from crowdrank.io import write_table
from crowdrank.io.sources import open_table
from crowdrank.reports import Leaderboard, leaderboard_html, write_leaderboard
from tests.pipeline.arenas import clustered_arena, styled_arena

FRAME = pl.DataFrame(
    {"rank": [1, 2], "item": ["a|b_c & <d>", "50% \\ x"], "score": [1.25, -0.00004], "note": [None, "é"]}
)


def test_a_markdown_table(tmp_path):
    write_table(FRAME, tmp_path / "t.md")
    assert (tmp_path / "t.md").read_text(encoding="utf-8").splitlines() == [
        "| rank | item | score | note |",
        "| ---: | --- | ---: | --- |",
        "| 1 | a\\|b_c & &lt;d> | 1.250 |  |",
        "| 2 | 50% \\\\ x | -4e-05 | é |",
    ]


def test_a_latex_table(tmp_path):
    write_table(FRAME, tmp_path / "t.tex")
    assert (tmp_path / "t.tex").read_text(encoding="utf-8").splitlines() == [
        "\\begin{tabular}{rlrl}",
        "\\toprule",
        "rank & item & score & note \\\\",
        "\\midrule",
        "1 & a|b\\_c \\& <d> & 1.250 &  \\\\",
        "2 & 50\\% \\textbackslash{} x & -4e-05 & é \\\\",
        "\\bottomrule",
        "\\end{tabular}",
    ]


def test_an_html_table_escapes_names(tmp_path):
    write_table(FRAME, tmp_path / "t.html")
    text = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "<td>a|b_c &amp; &lt;d&gt;</td>" in text
    assert text.count("<tr>") == 3


def test_a_workbook_is_read_back(tmp_path):
    write_table(FRAME, tmp_path / "t.xlsx")
    with zipfile.ZipFile(tmp_path / "t.xlsx") as archive:
        assert archive.testzip() is None
    back = open_table(tmp_path / "t.xlsx")
    assert list(back.columns) == FRAME.columns
    found = cr.read_items(tmp_path / "t.xlsx")
    assert found.item.tolist() == FRAME["item"].to_list()
    assert found.columns["score"].tolist() == [1.25, -0.00004]


@pytest.mark.parametrize("suffix", [".md", ".tex", ".html", ".xlsx", ".csv"])
def test_the_command_writes_tables_of_every_kind(crowdrank, tmp_path, suffix):
    styled_arena(1, votes=300).to_polars().write_csv(tmp_path / "votes.csv")
    ended = crowdrank("rank", tmp_path / "votes.csv", "--out", tmp_path / f"ranking{suffix}")
    assert (ended.code, ended.err) == (0, "")
    assert (tmp_path / f"ranking{suffix}").stat().st_size > 100


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--out", "ranking.docx"), "tables are written as"),
        (("--out", "nowhere/ranking.md"), "there is no folder"),
        (("--leaderboard", "nowhere/board"), "does not exist"),
        (("--leaderboard", "votes.csv"), "this is a file"),
        (("--out", "folder.md"), "because it is a folder"),
    ],
)
def test_files_are_checked_before_anything_is_read(crowdrank, tmp_path, monkeypatch, words, reason):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "votes.csv").write_text("not,judgments\n1,2\n")
    ended = crowdrank("rank", "votes.csv", *words)
    assert ended.code == 1
    assert reason in ended.err


def test_a_leaderboard_is_a_page_that_needs_no_network(crowdrank, tmp_path):
    votes = clustered_arena(1, clusters=20)
    votes.to_polars().write_csv(tmp_path / "votes.csv")
    words = ("--scale", "elo", "--cluster", "prompt", "--min-comparisons", 95, "--leaderboard", tmp_path / "board")
    ended = crowdrank("rank", tmp_path / "votes.csv", *words)
    assert (ended.code, ended.err) == (0, "")
    assert sorted(os.listdir(tmp_path / "board")) == ["index.html", "ranking.csv"]
    page = (tmp_path / "board" / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"(?:src|href)=\"(?!ranking\.csv)", page)
    assert "Provisional" in page
    names = re.findall(r'data-item="(\w+)"', page)
    assert sorted(names) == sorted(votes.items.labels)
    ranked = pl.read_csv(tmp_path / "board" / "ranking.csv")["item"].to_list()
    assert names[: len(ranked)] == ranked


def test_names_on_the_page_are_escaped_and_categories_can_be_chosen():
    votes = cr.Comparisons.of(["<b>", "y"] * 4, ["y", "z"] * 4, ["<b>", "z"] * 4, query=["one", "two"] * 4)
    page = leaderboard_html(Leaderboard(ranking=cr.rank(votes), title="A & B", notes=["1 < 2"]))
    assert "<title>A &amp; B</title>" in page
    assert "<b>" not in page
    assert '<select id="category">' in page
    assert page.count('data-query="one"') == 2
    plain = leaderboard_html(Leaderboard(ranking=cr.rank(votes, uncertainty="none"), uncertainty=False))
    assert "interval" not in plain.split("<script>")[0]


def test_a_file_is_not_replaced_by_a_folder(tmp_path):
    (tmp_path / "board").write_text("mine")
    with pytest.raises(SettingError, match="this is a file"):
        write_leaderboard(Leaderboard(ranking=cr.rank(styled_arena(1, votes=200))), tmp_path / "board")


def test_a_daily_update(crowdrank, tmp_path):
    votes, today, board = tmp_path / "votes.csv", tmp_path / "today.csv", tmp_path / "board.json"
    frame = styled_arena(1, votes=1200).to_frame().select("left", "right", "winner")
    frame.head(1000).write_csv(votes)
    frame.tail(200).write_csv(today)
    assert crowdrank("rank", votes, "--out", board).code == 0
    code, out, err = crowdrank("rank", votes, "--append", today, "--out", board)
    assert (code, err) == (0, "")
    assert "1,200 comparisons" in out
    assert f"Appended 200 rows to {votes}. Started from {board}." in out
    assert votes.read_text() == frame.write_csv()
    updated = cr.Ranking.load(board)
    np.testing.assert_allclose(updated.scores, cr.rank(votes).scores, atol=1e-3)
    code, _, err = crowdrank("rank", votes, "--append", today, "--out", board)
    assert code == 1
    assert "appended before" in err


def test_votes_that_cannot_be_ranked_are_not_appended(crowdrank, tmp_path):
    votes, today = tmp_path / "votes.csv", tmp_path / "today.csv"
    votes.write_text("left,right,winner\na,b,a\nb,c,c\n")
    today.write_text("left,right,winner\na,b,nobody\n")
    assert crowdrank("rank", votes, "--append", today, "--strict").code == 1
    assert votes.read_text() == "left,right,winner\na,b,a\nb,c,c\n"
