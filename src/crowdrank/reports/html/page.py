"""The page: one file that needs nothing else, no script and no network."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from os import PathLike
from pathlib import Path

from crowdrank.errors import SettingError
from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import Html, Section, items, join, paragraph, tag
from crowdrank.reports.html.sections.agreement import calibrated, disagreements
from crowdrank.reports.html.sections.annotators import annotators
from crowdrank.reports.html.sections.context import against_gold, domains, dropped, method, systems
from crowdrank.reports.html.sections.coverage import coverage
from crowdrank.reports.html.sections.position_bias import position
from crowdrank.reports.html.sections.ranking import headline, order

_SECTIONS: tuple[Callable[[Findings], Section | None], ...] = (
    order,
    systems,
    against_gold,
    annotators,
    domains,
    disagreements,
    coverage,
    position,
    calibrated,
    dropped,
    method,
)
_ALLOWED = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load for this page: nothing."""


def check_report(path: str | PathLike[str]) -> Path:
    """Refuses what cannot be a report, before anyone waits for it."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise SettingError(f"{target.name}: a report is a page, .html, got {target.suffix!r}.")
    if not target.parent.is_dir():
        raise SettingError(f"{target}: there is no folder {target.parent} to write into.")
    return target


def write_report(findings: Findings, path: str | PathLike[str]) -> None:
    """One self-contained page with all there is to tell."""
    target = check_report(path)
    try:
        target.write_text(report(findings), encoding="utf-8")
    except OSError as error:
        raise SettingError(f"{target}: cannot be written ({error.strerror or error}).") from error


def report(findings: Findings) -> str:
    """The page as text."""
    found = [made for make in _SECTIONS if (made := make(findings)) is not None]
    body = [_header(findings), _contents(found), tag("main", *map(_section, found)), _footer(findings)]
    return "<!doctype html>\n" + tag("html", _head(findings), tag("body", *body), lang="en") + "\n"


def _head(findings: Findings) -> Html:
    style = files("crowdrank.reports.html").joinpath("style.css").read_text(encoding="utf-8")
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("title", f"{findings.title} – crowdrank"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_ALLOWED),
        tag("meta", name="color-scheme", content="light dark"),
        tag("style", Html(style)),
    )


def _header(findings: Findings) -> Html:
    given = findings.judgments
    kind = {"Comparisons": "comparisons", "Ratings": "grades", "Rankings": "lists"}[type(given).__name__]
    facts = [(kind, len(given)), ("items", len(given.items))]
    if given.items.has_queries:
        facts.append(("queries", len(given.items.queries)))
    if given.annotator is not None:
        facts.append(("annotators", len(given.annotators)))
    tiles = tag("dl", *(tag("div", tag("dt", name), tag("dd", f"{number:,}")) for name, number in facts))
    notes = tag("aside", tag("h2", "Mind"), items(findings.notes), aria_label="Notes") if findings.notes else ""
    answer, how_sure = headline(findings)
    said = [paragraph(answer, class_="answer"), paragraph(how_sure, class_="lead")]
    return tag("header", tag("h1", findings.title), *said, tiles, notes)


def _contents(found: list[Section]) -> Html:
    links = (tag("a", section.title, href=f"#{section.name}") for section in found)
    return tag("nav", items(links), aria_label="On this page")


def _section(found: Section) -> Html:
    title = tag("h2", found.title, id=found.name)
    return tag("section", title, found.body, aria_labelledby=found.name)


def _footer(findings: Findings) -> Html:
    return tag("footer", join(tag("p", findings.made or "Made with crowdrank.")))
