"""Domains for the terminal."""

from __future__ import annotations

import io

import numpy as np
from rich.console import Console

from crowdrank.reports import domains_report
from crowdrank.results import Domains


def chart(expertise, sizes, annotators=None, queries=None, judged=5):
    """Queries that are surely of one domain each, their difficulties even numbers."""
    expertise = np.array(expertise, np.float64).reshape(-1, len(sizes))
    membership = np.repeat(np.eye(len(sizes)), sizes, axis=0)
    difficulty = 2.0 * np.arange(len(membership))
    names = annotators or [f"who{k}" for k in range(len(expertise))]
    return Domains(
        annotators=np.array(names, dtype=object),
        queries=np.array(queries or [f"topic{q}" for q in range(len(membership))], dtype=object),
        expertise=(expertise, expertise - 0.1, expertise + 0.1),
        membership=membership,
        difficulty=(difficulty, difficulty, difficulty),
        n_judgments=np.full(expertise.shape, judged),
    )


def shown(domains, width=100):
    page = io.StringIO()
    Console(file=page, width=width).print(domains_report(domains))
    return page.getvalue()


def test_domains_are_told_by_size_with_who_is_who():
    page = shown(chart([[3, -3], [1, 0], [0, 1]], [1, 2], annotators=["ann", "bob", "cem"]))
    lines = [" ".join(line.split()) for line in page.splitlines()]
    assert lines[0] == "2 domains of 3 queries."
    assert lines[2:7] == [
        "domain queries such as verdict annotators",
        "2 2 topic1, topic2 reversed ann",
        "random bob",
        "1 1 topic0 expert ann",
        "random cem",
    ]
    assert "Hardest: topic2 (4.00); easiest: topic0 (0.00)" in page


def test_hardest_and_easiest_never_meet():
    line = shown(chart([[1.0]], [5])).splitlines()[-1]
    assert line.startswith("Hardest: topic4 (8.00), topic3 (6.00); easiest: topic0 (0.00), topic1 (2.00).")


def test_many_names_are_counted_and_long_ones_shortened_in_the_middle():
    long = "annotator number " + "x" * 40 + " 17"
    page = " ".join(shown(chart([[3.0]] * 7, [1], annotators=[long, *"bcdefg"]), width=160).split())
    assert f"{long[:12]}…{long[-11:]}, b, c, d, e, … and 2 more" in page


def test_many_domains_are_counted():
    page = shown(chart(np.ones((1, 12)), [1] * 12))
    assert "12 domains of 12 queries." in page
    assert "… and 2 more domains" in page


def test_domains_without_a_query_are_not_told_of():
    page = shown(chart([[3.0, 3.0]], [2, 0]))
    assert page.startswith("1 domain of 2 queries.")
    assert page.count("expert ") == 1


def test_one_unnamed_query_has_nothing_to_be_harder_than():
    page = shown(chart([[3.0]], [1], queries=[""]))
    assert page.startswith("1 domain of 1 query.")
    assert "Hardest" not in page


def test_without_annotators_there_are_no_verdicts():
    page = shown(chart(np.zeros((0, 2)), [1, 2]))
    assert "2 domains of 3 queries." in page
    assert "verdict" not in page
    assert "Expert" not in page


def test_names_are_shown_as_they_are_not_as_markup():
    page = shown(chart([[3.0]], [2], annotators=["[bold]ann"], queries=["[red]x", "y"]))
    assert "[bold]ann" in page
    assert page.count("[red]x") == 2
