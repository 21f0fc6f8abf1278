"""The scripts in papers/ run, and their tables have a row for every method."""

from __future__ import annotations

import csv
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

PAPERS = Path(__file__).resolve().parents[2] / "papers"
NOWHERE = PAPERS / "nowhere"
SCRIPTS = sorted(path.relative_to(PAPERS).as_posix() for path in PAPERS.glob("*/*.py"))
CROWD_BT = {"Bradley-Terry", "Majority-Vote-BT", "Variance-BT", "Crowd-BT"}

PRIORS = ("", ", prior (2,1)", ", prior (10,1)", ", prior (10,1), spread learnt")
POLICIES = ("adaptive", "best-annotator", "thompson", "gain", "epsilon-greedy", "uncertainty", "coverage", "random")
ASKED = ("after 100 votes", "after 200 votes", "a third", "half", "two thirds")

LISTS = ("trm", "crowd-bt", "tpp, 1 domain", "tpp, 3 domains", "tpp, 5 domains", "tpp")
SAMPLED = (
    "crowd-agg/quality.py",
    "crowd-bt/table1.py",
    "crowd-bt/table2.py",
    "ltr-crowds/samplers.py",
    "tpp/domains.py",
    "tpp/figure3.py",
    "tpp/table2.py",
    "tpp/table3.py",
)
"""Scripts with Markov chains, which end with an error where chains have not converged."""
NEEDS_DATA = (
    "crowd-bt/figure5.py",
    "crowd-bt/table3.py",
    "tpp/figure4.py",
    "crowd-agg/real.py",
    "ltr-crowds/mq2008.py",
    "ltr-crowds/systems.py",
)

OF_PAIRS = ("condorcet-fuse", "greedy-order", "borda", "bradley-terry", "mpm", "em-elo", "crowd-bt")
OF_GRADES = ("mean-rating", "z-rating", "dawid-skene", "graded-response")
CROWD_AGG = ("crowd-agg", *(f"crowd-agg, {way}" for way in ("rbp", "answer", "printed")))
PUBLISHED = ("crowd-agg, published", "crowd-agg, published, rbp", "crowd-agg, share")
MARKOV = tuple(f"markov-chain, mc{n}" for n in (1, 2, 3, 4))
OF_LISTS = ("plackett-luce", "mallows", "footrule", "median-rank", "rrf", *MARKOV)
QUALITIES = ("crowd-agg", "crowd-agg, no prior", "mpm", "em-elo", "crowd-bt", "bayesian-crowd-bt")

OF_SIDE = ("ltrma-s1", "ltrma-s2", "ltrma-s3")
LTR_BASELINES = ("ltrma-d", "pooled", "borda", "lregma", "truth")
LABELS = tuple(f"ltr-crowds, labels {labels}" for labels in ("map", "expected"))
BENT = tuple(f"lightgbm, {name}" for name in ("ltrma-d", "pooled", "borda", "truth", "truth, ties left open", *LABELS))
STRAIGHT = tuple(f"linear, {name}" for name in (*OF_SIDE, *LTR_BASELINES, "truth, ties left open", *LABELS))
ON_BOTH = ("ltr-crowds", "ltrma-d", "pooled", "borda", "truth", "truth, ties left open")
RECOVERED = ("labels expected", "labels map", "as in the paper", "true lists known", "ltrma-d", "truth")
PRIOR_LISTS = ("prior_lists=2", "prior_lists=0", "as in the paper", "true lists known")


def less(row: str, others: Iterable[str]) -> set[str]:
    """A row, the other rows, and its difference from each."""
    others = tuple(others)
    return {row, *others, *(f"{row} less {other}" for other in others)}


def with_differences(rows: Iterable[str], baseline: str) -> set[str]:
    return {*rows, *(f"{row} less {baseline}" for row in rows if row != baseline)}


ROWS = {
    "crowd-bt/table1.py": {"Bradley-Terry", "Crowd-BT, One", "Crowd-BT, Gold", "crowd-bt", "bayesian-crowd-bt"},
    "crowd-bt/table2.py": {
        f"{name}, {measure}"
        for measure in ("ACC", "correlation of quality")
        for name in ("Bradley-Terry", "Crowd-BT", "Crowd-BT, several starts", "bayesian-crowd-bt")
    }
    - {"Bradley-Terry, correlation of quality"},
    "crowd-bt/table3.py": {*CROWD_BT, "share of annotators"},
    "crowd-bt/table4.py": {
        "TrueSkill",
        "TrueSkill, no ties, no drift",
        "Online-Crowd-BT",
        "Online-Crowd-BT, closed form",
    },
    "crowd-bt/table5.py": {"98 %", "95 %", "90 %"},
    "crowd-bt/figure5.py": {"γ=0", "γ=1", "γ=5", "γ=20", "γ=50", "random", "98 %", "95 %", "90 %"},
    "crowd-bt/figure2.py": {"γ=0", "γ=1", "γ=5", "γ=10", "γ=30", "γ=30, halving", "random"},
    "crowd-bt/figure3.py": {"γ=0", "γ=1", "γ=5", "γ=10", "random"},
    "crowd-bt/active.py": {
        *(name + prior for name in ("random", "adaptive") for prior in PRIORS),
        *(name + means for name in ("random", "gain, γ=1") for means in ("", ", online means")),
        "thompson",
        "adaptive, ten at once, 50 late",
    },
    "factor-bt/table1.py": {f"factor-bt, prior_scale={scale}" for scale in (3, 10, 20, 30)},
    "factor-bt/figure1.py": {
        "Bradley-Terry",
        "Crowd-BT",
        "Majority-Vote-BT",
        "Pairwise HITS",
        "linear-bias",
        "factor-bt",
    },
    "factor-bt/figure3.py": {"factor-bt", "factor-bt, spread 1", "published", "Bradley-Terry", "truth"},
    "comparing/picks.py": {"bradley-terry", "crowd-bt", "factor-bt", "another"},
    "honesty/null.py": {
        *POLICIES,
        *(f"{name}, by online Crowd-BT" for name in ("gain", "epsilon-greedy", "uncertainty")),
    },
    "tpp/table2.py": {
        "TPP, published",
        "TPPUNIDOM",
        "TPPUNIEXP",
        "TPPUNIDIFF",
        "crowd-bt",
        "tpp",
        "tpp, one domain",
        "tpp less TPP, published",
        "tpp less crowd-bt",
        "scores covered",
        "difficulties covered",
    },
    "tpp/table3.py": {
        "TPP, published",
        "crowd-bt",
        "tpp",
        "tpp less TPP, published",
        "tpp less crowd-bt",
    },
    "tpp/figure3.py": {"TPP, published", "log-likelihood of TPP, published", "tpp, domains=2", "tpp"},
    "tpp/figure4.py": {"borda", *LISTS, *(f"{name} less borda" for name in LISTS)},
    "crowd-agg/table2.py": with_differences(
        (*CROWD_AGG, *PUBLISHED, *OF_PAIRS, "bayesian-crowd-bt", *OF_GRADES), "crowd-bt"
    ),
    "crowd-agg/robustness.py": {
        "crowd-agg",
        "crowd-agg, no heads counted",
        "crowd-agg, published",
        "greedy-order",
        "bradley-terry",
        "mpm",
        "em-elo",
        "crowd-bt",
    },
    "crowd-agg/quality.py": {
        *with_differences(QUALITIES, "crowd-bt"),
        *(f"by agreement with the order of {name}" for name in QUALITIES),
    },
    "crowd-agg/expected_ndcg.py": {
        f"{name}{way}"
        for name in ("bradley-terry", "crowd-bt", "graded-response")
        for way in ("", ", for NDCG", ": for NDCG less plain")
    },
    "crowd-agg/newcomers.py": {
        f"{name}{way}" for name in ("bradley-terry", "crowd-bt") for way in ("", ", for NDCG", ": for NDCG less plain")
    },
    "crowd-agg/real.py": {
        *CROWD_AGG,
        *OF_PAIRS,
        *OF_GRADES,
        "mean-rating, prior_count=0",
        *with_differences(("mean individual", "borda", *OF_LISTS, "bradley-terry", "crowd-bt", "trm"), "borda"),
    },
    "ltr-crowds/synthetic.py": {
        *less("ltr-crowds", (*OF_SIDE, *LTR_BASELINES)),
        "ltr-crowds, the paper's sampler",
    },
    "ltr-crowds/recovery.py": {
        *less("ltr-crowds", RECOVERED),
        *less("prior_lists=1", PRIOR_LISTS),
    },
    "ltr-crowds/samplers.py": {"gibbs", "paper"},
    "ltr-crowds/topk.py": less(
        "ltr-crowds", (*(name for name in OF_SIDE if name != "ltrma-s2"), *LTR_BASELINES, "truth, whole lists")
    ),
    "ltr-crowds/functions.py": less("auto", ("ltr-crowds", "pooled", "borda", "lregma", "truth")),
    "ltr-crowds/systems.py": less("auto", ("ltr-crowds", "pooled", "borda", "lregma", "truth")),
    "ltr-crowds/mq2008.py": {
        *less("linear, ltr-crowds", STRAIGHT),
        *less("lightgbm, ltr-crowds", BENT),
        *(f"lightgbm, {name} less linear, {name}" for name in ON_BOTH),
        "ltr-crowds",
        "ltrma-d",
        *OF_SIDE,
    },
    "tpp/domains.py": {
        "domains found",
        "sets of malicious annotators",
        "as many as there are",
        "queries in the right domain",
        "distance",
    },
    "stopping/top3.py": {
        "settled",
        "right when announced",
        "right without confirming",
        *(f"{what}, {when}" for what in ("within 1.5", "interval") for when in ASKED),
    },
}

NO_ACCURACY = re.compile("less |: votes|distance|number of|RMSE|gain:|log-likelihood", re.IGNORECASE)
"""Tables of differences, of counts, and of errors."""


class Run(NamedTuple):
    """What a script printed."""

    stdout: str
    stderr: str


RunScript = Callable[..., Run]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunScript:
    """Run a script as `python papers/SCRIPT …` would, without the cost of a process."""

    def script(name: str, *arguments: object, data: Path | None = None) -> Run:
        path = PAPERS / name
        monkeypatch.setenv("CROWDRANK_DATA", str(data or NOWHERE))
        monkeypatch.setattr(sys, "argv", [str(path), *map(str, arguments)])
        monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as stop:
            assert not stop.code, stop
        return Run(*capsys.readouterr())

    return script


def run_alone(script: str, *arguments: object) -> Run:
    """Run a script in its own process, which starts further processes."""
    done = subprocess.run(
        [sys.executable, "-W", "error", PAPERS / script, *map(str, arguments)],
        env=os.environ | {"CROWDRANK_DATA": str(NOWHERE)},
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    return Run(done.stdout, done.stderr)


def records(folder: Path, script: str) -> list[dict[str, str]]:
    with (folder / Path(script).with_suffix(".csv").name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_script_is_tried_here():
    assert set(ROWS) == set(SCRIPTS)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, marks=[pytest.mark.arithmetic] * (script in SAMPLED))
        for script in SCRIPTS
        if script not in NEEDS_DATA
    ],
)
def test_a_script_writes_a_row_for_every_method(run, script, tmp_path):
    done = run(script, "--quick", "--out", tmp_path)
    found = records(tmp_path, script)
    assert {row["row"] for row in found} == ROWS[script]
    assert all(0 <= float(row["mean"]) <= 1 for row in found if not NO_ACCURACY.search(f"{row['table']}: {row['row']}"))
    assert (tmp_path / Path(script).with_suffix(".md").name).read_text(encoding="utf-8") + "\n" == done.stdout


def passages(path: Path) -> Path:
    """A file with the columns of the authors' file: passages 0 to 5, compared by reading level."""
    answer = "please_decide_which_passage_is_more_difficult"
    lines = [f"_worker_id,passage_a,passage_b,label_level_a,label_level_b,{answer}"]
    for worker in range(3):
        for a in range(6):
            for b in range(a):
                said = "Passage A is more difficult." if worker < 2 else "I don't know or can't decide."
                lines.append(f"w{worker},p{a},p{b},{a},{b},{said}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_authors_file_of_reading_levels_is_read(tmp_path):
    done = run_alone("crowd-bt/table3.py", passages(tmp_path / "levels.csv"), "--out", tmp_path)
    found = records(tmp_path, "crowd-bt/table3.py")
    assert {row["row"] for row in found} == ROWS["crowd-bt/table3.py"]
    assert all(float(row["mean"]) == 1 for row in found if row["row"] in CROWD_BT)
    assert "Comparisons(30 judgments, 6 items, 2 annotators)" in done.stdout


@pytest.mark.parametrize("script", ["crowd-bt/table4.py", "crowd-bt/table5.py"])
def test_the_authors_file_can_be_asked_for_answer_by_answer(run, script, tmp_path):
    done = run(script, passages(tmp_path / "levels.csv"), "--quick", "--out", tmp_path)
    assert "levels.csv" in done.stdout
    assert "*paper*" in done.stdout
    assert {row["row"] for row in records(tmp_path, script)} == ROWS[script]


@pytest.mark.data
@pytest.mark.parametrize("script", ["crowd-bt/table3.py", "crowd-bt/table4.py"])
def test_the_reading_levels_are_ranked(run, script, tmp_path, data_folder):
    done = run(script, "--quick", "--out", tmp_path, data=data_folder)
    assert {row["row"] for row in records(tmp_path, script)} == ROWS[script]
    assert "reading_difficulty" in done.stdout
    assert "not the passages of the paper" not in done.stdout


@pytest.mark.data
@pytest.mark.parametrize("script", ["crowd-bt/figure5.py", "ltr-crowds/systems.py"])
def test_real_votes_and_lists_have_a_row_for_every_method(run, script, tmp_path, data_folder):
    run(script, "--quick", "--out", tmp_path, data=data_folder)
    assert {row["row"] for row in records(tmp_path, script)} == ROWS[script]


@pytest.mark.data
def test_lists_of_retrieval_systems_are_made_into_one(run, tmp_path, data_folder):
    done = run("tpp/figure4.py", "--quick", "--out", tmp_path, data=data_folder)
    assert {row["row"] for row in records(tmp_path, "tpp/figure4.py")} == ROWS["tpp/figure4.py"]
    assert "20 queries, 12 of them with a relevant document" in done.stdout


@pytest.mark.data
def test_real_grades_preferences_and_lists_are_ranked_by_every_method(run, tmp_path, data_folder):
    done = run("crowd-agg/real.py", "--quick", "--out", tmp_path, data=data_folder)
    assert {row["row"] for row in records(tmp_path, "crowd-agg/real.py")} == ROWS["crowd-agg/real.py"]
    assert "4 tasks of lee_rankings" in done.stdout


@pytest.mark.data
def test_real_features_and_grades_are_learnt_from(run, tmp_path, data_folder):
    run("ltr-crowds/mq2008.py", "--quick", "--out", tmp_path, data=data_folder)
    assert {row["row"] for row in records(tmp_path, "ltr-crowds/mq2008.py")} == ROWS["ltr-crowds/mq2008.py"]


@pytest.mark.parametrize("script", NEEDS_DATA)
def test_without_any_judgments_a_script_that_needs_them_says_so(run, script):
    assert "set CROWDRANK_DATA" in run(script).stderr


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_is_kept_has_the_rows_of_the_script(script):
    kept, name = PAPERS / Path(script).parent / "results", Path(script).stem
    rows = {row["row"] for row in records(kept, script)}
    if json.loads((kept / "provenance.json").read_text(encoding="utf-8"))[name]["shows"]:
        assert rows == ROWS[script]
    else:  # older than the record of models, and listed by tools/stale_results.py until it is made again
        assert rows <= ROWS[script]
    assert {int(row["trials"]) for row in records(kept, script)} <= {1} | set(range(5, 1000))
