"""One part of the page."""

from __future__ import annotations

from dataclasses import dataclass

from crowdrank.reports.html.markup import Html, join


@dataclass(frozen=True)
class Section:
    name: str
    """What a link to it ends in."""
    title: str
    body: Html


def section(name: str, title: str, *body: object) -> Section:
    return Section(name, title, join(*body))
