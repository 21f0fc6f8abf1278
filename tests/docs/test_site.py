"""The documentation site: strict, complete, without dead links and without requests to other hosts."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tools import build_site, reference_pages

import crowdrank
from tests.browser import browser, open_file  # noqa: F401  (a fixture)

COMMANDS = reference_pages.commands()
needs_site = pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None,
    reason="the extra docs is not installed",
)
DESK, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 844}
MAIN_PAGES = (
    "",
    "tutorials/first-ranking/",
    "explanation/choosing-a-model/",
    "models/crowd-bt/",
    "reference/commands/",
    "reference/api/pipeline/",
    "reference/datasets/",
    "guides/annotators/",
    "gallery/",
)


@pytest.mark.parametrize("name", crowdrank.__all__)
def test_every_public_name_is_in_the_reference(name):
    if inspect.ismodule(getattr(crowdrank, name)):
        assert f"]({name}.md)" in reference_pages.api_index()
    else:
        assert f"[`cr.{name}`]" in reference_pages.api_index()
        home = crowdrank._HOME[name]
        page = reference_pages.api_page(home.rpartition(".")[2], reference_pages.packages()[home.rpartition(".")[2]])
        assert f"{home}.{name}\n" in page


@pytest.mark.parametrize("name", reference_pages.packages())
def test_every_name_of_a_package_is_in_the_reference(name):
    module = reference_pages.packages()[name]
    page = reference_pages.api_page(name, module)
    entries = re.findall(rf"^(?:::: |## `){re.escape(module.__name__)}\.(\w+)", page, re.MULTILINE)
    assert entries == reference_pages.public_names(module)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_in_the_reference(name):
    section = reference_pages.commands_page().split(f"\n## crowdrank {name}\n")[1].split("\n## ")[0]
    parameters = [parameter for parameter in COMMANDS[name].params if not getattr(parameter, "hidden", False)]
    options = [option for parameter in parameters for option in parameter.opts if option.startswith("--")]
    assert options
    assert [option for option in options if not re.search(rf"\| `[^`]*{option}\b", section)] == []


def test_every_public_name_and_command_is_told_to_machines():
    page = reference_pages.compact_page()
    functions = [name for name in crowdrank._HOME if inspect.isroutine(getattr(crowdrank, name))]
    assert all(f"cr.{name}(" in page for name in functions)
    assert all(f"cr.{name}" in page for name in crowdrank.__all__)
    assert all(f"crowdrank {name}" in page for name in COMMANDS)


def test_the_index_for_machines_names_pages_that_exist():
    links = re.findall(r"\]\(([^)#]+)", reference_pages.llms_txt())
    assert len(links) > 30
    assert [link for link in links if not (build_site.ROOT / link).is_file()] == []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build_site.build(tmp_path_factory.mktemp("site"))


@needs_site
@pytest.mark.slow
def test_the_site_builds_strictly_and_stands_on_its_own(site):
    assert build_site.outside_loads(site) == []
    assert build_site.dead_links(site) == []
    reference = (site / "reference" / "api" / "models" / "index.html").read_text(encoding="utf-8")
    assert 'id="crowdrank.models.CrowdBT"' in reference
    assert "prior_scale" in reference
    assert "](guides/annotators/)" in (site / "llms.txt").read_text(encoding="utf-8")
    searched = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "guides/annotators/" in searched
    assert "repository/papers/" not in searched


@needs_site
@pytest.mark.slow
def test_pages_are_accessible_and_request_nothing_from_elsewhere(site, browser):  # noqa: F811
    for path in MAIN_PAGES:
        for look in ({"viewport": DESK, "color_scheme": "light"}, {"viewport": PHONE, "color_scheme": "dark"}):
            opened = open_file(browser, site / path / "index.html", **look)
            assert [request for request in opened.requests if not request.startswith(("file:", "data:"))] == []
            # the theme has regions of the same name, which is a moderate violation
            assert opened.violations(("serious", "critical")) == [], (path, look)
            assert not opened.scrolls_sideways, (path, look)
            opened.page.close()


def test_the_newest_release_is_the_latest(tmp_path):
    for name in ("0.9.0", "0.10.0", "0.11.0rc1", "dev"):
        (tmp_path / name / "guides").mkdir(parents=True)
        for page in ("index.html", "guides/index.html"):
            (tmp_path / name / page).write_text('<h1 id="top">crowdrank</h1>')
    build_site.list_versions(tmp_path)
    build_site.list_versions(tmp_path)  # again, with what it wrote
    versions = json.loads((tmp_path / "versions.json").read_text(encoding="utf-8"))
    assert [one["version"] for one in versions] == ["0.10.0", "0.9.0", "0.11.0rc1", "dev"]
    assert [one["aliases"] for one in versions] == [["latest"], [], [], []]
    assert '"../../0.10.0/guides/"' in (tmp_path / "latest" / "guides" / "index.html").read_text(encoding="utf-8")
    assert build_site.dead_links(tmp_path) == []


@needs_site
@pytest.mark.slow
def test_pages_offer_the_other_versions(site, browser):  # noqa: F811
    older = site.parent / "0.0.1"
    older.mkdir()
    (older / "index.html").write_text("<!doctype html><title>older</title>", encoding="utf-8")
    build_site.list_versions(site.parent)
    handler = partial(_QuietHandler, directory=str(site.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/latest/glossary/#item")
        page.locator(".md-version__link").first.wait_for(state="attached")
        assert page.url.endswith(f"/{crowdrank.__version__}/glossary/#item")
        offered = page.locator(".md-version__link").all_text_contents()
        assert [name.strip() for name in offered] == [crowdrank.__version__, "0.0.1"]
        page.close()
        server.shutdown()


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_what_is_wrong_with_a_site_is_noticed(tmp_path):
    (tmp_path / "a.html").write_text(
        '<link rel="stylesheet" href="//fonts.example/x.css"><script src="https://cdn.example/x.js"></script>'
        '<style>@import "https://cdn.example/y.css";</style><h1 id="here">A</h1>'
        '<a href="b.html">b</a><a href="#here">here</a><a href="#nowhere">no</a><a href="https://example.org">out</a>'
    )
    assert len(build_site.outside_loads(tmp_path)) == 3
    assert build_site.dead_links(tmp_path) == ["a.html: b.html", "a.html: #nowhere"]
