"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from rich.cells import cell_len
from rich.console import Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from crowdrank.results import Domains
from crowdrank.results.domains import EXPERT_QUALITY, RANDOM_QUALITY

if TYPE_CHECKING:
    from crowdrank.data import Judgments
    from crowdrank.evaluation import Evaluation
    from crowdrank.results import BiasEffect, CovariateEffect, Ranking, Systems


_MAX_SYSTEM_COLUMNS = 8
_MAX_POLICY_COLUMNS = 6
_MAX_CURVE_ROWS = 10
_JUSTIFY: dict[str, JustifyMethod] = {"annotator": "left", "verdict": "left"}
_VERDICTS_SHOWN = ("expert", "reversed", "random")
_MAX_DOMAINS = 10
_MAX_NAMES = 5
_MAX_EXTREMES = 3
_MAX_NAME_LENGTH = 24


def label(name: object) -> Text:
    """Return a name as a cell of one line, which a table that is wider than the terminal cuts with an ellipsis."""
    return Text(" ".join(str(name).split()), no_wrap=True, overflow="ellipsis")


def number_column(table: Table, head: str) -> None:
    """Add a column of numbers, which is never cut in favour of names."""
    table.add_column(head, justify="right", no_wrap=True)


def ranking_tables(
    ranking: Ranking, top: int, level: float = 0.95, uncertainty: bool = True, queries: int | None = None
) -> Iterator[Table]:
    """Yield one table per query with its best items.

    Parameters
    ----------
    ranking : Ranking
        The ranking.
    top : int
        Number of items per query.
    level : float, default 0.95
        Coverage of the rank intervals.
    uncertainty : bool, default True
        Whether to show errors, rank intervals and tie groups.
    queries : int, optional
        Number of queries to show; all by default.
    """
    frame, items = ranking.to_polars(level, uncertainty), ranking.items
    for code, query in enumerate(items.queries[:queries]):
        name = str(query) if items.has_queries else None
        yield _ranking_table(frame[items.of_query(code)], name, top, level)


def _ranking_table(frame: pl.DataFrame, query: str | None, top: int, level: float) -> Table:
    has_uncertainty = "std_error" in frame.columns
    judgment_kind = frame.columns[-1]
    table = Table(title=None if query is None else label(query), title_justify="left", box=None, pad_edge=False)
    number_column(table, "rank")
    table.add_column("item")
    spread = ("± error", f"ranks ({level:.0%})", "group") if has_uncertainty else ()
    for head in ("score", *spread, judgment_kind):
        number_column(table, head)
    digits = _digits(frame["score"].to_list())
    for row in frame.head(top).iter_rows(named=True):
        cells: list[str | Text] = [str(row["rank"]), label(row["item"]), f"{row['score']:.{digits}f}"]
        if has_uncertainty:
            low, high = row["rank_low"], row["rank_high"]
            cells += [f"{row['std_error']:.{digits}f}", f"{low}–{high}" if low < high else str(low), str(row["group"])]
        table.add_row(*cells, f"{row[judgment_kind]:,}")
    if frame.height > top:
        table.add_row("", label(f"… and {frame.height - top:,} more"), style="dim")
    return table


def _digits(scores: list[float]) -> int:
    """Number of decimals that distinguishes the scores."""
    spread = max(scores) - min(scores)
    return 0 if spread > 200 else 1 if spread > 20 else 2 if spread > 0.5 else 3


def evaluation_table(evaluation: Evaluation) -> Table:
    """Return a table of the metrics, with standard errors if there are several queries."""
    several = any(m.queries > 1 for m in evaluation.measures)
    table = Table(box=None, pad_edge=False)
    table.add_column("against gold")
    table.add_column("value", justify="right")
    if several:
        table.add_column("± error", justify="right")
        table.add_column("queries", justify="right")
    names = {"top_k_overlap": f"top {evaluation.k} overlap", "ndcg": f"ndcg@{evaluation.k}"}
    names["precision"] = f"precision@{evaluation.k}"
    for measure in evaluation.measures:
        cells = [names.get(measure.metric, measure.metric.replace("_", " ")), f"{measure.value:.3f}"]
        if several:
            cells += [f"{measure.std_error:.3f}", str(measure.queries)]
        table.add_row(*cells)
    return table


def annotators_table(frame: pl.DataFrame, top: int, wide: bool = False) -> RenderableType:
    """Return a table of the best and the worst annotators, with the reasons of their verdicts.

    Parameters
    ----------
    frame : polars.DataFrame
        Table of `Annotators`, best first, optionally joined with that of `Verdicts`.
    top : int
        Number of best and of worst annotators.
    wide : bool, default False
        Whether to show long names whole.
    """
    has_verdicts = "verdict" in frame.columns
    names = [name for name in frame.columns if f"{name}_low" in frame.columns]
    shown = pl.concat((frame.head(top), frame.tail(top))) if frame.height > 2 * top else frame
    rows = [_annotator_cells(row, names) for row in shown.iter_rows(named=True)]
    heads = ["annotator", *(head for name in names for head in (name.replace("_", " "), "between")), "judgments"]
    heads += ["verdict"] * has_verdicts
    omitted = f"… and {frame.height - 2 * top:,} more" if frame.height > 2 * top else ""
    # One table per row, all of the same widths, so that a reason can use the whole line below its row.
    widths = [max(map(cell_len, (*head.split(), *cells))) for head, *cells in zip(heads, *rows, strict=True)]
    widths[0] = max(widths[0], len(omitted))
    if not wide:
        widths[0] = min(widths[0], 20 if has_verdicts else 40)
    columns = [
        Column(width=w, overflow="fold", vertical="bottom", justify=_JUSTIFY.get(head, "right"))
        for head, w in zip(heads, widths, strict=True)
    ]
    lines: list[RenderableType] = [_line(heads, columns, "bold")]
    for n, row in enumerate(rows):
        if omitted and n == top:
            lines.append(Text(omitted, style="dim"))
        lines.append(_line(row, columns))
        if has_verdicts:
            lines.append(Padding.indent(Text(shown["reason"][n], style="dim"), 2))
    return Group(*lines)


def _annotator_cells(row: dict[str, Any], names: list[str]) -> list[str]:
    cells = [row["annotator"]]
    for name in names:
        cells += [f"{row[name]:.2f}", f"{row[name + '_low']:.2f}–{row[name + '_high']:.2f}"]
    cells.append(f"{row['judgments']:,}")
    return [*cells, row["verdict"]] if "verdict" in row else cells


def _line(cells: list[str], columns: list[Column], style: str = "") -> Table:
    table = Table(*(column.copy() for column in columns), box=None, pad_edge=False, show_header=False)
    table.add_row(label(cells[0]), *map(Text, cells[1:]), style=style)
    return table


def systems_table(systems: Systems) -> Table:
    """Return a table of systems: their mean probability to beat the others and, if they are few, each other system."""
    table = Table(box=None, pad_edge=False)
    table.add_column("system")
    table.add_column("beats the others", justify="right")
    table.add_column(f"between ({systems.level:.0%})", justify="right")
    opponents = range(len(systems)) if 2 < len(systems) <= _MAX_SYSTEM_COLUMNS else range(0)
    for n in opponents:
        table.add_column(label(systems.labels[n]), justify="right", max_width=16)
    for n, (name, mean, low, high) in enumerate(systems.to_polars().iter_rows()):
        cells = [_probability(systems.probabilities[n, other]) for other in opponents]
        table.add_row(label(name), _probability(mean), "" if low != low else f"{low:.2f}–{high:.2f}", *cells)
    return table


def _probability(value: float) -> str:
    return "" if value != value else f"{value:.2f}"


def bias_effects_table(effects: Iterable[BiasEffect]) -> Table:
    """Return a table of how far each feature changes the probability of the answer "left" for equally good items."""
    table = Table(box=None, pad_edge=False)
    table.add_column("feature")
    table.add_column("effect on left", justify="right")
    table.add_column("between (95%)", justify="right")
    for feature, unit, effect, low, high in effects:
        name = feature if unit == 1 else f"{feature} (a difference of {unit:.3g})"
        table.add_row(label(name), f"{effect:+.3f}", f"{low:+.3f} to {high:+.3f}")
    return table


def models_table(rows: Iterable[tuple[str, str, str]]) -> Table:
    """Return a table of models: name, kinds of judgments, description."""
    table = Table(box=None, pad_edge=False)
    table.add_column("model", no_wrap=True)
    table.add_column("reads", no_wrap=True)
    table.add_column("description")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def facts(judgments: Judgments) -> str:
    """Return a phrase with the numbers of judgments, items, queries and annotators."""
    items, kinds = judgments.items, {"Comparisons": "comparison", "Ratings": "grade", "Rankings": "list"}
    phrase = f"{_count(judgments.n_judgments, kinds[type(judgments).__name__])} of {_count(len(items), 'item')}"
    if items.has_queries:
        phrase += f" in {_count(len(items.queries), 'query', 'queries')}"
    if judgments.annotator is not None:
        phrase += f" by {_count(len(judgments.annotators), 'annotator')}"
    return phrase


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def questions_table(frame: pl.DataFrame, top: int = 20) -> Table:
    """Return a table of the first questions, one per row."""
    table = Table(box=None, pad_edge=False)
    for name in frame.columns:
        table.add_column(name, justify="right" if frame.schema[name].is_numeric() else "left")
    for row in frame.head(top).iter_rows(named=True):
        table.add_row(*(f"{v:.2g}" if isinstance(v, float) else label(v) for v in row.values()))
    if frame.height > top:
        table.add_row(label(f"… and {frame.height - top:,} more"), style="dim")
    return table


def curves_tables(curves: pl.DataFrame, areas: pl.DataFrame) -> Iterator[Table]:
    """Yield tables of accuracy by votes (rows) and policy (columns), with the area under each curve."""
    names, votes = areas["policy"].to_list(), curves["votes"].unique().sort().to_list()
    accuracy = {(row[0], row[1]): _with_error(*row[2:4]) for row in curves.iter_rows()}
    area = {row[0]: _with_error(*row[1:3]) for row in areas.iter_rows()}
    for first in range(0, len(names), _MAX_POLICY_COLUMNS):
        columns = names[first : first + _MAX_POLICY_COLUMNS]
        table = Table(box=None, pad_edge=False)
        table.add_column("votes", justify="right")
        for name in columns:
            # The settings go below the name of the policy, one per line.
            table.add_column(Text("\n".join(name.split(":"))), justify="right", overflow="fold", max_width=20)
        for count in _thinned(votes):
            table.add_row(f"{count:,}", *(accuracy[name, count] for name in columns))
        table.add_row()
        table.add_row("area", *(area[name] for name in columns))
        yield table


def plan_table(points: Iterable[tuple[int, float, float]], measure: str, price: float = 1.0) -> Table:
    """Return a table of votes, their cost, and the expected value of a measure of the board with its error."""
    table = Table(box=None, pad_edge=False)
    for head in ("votes", "cost", measure):
        table.add_column(head, justify="right")
    for votes, mean, error in _thinned(list(points)):
        table.add_row(f"{votes:,}", f"{price * votes:,.2f}", _with_error(mean, error))
    return table


def _with_error(value: float, error: float | None) -> str:
    return f"{value:.3f}" if error is None or error != error else f"{value:.3f} ± {error:.3f}"


def _thinned(rows: list[Any]) -> list[Any]:
    """About ten rows, evenly spaced, including the last."""
    return rows[::-1][:: -(-len(rows) // _MAX_CURVE_ROWS)][::-1]


def domains_report(domains: Domains) -> RenderableType:
    """Return a table of the domains with their queries and notable annotators, and the hardest and easiest queries."""
    parts: list[RenderableType] = [Text(_headline(domains)), Padding(_table(domains), (1, 0), expand=False)]
    if len(domains.annotators):
        rules = (
            f"Expert: quality of at least {EXPERT_QUALITY}; random: below {RANDOM_QUALITY} or not clearly above 0.5; "
        )
        parts.append(Text(f"{rules}reversed: clearly below 0.5.", style="dim"))
    if extremes := _extremes(domains):
        parts.append(Text(extremes))
    return Group(*parts)


def _headline(domains: Domains) -> str:
    count, queries = np.count_nonzero(domains.sizes), len(domains.queries)
    kinds = "1 domain" if count == 1 else f"{count:,} domains"
    return f"{kinds} of {queries:,} quer{'y' if queries == 1 else 'ies'}."


def _table(domains: Domains) -> Table:
    """The largest domains first."""
    table = Table(box=None, pad_edge=False)
    table.add_column("domain", justify="right")
    table.add_column("queries", justify="right")
    table.add_column("such as", overflow="fold")
    if len(domains.annotators):
        table.add_column("verdict")
        table.add_column("annotators", overflow="fold")
    used = [n for n in np.argsort(-domains.sizes, kind="stable") if domains.sizes[n]]
    for n in used[:_MAX_DOMAINS]:
        head = [f"{n + 1}", f"{domains.sizes[n]:,}", _few(_members(domains, n))]
        rows = [(word, names) for word in _VERDICTS_SHOWN if (names := _with_verdict(domains, n, word))] or [("", [])]
        for word, names in rows:
            table.add_row(*map(Text, (*head, word, _few(names))[: len(table.columns)]))
            head = ["", "", ""]
    if len(used) > _MAX_DOMAINS:
        table.add_row("", "", Text(f"… and {len(used) - _MAX_DOMAINS:,} more domains"), style="dim")
    return table


def _members(domains: Domains, n: int) -> list[Any]:
    """The queries of a domain, most probable members first."""
    order = np.argsort(-domains.membership[:, n], kind="stable")
    return list(domains.queries[order[domains.domain[order] == n + 1]])


def _with_verdict(domains: Domains, n: int, verdict: str) -> list[Any]:
    """The annotators with this verdict in a domain, largest |τ| first."""
    order = np.argsort(-np.abs(domains.expertise[0][:, n]), kind="stable")
    return list(domains.annotators[order[domains.verdict[order, n] == verdict]])


def _extremes(domains: Domains) -> str:
    frame = domains.queries_to_polars()
    each = min(_MAX_EXTREMES, frame.height // 2)
    if not each:
        return ""
    rows = [f"{short(query)} ({difficulty:.2f})" for query, difficulty in frame.select("query", "difficulty").rows()]
    return f"Hardest: {', '.join(rows[:each])}; easiest: {', '.join(rows[: -each - 1 : -1])}. The mean is 1."


def _few(names: Sequence[Any]) -> str:
    shown = ", ".join(short(name) for name in names[:_MAX_NAMES])
    return shown if len(names) <= _MAX_NAMES else f"{shown}, … and {len(names) - _MAX_NAMES:,} more"


def short(name: Any, length: int = _MAX_NAME_LENGTH) -> str:
    """Return a name of at most `length` characters for a sentence, cut in the middle."""
    text = " ".join(str(name).split())
    if len(text) <= length:
        return text
    kept = length // 2
    return f"{text[:kept]}…{text[1 - kept :]}"  # long names often differ only at the end


# Tables for the terminal that belong to leaderboards.


def covariates_table(effects: Iterable[CovariateEffect], level: float = 0.95) -> Table:
    """Return a table of the coefficients of covariates, which were removed from the scores."""
    table = Table(box=None, pad_edge=False)
    table.add_column("covariate")
    for head in ("coefficient", f"between ({level:.0%})", "typical difference", "wins with it"):
        number_column(table, head)
    for effect in effects:
        digits = max(2, 1 - int(np.floor(np.log10(max(effect.std_error, 1e-12)))))
        coefficient, low, high = (f"{value:+.{digits}f}" for value in (effect.effect, effect.low, effect.high))
        table.add_row(
            label(effect.feature), coefficient, f"{low} to {high}", f"{effect.unit:.3g}", f"{effect.probability:.0%}"
        )
    return table


def rank_changes_table(changes: pl.DataFrame, top: int) -> Table:
    """Return a table of the items whose rank changes by the control of covariates, best first."""
    changed = changes.filter(pl.col("change") != 0)
    table = Table(box=None, pad_edge=False)
    if "query" in changed.columns:
        table.add_column("query")
    table.add_column("item")
    for head in ("rank", "without control", "change"):
        number_column(table, head)
    for row in changed.head(top).iter_rows():
        *names, rank, without, change = row
        table.add_row(*map(label, names), str(rank), str(without), f"{change:+d}")
    if changed.height > top:
        table.add_row(label(f"… and {changed.height - top:,} more"), style="dim")
    return table


def provisional_table(rows: Sequence[Mapping[str, Any]], top: int) -> Table:
    """Return a table of items without rank: item, score, error and number of judgments."""
    table = Table(box=None, pad_edge=False)
    names = {"query", "item"}
    heads = [name for name in rows[0] if name not in names]
    for name in rows[0]:
        if name in names:
            table.add_column(name)
    for head in heads:
        number_column(table, "± error" if head == "std_error" else head)
    spread = max(row["score"] for row in rows) - min(row["score"] for row in rows)
    digits = 0 if spread > 20 or abs(rows[0]["score"]) > 200 else 2
    for row in rows[:top]:
        labels = [label(row[name]) for name in row if name in names]
        numbers = [f"{row[head]:,}" if isinstance(row[head], int) else f"{row[head]:.{digits}f}" for head in heads]
        table.add_row(*labels, *numbers)
    if len(rows) > top:
        table.add_row(label(f"… and {len(rows) - top:,} more"), style="dim")
    return table


def drift_table(changes: pl.DataFrame, periods: Sequence[str], level: float, top: int) -> Table:
    """Return a table of the change of each item from the first period to the last, largest first."""
    table = Table(box=None, pad_edge=False)
    table.add_column("item")
    for head in (periods[0], periods[-1], "change", f"between ({level:.0%})", "p"):
        number_column(table, head)
    spread = max(float(changes["last"].max() - changes["last"].min()), 0.0)  # type: ignore[operator, arg-type]
    digits = 0 if spread > 20 else 2
    for row in changes.head(top).to_dicts():
        first, last, change, low, high = (row[key] for key in ("first", "last", "change", "low", "high"))
        interval = f"{low:+.{digits}f} to {high:+.{digits}f}"
        numbers = (f"{first:.{digits}f}", f"{last:.{digits}f}", f"{change:+.{digits}f}", interval)
        table.add_row(label(row["item"]), *numbers, f"{row['p_value']:.3f}")
    if changes.height > top:
        table.add_row(label(f"… and {changes.height - top:,} more"), style="dim")
    return table


def misfit_table(frame: pl.DataFrame, top: int) -> Table:
    """Return a table of the items or judges with the largest infit."""
    table = Table(box=None, pad_edge=False)
    name, *heads = frame.columns
    table.add_column(name)
    for head in heads:
        number_column(table, head)
    for who, infit, outfit, count in frame.head(top).iter_rows():
        table.add_row(label(who), f"{infit:.2f}", f"{outfit:.2f}", f"{count:,}")
    if frame.height > top:
        table.add_row(label(f"… and {frame.height - top:,} more"), style="dim")
    return table


def differences_table(frame: pl.DataFrame, top: int) -> Table:
    """Return a table of items that differ between categories, largest difference first."""
    table = Table(box=None, pad_edge=False)
    for head in ("category", "item"):
        table.add_column(head)
    for head in ("difference", "± error", "rank", "overall rank"):
        number_column(table, head)
    digits = 0 if frame["std_error"].max() > 1 else 2  # type: ignore[operator]
    for category, item, difference, error, _, rank, overall in frame.head(top).iter_rows():
        numbers = (
            f"{difference:+.{digits}f}",
            f"{error:.{digits}f}",
            str(rank),
            "" if overall is None else str(overall),
        )
        table.add_row(label(category), label(item), *numbers)
    if frame.height > top:
        table.add_row(label(f"… and {frame.height - top:,} more"), style="dim")
    return table


def correlations_table(frame: pl.DataFrame, level: float = 0.95) -> Table:
    """Return a table of the correlations of criteria."""
    table = Table(box=None, pad_edge=False)
    for head in ("criterion", "and"):
        table.add_column(head)
    for head in ("correlation", f"between ({level:.0%})", "items"):
        number_column(table, head)
    for first, second, value, low, high, count in frame.iter_rows():
        known = value == value
        between = f"{low:+.2f} to {high:+.2f}" if known else "unknown"
        table.add_row(label(first), label(second), f"{value:+.2f}" if known else "", between, f"{count:,}")
    return table
