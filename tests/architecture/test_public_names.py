"""The public names of the package: one mapping, imported on first use."""

import ast
import importlib
from pathlib import Path

import crowdrank

SOURCE = ast.parse(Path(crowdrank.__file__).read_text(encoding="utf-8"))


def names_for_type_checkers():
    """Names imported under TYPE_CHECKING, by module."""
    (block,) = (node for node in SOURCE.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name, "only `import X as X` is exported to type checkers"
            yield f"{node.module}.{alias.name}"


def test_type_checkers_see_the_names_that_are_imported_on_first_use():
    lazy = {f"{module}.{name}" for name, module in crowdrank._HOME.items()}
    packages = {f"crowdrank.{name}" for name in crowdrank._PACKAGES}
    assert set(names_for_type_checkers()) == lazy | packages


def test_dir_shows_the_public_names_and_nothing_else():
    assert dir(crowdrank) == sorted([*crowdrank.__all__, "__version__"])
    assert "rank" in dir(crowdrank)
    assert len(crowdrank._HOME) <= 60


def test_every_public_name_is_what_its_module_exports():
    for name, module in crowdrank._HOME.items():
        assert getattr(crowdrank, name) is getattr(importlib.import_module(module), name)


def test_names_that_are_imported_on_first_use_exist():
    """A module that is merged into another one leaves no name behind that leads to it."""
    folder = Path(crowdrank.__file__).parent
    for path in folder.rglob("__init__.py"):
        if "migrations" in path.parts:
            continue
        package = importlib.import_module(".".join(("crowdrank", *path.parent.relative_to(folder).parts)))
        for name in {*getattr(package, "__all__", ()), *getattr(package, "_HOME", ())}:
            assert getattr(package, name) is not None
