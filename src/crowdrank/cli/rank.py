"""crowdrank rank: judgments in, a ranking out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli.settings import parse_columns, parse_settings
from crowdrank.errors import CrowdrankWarning, SettingError

if TYPE_CHECKING:
    from crowdrank.evaluation import Evaluation
    from crowdrank.files import ImportReport
    from crowdrank.results import Ranking

Words = list[str] | None


def rank(
    file: Annotated[Path, typer.Argument(help="CSV, TSV, JSONL or Parquet of comparisons, ratings or lists.")],
    model: Annotated[str | None, typer.Option(help="Which model (see `crowdrank models`).")] = None,
    query: Annotated[str | None, typer.Option(help="The column that holds the query, ranked one by one.")] = None,
    columns: Annotated[Words, typer.Option("--map", help="What a column holds: annotator=who, left=first …")] = None,
    features: Annotated[str | None, typer.Option(help="Columns to keep as features of the task: a,b,c.")] = None,
    gold: Annotated[Path | None, typer.Option(help="A file of known truth to grade the ranking by.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write it: .csv .tsv .jsonl .parquet, or .json with all.")] = None,
    top: Annotated[int, typer.Option(help="How many items of each query to show.", min=1)] = 20,
    level: Annotated[float, typer.Option(help="How sure the rank intervals are.")] = 0.95,
    uncertainty: Annotated[str, typer.Option(help="model (its own way), bootstrap, or none.")] = "model",
    settings: Annotated[Words, typer.Option("--set", help="A setting of the model: prior_scale=1, ties=half …")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same answer.")] = None,
    encoding: Annotated[str | None, typer.Option(help="Of a text file that is not UTF-8: latin-1 …")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse the file if any row must be dropped.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of tables.")] = False,
) -> None:
    """Rank the items of a file of judgments."""
    from crowdrank import models
    from crowdrank.files import read_with_report
    from crowdrank.models.reading import as_read_by, default_for

    if uncertainty not in ("model", "bootstrap", "none"):
        raise SettingError(f"--uncertainty must be model, bootstrap or none, got {uncertainty!r}.")
    if not 0 < level < 1:
        raise SettingError(f"--level must lie between 0 and 1, got {level}.")
    roles = parse_columns(columns, query)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CrowdrankWarning)
        wanted = [f.strip() for f in features.split(",") if f.strip()] if features else []
        judgments, report = read_with_report(file, columns=roles, features=wanted, encoding=encoding, strict=strict)
        name = model or default_for(judgments)
        kind = models.by_name(name)
        fitted = kind(**parse_settings(kind, settings, seed))
        readable, rule = as_read_by(fitted, judgments)
        ranking = fitted.fit(readable)
        if uncertainty == "bootstrap":
            ranking = models.with_bootstrap(fitted, readable, ranking)
        grade = _grade(ranking, gold) if gold else None
        said = [str(w.message) for w in caught if isinstance(w.message, CrowdrankWarning)]
        _write(ranking, out, level, uncertainty != "none")
        if as_json:
            _print_json(ranking, report, grade, said, level, uncertainty != "none")
        else:
            _print_tables(file, judgments, report, ranking, rule, grade, said, top, level, uncertainty != "none", out)


def _grade(ranking: Ranking, gold: Path) -> Evaluation:
    from crowdrank.evaluation import Gold, evaluate
    from crowdrank.files import read_gold

    known = read_gold(gold)
    return evaluate(ranking.scores, ranking.items, Gold.of(known.item, known.value, query=known.query))


def _write(ranking: Ranking, out: Path | None, level: float, measured: bool) -> None:
    from crowdrank.files import write_table

    if out is None:
        return
    if out.suffix.lower() == ".json":
        ranking.save(out, uncertainty=measured)
    else:
        write_table(ranking.frame(level, measured), out)


def _print_tables(
    file: Path,
    judgments: Any,
    report: ImportReport,
    ranking: Ranking,
    rule: str,
    grade: Evaluation | None,
    said: list[str],
    top: int,
    level: float,
    measured: bool,
    out: Path | None,
) -> None:
    from rich.console import Console

    from crowdrank.reports import evaluation_table, facts, ranking_tables

    console = Console(highlight=False, markup=False)
    console.print(f"{facts(judgments)}.")
    for line in report.lines():
        console.print(f"  {line}", style="dim")
    console.print(f"Ranked by {ranking.model}{f' ({rule})' if rule else ''}.\n")
    for table in ranking_tables(ranking, top, level, measured):
        console.print(table)
        console.print()
    if measured:
        console.print(f"Errors by {ranking.uncertainty.method}; items of one group cannot be told apart.", style="dim")
    if grade is not None:
        console.print()
        console.print(evaluation_table(grade))
    for line in [*said, *(note for note in ranking.notes if note not in said)]:
        console.print(f"Note: {line}", style="yellow")
    if out is not None:
        console.print(f"Written to {out}.")


def _print_json(
    ranking: Ranking, report: ImportReport, grade: Evaluation | None, said: list[str], level: float, measured: bool
) -> None:
    import json
    from dataclasses import asdict

    answer = {
        "model": ranking.model,
        "settings": dict(ranking.settings),
        "import": report.as_dict(),
        "ranking": ranking.frame(level, measured).to_dicts(),
        "parameters": dict(ranking.parameters),
        "log_likelihood": ranking.log_likelihood,
        "convergence": asdict(ranking.convergence),
        "gold": None if grade is None else {m.metric: m.value for m in grade.measures},
        "notes": [*said, *ranking.notes],
    }
    typer.echo(json.dumps(answer, ensure_ascii=False))
