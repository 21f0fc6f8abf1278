"""Tutorials as notebooks: run their cells, store what they print and show, and turn them into Markdown.

    python tools/notebooks.py                 # run every tutorial and store its outputs
    python tools/notebooks.py first-ranking   # one of them

A notebook runs as in Jupyter: one namespace, the last expression of a cell is shown. No kernel is needed.
"""

from __future__ import annotations

import ast
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from pprint import pformat
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "tutorials"


def tutorials() -> list[Path]:
    """The notebooks in the order in which to read them, which their metadata give."""
    return sorted(FOLDER.glob("*.ipynb"), key=lambda path: load(path)["metadata"]["crowdrank"]["order"])


def load(path: Path) -> dict[str, Any]:
    """A notebook as it is stored."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def text_of(lines: str | list[str]) -> str:
    """Text that the format stores whole or line by line."""
    return lines if isinstance(lines, str) else "".join(lines)


def run(notebook: dict[str, Any], name: str) -> list[list[dict[str, Any]]]:
    """Run the code cells in an empty folder, and return the outputs of each."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with _in_an_empty_folder(), warnings.catch_warnings():
        return [
            _run_cell(text_of(cell["source"]), f"{name}, cell {number}", names) for number, cell in enumerate(cells, 1)
        ]


@contextmanager
def _in_an_empty_folder() -> Iterator[None]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def _run_cell(source: str, where: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, shown = StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, where, "exec"), names)
        if last is not None:
            shown = eval(compile(ast.Expression(last.value), where, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        text = printed.getvalue().splitlines(keepends=True)
        outputs.append({"output_type": "stream", "name": "stdout", "text": text})
    if shown is not None and not source.rstrip().endswith(";"):
        outputs.append({"output_type": "display_data", "metadata": {}, "data": _data_of(shown)})
    return outputs


def _data_of(thing: Any) -> dict[str, list[str]]:
    """What Jupyter would show, in the richest form; text as well."""
    if type(thing).__module__.startswith("altair"):
        drawn = StringIO()
        thing.save(drawn, format="svg")
        data = {"text/plain": "<a chart>", "image/svg+xml": drawn.getvalue()}
    elif show := getattr(thing, "_repr_html_", None):
        data = {"text/plain": repr(thing), "text/html": show()}
    else:
        data = {"text/plain": pformat(thing, width=110, sort_dicts=False)}
    return {kind: text.splitlines(keepends=True) for kind, text in data.items()}


def store(path: Path) -> None:
    """Run a notebook and write its outputs into it."""
    notebook = load(path)
    outputs = iter(run(notebook, path.name))
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"cell-{number}"
        cell["source"] = text_of(cell["source"]).splitlines(keepends=True)
        if cell["cell_type"] == "code":
            cell |= {"outputs": next(outputs), "execution_count": None}
    path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def to_markdown(path: Path) -> str:
    """The page of a notebook: text, code, and what the code prints and shows."""
    parts = []
    for cell in load(path)["cells"]:
        source = text_of(cell["source"]).rstrip()
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(f"```python\n{source}\n```")
            parts += [_output(output) for output in cell["outputs"]]
    return "\n\n".join(parts) + "\n"


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{text_of(output['text']).rstrip()}\n```"
    data = {kind: text_of(text) for kind, text in output["data"].items()}
    if svg := data.get("image/svg+xml"):
        return f'<div class="output picture">{_one_block(svg)}</div>'
    if html := data.get("text/html"):
        return f'<div class="output">{_one_block(html)}</div>'
    return f"```text\n{data['text/plain'].rstrip()}\n```"


def _one_block(html: str) -> str:
    """HTML without empty lines, which would end a block of HTML in Markdown."""
    return "\n".join(line for line in html.splitlines() if line.strip())


if __name__ == "__main__":
    chosen = sys.argv[1:] or [path.stem for path in tutorials()]
    for stem in chosen:
        print(stem)
        store(FOLDER / f"{stem}.ipynb")
