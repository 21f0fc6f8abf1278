"""crowdrank rank --missing: how items missing from a list are treated."""

from __future__ import annotations

import json

import numpy as np
import pytest

import crowdrank as cr
from crowdrank.data import Rankings
from crowdrank.models import REGISTRY
from crowdrank.models.selection import kinds_read

LIST_MODELS = [name for name, kind in REGISTRY.items() if Rankings in kinds_read(kind) and name != "trm"]


@pytest.fixture
def tops(tmp_path):
    """a is first or second in every list; d is first in one list and missing from the others."""
    path = tmp_path / "lists.csv"
    rows = ["ann,a,1", "ann,b,2", "bob,a,1", "bob,c,2", "cat,d,1", "cat,a,2", "dan,a,1", "dan,b,2"]
    path.write_text("worker,item,rank\n" + "\n".join(rows) + "\n")
    return path


def best(ended):
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out)["ranking"][0]["item"]


@pytest.mark.parametrize("model", [*LIST_MODELS, "bradley-terry"])
def test_what_lists_leave_out_may_count_as_worse(crowdrank, tops, model):
    words = ("rank", tops, "--model", model, "--uncertainty", "none", "--json")
    assert best(crowdrank(*words, "--missing", "worse")) == "a"
    assert crowdrank(*words, "--missing", "unknown") == crowdrank(*words)


def test_unless_told_so_they_are_unknown(crowdrank, tops):
    words = ("rank", tops, "--model", "bradley-terry", "--uncertainty", "none", "--json")
    assert best(crowdrank(*words)) == "d"


def test_the_rule_is_printed(crowdrank, tops):
    out = " ".join(crowdrank("rank", tops, "--model", "bradley-terry", "--missing", "worse").out.split())
    assert "(items missing from a list rank below the listed ones; every two items of a list" in out
    assert "missing from a list" not in crowdrank("rank", tops).out


def test_judgments_that_are_no_lists_are_refused(crowdrank, votes):
    code, _, err = crowdrank("rank", votes, "--missing", "worse")
    assert code == 1
    assert "--missing is about items missing from ranked lists, but these judgments are comparisons" in " ".join(
        err.split()
    )


@pytest.mark.parametrize("worst", [True, False], ids=["best and worst", "one of four"])
def test_choices_among_four_items_are_ranked(worst, tmp_path):
    rng = np.random.default_rng(3)
    quality, names = np.linspace(1.5, -1.5, 8), np.array(list("abcdefgh"))
    lines = ["worker,item1,item2,item3,item4,best" + ",worst" * worst]
    for n in range(500):
        shown = rng.permutation(8)[:4]
        perceived = quality[shown] + rng.gumbel(size=4)
        ends = [names[shown[perceived.argmax()]]] + [names[shown[perceived.argmin()]]] * worst
        lines.append(",".join([f"w{n % 20}", *names[shown], *ends]))
    path = tmp_path / "choices.csv"
    path.write_text("\n".join(lines))
    ranking = cr.rank(path)
    assert np.corrcoef(ranking.scores, quality)[0, 1] > 0.9
    assert ranking.judgment_kind == "lists"
