"""The annotators: quality and number of judgments, and conspicuous verdicts."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import polars as pl

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.evaluation import Camps, Verdicts
from crowdrank.reports.html.findings import AnnotatorEstimate, Findings
from crowdrank.reports.html.markup import (
    Axis,
    Html,
    Point,
    Section,
    between,
    columns,
    count,
    enumerate_names,
    fold,
    items,
    join,
    level,
    linear,
    numbers,
    paragraph,
    scatter,
    section,
    table,
    tag,
)
from crowdrank.reports.html.markup import counts as count_axis

_MEANING = {
    "reversed": "answers in reverse",
    "random": "cannot be distinguished from random answers and is clearly worse than the typical annotator",
    "one-sided": "chooses one side of the screen far more often than the items explain",
    "hasty": "answers far faster than the others, and not reliably",
    "noisy": "is better than random, but clearly worse than the typical annotator",
    "different taste": "belongs to the smaller of two camps: not careless, but of another opinion",
}
_CONSPICUOUS = tuple(_MEANING)
_MAX_NAMED = 20
_BINS = 20
_MAX_POINTS = 400
_MAX_ROWS = 1_500


def annotators(findings: Findings) -> Section:
    title = "Annotators"
    people = len(findings.judgments.annotators)
    if findings.judgments.annotator is None:
        return section("annotators", title, paragraph("The judgments do not name annotators, so all count the same."))
    estimate = findings.annotator_estimate
    if estimate is None:
        summary = f"{count(people, 'annotator')} judged. {findings.ranking.model} treats all alike."
        return section("annotators", title, paragraph(summary))
    found = findings.verdicts
    return section(
        "annotators",
        title,
        *([] if found is None or found.camps is None else [_camps(found.camps)]),
        _summary(findings, found),
        _figure(findings, estimate, found),
        Html("") if found is None else _named(found),
        _table(findings, estimate, found),
    )


def _summary(findings: Findings, found: Verdicts | None) -> Html:
    people, weighting = len(findings.judgments.annotators), _weighting(findings)
    if found is None:
        return paragraph(
            f"{count(people, 'annotator')} judged.",
            weighting,
            "There are no verdicts: the tests need comparisons that were answered one by one.",
        )
    counts = found.counts
    quiet = [f"{counts[word]:,} {word}" for word in ("reliable", "too few to say") if word in counts]
    odd = sum(counts.get(word, 0) for word in _MEANING)
    listed = enumerate_names([*quiet, *([f"{odd:,} conspicuous"] if odd else [])])
    return paragraph(f"Of {count(people, 'annotator')}: {listed}.", weighting)


def _camps(camps: Camps) -> Html:
    """The two camps of a crowd, and the items on which they differ most."""
    frame = camps.to_polars().head(_MAX_NAMED)
    rows = [
        [row["item"], f"{row['camp_1']:.2f}", f"{row['camp_2']:.2f}", f"{row['difference']:+.2f}"]
        for row in frame.iter_rows(named=True)
    ]
    head = ["item", f"camp of {camps.sizes[0]:,}", f"camp of {camps.sizes[1]:,}", "difference"]
    members = items([join(tag("strong", f"Camp of {len(names):,}: "), ", ".join(names)) for names in camps.members])
    return join(
        paragraph(*camps.describe()),
        fold("What the camps prefer", table(head, rows, caption="Scores by camp", numbers=[1, 2, 3])),
        fold("Members of the camps", members),
    )


def _weighting(findings: Findings) -> str:
    if not findings.ranking.has_annotators:
        return f"{findings.ranking.model} treats all of them alike."
    return f"{findings.ranking.model} gives more weight to more reliable annotators."


def _figure(findings: Findings, estimate: AnnotatorEstimate, found: Verdicts | None) -> Html:
    n_judgments, value = findings.n_judgments, estimate.value
    shown = _sample(n_judgments, value, found)
    if not len(shown):
        return Html("")
    if n_judgments[shown].min() == n_judgments[shown].max():
        return _histogram(estimate, value[shown], int(n_judgments[shown[0]]))
    x = count_axis("judgments", int(n_judgments[shown].min()), int(n_judgments[shown].max()))
    y = _y_axis(estimate, value[shown])
    points = [
        Point(
            float(n_judgments[k]),
            float(value[k]),
            _point_kind(found, k),
            _tooltip(findings, estimate, found, k),
            str(findings.judgments.annotators[k]) if _point_kind(found, k) == "odd" else "",
        )
        for k in shown
    ]
    whole = count(len(shown), "annotator") if len(shown) == len(value) else f"{len(shown):,} of {len(value):,}"
    alternative = f"{whole}, by number of judgments and {estimate.name}; the table below has the numbers."
    chance = level(0.5, y, "random") if estimate.name in ("quality", "agreement") else ""
    sampled = "" if len(shown) == np.count_nonzero(~np.isnan(value)) else f" Shown: {len(shown):,}, evenly sampled."
    legend = " Orange: conspicuous verdicts. Hollow: too few judgments to say." if found is not None else ""
    caption = tag("p", f"{estimate.name.capitalize()}, {estimate.meaning}.{legend}{sampled}", class_="caption")
    return join(scatter(points, x, y, alternative, chance), caption)


def _histogram(estimate: AnnotatorEstimate, value: FloatArray, n_judgments: int) -> Html:
    """Histogram, for annotators who all gave the same number of judgments."""
    low, high = (0.0, 1.0) if value.min() >= 0 and value.max() <= 1 else (float(value.min()), float(value.max()))
    found, edges = np.histogram(value, _BINS, (low, high))
    tooltips = [
        f"{count(int(n), 'annotator')}: {between(float(a), float(b))}"
        for n, (a, b) in zip(found, pairwise(edges), strict=True)
    ]
    x, y = linear(estimate.name, low, high), numbers("annotators", 0.0, float(found.max()))
    drawn = columns(found.tolist(), tooltips, x, y, f"Number of annotators by {estimate.name}: {'; '.join(tooltips)}.")
    caption = f"{estimate.name.capitalize()}, {estimate.meaning}. Each gave {count(n_judgments, 'judgment')}."
    return join(drawn, tag("p", caption, class_="caption"))


def _y_axis(estimate: AnnotatorEstimate, value: FloatArray) -> Axis:
    if value.min() >= 0 and value.max() <= 1:
        return linear(estimate.name, 0.0, 1.0)
    margin = 0.05 * float(value.max() - value.min()) or 1.0
    return linear(estimate.name, float(value.min()) - margin, float(value.max()) + margin)


def _sample(n_judgments: IntArray, value: FloatArray, found: Verdicts | None) -> list[int]:
    """Annotators with an estimate; if there are many, all conspicuous ones and an even sample of the others."""
    known = np.flatnonzero(~np.isnan(value))
    if len(known) > _MAX_POINTS:
        odd = (
            np.isin(found.verdict[known].astype(str), _CONSPICUOUS) if found is not None else np.zeros(len(known), bool)
        )
        plain = known[~odd][np.argsort(n_judgments[known[~odd]], kind="stable")]
        plain = plain[np.linspace(0, len(plain) - 1, min(len(plain), _MAX_POINTS)).astype(int)]
        known = np.concatenate((plain, known[odd][:_MAX_POINTS]))
    return [int(k) for k in known]


def _point_kind(found: Verdicts | None, k: int) -> str:
    if found is None:
        return "dot"
    return "odd" if found.verdict[k] in _MEANING else "open" if found.verdict[k] == "too few to say" else "dot"


def _tooltip(findings: Findings, estimate: AnnotatorEstimate, found: Verdicts | None, k: int) -> str:
    verdict = "" if found is None else f", {found.verdict[k]}"
    return (
        f"{findings.judgments.annotators[k]}: {estimate.name} {estimate.value[k]:.2f}, "
        f"{count(int(findings.n_judgments[k]), 'judgment')}{verdict}"
    )


def _named(found: Verdicts) -> Html:
    """Conspicuous annotators by verdict, with reasons."""
    parts = []
    for word in _CONSPICUOUS:
        who = np.flatnonzero(found.verdict == word)
        if not len(who):
            continue
        entries = [join(tag("strong", found.annotators[k]), " ", found.reason[k], ".") for k in who]
        body = items(entries[:_MAX_NAMED], "reasons")
        if len(entries) > _MAX_NAMED:
            rest = entries[_MAX_NAMED : _MAX_NAMED + _MAX_ROWS]
            body = join(body, fold(f"{len(entries) - _MAX_NAMED:,} more", items(rest, "reasons")))
        head = tag("h3", f"{word.capitalize()} ", tag("span", f"{len(who):,}", class_="count"))
        parts.append(join(head, paragraph(f"Each {_MEANING[word]}."), body))
    return tag("div", *parts, class_="named") if parts else Html("")


def _table(findings: Findings, estimate: AnnotatorEstimate, found: Verdicts | None) -> Html:
    value, n_judgments = estimate.value, findings.n_judgments
    best = np.lexsort((-n_judgments, -np.nan_to_num(value, nan=-np.inf)))
    head = ["annotator", estimate.name, *(["between"] if estimate.low is not None else []), "judgments"]
    right = list(range(1, len(head)))
    rows = []
    for k in best[:_MAX_ROWS]:
        cells: list[object] = [findings.judgments.annotators[k], "?" if np.isnan(value[k]) else f"{value[k]:.2f}"]
        if estimate.low is not None and estimate.high is not None:
            cells.append(between(float(estimate.low[k]), float(estimate.high[k])))
        cells.append(f"{n_judgments[k]:,}")
        rows.append([*cells, *([found.verdict[k], found.reason[k]] if found is not None else [])])
    if found is not None:
        head += ["verdict", "reason"]
    cut = f" (the first {_MAX_ROWS:,}; crowdrank annotators --out has all)" if len(best) > _MAX_ROWS else ""
    return fold(f"All annotators, best first{cut}", table(head, rows, caption="All annotators", numbers=right))


# Reliability as psychometricians report it, with the misfit of judges and items.

_MAX_MISFIT_ROWS = 500


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
        for name, infit, outfit, count in frame.head(_MAX_MISFIT_ROWS).iter_rows()
    ]
    shown = table(frame.columns, rows, caption=f"Misfit of {title.lower()}", numbers=(1, 2, 3))
    return fold(f"{title}, largest infit first", shown)
