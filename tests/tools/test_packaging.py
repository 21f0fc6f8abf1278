"""What surrounds the package agrees with it: the conda recipe, the citation, the Dockerfile and the paper."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import typer.main

import crowdrank
from crowdrank.cli import app
from crowdrank.models import REGISTRY
from tests.docs.pages import prose, table

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def load(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_conda_recipe_needs_what_the_package_needs():
    recipe = load("conda/recipe.yaml")
    needed = [need.replace(" ", "") for need in recipe["requirements"]["run"]]
    assert sorted(needed[1:]) == sorted(PROJECT["dependencies"])
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    assert recipe["context"]["version"] == crowdrank.__version__
    (script,) = PROJECT["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(script)]


def test_the_conda_recipe_has_only_keys_of_its_format():
    """Keys of version 1 of the recipe format (rattler-build), as far as this recipe may use them."""
    recipe = load("conda/recipe.yaml")
    known = {
        "package": {"name", "version"},
        "source": {"path", "url", "sha256"},
        "build": {"number", "noarch", "script", "python", "skip"},
        "requirements": {"build", "host", "run", "run_constraints"},
        "about": {"summary", "description", "license", "license_file", "homepage", "repository", "documentation"},
    }
    assert recipe["schema_version"] == 1
    assert set(recipe) == {"schema_version", "context", "tests", "extra", *known}
    assert {part: set(recipe[part]) - keys for part, keys in known.items() if set(recipe[part]) - keys} == {}
    assert [set(test) for test in recipe["tests"]] == [{"python"}, {"script"}]
    assert set(recipe["tests"][0]["python"]) <= {"imports", "pip_check", "python_version"}
    assert (ROOT / recipe["about"]["license_file"]).is_file()
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["build"]["noarch"] == "python"  # no compiled code of our own
    used = set(re.findall(r"\$\{\{ (\w+) \}\}", (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")))
    assert used <= {*recipe["context"], "PYTHON"}


def test_the_compose_file_starts_the_server_with_options_that_exist():
    compose = load("compose.yaml")
    assert set(compose) == {"services", "volumes"}
    server, database = compose["services"]["server"], compose["services"]["database"]
    assert server["depends_on"] == {"database": {"condition": "service_healthy"}}
    assert database["healthcheck"]["test"]
    assert not database["image"].endswith(":latest")
    assert ":" in database["image"]
    serve = typer.main.get_command(app).commands["serve"]
    known = {option for parameter in serve.params for option in parameter.opts}
    assert {word.partition("=")[0] for word in server["command"] if word.startswith("--")} <= known
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    header = "".join(line for line in text.splitlines() if line.startswith("#"))
    assert all(name in header for name in re.findall(r"\$\{(\w+)", text))  # what to put in .env


def test_the_citation_is_of_this_version():
    citation = load("CITATION.cff")
    assert citation["version"] == crowdrank.__version__
    assert {"cff-version", "message", "title", "authors"} <= set(citation)


def test_the_container_has_a_fixed_base_and_no_root():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM")]
    assert all(":" in base and not base.endswith(":latest") for base in bases)
    assert [line for line in lines if line.startswith("USER")] == ["USER 1000"]
    assert any(line.startswith("HEALTHCHECK") for line in lines)


def test_the_paper_cites_what_its_bibliography_has():
    text = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
    header = yaml.safe_load(text.split("---")[1])
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(header)
    entries = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / header["bibliography"]).read_text("utf-8"), re.MULTILINE)
    assert set(re.findall(r"@(\w+)", text)) == set(entries)
    assert len(entries) == len(set(entries))
    assert f"There are {len(REGISTRY)} models" in text


def test_the_paper_has_the_numbers_of_the_documentation():
    ours = {row[0]: row[1:] for row in table((ROOT / "paper" / "paper.md").read_text(encoding="utf-8"))[1:]}
    theirs = {row[0]: row[1:] for row in table(prose(ROOT / "docs" / "unreliable-judges.md"))}
    assert len(ours) > 4
    assert ours == {name: theirs[name] for name in ours}
