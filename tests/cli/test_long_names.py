"""Long names are cut to the terminal, and shown whole by --wide."""

import pytest

TEXTS = [f"Tell me about the city {n}.\nIt is large. {'And so on, at some length. ' * 12}{n}" for n in range(4)]
WHO = "somebody-with-a-very-long-address-{}@example.org"


@pytest.fixture
def conversations(tmp_path):
    rows = [(WHO.format(n % 2), TEXTS[a], TEXTS[b], TEXTS[a]) for n, (a, b) in enumerate([(0, 1), (1, 2), (2, 3)] * 4)]
    path = tmp_path / "votes.csv"
    lines = [",".join(f'"{cell}"' for cell in row) for row in [("annotator", "left", "right", "winner"), *rows]]
    path.write_text("\n".join(lines) + "\n")
    return path


def rows_of(out):
    return [line for line in out.splitlines() if line.lstrip()[:1].isdigit() and "Tell me" in line]


def test_an_item_takes_one_line_of_the_terminal(crowdrank, conversations):
    out = crowdrank("rank", conversations).out
    assert len(rows_of(out)) == 4
    assert max(map(len, out.splitlines())) <= 120
    assert all("Tell me about the city" in row and "…" in row for row in rows_of(out))
    assert "--wide" in out


def test_wide_shows_items_whole_on_one_line(crowdrank, conversations):
    out = crowdrank("rank", conversations, "--wide").out
    assert [" ".join(text.split()) in row for text, row in zip(TEXTS, rows_of(out), strict=True)] == [True] * 4
    assert "…" not in "".join(rows_of(out))
    assert "--wide" not in out


def test_short_names_are_not_cut_and_wide_is_not_advertised(crowdrank, votes):
    out = crowdrank("rank", votes).out
    assert "…" not in out
    assert "--wide" not in out


@pytest.mark.parametrize("width", [40, 80, 160])
def test_numbers_are_never_cut_in_favour_of_names(crowdrank, conversations, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    out = crowdrank("rank", conversations, "--uncertainty", "none").out
    assert "comparisons" in out
    assert max(map(len, out.splitlines())) <= width


def test_annotators_and_explanations_are_cut_too(crowdrank, conversations):
    out = crowdrank("annotators", conversations).out
    assert WHO.format(0)[:15] in out
    assert WHO.format(0) not in out
    assert WHO.format(0) in crowdrank("annotators", conversations, "--wide").out
    words = ("explain", conversations, "--item", TEXTS[0], "--above", TEXTS[3])
    cut, whole = crowdrank(*words).out, crowdrank(*words, "--wide").out
    assert max(map(len, cut.splitlines())) <= 120
    assert " ".join(TEXTS[0].split()) not in " ".join(cut.split())
    assert " ".join(TEXTS[0].split()) in " ".join(whole.split())


def test_only_items_that_move_are_named(crowdrank, conversations):
    out = crowdrank("annotators", conversations, "--exclude", WHO.format(0)).out
    assert "()" not in out
