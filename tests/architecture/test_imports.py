"""Packages import only what docs/architecture.md allows, and importing crowdrank loads little."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import crowdrank
from tests.docs.pages import DOCS, section, table

SOURCE = Path(crowdrank.__file__).parent


def import_table():
    """The packages that each package may import; None for any."""
    rows = table(section(DOCS / "architecture.md", "Packages"))[1:]
    found = {}
    for package, _, allowed in rows:
        names = set(allowed.replace("nothing of ours", "").split(", ")) - {""}
        found[package.strip("`")] = None if allowed == "everything" else names
    return found


TABLE = import_table()
# Methods of Ranking that import higher packages when they are called (see docs/architecture.md).
DEFERRED = {"results/ranking.py": {"evaluation", "reports"}}


def packages():
    folders = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    return sorted(folders | {path.stem for path in SOURCE.glob("*.py")} - {"__init__"})


def files_of(package):
    folder = SOURCE / package
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [SOURCE / f"{package}.py"]


def imported_modules(tree, package):
    """Every module that a file imports, wherever in the file; relative imports made absolute."""
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


def at_import_time(tree):
    """The module without its functions and without imports for type checkers."""
    tree.body = [
        node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = []
    return tree


def packages_imported(path):
    package = ("crowdrank", *path.relative_to(SOURCE).parent.parts)
    deferred = DEFERRED.get(path.relative_to(SOURCE).as_posix(), set())

    def found(tree):
        parts = [module.split(".") for module in imported_modules(tree, package)]
        return {part[1] for part in parts if part[0] == "crowdrank" and len(part) > 1 and part[1] != "__version__"}

    text = path.read_text(encoding="utf-8")
    return (found(ast.parse(text)) - deferred) | (found(at_import_time(ast.parse(text))) & deferred)


def test_every_package_is_in_the_table():
    assert set(TABLE) == set(packages())


@pytest.mark.parametrize("package", packages())
def test_a_package_imports_only_what_the_table_allows(package):
    allowed = TABLE[package]
    if allowed is None:
        allowed = set(packages()) - {"cli"}
    for path in files_of(package):
        beyond = set(packages_imported(path)) - allowed - {package}
        assert not beyond, f"{path.relative_to(SOURCE)} imports {', '.join(sorted(beyond))}"


def test_packages_do_not_import_each_other_in_a_circle():
    """Not even indirectly or inside a function: a topological sort of the packages raises an error for a cycle."""
    uses = {p: set().union(*(packages_imported(path) for path in files_of(p))) - {p} for p in packages()}
    order = list(TopologicalSorter(uses).static_order())
    assert order.index("errors") < order.index("data") < order.index("models") < order.index("cli")


def test_what_is_deferred_is_not_imported_with_its_module():
    tree = at_import_time(ast.parse("from crowdrank import data\ndef f():\n    from crowdrank import models"))
    assert list(imported_modules(tree, ("crowdrank", "results"))) == ["crowdrank.data"]


def test_every_way_of_importing_is_found():
    ways = [
        "import crowdrank.models",
        "from crowdrank.models import BradleyTerry",
        "from crowdrank import models",
        "from ..models import BradleyTerry",
        "from ..models.voting import Borda",
        "def f():\n    from crowdrank.models import Elo",
        "if TYPE_CHECKING:\n    import crowdrank.models.voting",
    ]
    for text in ways:
        found = list(imported_modules(ast.parse(text), ("crowdrank", "data")))
        assert [module.split(".")[1] for module in found] == ["models"], text


def loaded_after(statement):
    done = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport sys\nprint(*sys.modules, sep='\\n')"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


HEAVY = {
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


def test_importing_the_package_loads_no_library():
    assert not (HEAVY | {"numpy", "polars"}) & loaded_after("import crowdrank")


def test_importing_the_command_line_loads_no_library():
    assert not (HEAVY | {"numpy", "polars"}) & loaded_after("import crowdrank.cli")


def loaded_by_command(*words):
    return loaded_after(
        f"import sys\nsys.argv = {['crowdrank', *words]!r}\nfrom crowdrank.cli import main\n"
        "try:\n    main()\nexcept SystemExit as stop:\n    assert not stop.code"
    )


@pytest.mark.parametrize("words", [(), ("--version",), ("--help",)])
def test_the_first_screens_are_shown_without_a_library(words):
    assert not {"numpy", "polars", "rich", "typer"} & loaded_by_command(*words)


def test_a_command_loads_no_other_command_and_no_other_model():
    votes = SOURCE.parents[1] / "examples" / "cities" / "votes.csv"
    loaded = loaded_by_command("rank", str(votes), "--model", "borda")
    commands = {module.split(".")[2] for module in loaded if module.startswith("crowdrank.cli.")}
    assert "rank" in commands
    assert not {"annotators", "compare", "demo", "serve", "start"} & commands
    assert not {"crowdrank.models.thurstonian.tpp", "crowdrank.models.lists.mallows"} & loaded


def test_a_small_ranking_does_not_wait_for_scipy():
    votes = SOURCE.parents[1] / "examples" / "cities" / "votes.csv"
    loaded = loaded_by_command("rank", str(votes))
    assert "polars" in loaded
    assert not {"scipy.linalg", "scipy.special", "crowdrank.evaluation", "typer"} & loaded


# Modules and libraries that the default ranking of a small CSV file has no use for.
NOT_NEEDED_TO_RANK = {
    "crowdrank.engines.dask",
    "crowdrank.engines.out_of_core",
    "crowdrank.io.item_tables",
    "crowdrank.io.formats.base",
    "crowdrank.io.guesses",
    "crowdrank.io.json_records",
    "crowdrank.io.scanner",
    "crowdrank.io.spreadsheets",
    "crowdrank.io.writer",
    "crowdrank.models.bootstrap",
    "crowdrank.models.crowd.fitting",
    "crowdrank.models.crowd.objective",
    "crowdrank.results.systems",
    "dask",
    "difflib",
    "narwhals",
    "numba",
    "rich.progress",
    "scipy",
    "xml.etree.ElementTree",
}


def test_ranking_a_small_file_loads_only_what_it_needs():
    """Most of the time of a small ranking is spent on imports, so each of these would be noticed."""
    votes = SOURCE.parents[1] / "examples" / "cities" / "votes.csv"
    loaded = loaded_by_command("rank", str(votes))
    assert "crowdrank.models.crowd.crowd_bt" in loaded
    assert sorted(NOT_NEEDED_TO_RANK & loaded) == []


def test_a_small_fit_does_not_wait_for_a_compiler():
    loaded = loaded_after(
        "from crowdrank import BradleyTerry, Comparisons\n"
        "votes = Comparisons.of(['a', 'b', 'c'] * 30, ['b', 'c', 'a'] * 30, ['a', 'b', 'c'] * 30)\n"
        "BradleyTerry().fit(votes).table()"
    )
    assert "numpy" in loaded
    assert not {"numba", "scipy.optimize", "pandas"} & loaded


def test_nothing_uses_the_global_random_generator():
    """Randomness comes from a seed or a Generator."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np.random", "numpy.random"):
                assert node.attr in ("default_rng", "Generator", "SeedSequence"), f"{path.name}: np.random.{node.attr}"
