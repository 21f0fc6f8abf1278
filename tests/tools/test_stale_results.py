"""Results record when they were made, and results whose models have changed are listed."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools")]

import provenance  # noqa: E402
import stale_results  # noqa: E402
from fingerprints import Block, StandardErrors, differ, fingerprint, small_data  # noqa: E402
from provenance import Made, made, record, shows  # noqa: E402

from crowdrank import BayesianCrowdBT, BradleyTerry, CrowdAgg, FactorBT  # noqa: E402
from crowdrank.active import Random  # noqa: E402
from crowdrank.models import REGISTRY  # noqa: E402
from crowdrank.online import TrueSkill  # noqa: E402
from crowdrank.simulation import crowd_bt, list_crowd, rating_crowd  # noqa: E402

SCRIPTS = sorted((ROOT / "papers").glob("*/*.py"))
SCRIPT = """
from crowdrank import BradleyTerry, CrowdBT
SHOWS = {{"plain": BradleyTerry(prior_scale={scale}), "crowd": CrowdBT()}}
"""
QUICK = BayesianCrowdBT(chains=2, draws=40, warmup=40)


@pytest.fixture
def one(tmp_path):
    """A project with one script and its result, made just now."""
    script, results = tmp_path / "papers" / "some" / "table.py", tmp_path / "papers" / "some" / "results"
    results.mkdir(parents=True)
    script.write_text(SCRIPT.format(scale=1.0))
    (results / "table.csv").write_text("mean\n1\n")
    (results / "table.md").write_text("# Table\n")
    record(script, results, "table", when=Made("abc1234", "2026-01-02"))
    return tmp_path


def listed(root: Path) -> list[str]:
    return [line for folder in stale_results.folders(root) for line in stale_results.stale(folder, root)]


def test_a_result_is_listed_once_a_model_that_it_shows_has_changed(one):
    assert listed(one) == []
    (one / "papers" / "some" / "table.py").write_text(SCRIPT.format(scale=1.01))
    assert listed(one) == ["papers/some/results/table (commit abc1234, 2026-01-02): changed: plain"]


def test_a_result_is_listed_if_its_script_shows_another_model_or_none(one):
    script = one / "papers" / "some" / "table.py"
    script.write_text(SCRIPT.format(scale=1.0).replace('"crowd"', '"other"'))
    assert listed(one) == [
        "papers/some/results/table (commit abc1234, 2026-01-02): new: other — no longer shown: crowd"
    ]
    script.unlink()
    assert listed(one)[0].endswith("table.py no longer exists")


def test_a_result_that_nothing_is_known_of_is_listed(one):
    (one / "papers" / "some" / "results" / "figure.svg").write_text("<svg/>")
    assert listed(one) == ["papers/some/results/figure: no provenance is recorded"]


def test_results_without_models_are_dated_and_not_judged(one):
    folder = one / "benchmarks" / "results"
    folder.mkdir(parents=True)
    (one / "benchmarks" / "speed.py").write_text("")
    (folder / "speed.json").write_text("{}")
    record(one / "benchmarks" / "speed.py", folder, "speed", when=Made("abc1234", "2026-01-02"))
    assert "shows" not in json.loads((folder / "provenance.json").read_text())["speed"]
    assert listed(one) == []


@pytest.mark.parametrize(("scale", "strict", "code"), [(1.0, True, 0), (2.0, True, 1), (2.0, False, 0)])
def test_the_command_fails_only_if_asked_to_and_only_if_something_is_stale(
    one, monkeypatch, capsys, scale, strict, code
):
    (one / "papers" / "some" / "table.py").write_text(SCRIPT.format(scale=scale))
    monkeypatch.setattr(sys, "argv", ["stale_results.py", *(["--strict"] if strict else [])])
    monkeypatch.setattr(stale_results, "ROOT", one)
    assert stale_results.main() == code
    assert ("changed: plain" in capsys.readouterr().out) == (scale != 1.0)


def test_a_fingerprint_survives_being_written():
    for model in (CrowdAgg(), FactorBT(), QUICK, TrueSkill(), Random()):
        found = fingerprint(model)
        kept = {kind: Block.from_json(json.loads(json.dumps(block.to_json()))) for kind, block in found.items()}
        assert not differ(kept, found)


def test_other_seeds_are_no_change_of_a_sampler_and_another_prior_is():
    found = fingerprint(QUICK)
    assert all(block.noise > 0 for block in found.values())
    assert not differ(found, fingerprint(replace(QUICK, draws=45)))
    assert differ(found, fingerprint(replace(QUICK, prior_scale=0.2)))


def test_what_is_drawn_from_no_seed_has_no_noise_and_small_changes_show():
    found = fingerprint(BradleyTerry())
    assert all(block.noise == 0 for block in found.values())
    assert differ(found, fingerprint(BradleyTerry(prior_scale=2.0)))


def test_the_last_bits_are_no_change():
    scores = np.linspace(-2, 2, 20)
    assert not Block(scores).differs(Block(scores * (1 + 1e-6)))
    assert Block(scores).differs(Block(scores * (1 + 1e-2)))
    assert Block(scores).differs(Block(scores[:-1]))
    assert Block(scores).differs(Block(np.append(scores[:-1], np.nan)))


def test_a_model_that_reads_more_kinds_of_data_is_the_same_on_the_others():
    scores = np.linspace(-2, 2, 20)
    assert not Block(scores[:-4]).differs(Block(scores))
    assert Block(scores[:-4] * 1.1).differs(Block(scores))


def test_standard_errors_and_crowds_have_fingerprints():
    errors = [fingerprint(StandardErrors(BradleyTerry(prior_scale=scale))) for scale in (1.0, 2.0)]
    assert differ(*errors)
    for draw in (crowd_bt, rating_crowd, list_crowd):
        first, again, other = (fingerprint(lambda seed=seed, draw=draw: draw(seed=seed)) for seed in (1, 1, 2))
        assert not differ(first, again)
        assert differ(first, other)


def test_small_data_are_what_they_were():
    """The small data sets must not change, because every stored fingerprint would."""
    votes, reversed_third, grades, lists = small_data()
    assert (len(votes), len(reversed_third), len(grades), len(lists)) == (280, 375, 80, 15)
    assert votes.outcome[:12].tolist() == [-1, 1, -1, 1, 1, -1, 1, 1, -1, -1, 1, 1]
    assert grades.grade[:12].tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0]
    assert lists.item[:6].tolist() == [7, 6, 5, 3, 4, 2]


def test_a_result_says_at_which_commit_it_was_made_and_whether_code_was_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    assert str(made.__wrapped__()).startswith("Made on ")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text("x = 1\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    clean = made.__wrapped__()
    assert str(clean) == f"Made at commit {clean.commit} on {clean.date}."
    (tmp_path / "notes.md").write_text("no code\n")
    assert made.__wrapped__().commit == clean.commit
    (tmp_path / "src" / "code.py").write_text("x = 2\n")
    assert made.__wrapped__().commit == f"{clean.commit}+changes"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_script_of_a_paper_says_what_its_results_show(script):
    with shows(script) as every:
        assert every


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_script_shows_the_models_that_it_names(script):
    text = script.read_text(encoding="utf-8")
    with shows(script) as every:
        kinds = {type(shown).__name__ for shown in every.values()}
    named = {kind.__name__ for kind in REGISTRY.values() if f" {kind.__name__}(" in text}
    # The model reads features that the small data sets lack, so its fingerprint uses a crowd that has them.
    assert named - kinds <= ({"FactorBT"} if script.match("factor-bt/table1.py") else set())


@pytest.mark.parametrize("folder", stale_results.folders(ROOT), ids=lambda folder: folder.parent.name)
def test_kept_pages_say_what_is_recorded_beside_them(folder):
    kept = json.loads((folder / provenance.FILE).read_text(encoding="utf-8"))
    assert kept.keys() == {file.stem for file in folder.iterdir() if file.name not in stale_results.NOT_JUDGED}
    for name, entry in kept.items():
        assert (ROOT / entry["script"]).is_file()
        page = folder / f"{name}.md"
        if page.exists():
            assert str(Made(entry["commit"], entry["date"])) in page.read_text(encoding="utf-8")
