"""The page: one file without scripts that needs no network."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from os import PathLike

from crowdrank.errors import SettingError
from crowdrank.reports.figures import check_report
from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import Html, Section, items, join, paragraph, tag
from crowdrank.reports.html.sections.agreement import calibration, disagreement, position
from crowdrank.reports.html.sections.annotator_table import annotators, reliability
from crowdrank.reports.html.sections.context import coverage, domains, gold, import_report, method, systems
from crowdrank.reports.html.sections.ranking import drift, headline, order, overall

_SECTIONS: tuple[Callable[[Findings], Section | None], ...] = (
    overall,
    order,
    drift,
    systems,
    gold,
    annotators,
    reliability,
    domains,
    disagreement,
    coverage,
    position,
    calibration,
    import_report,
    method,
)
_CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The browser may load nothing else for this page."""


def write_report(findings: Findings, path: str | PathLike[str]) -> None:
    """Write the report as one self-contained page.

    Parameters
    ----------
    findings : Findings
        Content of the report.
    path : path
        File to write, .html.
    """
    write_page(report(findings), path)


def write_page(text: str, path: str | PathLike[str]) -> None:
    """Write a page to a file, .html."""
    target = check_report(path)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingError(f"{target}: cannot be written ({error.strerror or error}).") from error


def report(findings: Findings) -> str:
    """Return the report as HTML."""
    sections = [made for make in _SECTIONS if (made := make(findings)) is not None]
    return whole_page(findings.title, _header(findings), sections, _footer(findings))


def whole_page(title: str, header: Html, sections: list[Section], footer: Html) -> str:
    """Return a page with a table of contents; it needs nothing besides itself."""
    body = [header, _contents(sections), tag("main", *map(_section, sections)), footer]
    return "<!doctype html>\n" + tag("html", _head(title), tag("body", *body), lang="en") + "\n"


def _head(title: str) -> Html:
    style = files("crowdrank.reports.html").joinpath("style.css").read_text(encoding="utf-8")
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("title", f"{title} – crowdrank"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_CONTENT_SECURITY_POLICY),
        tag("meta", name="color-scheme", content="light dark"),
        tag("style", Html(style)),
    )


def _header(findings: Findings) -> Html:
    given = findings.judgments
    kind = {"Comparisons": "comparisons", "Ratings": "ratings", "Rankings": "lists"}[type(given).__name__]
    facts = [(kind, len(given)), ("items", len(given.items))]
    if given.items.has_queries:
        facts.append(("queries", len(given.items.queries)))
    if given.annotator is not None:
        facts.append(("annotators", len(given.annotators)))
    tiles = tag("dl", *(tag("div", tag("dt", name), tag("dd", f"{number:,}")) for name, number in facts))
    notes = tag("aside", tag("h2", "Notes"), items(findings.notes), aria_label="Notes") if findings.notes else ""
    answer, certainty = headline(findings)
    lead = [paragraph(answer, class_="answer"), paragraph(certainty, class_="lead")]
    return tag("header", tag("h1", findings.title), *lead, tiles, notes)


def _contents(sections: list[Section]) -> Html:
    links = (tag("a", section.title, href=f"#{section.name}") for section in sections)
    return tag("nav", items(links), aria_label="On this page")


def _section(section: Section) -> Html:
    title = tag("h2", section.title, id=section.name)
    return tag("section", title, section.body, aria_labelledby=section.name)


def _footer(findings: Findings) -> Html:
    return tag("footer", join(tag("p", findings.created or "Made with crowdrank.")))
