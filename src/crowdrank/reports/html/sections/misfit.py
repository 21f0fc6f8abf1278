"""Reliability as psychometricians report it, with the misfit of judges and items."""

from __future__ import annotations

import math

import polars as pl

from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.markup import Html, Section, fold, paragraph, section, table

_MAX_ROWS = 500


def reliability(findings: Findings) -> Section | None:
    found = findings.reliability
    if found is None:
        return None
    numbers = (
        (
            "Scale separation reliability",
            found.scale_separation,
            "share of the variance of the scores that is not error",
        ),
        ("Split-half reliability", found.split_half, "correlation of the scores of two halves, stepped up"),
        ("Krippendorff’s α", found.alpha, "agreement of answers to the same pair beyond chance"),
    )
    rows = [(name, "unknown" if math.isnan(value) else f"{value:.2f}", meaning) for name, value, meaning in numbers]
    shown = table(("", "value", "meaning"), rows, caption="Reliability; 1 is perfect, 0 is chance", numbers=(1,))
    note = "Infit and outfit are mean squared residuals: 1 is expected, larger values are misfit."
    return section(
        "reliability",
        "Reliability",
        shown,
        paragraph(note),
        _misfits(found.judges, "Judges"),
        _misfits(found.items, "Items"),
    )


def _misfits(frame: pl.DataFrame, title: str) -> Html:
    if not frame.height:
        return Html("")
    rows = [
        (name, f"{infit:.2f}", f"{outfit:.2f}", f"{count:,}")
        for name, infit, outfit, count in frame.head(_MAX_ROWS).iter_rows()
    ]
    shown = table(frame.columns, rows, caption=f"Misfit of {title.lower()}", numbers=(1, 2, 3))
    return fold(f"{title}, largest infit first", shown)
