"""Every link in the README and the docs has a target."""

import pytest

from tests.docs.pages import DOCS, PAGES, anchors, links, name_of


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    dead = [link for link in links(page) if not link.startswith("https://") and not leads_somewhere(page, link)]
    assert not dead


def leads_somewhere(page, link):
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


def test_a_dead_link_is_noticed():
    assert not leads_somewhere(DOCS / "index.md", "nowhere.md")
    assert not leads_somewhere(DOCS / "index.md", "concepts.md#nothing")
    assert leads_somewhere(DOCS / "index.md", "concepts.md#tie-groups")


def test_every_page_can_be_reached_from_the_index():
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        targets = {(page.parent / link.partition("#")[0]).resolve() for link in links(page)}
        waiting += [t for t in targets - reached if t.suffix == ".md" and t.is_relative_to(DOCS) and t.exists()]
    assert {name_of(page) for page in DOCS.rglob("*.md")} == {name_of(page) for page in reached}
