"""Parse the documentation pages: code blocks, headings, links and table rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

_FENCE = re.compile(r"^```(.*)$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """A fenced block: its info string, its text, and the line on which the text begins."""

    words: tuple[str, ...]
    text: str
    line: int
    follows: bool
    """Whether only empty lines stand between it and the block before."""

    @property
    def language(self) -> str:
        return self.words[0] if self.words else ""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> Iterator[Block]:
    words, begins, follows, inside = (), 0, False, []
    is_open = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and not is_open:
            is_open, words, begins, inside = True, tuple(fence[1].split()), number + 1, []
        elif fence:
            yield Block(words, "".join(inside), begins, follows)
            is_open, follows = False, True
        elif is_open:
            inside.append(line + "\n")
        elif line.strip():
            follows = False
    assert not is_open, f"{name_of(page)}: the block on line {begins} is never closed."


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page."""
    headings = re.findall(r"^#+ +(.+?) *$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def section(page: Path, heading: str) -> str:
    """From a heading to the next one of its level or above."""
    text = prose(page)
    found = re.search(rf"^(#+) {re.escape(heading)} *$", text, re.MULTILINE)
    assert found, f"{name_of(page)}: no heading {heading!r}."
    rest = text[found.end() :]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def table(text: str) -> list[list[str]]:
    """The cells of every table row, without separator rows."""
    rows = [re.split(r"(?<!\\)\|", line.strip().strip("|")) for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows if not set("".join(row)) <= set("-: ")]
