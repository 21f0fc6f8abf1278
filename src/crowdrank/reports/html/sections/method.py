"""How it was computed, and how to get the same again."""

from __future__ import annotations

from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import Html, fold, join, paragraph, table, tag
from crowdrank.reports.html.sections.section import Section, section


def method(findings: Findings) -> Section:
    ranking = findings.ranking
    said = [f"The order is by the model {ranking.model}.", _about(findings), findings.why]
    if findings.rule:
        said.append(f"The judgments were made fit for it: {findings.rule}.")
    said.append(_convergence(findings))
    if findings.has_uncertainty:
        said.append(f"How sure it is was found by {ranking.uncertainty.method}.")
    settings = [(name, repr(value)) for name, value in ranking.settings.items()]
    return section(
        "method", "How it was computed", paragraph(*said), *_again(findings),
        fold("All settings", table(("setting", "value"), settings, caption=f"Settings of {ranking.model}")),
        _found(findings), paragraph(findings.source, class_="faint"),
    )  # fmt: skip


def _about(findings: Findings) -> str:
    """The first line of what the model says of itself."""
    written = (type(findings.model).__doc__ or "").strip() if findings.model is not None else ""
    first = written.splitlines()[0] if written else ""
    return f"“{first}”" if first else ""


def _convergence(findings: Findings) -> str:
    found = findings.ranking.convergence
    if not found.converged:
        return f"It stopped short after {found.steps:,} steps, {found.distance:.1e} {found.unit}: {found.remedy}."
    return f"It converged in {found.steps:,} steps." if found.steps else ""


def _again(findings: Findings) -> list[Html]:
    """The same judgments, settings and seed give the same answer."""
    return [
        join(tag("h3", f"The same again, {how}"), tag("pre", tag("code", text)))
        for how, text in findings.repeat.items()
    ]


def _found(findings: Findings) -> Html:
    ranking = findings.ranking
    rows = [(name, f"{value:.6g}") for name, value in ranking.parameters.items()]
    if ranking.log_likelihood is not None:
        rows.append(("log-likelihood", f"{ranking.log_likelihood:,.3f}"))
    if not rows:
        return Html("")
    return fold(
        "What was estimated beside the scores", table(("what", "value"), rows, caption="Estimates", numbers=(1,))
    )
