"""The page as text: its content, and that no label can break it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from crowdrank import (
    Borda,
    BradleyTerry,
    Comparisons,
    CrowdBT,
    Gold,
    GradedResponse,
    MeanRating,
    PlackettLuce,
    Rankings,
    Ratings,
    evaluate,
)
from crowdrank.errors import SettingError
from crowdrank.io import read_with_report
from crowdrank.reports import Findings, report, write_report
from tests.pipeline.arenas import arena_by_category
from tests.reports.html.conftest import findings_of

NASTY = ['<script>alert("1")</script>', "a & b", '"><img src=x onerror=alert(1)>', "' onload='x", "</style>", "ü – 漢"]


class Reader(HTMLParser):
    """Parser that checks that elements are balanced, and collects the text."""

    def __init__(self, page: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        self.attributes += attrs

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


def headings(page: str) -> list[str]:
    return re.findall(r'<h2 id="(\w+)">', page)


@pytest.fixture(scope="module")
def page(votes) -> str:
    gold = Gold.of(votes.items.labels, np.arange(len(votes.items)))
    findings = findings_of(votes, CrowdBT(), title="votes.csv", reproduce={"in Python": "x < 1"}, created="Made today.")
    with_gold = Findings(**{**vars_of(findings), "evaluation": evaluate(findings.ranking, gold)})
    return report(with_gold)


def vars_of(findings: Findings) -> dict[str, object]:
    return {name: getattr(findings, name) for name in findings.__dataclass_fields__}


def test_every_section_is_there_in_order(page):
    expected = ["order", "gold", "annotators", "disagreement", "coverage", "position", "calibration", "method"]
    assert headings(page) == expected
    for name in expected:
        assert f'href="#{name}"' in page


def test_it_is_a_whole_page_without_script_or_address(page):
    read = Reader(page)
    assert page.startswith("<!doctype html>")
    assert not {"script", "link", "img", "iframe", "object"} & set(read.tags)
    assert not re.search(r"https?:|//\w", page)
    assert not any(name.startswith("on") for name, _ in read.attributes)


def test_the_result_comes_first_in_words(page):
    text = Reader(page).text
    assert re.search(r"is ranked first, (but not clearly above|clearly above)", text)
    assert text.index("is ranked first") < text.index("Best first.")


def test_conspicuous_annotators_are_named_with_the_reason(page, crowd):
    text = Reader(page).text
    for kind in ("Reversed 2", "One-sided 1"):
        assert kind in text
    reversed_ones = crowd.judgments.annotators[crowd.annotators["kind"] == "reversed"]
    assert len(reversed_ones) == 2
    assert all(
        re.search(rf"{name} agreed with the others on \d+ of \d+ answers: below half", text) for name in reversed_ones
    )


def test_a_figure_says_in_words_what_it_shows(page):
    drawn = re.findall(r"<svg[^>]*>", page)
    assert len(drawn) >= 5
    assert all('role="img"' in svg and re.search(r'aria-label="[^"]{20,}"', svg) for svg in drawn)


def test_no_label_breaks_the_page():
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 6, 400), rng.integers(0, 5, 400)
    right = np.where(right >= left, right + 1, right)
    names = np.array(NASTY, dtype=object)
    votes = Comparisons.of(
        names[left],
        names[right],
        names[np.minimum(left, right)],
        annotator=names[rng.integers(0, 6, 400)],
        query=np.where(np.arange(400) % 2, NASTY[0], NASTY[2]),
    )
    page = report(findings_of(votes, CrowdBT(), title=NASTY[0]))
    read = Reader(page)
    assert not {"script", "img"} & set(read.tags)
    assert not any(name.startswith("on") for name, _ in read.attributes)
    assert page.count("</style>") == 1
    for name in NASTY:
        assert name in read.text


def test_lists_have_no_calibration_and_no_position_bias():
    rng = np.random.default_rng(1)
    lists = [[[f"i{n}"] for n in np.argsort(np.arange(8) + rng.normal(0, 2, 8))] for _ in range(12)]
    page = report(findings_of(Rankings.of_lists(lists, annotator=[f"p{n}" for n in range(12)]), PlackettLuce()))
    assert headings(page) == ["order", "annotators", "disagreement", "coverage", "calibration", "method"]
    text = Reader(page).text
    assert "Calibration needs comparisons" in text
    assert "Agreement, fraction of pairs ordered as in this ranking." in text


def test_several_queries_are_shown_one_by_one():
    rng = np.random.default_rng(2)
    item, who = np.arange(240) % 10, np.arange(240) // 10 % 6
    grades = Ratings.of(
        [f"i{n}" for n in item],
        item + rng.normal(0, 2, 240),
        annotator=[f"p{n}" for n in who],
        query=[f"q{n // 60}" for n in range(240)],
    )
    page = report(findings_of(grades, GradedResponse()))
    assert page.count("<details open>") >= 2
    assert "4 queries were ranked separately." in page
    assert "<strong>q3</strong>: 10 items, i" in page


def test_ratings_without_annotators_have_no_annotators_section():
    page = report(findings_of(Ratings.of(["a", "b", "c", "a"], [1, 2, 3, 2]), MeanRating()))
    assert headings(page) == ["order", "annotators", "coverage", "calibration", "method"]
    assert "do not name annotators" in page


def test_a_model_without_probabilities_says_so(votes):
    page = report(findings_of(votes, Borda()))
    assert "borda gives an order but no probabilities" in page
    assert "borda treats all of them alike" in page


def test_without_uncertainty_there_are_no_errors(votes):
    page = report(findings_of(votes, BradleyTerry(), show_uncertainty=False))
    assert "Uncertainty was not computed." in page
    assert "±" not in page.partition('id="annotators"')[0].partition('id="order"')[2]


def test_the_first_rank_may_be_shared():
    text = Reader(report(findings_of(Comparisons.of(["a", "b"], ["b", "a"], ["a", "b"]), Borda()))).text
    assert "a and b share the first rank." in text


def test_disconnected_components_are_named():
    votes = Comparisons.of(["a", "a", "c", "d"] * 5, ["b", "b", "d", "c"] * 5, ["a", "b", "c", "d"] * 5)
    with pytest.warns(match="never compared"):
        findings = findings_of(votes, BradleyTerry())
    page = report(findings)
    assert "The items fall into 2 components that no judgment connects." in page
    assert "2 items: a and b" in page


def test_what_was_left_out_is_listed(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("left,right,winner\na,b,a\nb,c,b\na,c,zebra\na,a,a\nc,a,c\n")
    votes, imported = read_with_report(path)
    page = report(findings_of(votes, BradleyTerry(), import_report=imported))
    assert "2 rows of 5 were not used." in page
    assert re.search(r"<td>4</td><td>winner</td><td>[^<]*zebra", page)


def test_a_thousand_of_each_stay_small_and_folded():
    rng = np.random.default_rng(3)
    rows = 20_000
    left, right = rng.integers(0, 1200, rows), rng.integers(0, 1199, rows)
    right = np.where(right >= left, right + 1, right)
    won = rng.random(rows) < 1 / (1 + np.exp((left - right) / 300))
    names = np.array([f"a rather long name of an item, number {n}" for n in range(1200)], dtype=object)
    people = np.array([f"annotator-{n:04d}" for n in rng.integers(0, 1100, rows)], dtype=object)
    votes = Comparisons.of(names[left], names[right], names[np.where(won, left, right)], annotator=people)
    page = report(findings_of(votes, BradleyTerry(), show_uncertainty=False))
    assert len(page.encode()) < 2_000_000
    assert "1,160 more items" in page
    assert "grouped by rank" in page
    assert "evenly sampled" in page
    assert Reader(page).text.count("number 1199") >= 1


def test_a_report_is_a_page(votes, tmp_path):
    findings = findings_of(votes, BradleyTerry())
    with pytest.raises(SettingError, match=r"a report is an HTML page \(\.html\), got '\.pdf'"):
        write_report(findings, tmp_path / "report.pdf")
    with pytest.raises(SettingError, match="does not exist"):
        write_report(findings, tmp_path / "nowhere" / "report.html")
    (tmp_path / "report.html").mkdir()
    with pytest.raises(SettingError, match="cannot be written"):
        write_report(findings, tmp_path / "report.html")


def test_a_report_by_category_opens_with_the_overall():
    columns, _ = arena_by_category(1, spread=1.0, votes=1200)
    votes = Comparisons.of(columns["left"], columns["right"], columns["winner"], query=columns["topic"])
    page = Reader(report(findings_of(votes, BradleyTerry(pooling="partial"))))
    assert page.text.index("Overall") < page.text.index("Items of topic 0")
    assert "Items that differ significantly from their overall score" in page.text
    assert "were ranked separately" not in page.text
