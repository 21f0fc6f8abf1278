"""crowdrank rank, from its arguments to its output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from crowdrank import Ranking
from crowdrank.models import REGISTRY

EXAMPLE = Path(__file__).parents[2] / "examples" / "cities"


def test_a_file_alone_gives_a_ranking(crowdrank, votes):
    code, out, err = crowdrank("rank", votes)
    assert code == 0
    assert err == ""
    assert "8 comparisons of 3 items by 3 annotators" in out
    assert "Ranked by crowd-bt" in out
    lines = [line.split()[:2] for line in out.splitlines() if line.strip()[:1].isdigit()]
    assert [line for line in lines if line[1] in "abc"] == [["1", "a"], ["2", "b"], ["3", "c"]]


@pytest.mark.parametrize("model", REGISTRY)
def test_every_model_ranks_a_file_of_comparisons(crowdrank, votes, model):
    code, out, err = crowdrank("rank", votes, "--model", model)
    assert (code, err) == (0, "")
    assert f"Ranked by {model}" in out


def test_the_bundled_example_is_graded_and_written(crowdrank, tmp_path):
    out_file = tmp_path / "ranking.csv"
    code, out, _ = crowdrank("rank", EXAMPLE / "votes.csv", "--gold", EXAMPLE / "gold.csv", "--out", out_file)
    assert code == 0
    assert "accuracy" in out
    assert f"Written to {out_file}" in out.replace("\n", "")
    written = pl.read_csv(out_file)
    assert written.height == 40
    assert written.columns == [
        "rank",
        "item",
        "score",
        "std_error",
        "rank_low",
        "rank_high",
        "group",
        "comparisons",
    ]
    assert written["score"].is_sorted(descending=True)


def test_simultaneous_rank_intervals_are_wider(crowdrank):
    command = ("rank", EXAMPLE / "votes.csv", "--model", "bradley-terry", "--json")
    single, together = (json.loads(crowdrank(*command, *more).out)["ranking"] for more in ((), ("--simultaneous",)))
    widths = [[row["rank_high"] - row["rank_low"] for row in rows] for rows in (single, together)]
    assert all(one <= other for one, other in zip(*widths, strict=True))
    assert sum(widths[1]) > 1.2 * sum(widths[0])
    code, out, _ = crowdrank(*command[:-1], "--simultaneous")
    assert code == 0
    assert "hold simultaneously for all items" in " ".join(out.split())


def test_gold_of_which_less_is_better_is_noticed_and_can_be_said(crowdrank, votes, tmp_path):
    gold = tmp_path / "gold.csv"
    gold.write_text("item,penalty,label\na,1,1\nb,2,2\nc,3,3\n")
    wrong = crowdrank("rank", votes, "--gold", gold, "--json")
    right = crowdrank("rank", votes, "--gold", gold, "--gold-column", "rank=penalty", "--json")
    assert json.loads(wrong.out)["gold"]["accuracy"] == 0
    assert any("--gold-column rank=COLUMN" in note for note in json.loads(wrong.out)["notes"])
    assert json.loads(right.out)["gold"]["accuracy"] == 1
    assert not any("--gold-column" in note for note in json.loads(right.out)["notes"])


def test_json_out_can_be_loaded_again(crowdrank, votes, tmp_path):
    path = tmp_path / "ranking.json"
    assert crowdrank("rank", votes, "--out", path).code == 0
    ranking = Ranking.load(path)
    assert ranking.model == "crowd-bt"
    assert len(ranking.annotators) == 3
    assert 0.5 < ranking.probability("a", "c") < 1


def test_json_is_for_machines(crowdrank, votes):
    code, out, _ = crowdrank("rank", votes, "--json")
    answer = json.loads(out)
    assert code == 0
    assert [row["item"] for row in answer["ranking"]] == ["a", "b", "c"]
    assert answer["import"]["kept"] == 8
    assert answer["convergence"]["converged"] is True


def test_settings_are_passed_to_the_model(crowdrank, votes):
    words = ("--model", "bradley-terry", "--set", "prior_scale=0.5", "--set", "ties=half", "--seed", "3", "--json")
    answer = json.loads(crowdrank("rank", votes, *words).out)
    assert answer["settings"]["prior_scale"] == 0.5
    assert answer["settings"]["ties"] == "half"
    assert answer["settings"]["seed"] == 3


def test_reversed_annotators_are_noted(crowdrank):
    out = crowdrank("rank", EXAMPLE / "votes.csv").out
    assert (
        "3 annotators appear to answer in reverse, so their answers count in the opposite direction: boris, dev, liam"
        in " ".join(out.split())
    )


def test_judgments_that_name_nobody_go_to_bradley_terry(crowdrank, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("left,right,winner\na,b,a\nb,a,a\n")
    assert "Ranked by bradley-terry" in crowdrank("rank", path).out


def test_queries_are_ranked_one_by_one(crowdrank, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("topic,left,right,winner\nx,a,b,a\ny,a,b,b\n")
    code, out, _ = crowdrank("rank", path, "--query", "topic", "--json")
    assert code == 0
    order = [(row["query"], row["item"]) for row in json.loads(out)["ranking"]]
    assert order == [("x", "a"), ("x", "b"), ("y", "b"), ("y", "a")]


def test_ratings_and_lists_are_ranked_too(crowdrank, tmp_path):
    ratings, lists = tmp_path / "ratings.csv", tmp_path / "lists.csv"
    ratings.write_text("worker,item,rating\nann,a,5\nann,b,3\nbob,a,4\nbob,b,4\nbob,c,1\n")
    lists.write_text("worker,item,rank\nann,a,1\nann,b,2\nann,c,3\nbob,b,1\nbob,a,2\n")
    rated, listed = crowdrank("rank", ratings), crowdrank("rank", lists)
    assert (rated.code, listed.code) == (0, 0)
    assert "Ranked by graded-response.\n" in rated.out
    assert "the better grade wins" in crowdrank("rank", ratings, "--model", "bradley-terry").out
    assert "winners are graded 1" in crowdrank("rank", EXAMPLE / "votes.csv", "--model", "mean-rating").out
    assert "Ranked by crowd-plackett-luce" in listed.out


def test_bootstrap_replaces_the_curvature(crowdrank, votes):
    code, out, _ = crowdrank("rank", votes, "--uncertainty", "bootstrap")
    assert code == 0
    assert "bootstrap over 8 judgments" in out


def test_no_uncertainty_shows_none(crowdrank, votes):
    assert "±" not in crowdrank("rank", votes, "--uncertainty", "none").out


def test_disconnected_components_are_noted(crowdrank, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("left,right,winner\na,b,a\nb,a,b\nc,d,c\nd,c,d\n")
    code, out, _ = crowdrank("rank", path)
    assert code == 0
    assert "2 groups of items were never compared with each other" in out


def test_rows_that_cannot_be_used_are_named(crowdrank, votes):
    votes.write_text(votes.read_text() + "dan,a,b,zebra\n")
    code, out, _ = crowdrank("rank", votes)
    assert code == 0
    assert "Line 10" in out
    assert "zebra" in out
    strict = crowdrank("rank", votes, "--strict")
    assert strict.code == 1
    assert "zebra" in strict.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "bradly-terry"), "did you mean 'bradley-terry'?"),
        (("--set", "prior_scal=1"), "did you mean 'prior_scale'?"),
        (("--set", "prior_scale=x"), "prior_scale cannot be 'x'"),
        (("--set", "prior_scale"), "takes name=value"),
        (("--set", "prior_scale=-1"), "must be positive"),
        (("--column", "winner=nowhere"), "nowhere"),
        (("--level", "1.5"), "between 0 and 1"),
        (("--out", "ranking.docx"), ".docx"),
        (("--gold", "no-such-file.csv"), "no-such-file.csv"),
    ],
)
def test_mistakes_are_answered_in_one_line(crowdrank, votes, words, said):
    code, _, err = crowdrank("rank", votes, *words)
    assert code == 1
    assert said in err
    assert "Traceback" not in err
    assert err.count("\n") == 1


def test_a_missing_file_is_one_line(crowdrank):
    code, _, err = crowdrank("rank", "nowhere.csv")
    assert code == 1
    assert "nowhere.csv" in err


def test_an_unknown_option_is_a_usage_error(crowdrank, votes):
    assert crowdrank("rank", votes, "--no-such-option").code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--uncertainty", "hope"), "'model', 'bootstrap', 'none'"),
        (("--kind", "votes"), "'comparisons', 'ratings', 'rankings'"),
        (("--missing", "last"), "'unknown', 'worse'"),
        (("--engine", "cloud"), "'local', 'out-of-core', 'dask'"),
    ],
)
def test_a_value_that_is_not_a_choice_is_a_usage_error_that_lists_them(crowdrank, votes, words, said):
    code, out, err = crowdrank("rank", votes, *words)
    assert (code, out) == (2, "")
    assert said in " ".join(err.replace("│", " ").split())


@pytest.mark.parametrize(
    "words",
    [
        ("--gold", "nowhere.csv"),
        ("--items", "nowhere.csv"),
        ("--warm-start", "nowhere.json"),
        ("--gold-pairs", "nowhere.csv"),
        ("--out", "r.docx"),
        ("--out", "nowhere/r.csv"),
        ("--report", "r.pdf"),
    ],
    ids=" ".join,
)
def test_files_are_checked_before_the_fit(crowdrank, votes, words, monkeypatch):
    def fit(*arguments, **options):
        raise AssertionError("The model was fitted.")

    monkeypatch.setattr("crowdrank.models.CrowdBT.fit", fit)
    code, _, err = crowdrank("rank", votes, *words)
    assert code == 1
    assert words[1].rpartition("/")[2] in err or "nowhere" in err


def test_small_files_never_load_the_compiler(votes):
    script = (
        "import sys\n"
        f"sys.argv = ['crowdrank', 'rank', {str(votes)!r}]\n"
        "from crowdrank.cli import main\n"
        "main()\n"
        "assert not {'numba', 'pandas', 'pyarrow'} & set(sys.modules), sorted(sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


PAIRWISE = [
    "country_population/pairwise.csv",
    "mirex2005/pairwise.csv",
    "ukp_convarg/pairwise.csv",
    "llmfao/pairwise.csv",
    "pwcmp/lightfield_pairwise.csv",
    "pwcmp/tmo_pairwise.csv",
    "xu_crowdrank/age_pairwise.csv",
    "xu_crowdrank/college_pairwise.csv",
    "xu_crowdrank/iqa_ref1_pairwise.csv",
]


@pytest.mark.data
@pytest.mark.parametrize("name", PAIRWISE)
def test_every_real_pairwise_set_ranks(crowdrank, data_folder, name):
    code, out, err = crowdrank("rank", data_folder / name, "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["convergence"]["converged"] is True
    assert answer["import"]["kept"] == answer["import"]["rows_read"]
    assert all(row["std_error"] > 0 for row in answer["ranking"])


@pytest.mark.data
def test_the_population_of_countries_is_nearly_right(crowdrank, data_folder):
    folder = data_folder / "country_population"
    answer = json.loads(crowdrank("rank", folder / "pairwise.csv", "--gold", folder / "gold.csv", "--json").out)
    assert answer["gold"]["accuracy"] > 0.85
