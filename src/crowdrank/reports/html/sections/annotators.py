"""The annotators: how good beside how much, and who stands out."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from crowdrank.arrays import FloatArray, IntArray
from crowdrank.evaluation import Verdicts
from crowdrank.reports.html.findings import Estimates, Findings
from crowdrank.reports.html.markup import (
    Html,
    Section,
    between,
    count,
    fold,
    items,
    join,
    paragraph,
    section,
    several,
    table,
    tag,
)
from crowdrank.reports.html.svg import Axis, Point, columns, counts, level, linear, numbers, scatter

_MEANING = {
    "reversed": "answers the wrong way round, surely",
    "random": "cannot be told from a coin, and surely falls short of the typical annotator",
    "one-sided": "chooses a side of the screen far more often than the items account for",
    "hasty": "answers far faster than the others, and not reliably",
    "noisy": "is better than a coin, but clearly worse than the typical annotator",
    "different taste": "belongs to a minority of one mind: not careless, but of another opinion",
}
_WORST_FIRST = tuple(_MEANING)
_MOST_NAMED = 20
_COLUMNS = 20
_MOST_POINTS = 400
_MOST_ROWS = 1_500


def annotators(findings: Findings) -> Section:
    title = "The annotators"
    people = len(findings.judgments.annotators)
    if findings.judgments.annotator is None:
        return section("annotators", title, paragraph("The judgments do not say who judged, so all count alike."))
    estimates = findings.estimates
    if estimates is None:
        said = f"{count(people, 'annotator')} judged. {findings.ranking.model} believes all alike."
        return section("annotators", title, paragraph(said))
    found = findings.verdicts
    return section(
        "annotators",
        title,
        _summary(findings, found),
        _figure(findings, estimates, found),
        Html("") if found is None else _named(found),
        _table(findings, estimates, found),
    )


def _summary(findings: Findings, found: Verdicts | None) -> Html:
    people, believed = len(findings.judgments.annotators), _believed(findings)
    if found is None:
        return paragraph(
            f"{count(people, 'annotator')} judged.",
            believed,
            "Nobody is accused of anything: the tests for that need comparisons that were answered one by one.",
        )
    tally = found.counts
    quiet = [f"{tally[word]:,} {word}" for word in ("reliable", "too few to say") if word in tally]
    odd = sum(tally.get(word, 0) for word in _MEANING)
    told = several([*quiet, *([f"{odd:,} who stand{'s' if odd == 1 else ''} out"] if odd else [])])
    return paragraph(f"Of {count(people, 'annotator')}: {told}.", believed)


def _believed(findings: Findings) -> str:
    if findings.ranking.survey is None:
        return f"{findings.ranking.model} believes all of them alike."
    return f"{findings.ranking.model} gives more weight to those it believes more."


def _figure(findings: Findings, estimates: Estimates, found: Verdicts | None) -> Html:
    volume, value = findings.volume, estimates.value
    shown = _sample(volume, value, found)
    if not len(shown):
        return Html("")
    if volume[shown].min() == volume[shown].max():
        return _histogram(estimates, value[shown], int(volume[shown[0]]))
    x = counts("judgments given", int(volume[shown].min()), int(volume[shown].max()))
    y = _upright(estimates, value[shown])
    points = [
        Point(
            float(volume[k]),
            float(value[k]),
            _looks(found, k),
            _hint(findings, estimates, found, k),
            str(findings.judgments.annotators[k]) if _looks(found, k) == "odd" else "",
        )
        for k in shown
    ]
    whole = count(len(shown), "annotator") if len(shown) == len(value) else f"{len(shown):,} of {len(value):,}"
    alternative = f"{whole}, by judgments given and {estimates.name}; the table below has the numbers."
    coin = level(0.5, y, "a coin") if estimates.name in ("quality", "agreement") else ""
    sampled = "" if len(shown) == np.count_nonzero(~np.isnan(value)) else f" Drawn: {len(shown):,}, evenly sampled."
    legend = " Filled orange: those who stand out. Hollow: too few judgments to say." if found is not None else ""
    caption = tag("p", f"{estimates.name.capitalize()}, {estimates.meaning}.{legend}{sampled}", class_="caption")
    return join(scatter(points, x, y, alternative, coin), caption)


def _histogram(estimates: Estimates, value: FloatArray, volume: int) -> Html:
    """Where all gave as many judgments, there is only one number to draw."""
    low, high = (0.0, 1.0) if value.min() >= 0 and value.max() <= 1 else (float(value.min()), float(value.max()))
    found, edges = np.histogram(value, _COLUMNS, (low, high))
    hints = [
        f"{count(int(n), 'annotator')}: {between(float(a), float(b))}"
        for n, (a, b) in zip(found, pairwise(edges), strict=True)
    ]
    x, y = linear(estimates.name, low, high), numbers("annotators", 0.0, float(found.max()))
    drawn = columns(
        found.tolist(), hints, x, y, f"How many annotators have which {estimates.name}: {'; '.join(hints)}."
    )
    said = f"{estimates.name.capitalize()}, {estimates.meaning}. Each gave {count(volume, 'judgment')}."
    return join(drawn, tag("p", said, class_="caption"))


def _upright(estimates: Estimates, value: FloatArray) -> Axis:
    if value.min() >= 0 and value.max() <= 1:
        return linear(estimates.name, 0.0, 1.0)
    margin = 0.05 * float(value.max() - value.min()) or 1.0
    return linear(estimates.name, float(value.min()) - margin, float(value.max()) + margin)


def _sample(volume: IntArray, value: FloatArray, found: Verdicts | None) -> list[int]:
    """Those with an estimate; of very many, all who stand out and every so manieth of the others."""
    known = np.flatnonzero(~np.isnan(value))
    if len(known) > _MOST_POINTS:
        odd = (
            np.isin(found.verdict[known].astype(str), _WORST_FIRST) if found is not None else np.zeros(len(known), bool)
        )
        plain = known[~odd][np.argsort(volume[known[~odd]], kind="stable")]
        plain = plain[np.linspace(0, len(plain) - 1, min(len(plain), _MOST_POINTS)).astype(int)]
        known = np.concatenate((plain, known[odd][:_MOST_POINTS]))
    return [int(k) for k in known]


def _looks(found: Verdicts | None, k: int) -> str:
    if found is None:
        return "dot"
    return "odd" if found.verdict[k] in _MEANING else "open" if found.verdict[k] == "too few to say" else "dot"


def _hint(findings: Findings, estimates: Estimates, found: Verdicts | None, k: int) -> str:
    verdict = "" if found is None else f", {found.verdict[k]}"
    return (
        f"{findings.judgments.annotators[k]}: {estimates.name} {estimates.value[k]:.2f}, "
        f"{count(int(findings.volume[k]), 'judgment')}{verdict}"
    )


def _named(found: Verdicts) -> Html:
    """Who stands out, by verdict, and why."""
    parts = []
    for word in _WORST_FIRST:
        who = np.flatnonzero(found.verdict == word)
        if not len(who):
            continue
        entries = [join(tag("strong", found.annotators[k]), " ", found.reason[k], ".") for k in who]
        body = items(entries[:_MOST_NAMED], "reasons")
        if len(entries) > _MOST_NAMED:
            rest = entries[_MOST_NAMED : _MOST_NAMED + _MOST_ROWS]
            body = join(body, fold(f"{len(entries) - _MOST_NAMED:,} more", items(rest, "reasons")))
        head = tag("h3", f"{word.capitalize()} ", tag("span", f"{len(who):,}", class_="count"))
        parts.append(join(head, paragraph(f"Each {_MEANING[word]}."), body))
    return tag("div", *parts, class_="named") if parts else Html("")


def _table(findings: Findings, estimates: Estimates, found: Verdicts | None) -> Html:
    value, volume = estimates.value, findings.volume
    best = np.lexsort((-volume, -np.nan_to_num(value, nan=-np.inf)))
    head = ["annotator", estimates.name, *(["between"] if estimates.low is not None else []), "judgments"]
    right = list(range(1, len(head)))
    rows = []
    for k in best[:_MOST_ROWS]:
        cells: list[object] = [findings.judgments.annotators[k], "?" if np.isnan(value[k]) else f"{value[k]:.2f}"]
        if estimates.low is not None and estimates.high is not None:
            cells.append(between(float(estimates.low[k]), float(estimates.high[k])))
        cells.append(f"{volume[k]:,}")
        rows.append([*cells, *([found.verdict[k], found.reason[k]] if found is not None else [])])
    if found is not None:
        head += ["verdict", "why"]
    cut = f" (the first {_MOST_ROWS:,}; crowdrank annotators --out has all)" if len(best) > _MOST_ROWS else ""
    return fold(f"All annotators, best first{cut}", table(head, rows, caption="All annotators", numbers=right))
