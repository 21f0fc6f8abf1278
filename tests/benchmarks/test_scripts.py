"""The benchmarks run: each library in its own process, one row per library, and figures that name every line."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path[:0] = [str(BENCHMARKS)]

from figures import Panel, draw, exponent, spread  # noqa: E402
from votes import draw as draw_votes  # noqa: E402
from votes import pairs_right, truth  # noqa: E402


def run(script: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, BENCHMARKS / script, *map(str, arguments)],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
        encoding="utf-8",
    )
    return done.stdout


def records(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_bradley_terry_is_timed_beside_numpy_and_graded_against_the_truth(tmp_path):
    run("bradley_terry.py", "--rows", 4_000, "--only", "numpy", "--turns", 1, "--out", tmp_path)
    rows = records(tmp_path / "bradley_terry.csv")
    assert {row["family"] for row in rows} == {"crowdrank", "numpy"}
    assert {row["status"] for row in rows} == {"converged"}
    assert all(0.85 < float(row["accuracy"]) < 1 for row in rows)
    assert "pairs right" in (tmp_path / "bradley_terry.md").read_text(encoding="utf-8")


def test_growth_is_measured_with_its_power(tmp_path):
    told = run("growth.py", "--quick", "--only", "questions", "--out", tmp_path)
    rows = records(tmp_path / "growth.csv")
    assert [(row["what"], row["size"]) for row in rows] == [
        (what, size) for what in ("one annotator's best pair", "best of all triplets") for size in ("100", "1000")
    ]
    assert all(float(row["seconds"]) > 0 for row in rows)
    assert "| power |" in told
    assert "best of all triplets" in (tmp_path / "growth.svg").read_text(encoding="utf-8")


MEASURED = """
import crowd_peers, measuring, online_peers
for field, name, size, limit in (
    (crowd_peers, "crowdrank CrowdBT", (30, 20, 2_000), 60),
    (online_peers, "crowdrank TrueSkill", (30, 2_000), 60),
    (online_peers, "crowdrank TrueSkill, a call a judgment", (30, 50_000), 0.05),
):
    who = next(c for c in field.CONTENDERS if c.name == name)
    found = measuring.measure(who, size, 0, who.settings[0], limit, among=field.__name__)
    print(found.status, sorted(found.aside), None if found.scores is None else len(found.scores))
"""
"""Run by a Python of its own, as the benchmarks are."""


def test_a_peer_is_measured_in_a_process_of_its_own_and_ended_at_the_limit():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(BENCHMARKS), os.environ.get("PYTHONPATH", "")))}
    done = subprocess.run([sys.executable, "-c", MEASURED], env=environment, capture_output=True, text=True, check=True)
    crowd, online, late = done.stdout.splitlines()
    assert crowd == "ok ['gradient_seconds', 'passes', 'processor_gradients'] 50"  # 30 scores and 20 qualities
    assert online == "ok [] 30"
    assert late == "did not finish [] None"


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_power_is_that_of_the_largest_two_decades(power):
    points = [(10.0, 1e9), *((size, 3 * size**power) for size in (1e3, 1e4, 1e5))]
    assert exponent(points) == pytest.approx(power)


def test_one_size_has_no_power():
    assert np.isnan(exponent([(10, 1.0)]))


def test_names_are_moved_apart_and_keep_their_order():
    moved = spread([5.0, 0.0, 5.0, 40.0], 10)
    assert moved == pytest.approx([3.333, -6.667, 13.333, 40.0], abs=1e-3)
    assert spread([0.0, 50.0], 10) == [0.0, 50.0]


def test_a_figure_names_every_line_on_white(tmp_path):
    lines = {"crowdrank": [(1e4, 0.01), (1e5, 0.1)], "it's another": [(1e4, 1.0)]}
    assert draw([Panel("Time", lines, "votes")], tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert all(word in text for word in ("crowdrank", "another", "votes", "10 ms", "100k", 'fill="white"'))


def test_the_truth_is_what_votes_are_drawn_from():
    votes, scores = draw_votes(50, 100_000, 3), truth(50, 3)
    assert np.corrcoef(np.bincount(votes.winner, minlength=50), scores)[0, 1] > 0.95


def test_pairs_right_counts_pairs_in_their_true_order():
    assert pairs_right([1, 2, 3, 4], np.array([1.0, 2, 3, 4])) == 1
    assert pairs_right([1, 2, 4, 3], np.array([1.0, 2, 3, 4])) == pytest.approx(5 / 6)


def test_unreliable_judges_leaves_out_data_that_are_not_there(tmp_path, monkeypatch):
    folder = tmp_path / "cj_with_criterion"
    folder.mkdir()
    votes = [f"w{w},{a},{b},{max(a, b)}" for w in range(5) for a in range(6) for b in range(a)]
    (folder / "x_votes.csv").write_text("worker,left,right,winner\n" + "\n".join(votes) + "\n")
    (folder / "x_criterion.csv").write_text("item,mark\n" + "\n".join(f"{n},{n}" for n in range(6)) + "\n")
    monkeypatch.setenv("CROWDRANK_DATA", str(tmp_path))
    told = run("unreliable_judges.py", "--draws", 2, "--methods", "bradley-terry,commensurate-bt")
    assert "| method | cj_with_criterion |" in told
    assert "| bradley-terry | **1.000 ± 0.000** |" in told
    assert "| commensurate-bt |  |" in told
