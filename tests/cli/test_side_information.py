"""--annotator-quality, --annotator-order and --gold-pairs in `crowdrank rank` and `crowdrank annotators`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

CITIES = Path(__file__).parents[2] / "examples" / "cities" / "votes.csv"
both = pytest.mark.parametrize("command", ["rank", "annotators"])


@pytest.fixture
def gold(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("left,right,winner\nc,a,c\nc,b,c\n")
    return path


@pytest.fixture
def people(crowdrank):
    """Estimated weights of the annotators of a file, by name."""

    def weighed(file, *words):
        ended = crowdrank("annotators", file, "--no-verdicts", "--json", *words)
        assert ended.code == 0, ended.err
        return {row["annotator"]: row for row in json.loads(ended.out)}

    return weighed


@pytest.fixture
def scores(crowdrank):
    def ranked(file, *words):
        ended = crowdrank("rank", file, "--json", *words)
        assert ended.code == 0, ended.err
        return {row["item"]: row["score"] for row in json.loads(ended.out)["ranking"]}

    return ranked


def test_a_known_quality_is_held(people):
    found = people(CITIES, "--annotator-quality", "boris=0.9", "--annotator-quality", "hugo = 0.35")
    assert found["boris"]["quality"] == pytest.approx(0.9, abs=0.01)
    assert found["hugo"]["quality"] == pytest.approx(0.35, abs=0.01)


def test_a_range_is_kept(people):
    assert 0.85 <= people(CITIES, "--annotator-quality", "boris=0.85..0.9")["boris"]["quality"] <= 0.9


def test_an_order_is_kept(people):
    plain = people(CITIES)
    worst, best = (f(plain, key=lambda name: plain[name]["quality"]) for f in (min, max))
    found = people(CITIES, "--annotator-order", f"{worst}>{best}")
    assert found[worst]["quality"] >= found[best]["quality"]
    assert found == people(CITIES, "--annotator-order", f" {worst} > {best} ")


def test_known_quality_moves_the_ranking(scores, votes):
    plain, told = scores(votes), scores(votes, "--annotator-quality", "bob=0.99", "--annotator-quality", "ann=0.5")
    assert plain["a"] > plain["b"]
    assert told["b"] > told["a"]


def test_gold_pairs_move_the_ranking(scores, people, votes, gold):
    assert scores(votes)["c"] < 0
    told = scores(votes, "--gold-pairs", gold)
    assert max(told, key=told.get) == "c"
    assert set(people(votes, "--gold-pairs", gold)) == {"ann", "bob", "cat"}


def test_gold_may_be_what_nearly_all_agree_on(scores, crowdrank, tmp_path):
    path = tmp_path / "many.csv"
    rows = [f"w{n},{a},{b},{a}" for n in range(12) for a, b in ("ab", "bc")]
    path.write_text("annotator,left,right,winner\n" + "\n".join(rows) + "\n")
    plain, told = scores(path), scores(path, "--gold-pairs", "agreed")
    assert told["a"] - told["c"] > plain["a"] - plain["c"]
    assert crowdrank("annotators", path, "--gold-pairs", "agreed").code == 0


def test_gold_is_read_query_by_query(crowdrank, tmp_path):
    votes, gold = tmp_path / "votes.csv", tmp_path / "gold.csv"
    rows = [f"{who},{q},a,b,{w}" for who in ("ann", "bob") for q, w in (("one", "a"), ("two", "a"))]
    votes.write_text("annotator,topic,left,right,winner\n" + "\n".join(rows) + "\n")
    gold.write_text("topic,left,right,winner\ntwo,a,b,b\n")
    ended = crowdrank("rank", votes, "--query", "topic", "--gold-pairs", gold, "--json")
    best = {row["query"]: row["item"] for row in json.loads(ended.out)["ranking"] if row["rank"] == 1}
    assert best == {"one": "a", "two": "b"}


@both
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--annotator-quality", "borsi=0.9"), "No annotator named 'borsi'; did you mean 'boris'?"),
        (("--annotator-order", "boris>hug"), "No annotator named 'hug'; did you mean 'hugo'?"),
        (("--annotator-quality", "boris=0.9", "--annotator-quality", "boris=0.8"), "gives boris twice"),
        (
            ("--annotator-quality", "boris"),
            "--annotator-quality takes name=value, such as --annotator-quality ann=0.95; got 'boris'",
        ),
        (
            ("--annotator-quality", "boris=good"),
            "--annotator-quality takes a number or a range, such as ann=0.6..0.9; got 'good'",
        ),
        (("--annotator-quality", "boris=0.6.."), "got '0.6..'"),
        (("--annotator-quality", "boris=0.9..0.6"), "must lie between a lower and a higher value, got 0.9 to 0.6"),
        (("--annotator-quality", "boris=1.5"), "must lie between 0 and 1, got 1.5"),
        (
            ("--annotator-order", "boris"),
            "--annotator-order takes two annotators, such as --annotator-order 'ann>bob'; got 'boris'",
        ),
        (("--annotator-order", "boris>"), "got 'boris>'"),
        (("--annotator-order", "boris>boris"), "boris cannot be better than boris"),
        (("--gold-pairs", "no-such-file.csv"), "no such file"),
        (("--gold-pairs", "agreed"), "No pair was answered by more than 10 annotators with 90 % agreement"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_mistakes_are_answered_in_one_line(crowdrank, command, words, said):
    code, _, err = crowdrank(command, CITIES, *words)
    assert code == 1
    assert said in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "words", [("--annotator-quality", "boris=0.9"), ("--annotator-order", "boris>hugo"), ("--gold-pairs", "agreed")]
)
def test_a_model_without_annotators_refuses_side_information(crowdrank, words):
    code, _, err = crowdrank("rank", CITIES, "--model", "bradley-terry", *words)
    assert code == 1
    assert (
        "a model that uses side information: crowd-bt, bayesian-crowd-bt, factor-bt, jury, variance-bt or "
        "pairwise-hits." in err
    )
    code, _, err = crowdrank("annotators", CITIES, "--model", "bradley-terry", *words)
    assert code == 1
    assert "bradley-terry does not estimate the quality of annotators" in err


@both
def test_a_model_with_annotators_that_cannot_use_side_information_is_refused(crowdrank, command):
    code, _, err = crowdrank(command, CITIES, "--model", "linear-bias", "--annotator-quality", "boris=0.9")
    assert code == 1
    assert "need comparisons and a model that uses side information: crowd-bt" in err


@pytest.mark.parametrize("command", [("rank",), ("annotators", "--no-verdicts")])
def test_side_information_is_summarised(crowdrank, votes, gold, command):
    name, *words = command
    words += ["--gold-pairs", gold, "--annotator-quality", "ann=0.9", "--annotator-order", "ann>bob"]
    assert (
        "\nSide information: 2 gold pairs, 1 annotator's quality, 1 annotator order.\n"
        in crowdrank(name, votes, *words).out
    )
    known = ("--annotator-quality", "ann=0.9", "--annotator-quality", "bob=0.2..0.7")
    assert "\nSide information: 2 annotators' quality.\n" in crowdrank(name, votes, *known).out
    assert "Side information" not in crowdrank(name, votes).out


@pytest.mark.parametrize("columns", ["left,right", "foo,bar"])
def test_gold_pairs_that_cannot_be_read_say_what_they_need(crowdrank, votes, tmp_path, columns):
    path = tmp_path / "gold.csv"
    path.write_text(f"{columns}\n" + ",".join("abcd"[: columns.count(",") + 1]) + "\n")
    code, _, err = crowdrank("rank", votes, "--gold-pairs", path)
    assert code == 1
    assert "Gold pairs need the columns left, right and winner, or winner and loser." in err
    assert "--column" not in err


def test_the_quality_of_an_annotator_who_is_not_named_is_refused(crowdrank, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("left,right,winner\na,b,a\nb,c,b\n")
    code, _, err = crowdrank("rank", path, "--model", "crowd-bt", "--annotator-quality", "ann=0.9")
    assert code == 1
    assert "No annotator named 'ann'" in err


def test_gold_that_names_other_items_is_refused(crowdrank, votes, tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("left,right,winner\nx,y,x\n")
    code, _, err = crowdrank("rank", votes, "--gold-pairs", path)
    assert code == 1
    assert "No gold pair has both its items among those judged" in err
