"""The documentation is complete: models and their settings, commands and their options, column names."""

import re
from dataclasses import fields
from itertools import chain

import pytest
import typer

import crowdrank
from crowdrank.cli import app
from crowdrank.io.column_roles import DURATIONS, SHAPES, SYNONYMS, normalize_name
from crowdrank.models import REGISTRY
from crowdrank.models.selection import kinds_read
from tests.docs.pages import DOCS, ROOT, prose, section, table

every_model = pytest.mark.parametrize("name", REGISTRY)
COMMANDS = typer.main.get_command(app).commands
every_command = pytest.mark.parametrize("name", COMMANDS)


def page_of(name):
    return DOCS / "models" / f"{name}.md"


def rows_of(text):
    """Rows of tables by their first cell, without Markdown."""
    return {row[0].strip("`"): row[1:] for row in table(text)}


@every_model
def test_every_model_has_a_page_of_the_usual_shape(name):
    page = page_of(name)
    assert page.read_text(encoding="utf-8").startswith(f"# {name}\n")
    for heading in ("What it assumes", "What it reads", "Settings", "Uncertainty", "When to use it, and when not"):
        assert section(page, heading).strip()
    assert re.search(r"\((1[789]|20)\d\d\)", prose(page).partition("\n## Reference")[2])


@every_model
def test_every_setting_is_on_the_page_with_its_default(name):
    shown = {setting: row[0] for setting, row in rows_of(section(page_of(name), "Settings")).items()}
    assert shown == {"setting": "default"} | {entry.name: f"`{entry.default!r}`" for entry in fields(REGISTRY[name])}


def test_the_list_of_models_is_whole():
    rows = {row[0].split("]")[0].strip("["): row for row in table(prose(DOCS / "models" / "index.md"))[1:]}
    assert list(rows) == list(REGISTRY)
    for name, kind in REGISTRY.items():
        _, in_python, reads, _, uncertainty = rows[name]
        assert in_python == f"`cr.{kind.__name__}`"
        assert reads.split(", ") == [read.__name__.lower() for read in kinds_read(kind)]
        assert uncertainty.lower() in prose(page_of(name)).lower()


def test_no_page_tells_of_a_model_that_is_not_there():
    assert {page.stem for page in (DOCS / "models").glob("*.md")} - {"index"} == set(REGISTRY)


@every_command
def test_every_option_is_in_the_section_of_its_command(name):
    shown = rows_of(section(DOCS / "cli.md", f"crowdrank {name}"))
    options = {o: p for p in COMMANDS[name].params for o in p.opts if o.startswith("--") and o != "--help"}
    assert {o for o in shown if o.startswith("--")} == set(options)
    for option, parameter in options.items():
        if isinstance(parameter.default, int | float | str) and parameter.default is not False:
            assert shown[option][0] == str(parameter.default)


def test_every_command_is_listed():
    listed = re.findall(r"^\| \[`crowdrank ([\w-]+)`\]", prose(DOCS / "cli.md"), re.MULTILINE)
    assert listed == list(COMMANDS)
    for option in ("--help", "--install-completion", "--show-completion"):
        assert option in prose(DOCS / "cli.md")


@pytest.mark.parametrize("role", sorted(set(SYNONYMS) - {"duration"}))
def test_every_name_of_a_column_is_told(role):
    told = words_of_role(role)
    known = {name.replace("+", "") for name in chain.from_iterable(SYNONYMS[role])}
    assert told <= known
    bare = {name.removesuffix("id").removesuffix("name") for name in known - told}
    assert bare <= told


def words_of_role(role):
    (cell,) = (row[1] for row in table(section(DOCS / "guides" / "your-data.md", "Columns")) if row[0] == role)
    return {normalize_name(word) for word in re.findall(r"`([^`]+)`", cell)} - {"id", "name"}


def test_every_name_of_a_duration_is_told():
    told = words_of_role("duration")
    units = {"s", "sec", "secs", "seconds", "inseconds", "ms", "msec", "millis", "milliseconds"}
    words = told - units
    assert units <= told
    assert {f"{word}{unit}" for word in words for unit in units} - {"works", "responses"} <= set(DURATIONS)
    assert set(DURATIONS) <= {f"{word}{unit}" for word in {*words, ""} for unit in {*units, ""}}


def test_the_shapes_of_files_are_told_in_their_order():
    rows = table(section(DOCS / "guides" / "your-data.md", "Kinds of judgment"))[1:]
    assert [(row[1].split()[0].strip(",:"), tuple(row[0].split(", "))) for row in rows] == list(SHAPES)


def test_the_picture_of_the_readme_shows_the_order_of_the_present_models():
    picture = (DOCS / "images" / "first-ranking.svg").read_text(encoding="utf-8")
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    first = list(crowdrank.rank(ROOT / "examples" / "cities" / "votes.csv"))[:12]
    assert [name for name in drawn if name in first] == first


@pytest.mark.parametrize("name", crowdrank.__all__)
def test_every_public_name_has_a_docstring(name):
    thing = getattr(crowdrank, name)
    written = (thing.__doc__ or "").strip()
    # a dataclass without a docstring is given its signature for one
    assert written
    assert not written.startswith(f"{name}(")
