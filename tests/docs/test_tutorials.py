"""The tutorials run from top to bottom, and show what is stored in them."""

from __future__ import annotations

import json
import re

import pytest
from tools import notebooks

TUTORIALS = notebooks.tutorials()
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?")


def alike(stored: str, shown: str) -> bool:
    """Whether two texts differ in spaces and in the last digits of numbers only: processors round differently."""
    if _NUMBER.sub("#", stored).split() != _NUMBER.sub("#", shown).split():
        return False
    pairs = zip(_NUMBER.findall(stored), _NUMBER.findall(shown), strict=True)
    return all(_close(a, b) for a, b in pairs)


def _close(a: str, b: str) -> bool:
    unit = 10.0 ** -len(a.partition(".")[2])
    first, second = (float(number.replace(",", "")) for number in (a, b))
    return abs(first - second) <= max(2 * unit if "." in a else 0, 0.03 * abs(first))


def texts(output: dict) -> dict[str, str]:
    """What an output says, by kind; pictures are compared by being there."""
    if output["output_type"] == "stream":
        return {"stdout": notebooks.text_of(output["text"])}
    data = {kind: notebooks.text_of(text) for kind, text in output["data"].items()}
    return data | {kind: "picture" for kind in data if kind.startswith("image/")}


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_and_shows_what_is_stored(path):
    notebook = notebooks.load(path)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell, outputs in zip(cells, notebooks.run(notebook, path.name), strict=True):
        stored, shown = ([texts(output) for output in found] for found in (cell["outputs"], outputs))
        assert [list(one) for one in stored] == [list(one) for one in shown]
        if "varies" in cell["metadata"].get("tags", ()):
            continue  # draws that depend on the processor or on time
        for one, other in zip(stored, shown, strict=True):
            assert all(alike(one[kind], other[kind]) for kind in one), f"{path.name}:\n{one}\n{other}"


def test_the_nine_tutorials_are_there_and_listed():
    assert len(TUTORIALS) == 9
    index = (notebooks.FOLDER / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\(([\w-]+)\.ipynb\)", index) == [path.stem for path in TUTORIALS]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_is_a_valid_notebook_with_a_title(path):
    notebook = notebooks.load(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebooks.text_of(notebook["cells"][0]["source"]).startswith("# ")
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(cell["source"] for cell in notebook["cells"])


def test_a_different_output_is_noticed():
    assert alike("score 1.00 and 1,200 votes", "score  1.01 and 1,201 votes")
    assert not alike("score 1.00", "score 1.10")
    assert not alike("rank 4", "rank 5")
    assert not alike("rank 4", "rang 4")


def test_a_notebook_becomes_a_page(tmp_path):
    path = tmp_path / "page.ipynb"
    shown = {"output_type": "display_data", "data": {"text/plain": "2"}}
    code = {"cell_type": "code", "source": ["1 + 1"], "outputs": [shown]}
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "# Title"}, code]}))
    assert notebooks.to_markdown(path) == "# Title\n\n```python\n1 + 1\n```\n\n```text\n2\n```\n"
