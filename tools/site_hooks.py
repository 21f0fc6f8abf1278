"""Hooks of MkDocs: generated pages, tutorials from notebooks, files outside docs/ with links to them, the navigation.

The pages are written to be read in the repository as well, so their links lead to files: to notebooks, and out of
docs/. The site has a page for each.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import notebooks  # noqa: E402
import reference_pages  # noqa: E402

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_COPIED = (".md", ".svg", ".png", ".csv", ".json", ".jsonl")
_OUTSIDE = "repository"
"""Folder of the site for files from outside docs/."""
_NOT_SEARCHED = (f"{_OUTSIDE}/papers/", f"{_OUTSIDE}/benchmarks/")
"""Tables of results, which would come before the guides: they repeat the words that people search for."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add to the navigation what is known from the code and the folders: models, packages, tutorials, new guides."""
    parts: dict[str, list[Any]] = {}
    for entry in config.nav:
        parts.update(entry)
    parts["Tutorials"] += [f"tutorials/{path.stem}.md" for path in notebooks.tutorials()]
    parts["Reference"] += [
        {"Commands": "reference/commands.md"},
        {"Compact reference": "reference/compact.md"},
        {"Models": ["models/index.md", *(f"models/{name}.md" for name in reference_pages.model_names())]},
        {
            "Python API": [
                "reference/api/index.md",
                *(f"reference/api/{name}.md" for name in reference_pages.packages()),
            ]
        },
    ]
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    missing = sorted(written - set(_pages_in(config.nav)))
    if guides := [page for page in missing if page.startswith("guides/")]:
        parts["How-to guides"].append({"More": guides})
    parts["Explanation"] += [page for page in missing if not page.startswith("guides/")]
    return config


def _pages_in(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    inside = entry.values() if isinstance(entry, dict) else entry
    return [page for part in inside for page in _pages_in(part)]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Replace notebooks by pages, and add the generated pages and the files outside docs/."""
    for notebook in notebooks.tutorials():
        files.remove(files.get_file_from_path(f"tutorials/{notebook.name}"))
        _add(files, config, f"tutorials/{notebook.stem}.md", notebooks.to_markdown(notebook))
    for uri, text in reference_pages.generated_pages().items():
        _add(files, config, uri, text)
    _add(files, config, "llms.txt", _as_site_links(reference_pages.llms_txt(at="")))
    waiting = [(path, path.relative_to(ROOT).as_posix()) for path in (ROOT / "docs").rglob("*.md")]
    seen: set[str] = set()
    while waiting:
        path, name = waiting.pop()
        for target in _outside(path.read_text(encoding="utf-8"), name) - seen:
            seen.add(target)
            if target.endswith(".md"):
                waiting.append((ROOT / target, target))
                _add(files, config, f"{_OUTSIDE}/{target}", (ROOT / target).read_text(encoding="utf-8"))
            else:
                file = File.generated(config, f"{_OUTSIDE}/{target}", abs_src_path=str(ROOT / target))
                files.append(file)
    return files


def _add(files: Files, config: MkDocsConfig, uri: str, text: str) -> None:
    files.append(File.generated(config, uri, content=text))


def _as_site_links(text: str) -> str:
    """Links to source files as links to the pages made from them."""
    return re.sub(r"(?:index)?\.(?:md|ipynb)(#[\w-]+)?\)", lambda found: f"/{found[1] or ''})", text).replace(
        "//)", "/)"
    )


def _outside(text: str, name: str) -> set[str]:
    """Files of the repository, not of docs/, that a page links to or shows."""
    prose = _FENCED.sub("", text)
    targets = (_target(found[3], name) for found in _LINK.finditer(prose))
    return {target for target in targets if target and not target.startswith("docs/") and _is_copied(target)}


def _target(link: str, name: str) -> str:
    """The path in the repository that a link leads to, or an empty string if it leaves the repository."""
    path = link.partition("#")[0]
    if not path or "://" in link or link.startswith("mailto:"):
        return ""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))


def _is_copied(target: str) -> bool:
    return target.endswith(_COPIED) and (ROOT / target).is_file()


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to the pages of the site, and drop the words of code blocks that are meant for tests."""
    uri = page.file.src_uri
    if uri == "index.md":  # the only page of its part
        page.meta["hide"] = ["navigation"]
    if uri.startswith(_NOT_SEARCHED):
        page.meta["search"] = {"exclude": True}
    name = uri.removeprefix(f"{_OUTSIDE}/") if uri.startswith(f"{_OUTSIDE}/") else f"docs/{uri}"
    parts = _FENCED.split(markdown)
    for index, part in enumerate(parts):
        if part.startswith("```"):
            parts[index] = re.sub(r"^```(\w+)[^\n]*", r"```\1", part)
        else:
            parts[index] = _LINK.sub(lambda found: _relink(found, name, uri), part)
    return "".join(parts)


def _relink(found: re.Match[str], name: str, uri: str) -> str:
    mark, text, link = found[1], found[2], found[3]
    if not (target := _target(link, name)):
        return f"{mark}[{_LINK.sub(lambda inner: _relink(inner, name, uri), text)}]({link})"
    if target.startswith("docs/"):
        inside = re.sub(r"\.ipynb$", ".md", target.removeprefix("docs/"))
    elif _is_copied(target):
        inside = f"{_OUTSIDE}/{target}"
    else:  # code, or a folder: the site has no page for it
        return text
    anchor = "#" + link.partition("#")[2] if "#" in link else ""
    text = _LINK.sub(lambda inner: _relink(inner, name, uri), text)
    return f"{mark}[{text}]({posixpath.relpath(inside, posixpath.dirname(uri) or '.')}{anchor})"
