"""The check reports what has become slower, and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path[:0] = [str(BENCHMARKS)]

import check  # noqa: E402
import kernels  # noqa: E402

from crowdrank.models.crowd import likelihood  # noqa: E402

KEPT = {"growing": 1.0, "reading": 2.0}
GRADIENT = "crowd-bt, gradient and curvature"


def told(monkeypatch, *runs):
    """Output of the check for successive runs with these ratios."""
    left = list(runs)
    monkeypatch.setattr(check, "measured", lambda: left.pop(0))
    return check.check(KEPT)


def test_what_takes_half_as_long_again_has_become_slower(monkeypatch):
    slow = {"growing": 1.6, "reading": 2.9}
    assert told(monkeypatch, slow, slow, slow) == {"growing": pytest.approx(1.6)}


def test_a_little_slower_is_not(monkeypatch):
    assert told(monkeypatch, {"growing": 1.4, "reading": 2.8}) == {}


def test_what_was_slow_once_is_not_slower(monkeypatch):
    assert told(monkeypatch, {"growing": 9.0, "reading": 2.0}, KEPT) == {}


def test_it_fails_as_a_command(monkeypatch, tmp_path, capsys):
    kept = tmp_path / "check.json"
    kept.write_text(json.dumps({"ratios": KEPT}))
    monkeypatch.setattr(check, "_KEPT", kept)
    monkeypatch.setattr(sys, "argv", ["check.py"])
    monkeypatch.setattr(check, "measured", lambda: {"growing": 2.0, "reading": 2.0})
    assert check.main() == 1
    assert "growing: 2.00 times what it was" in capsys.readouterr().out
    monkeypatch.setattr(check, "measured", lambda: KEPT)
    assert check.main() == 0


def test_a_loop_that_is_run_three_times_is_told(monkeypatch):
    def ratios():
        return {entry.kernel: entry.times_bare for entry in kernels.measure(100, 100, 100_000, 1)}

    before, quick = ratios(), likelihood.evaluate
    monkeypatch.setattr(likelihood, "evaluate", lambda *given: [quick(*given) for _ in range(3)][-1])
    assert GRADIENT in check.grown(ratios(), before)


def test_every_figure_that_is_kept_is_a_positive_number():
    kept = json.loads((BENCHMARKS / "results" / "check.json").read_text())["ratios"]
    assert all(ratio > 0 for ratio in kept.values())
    assert {name for name in kept if "passes" in name or "reading" in name}
