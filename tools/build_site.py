"""Build the documentation site into site/VERSION/ and check it. Nothing is fetched.

    python tools/build_site.py                  # build strictly, then check
    python tools/build_site.py --version dev    # into site/dev/ instead of the folder of this version
    python tools/build_site.py --serve          # build again on every change, at http://127.0.0.1:8000

To publish several versions, keep the folders of the earlier ones in site/. site/versions.json lists all of them for the
version menu of the pages, and the pages in site/latest/ lead to the newest release.

The checks: no page loads anything from another host, and every link within the site has a target.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from packaging.version import InvalidVersion, Version

import crowdrank

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "site"
LATEST = "latest"
_LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src"}
_LOADING_LINKS = {
    "stylesheet",
    "icon",
    "preload",
    "modulepreload",
    "preconnect",
    "dns-prefetch",
    "prefetch",
    "manifest",
}
_IN_CSS = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


class PageParser(HTMLParser):
    """What a page loads, what it links to, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag in _LOADING and found.get(_LOADING[tag]):
            self.loads.append(found[_LOADING[tag]])
        if tag == "link" and _LOADING_LINKS & set(found.get("rel", "").split()):
            self.loads.append(found["href"])
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        self.loads += _IN_CSS.findall(found.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "style":
            self.loads += _IN_CSS.findall(data)


def parse(page: Path) -> PageParser:
    """Parse one page."""
    parser = PageParser()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser


def outside_loads(folder: Path) -> list[str]:
    """What pages and style sheets load from another host, each as "page: address"."""
    found = []
    for page in sorted(folder.rglob("*.html")):
        found += [f"{page.relative_to(folder)}: {load}" for load in parse(page).loads if urlsplit(load).netloc]
    for sheet in sorted(folder.rglob("*.css")):
        loads = _IN_CSS.findall(sheet.read_text(encoding="utf-8"))
        found += [f"{sheet.relative_to(folder)}: {load}" for load in loads]
    return found


def dead_links(folder: Path) -> list[str]:
    """Links and loads within the site that lead nowhere, each as "page: address"."""
    pages = {page: parse(page) for page in sorted(folder.rglob("*.html"))}
    # 404.html is served at any depth, so its addresses are absolute.
    checked = {page: parsed for page, parsed in pages.items() if page.name != "404.html"}
    return [
        f"{page.relative_to(folder)}: {link}"
        for page, parsed in checked.items()
        for link in [*parsed.links, *parsed.loads]
        if not _leads_somewhere(page, link, pages)
    ]


def _leads_somewhere(page: Path, link: str, pages: dict[Path, PageParser]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = Path(os.path.normpath(page.parent / unquote(parts.path))) if parts.path else page
    if target.is_dir():
        target = target / "index.html"
    if not parts.fragment or target.suffix != ".html":
        return target.exists()
    anchor = unquote(parts.fragment)
    return target in pages and (anchor in pages[target].anchors or anchor == "__top" or anchor.startswith("__"))


def build(site: Path = SITE, version: str = crowdrank.__version__) -> Path:
    """Build the site strictly into the folder of a version, and list the versions."""
    folder = site / version
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder.resolve())]
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    list_versions(site)
    return folder


def list_versions(site: Path) -> None:
    """Write versions.json, the pages of `latest`, which lead to the newest release, and a start page."""
    names = [path.name for path in site.iterdir() if path.name != LATEST and (path / "index.html").is_file()]
    names.sort(key=_rank, reverse=True)
    versions = [{"version": name, "title": name, "aliases": [LATEST] if name == names[0] else []} for name in names]
    (site / "versions.json").write_text(json.dumps(versions, indent=1) + "\n", encoding="utf-8")
    shutil.rmtree(site / LATEST, ignore_errors=True)
    for page in sorted((site / names[0]).rglob("*.html")):
        path = page.relative_to(site / names[0])
        up = "../" * len(path.parts)
        _redirect(site / LATEST / path, f"{up}{names[0]}/{path.as_posix().removesuffix('index.html')}")
    _redirect(site / "index.html", f"{names[0]}/")


def _rank(name: str) -> tuple[int, Version]:
    """Sort key: names such as dev come before pre-releases, and these before releases."""
    try:
        version = Version(name)
    except InvalidVersion:
        return 0, Version("0")
    return 1 if version.is_prerelease else 2, version


def _redirect(page: Path, address: str) -> None:
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>crowdrank</title>'
        f'<script>location.replace("{address}" + location.search + location.hash)</script>'
        f'<noscript><meta http-equiv="refresh" content="0; url={address}"></noscript>'
        f'<a href="{address}">crowdrank</a></html>\n',
        encoding="utf-8",
    )


def main() -> int:
    """Build and check, or serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help="serve the site while it is being edited")
    parser.add_argument("--version", default=crowdrank.__version__, help="folder of this build in the site")
    parser.add_argument("--site", type=Path, default=SITE, help="folder of the built versions")
    chosen = parser.parse_args()
    if chosen.serve:
        environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
        return subprocess.call([sys.executable, "-m", "mkdocs", "serve"], cwd=ROOT, env=environment)
    folder = build(chosen.site, chosen.version)
    complaints = [f"loads from another host: {found}" for found in outside_loads(folder)]
    complaints += [f"dead link: {found}" for found in dead_links(folder)]
    print("\n".join(complaints) or f"Built and checked: {folder / 'index.html'}")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
