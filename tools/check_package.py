"""Build the wheel and the source distribution, install each in an environment of its own, and run the README from it.

    python tools/check_package.py [PYTHON …]      # the interpreters to try; by default the one that runs this

Needs a network or a package index for the dependencies. Says the size and the seconds of an installation.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.docs.pages import blocks  # noqa: E402

USER_FILE = """import crowdrank as cr

ranking: cr.Ranking = cr.rank({"left": ["a"], "right": ["b"], "winner": ["a"]})
names: list[str] = [str(item) for item in ranking]
low: int | None = ranking["a"].rank_low
probability: float = ranking.probability("a", "b")
votes: cr.Comparisons = cr.Comparisons.of(left=["a"], right=["b"], winner=["a"], annotator=["x"])
fitted: cr.Ranking = cr.CrowdBT(prior_scale=2.0).fit(votes)
licences: dict[str, str] = {name: info.licence for name, info in cr.datasets.CATALOGUE.items()}
function: cr.ltr.RankingFunction = cr.ltr.CrowdRanker().fit(cr.Rankings.of(["a", "b"], [1, 2]), {"item": ["a", "b"]})
"""
"""What a user writes, which `mypy --strict` must understand."""


def run(*command: object, **options: object) -> None:
    """Run a command; stop with its output if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")


def build(folder: Path) -> list[Path]:
    """Build both distributions with the tool that the release uses."""
    run(sys.executable, "-m", "venv", folder / "build")
    python = folder / "build" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "build", "twine")
    run(python, "-m", "build", "--outdir", folder / "dist", ROOT)
    files = sorted((folder / "dist").iterdir())
    run(python, "-m", "twine", "check", "--strict", *files)
    return files


def check(distribution: Path, interpreter: str, folder: Path) -> str:
    """Install one distribution and use it as the README says. Returns what it took."""
    environment = folder / "environment"
    run(interpreter, "-m", "venv", environment)
    python = environment / "bin" / "python"
    begun = time.perf_counter()
    run(python, "-m", "pip", "install", "--quiet", distribution)
    seconds = time.perf_counter() - begun
    size = sum(file.stat().st_size for file in environment.rglob("*") if file.is_file()) / 1e6
    # The README also shows a data frame of pandas, a figure and the server's page.
    run(python, "-m", "pip", "install", "--quiet", "mypy", f"{distribution}[reports]", "pandas", "pyarrow")
    run_readme(environment / "bin", folder / "readme")
    (folder / "user.py").write_text(USER_FILE, encoding="utf-8")
    run(python, "-m", "mypy", "--strict", "user.py", cwd=folder)
    return f"{distribution.name} on {interpreter}: {seconds:.0f} s to install, {size:.0f} MB with dependencies"


def run_readme(bin_: Path, folder: Path) -> None:
    """Run the README's Python as one program and its commands one by one, beside the files of the example."""
    shutil.copytree(ROOT / "examples" / "cities", folder)
    program = []
    # Nothing of this repository may be found: the installed package is what is tested.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for block in blocks(ROOT / "README.md"):
        if "no-run" in block.words:
            continue
        if block.language == "python":
            program.append(block.text)
        elif block.language == "bash":
            for line in block.text.splitlines():
                if line.startswith("crowdrank "):
                    run("sh", "-c", f"{bin_}/{line}", cwd=folder, env=environment)
    run(bin_ / "python", "-c", "\n".join(program), cwd=folder, env=environment)


def main() -> None:
    """Check every distribution on every interpreter."""
    with tempfile.TemporaryDirectory() as name:
        for number, distribution in enumerate(build(Path(name))):
            for interpreter in sys.argv[1:] or [sys.executable]:
                folder = Path(name) / f"{number}-{Path(interpreter).name}"
                folder.mkdir()
                print(check(distribution, interpreter, folder), flush=True)
                shutil.rmtree(folder)


if __name__ == "__main__":
    main()
