"""The workflows of the repository can be parsed, and every step does something."""

from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")
FOLDER = Path(__file__).resolve().parents[2] / ".github" / "workflows"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yml")), ids=lambda path: path.name)
def test_a_workflow_has_jobs_with_steps(path):
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert steps
    assert all("uses" in step or "run" in step for step in steps)
