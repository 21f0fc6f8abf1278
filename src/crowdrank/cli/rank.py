"""crowdrank rank: judgments in, a ranking out."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdrank.cli.engine_options import (
    EngineName,
    Memory,
    Scheduler,
    WarmStart,
    check_engine,
    check_spreads,
    read_or_scan,
    running,
    warmed,
)
from crowdrank.cli.item_options import about_items
from crowdrank.cli.options import (
    DomainCount,
    HeatMap,
    MeasureName,
    Missing,
    made_whole,
    named,
    parse_columns,
    parse_settings,
    with_domains,
    with_measure,
)
from crowdrank.cli.report_options import Plot, Report, check_targets, draw, write_page
from crowdrank.cli.side_information import Better, GoldPairs, Known, confirmed, told
from crowdrank.errors import CrowdrankWarning, SettingError

if TYPE_CHECKING:
    from crowdrank.data import Judgments
    from crowdrank.evaluation import Evaluation
    from crowdrank.io import ImportReport
    from crowdrank.results import BiasEffect, Domains, Ranking, Systems

Words = list[str] | None

_MOST_QUERIES_SHOWN = 10


def rank(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="Comparisons, ratings or lists, in any format of `crowdrank formats`.")],
    model: Annotated[str | None, typer.Option(help="Which model (see `crowdrank models`), or auto.")] = None,
    query: Annotated[str | None, typer.Option(help="The column that holds the query, ranked one by one.")] = None,
    columns: Annotated[Words, typer.Option("--map", help="What a column holds: annotator=who, left=first …")] = None,
    kind: Annotated[str | None, typer.Option(help="What the rows are: comparisons, ratings or rankings.")] = None,
    features: Annotated[
        str | None, typer.Option(help="Features that should not matter: position, or columns a,b,c.")
    ] = None,
    items: Annotated[
        Path | None, typer.Option(help="A file about the items: columns for --features, --system.")
    ] = None,
    items_columns: Annotated[
        Words, typer.Option("--items-map", help="Of the file about items: item=…, query=… (query= for none).")
    ] = None,
    system: Annotated[
        str | None, typer.Option(help="Whose work an item is, to compare systems: a column about items, or item.")
    ] = None,
    gold: Annotated[Path | None, typer.Option(help="A file of known truth to grade the ranking by.")] = None,
    gold_columns: Annotated[
        Words, typer.Option("--gold-map", help="Of the gold: item=…, value=…, or rank=… where smaller is better.")
    ] = None,
    gold_pairs: GoldPairs = None,
    known: Known = None,
    better: Better = None,
    domains: DomainCount = None,
    heat_map: HeatMap = None,
    measure: MeasureName = None,
    missing: Missing = None,
    page: Report = None,
    figure: Plot = None,
    out: Annotated[Path | None, typer.Option(help="Write it: .csv .tsv .jsonl .parquet, or .json with all.")] = None,
    top: Annotated[int, typer.Option(help="How many items of each query to show.", min=1)] = 20,
    level: Annotated[float, typer.Option(help="How sure the rank intervals are.")] = 0.95,
    uncertainty: Annotated[str, typer.Option(help="model (its own way), bootstrap, or none.")] = "model",
    settings: Annotated[Words, typer.Option("--set", help="A setting of the model: prior_scale=1, ties=half …")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same answer.")] = None,
    format_name: Annotated[
        str | None, typer.Option("--format", help="Whose format it is, if not to be guessed (see `crowdrank formats`).")
    ] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a text file that is not UTF-8: latin-1 …")] = None,
    engine: EngineName = None,
    scheduler: Scheduler = None,
    memory: Memory = None,
    warm_start: WarmStart = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse the file if any row must be dropped.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")] = False,
) -> None:
    """Rank the items of a file of judgments."""
    from crowdrank import models
    from crowdrank.data import Comparisons
    from crowdrank.models.conversion import as_read_by

    _check_wishes(uncertainty, level, heat_map)
    check_targets(page, figure)
    check_engine(engine, scheduler, memory)
    roles = parse_columns(columns, query)
    wanted = tuple(name.strip() for name in (features or "").split(",") if name.strip())
    about = about_items(file, items, parse_columns(items_columns, None), wanted, system, encoding)
    at_once = {"kind": kind, "features": about.beside_judgments, "format": format_name, "encoding": encoding}
    with warnings.catch_warnings(record=True) as caught, ExitStack() as open_engine:
        warnings.simplefilter("always", CrowdrankWarning)
        judgments, report = read_or_scan(file, engine, memory, roles, strict, at_once)
        name, why = named(model, judgments, about, wanted, seed)
        chosen = models.by_name(name)
        check_spreads(engine, name)
        words = with_measure(name, with_domains(name, judgments, settings, domains, heat_map), measure)
        given = parse_settings(chosen, words, seed)
        if wanted and "features" in chosen.__dataclass_fields__:
            given["features"] = wanted
        fitting = chosen(**given)
        whole, filled = made_whole(judgments, missing)
        readable, rule = as_read_by(fitting, whole)
        if "features" in given and isinstance(readable, Comparisons):
            readable = about.add_to(readable)
        readable = told(fitting, readable, gold_pairs, known, better, query)
        readable = warmed(fitting, readable, warm_start)
        place = open_engine.enter_context(running(engine, scheduler, memory, f"Ranking {len(readable.items):,} items"))
        ranking = fitting.fit(readable, place)
        if uncertainty == "bootstrap":
            ranking = models.with_bootstrap(fitting, readable, ranking)
        measured = uncertainty != "none"
        if measured:
            _ = ranking.uncertainty
        if ranking.has_annotators:
            _ = ranking.annotators
        if ranking.has_domains:
            _ = ranking.domains
        grade = None if gold is None else _grade(ranking, gold, parse_columns(gold_columns, None))
        compared = about.systems(judgments, ranking, level=level, uncertainty=measured, seed=seed or 0)
    rules = "; ".join(filter(None, (filled, rule)))
    said = [str(w.message) for w in caught if isinstance(w.message, CrowdrankWarning)]
    answer = Answer(judgments, report, confirmed(readable), ranking, rules, grade, compared, said, level, measured, why)
    if out is not None:
        _write(answer, out)
    if heat_map is not None:
        _draw(answer, heat_map)
    if figure is not None:
        draw(answer, figure, top)
    if page is not None:
        write_page(answer, page, file=file, model=fitting, readable=readable, context=context)
    if as_json:
        _print_json(answer)
    else:
        _print_tables(answer, top, [path for path in (out, heat_map, figure, page) if path is not None])


def _check_wishes(uncertainty: str, level: float, heat_map: Path | None) -> None:
    """Refuse what cannot be, before anything is read."""
    if uncertainty not in ("model", "bootstrap", "none"):
        raise SettingError(f"--uncertainty must be model, bootstrap or none, got {uncertainty!r}.")
    if not 0 < level < 1:
        raise SettingError(f"--level must lie between 0 and 1, got {level}.")
    if heat_map is not None:
        from crowdrank.reports import check_drawable

        check_drawable(heat_map)


@dataclass(frozen=True)
class Answer:
    """All there is to say about one ranking."""

    judgments: Judgments
    report: ImportReport
    told: str
    ranking: Ranking
    rule: str
    grade: Evaluation | None
    systems: Systems | None
    said: list[str]
    level: float
    measured: bool
    why: str = ""
    """Why this model, where it was chosen by comparing."""

    @property
    def bias_effects(self) -> list[BiasEffect]:
        """What features did to the annotators, where that was to be measured."""
        from crowdrank.results import bias_effects

        return bias_effects(self.ranking) if self.measured else []

    @property
    def domains(self) -> Domains | None:
        """What was learnt of domains, by models that look for them."""
        return None if not self.ranking.has_domains else self.ranking.domains

    @property
    def notes(self) -> list[str]:
        """Warnings, then what the data lack, nothing twice."""
        known = " ".join(self.said)
        fresh = [note for note in self.ranking.notes if note.split(":")[0] not in known]
        return self.said + fresh + self._of_gold()

    def _of_gold(self) -> list[str]:
        if self.grade is None or not self.grade.kendall_correlation < -0.2:
            return []
        return ["The ranking runs against the gold: if smaller is better there, say so with --gold-map rank=COLUMN."]


def _grade(ranking: Ranking, gold: Path, columns: dict[str, str | None]) -> Evaluation:
    from crowdrank.evaluation import Gold, evaluate
    from crowdrank.io import read_gold

    known = read_gold(gold, columns=columns)
    return evaluate(ranking, Gold.of(known.item, known.value, query=known.query))


def _write(answer: Answer, out: Path) -> None:
    from crowdrank.io import write_table

    if out.suffix.lower() == ".json":
        answer.ranking.save(out, uncertainty=answer.measured)
    else:
        write_table(answer.ranking.to_polars(answer.level, answer.measured), out)


def _draw(answer: Answer, heat_map: Path) -> None:
    from crowdrank.reports import draw_heat_map

    draw_heat_map(answer.ranking.domains, heat_map)


def _print_tables(answer: Answer, top: int, written: list[Path]) -> None:
    from rich.console import Console

    from crowdrank.reports import (
        bias_effects_table,
        domains_report,
        evaluation_table,
        facts,
        ranking_tables,
        systems_table,
    )

    console, ranking = Console(highlight=False, markup=False), answer.ranking
    console.print(f"{facts(answer.judgments)}.")
    for line in answer.report.lines():
        console.print(f"  {line}", style="dim")
    if answer.told:
        console.print(answer.told, style="dim")
    console.print(f"Ranked by {ranking.model}{f' ({answer.rule})' if answer.rule else ''}.")
    if answer.why:
        console.print(answer.why)
    console.print()
    for table in ranking_tables(ranking, top, answer.level, answer.measured, _MOST_QUERIES_SHOWN):
        console.print(table)
        console.print()
    if (more := len(ranking.items.queries) - _MOST_QUERIES_SHOWN) > 0:
        left = "1 more query" if more == 1 else f"{more:,} more queries"
        console.print(f"… and {left}: --out writes them all.\n", style="dim")
    if answer.measured:
        console.print(f"Errors by {ranking.uncertainty.method}; items of one group cannot be told apart.", style="dim")
    if answer.systems is not None:
        console.print()
        console.print(systems_table(answer.systems))
        like = "; the intervals are for queries like these" if answer.systems.resampled else ""
        console.print(f"Chance that an item of one beats one of another, mean over queries{like}.", style="dim")
    if found := answer.bias_effects:
        console.print()
        console.print(bias_effects_table(found))
        console.print("How far a feature moves the chance of an average annotator to say left.", style="dim")
    if answer.domains is not None:
        console.print()
        console.print(domains_report(answer.domains))
    if answer.grade is not None:
        console.print()
        console.print(evaluation_table(answer.grade))
    for note in answer.notes:
        console.print(f"Note: {note}", style="yellow")
    for path in written:
        console.print(f"Written to {path}.", soft_wrap=True)


def _print_json(answer: Answer) -> None:
    import json

    ranking, grade, systems, domains = answer.ranking, answer.grade, answer.systems, answer.domains
    content = {
        "model": ranking.model,
        "settings": dict(ranking.settings),
        "chosen_because": answer.why or None,
        "import": answer.report.as_dict(),
        "ranking": ranking.to_polars(answer.level, answer.measured).to_dicts(),
        "parameters": dict(ranking.parameters),
        "log_likelihood": ranking.log_likelihood,
        "convergence": asdict(ranking.convergence),
        "bias_effects": [sway._asdict() for sway in answer.bias_effects],
        "systems": None if systems is None else systems.as_dict(),
        "domains": None if domains is None else domains.as_dict(),
        "gold": None if grade is None else {m.metric: m.value for m in grade.measures},
        "notes": answer.notes,
    }
    typer.echo(json.dumps(content, ensure_ascii=False))
