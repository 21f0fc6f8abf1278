"""Pages of the documentation site that are generated from the code: the Python API, the commands, and llms.txt."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

import crowdrank

ROOT = Path(__file__).resolve().parents[1]


def packages() -> dict[str, ModuleType]:
    """The public packages by name, and `pipeline`, whose functions are only exported from the top."""
    names = sorted({*crowdrank._PACKAGES, "pipeline"})
    return {name: importlib.import_module(f"crowdrank.{name}") for name in names}


def public_names(module: ModuleType) -> list[str]:
    """What a package exports, classes and functions and constants alike."""
    if module.__name__ == "crowdrank.pipeline":  # an inner package: only its entry points are public
        return ["check", "rank", "run"]
    if hasattr(module, "__all__"):
        return sorted(module.__all__, key=str.lower)
    found = inspect.getmembers(module, inspect.isclass)
    return [name for name, thing in found if thing.__module__ == module.__name__]


def summary(thing: Any) -> str:
    """The first paragraph of a docstring, on one line; empty for constants, whose docstring is that of their type."""
    if not (inspect.isclass(thing) or callable(thing) or inspect.ismodule(thing)):
        return ""
    first, _, _ = (inspect.getdoc(thing) or "").partition("\n\n")
    return " ".join(first.split())


def api_index() -> str:
    """One table with every name of `crowdrank`, each with a link to its entry."""
    lines = [
        "# Python API",
        "",
        "Import the package as `import crowdrank as cr`. These names are at the top; the packages have more.",
        "",
        "| name | what it is |",
        "|---|---|",
    ]
    for name in crowdrank.__all__:
        thing = getattr(crowdrank, name)
        if inspect.ismodule(thing):
            link = f"[`cr.{name}`]({name}.md)"
        else:
            link = f"[`cr.{name}`][{crowdrank._HOME[name]}.{name}]"
        lines.append(f"| {link} | {_cell(summary(thing))} |")
    return "\n".join(lines) + "\n"


def api_page(name: str, module: ModuleType) -> str:
    """The page of a package: its docstring, then an entry per public name."""
    entries = "\n\n".join(_entry(module, entry) for entry in public_names(module))
    return f"# crowdrank.{name}\n\n{inspect.getdoc(module) or ''}\n\n{entries}\n"


def _entry(module: ModuleType, name: str) -> str:
    path, thing = f"{module.__name__}.{name}", getattr(module, name)
    if inspect.isclass(thing) or inspect.isfunction(thing):
        return f"::: {path}"
    # A constant or a type alias has no docstring that mkdocstrings could find: show its value.
    names = f"{', '.join(map(str, thing))}" if isinstance(thing, dict) else repr(thing)
    return f"## `{path}` {{#{path}}}\n\n```text\n{names}\n```"


def commands() -> dict[str, Any]:
    """Every command of the command line, by name."""
    from crowdrank.cli import app

    group = typer.main.get_command(app)
    return dict(group.commands)


def commands_page() -> str:
    """Every command with its arguments and options, as `--help` shows them."""
    lines = [
        "# Commands",
        "",
        "All commands with their options, as `--help` prints them. [The command line](../cli.md) explains them with "
        "examples.",
        "",
    ]
    for name, command in commands().items():
        lines += [f"## crowdrank {name}", "", _paragraphs(command.help), "", *_parameters_table(name, command), ""]
    return "\n".join(lines) + "\n"


def _parameters_table(name: str, command: Any) -> Iterator[str]:
    context = command.context_class(command, info_name=f"crowdrank {name}")
    usage = " ".join([f"crowdrank {name}", *command.collect_usage_pieces(context)])
    yield from ("```text", usage, "```", "", "| argument or option | meaning |", "|---|---|")
    for parameter in command.get_params(context):
        # A parameter describes itself the same way in every version of Typer, unlike its type and default.
        if record := parameter.get_help_record(context):
            names, meaning = record
            yield f"| `{_cell(names, code=True)}` | {_cell(meaning)} |"


def _paragraphs(text: str | None) -> str:
    return inspect.cleandoc(text or "").replace("\b\n", "")


def _cell(text: str, code: bool = False) -> str:
    """Text that cannot break a table or be taken for HTML or a link."""
    text = " ".join(text.split()).replace("|", "\\|")
    return text if code else text.replace("<", "&lt;").replace("[", "\\[")


def model_names() -> list[str]:
    """Names of the models, in the order of the registry."""
    from crowdrank.models import REGISTRY

    return list(REGISTRY)


def compact_page() -> str:
    """The whole public API on one page: a signature and a sentence per name, and every command with its options."""
    lines = [
        "# Compact reference",
        "",
        "For language models and quick look-ups: everything public in one place, without explanations.",
        "",
        "```text",
        "import crowdrank as cr",
        "",
    ]
    for name in crowdrank.__all__:
        thing = getattr(crowdrank, name)
        if inspect.ismodule(thing):
            lines.append(f"cr.{name}: {', '.join(public_names(thing))}")
        else:
            lines.append(f"cr.{name}{_signature(thing)}: {summary(thing)}")
    lines += ["```", "", "```text"]
    for name, command in commands().items():
        context = command.context_class(command, info_name=f"crowdrank {name}")
        options = [parameter.opts[0] for parameter in command.get_params(context) if parameter.opts[0].startswith("--")]
        usage = command.collect_usage_pieces(context)[1:]
        lines.append(
            " ".join([f"crowdrank {name}", *usage, *(f"[{option}]" for option in options if option != "--help")])
        )
    return "\n".join([*lines, "```", ""])


def _signature(thing: Any) -> str:
    """Parameters with their defaults, without types."""
    parameters = inspect.signature(thing).parameters.values()
    empty = inspect.Parameter.empty
    return str(inspect.Signature([parameter.replace(annotation=empty) for parameter in parameters]))


def llms_txt(at: str = "docs/") -> str:
    """The index for language models (llmstxt.org): what this is, and which page answers what.

    Parameters
    ----------
    at : str, default "docs/"
        Where the pages are, relative to the file.
    """
    rows = re.findall(r"^\| (.+?) \| (.*?\]\(.+) \|$", (ROOT / "docs" / "index.md").read_text("utf-8"), re.MULTILINE)
    lines = [
        "# crowdrank",
        "",
        "> A Python library, command line and server that ranks items from the judgments of unreliable annotators: "
        "pairwise comparisons, ratings or ordered lists, by people or language models. It estimates scores, their "
        "uncertainty, and how reliable each annotator is.",
        "",
        "Start with `crowdrank rank votes.csv`, or `import crowdrank as cr; ranking = cr.rank(data)` with a file, a "
        "data frame or a dict of columns (annotator, left, right, winner).",
        "",
        "## Documentation",
        "",
    ]
    for task, links in rows:
        found = [(title, link) for title, link in re.findall(r"\[([^\]]+)\]\(([^)]+)\)", links) if "README" not in link]
        lines += [f"- [{title.strip('`')}]({at}{link}): {task}" for title, link in found]
    return "\n".join(lines) + "\n"


def generated_pages() -> dict[str, str]:
    """Every generated page by its path in the documentation."""
    pages = {
        "reference/commands.md": commands_page(),
        "reference/api/index.md": api_index(),
        "reference/compact.md": compact_page(),
    }
    pages |= {f"reference/api/{name}.md": api_page(name, module) for name, module in packages().items()}
    return pages
