"""What each room may import, as drawn in docs/architecture.md, and what starting up may load."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import crowdrank

HOUSE = Path(crowdrank.__file__).parent

FOUNDATIONS = {"errors", "judgments", "results", "likelihoods", "solvers", "engines"}
MAY_USE = {
    "errors": set(),
    "likelihoods": set(),
    "engines": {"errors", "likelihoods"},
    "solvers": {"errors", "likelihoods", "engines"},
    "judgments": {"errors"},
    "results": {"errors", "judgments"},
    "simulated": {"errors", "judgments"},
    "files": {"errors", "judgments"},
    "models": FOUNDATIONS,
    "online": FOUNDATIONS | {"models"},
    "learning": FOUNDATIONS | {"evaluation", "files", "models"},
    "questions": FOUNDATIONS | {"models", "online", "simulated", "evaluation"},
    "evaluation": {"errors", "judgments", "results", "models", "online", "engines"},
    "reports": {"errors", "judgments", "results", "evaluation"},
    "storage": {"errors", "judgments", "results"},
}
EVERYTHING_BUT = {"server": {"cli"}, "cli": set()}


def rooms():
    found = {path.name for path in HOUSE.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))}
    return sorted(found | {"errors"})


def files_of(room):
    return [HOUSE / "errors.py"] if room == "errors" else sorted((HOUSE / room).rglob("*.py"))


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def modules_named(tree, package):
    """Every module a file imports, in full, wherever in the file it does; relative imports made absolute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) + "." if node.level else ""
            module = (base + (node.module or "")).rstrip(".")
            if module == "crowdrank":  # `from crowdrank import models`
                yield from (f"crowdrank.{alias.name}" for alias in node.names)
            else:
                yield module


@cache
def rooms_used(path):
    package = ("crowdrank", *path.relative_to(HOUSE).parent.parts)
    parts = (module.split(".") for module in modules_named(tree_of(path), package))
    return {part[1] for part in parts if part[0] == "crowdrank" and len(part) > 1}


@pytest.mark.parametrize("room", rooms())
def test_a_room_uses_only_what_it_may(room):
    for path in files_of(room):
        used = rooms_used(path) - {room}
        beyond = used & EVERYTHING_BUT[room] if room in EVERYTHING_BUT else used - MAY_USE[room]
        assert not beyond, f"{path.relative_to(HOUSE)} uses {', '.join(sorted(beyond))}"


def test_every_room_is_on_the_table():
    assert set(rooms()) <= set(MAY_USE) | set(EVERYTHING_BUT)


def test_no_two_rooms_use_each_other():
    """Not even through others, and not even inside a function: sorting the rooms raises on a circle."""
    uses = {
        room: set().union(*(rooms_used(path) for path in files_of(room))) & set(rooms()) - {room} for room in rooms()
    }
    order = list(TopologicalSorter(uses).static_order())
    assert order.index("errors") < order.index("judgments") < order.index("models") < order.index("cli")


def test_the_reading_of_imports_can_see():
    """The negative control: each way of importing is found."""
    ways = [
        "import crowdrank.models", "from crowdrank.models import BradleyTerry", "from crowdrank import models",
        "from ..models import BradleyTerry", "from ..models.elo import Elo",
        "def f():\n    from crowdrank.models import Elo", "if TYPE_CHECKING:\n    import crowdrank.models.elo",
    ]  # fmt: skip
    for text in ways:
        found = list(modules_named(ast.parse(text), ("crowdrank", "judgments")))
        assert [module.split(".")[1] for module in found] == ["models"], text


def loaded_after(statement):
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules, sep='\\n')"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


@pytest.mark.parametrize("statement", ["import crowdrank", "import crowdrank.cli"])
def test_starting_up_loads_nothing_heavy(statement):
    loaded = loaded_after(statement)
    assert "numpy" in loaded
    heavy = {
        "numba",
        "pandas",
        "pyarrow",
        "sklearn",
        "scipy.optimize",
        "scipy.stats",
        "scipy.sparse",
        "dask",
        "altair",
        "fastapi",
        "sqlalchemy",
    }
    assert not heavy & loaded


def test_a_small_fit_waits_for_no_compiler():
    loaded = loaded_after(
        "from crowdrank import BradleyTerry, Comparisons\n"
        "votes = Comparisons.of(['a', 'b', 'c'] * 30, ['b', 'c', 'a'] * 30, ['a', 'b', 'c'] * 30)\n"
        "BradleyTerry().fit(votes).table()"
    )
    assert not {"numba", "scipy.optimize", "pandas"} & loaded


def test_nothing_touches_the_global_generator():
    """Randomness comes in as a seed or a Generator."""
    for path in HOUSE.rglob("*.py"):
        for node in ast.walk(tree_of(path)):
            nested = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute)
            if nested and ast.unparse(node.value) in ("np.random", "numpy.random"):
                assert node.attr in ("default_rng", "Generator", "SeedSequence"), f"{path.name}: np.random.{node.attr}"
