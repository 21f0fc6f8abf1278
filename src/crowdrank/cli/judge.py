"""crowdrank judge: have language models compare items, and write their votes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli import options
from crowdrank.cli.options import INPUT, MODEL, OUTPUT, parse_columns, parse_pairs
from crowdrank.cli.output import check_table, page, print_json, print_written, progress_bar, require_extra, with_flags
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.judging import JudgeRun

_QUESTIONS, _LIMITS = "Questions", "Limits"


def judge(
    items: Annotated[Path, typer.Argument(help="Items: item, and optionally query, text and other columns.")],
    endpoint: Annotated[
        str, typer.Option(metavar="URL", help="OpenAI-compatible endpoint, e.g. http://localhost:8000/v1.")
    ],
    llm: Annotated[list[str], typer.Option(metavar="MODEL", help="Model to ask. Repeatable.")],
    question: Annotated[
        str | None, typer.Option(help='What is asked, e.g. "Which answer is better?".', rich_help_panel=_QUESTIONS)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Votes to write (.csv, .tsv, .jsonl, .parquet).", rich_help_panel=OUTPUT)
    ] = None,
    pairs: Annotated[
        str,
        typer.Option(
            metavar="all|N|FILE",
            help="All pairs of each query, N pairs per item, or a file of pairs: left, right and query.",
            rich_help_panel=_QUESTIONS,
        ),
    ] = "all",
    template: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Prompt with the fields {question}, {query}, {left}, {right}, {left.COLUMN}, {right.COLUMN}.",
            rich_help_panel=_QUESTIONS,
        ),
    ] = None,
    both_orders: Annotated[
        bool,
        typer.Option("--both-orders", help="Ask each pair twice, with sides swapped.", rich_help_panel=_QUESTIONS),
    ] = False,
    ties: Annotated[
        bool, typer.Option("--ties/--no-ties", help="Whether a tie is an answer.", rich_help_panel=_QUESTIONS)
    ] = True,
    reasons: Annotated[
        bool, typer.Option("--reasons", help="Ask for a reason before the verdict.", rich_help_panel=_QUESTIONS)
    ] = False,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="ROLE=COLUMN",
            help="Column of a role of the items: item, query or text. Repeatable; ROLE= if there is none.",
            rich_help_panel=INPUT,
        ),
    ] = None,
    query: options.Query = None,
    annotator: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name in the votes. Default: the model.", rich_help_panel=_QUESTIONS),
    ] = None,
    temperature: Annotated[
        float, typer.Option(help="Temperature; negative for the default of the endpoint.", rich_help_panel=MODEL)
    ] = 0.0,
    max_tokens: Annotated[
        int, typer.Option(help="Most tokens of an answer. Models that think need more.", min=1, rich_help_panel=MODEL)
    ] = 512,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="More parameters of a request, e.g. reasoning_effort=low. Repeatable.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Environment variable with the API key. Default: CROWDRANK_API_KEY.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    price_in: Annotated[
        list[float] | None,
        typer.Option(help="Price of a million tokens of prompts. Repeatable, per model.", rich_help_panel=_LIMITS),
    ] = None,
    price_out: Annotated[
        list[float] | None,
        typer.Option(help="Price of a million tokens of answers. Repeatable, per model.", rich_help_panel=_LIMITS),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="Most money to spend, with earlier runs of this journal.", rich_help_panel=_LIMITS),
    ] = None,
    rate: Annotated[float | None, typer.Option(help="Most requests per minute.", rich_help_panel=_LIMITS)] = None,
    concurrency: Annotated[int, typer.Option(help="Most requests in flight.", min=1, rich_help_panel=_LIMITS)] = 8,
    asks: Annotated[
        int,
        typer.Option(
            help="How often a question is asked until its answer is understood.", min=1, rich_help_panel=_LIMITS
        ),
    ] = 3,
    retries: Annotated[
        int, typer.Option(help="How often a request is sent again after an error.", min=0, rich_help_panel=_LIMITS)
    ] = 5,
    backoff: Annotated[
        float,
        typer.Option(help="Seconds before the first retry; they double each time.", min=0, rich_help_panel=_LIMITS),
    ] = 1.0,
    timeout: Annotated[
        float, typer.Option(help="Seconds after which a request is given up.", rich_help_panel=_LIMITS)
    ] = 120.0,
    seed: Annotated[
        int, typer.Option(help="Seed of the pairs, their order and their sides.", min=0, rich_help_panel=_QUESTIONS)
    ] = 0,
    journal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Journal of requests and answers. Default: OUT.journal.", rich_help_panel=OUTPUT
        ),
    ] = None,
    people_out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Table of the models to write: annotator, kind, family, price.", rich_help_panel=OUTPUT
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Send nothing: show the first prompt and the cost.", rich_help_panel=_LIMITS),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Have language models compare items, and write their votes."""
    require_extra("httpx", extra="judge")
    check_table(out)
    check_table(people_out)
    from crowdrank import judging

    with progress_bar("Asking") as show:
        run = judging.judge(
            items,
            question or "",
            endpoint=endpoint,
            llm=llm,
            out=out,
            pairs=_pairs(pairs),
            template=template,
            columns=parse_columns(columns, query),
            both_orders=both_orders,
            ties=ties,
            reasons=reasons,
            annotator=annotator,
            temperature=None if temperature < 0 else temperature,
            max_tokens=max_tokens,
            settings=_parse_settings(settings),
            price_in=price_in or 0.0,
            price_out=price_out or 0.0,
            budget=budget,
            rate=rate,
            concurrency=concurrency,
            asks=asks,
            retries=retries,
            backoff=backoff,
            timeout=timeout,
            key_env=key_env,
            journal=journal,
            people_out=people_out,
            seed=seed,
            dry_run=dry_run,
            on_progress=show,
        )
    if as_json:
        print_json(_as_dict(run))
    elif dry_run:
        _show_estimate(run, budget)
    else:
        _show(run, [out, people_out])


def _pairs(text: str) -> Any:
    """`all`, a number of pairs per item, or a file."""
    if text.strip().isdigit():
        return int(text)
    return text if text == "all" else Path(text)


def _parse_settings(words: options.Words) -> dict[str, Any]:
    """`--set name=value`; a value that is JSON is sent as such, and anything else as text."""
    found: dict[str, Any] = {}
    for name, value in parse_pairs(words, "--set", "reasoning_effort=low"):
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _show_estimate(run: JudgeRun, budget: float | None) -> None:
    screen = page()
    screen.print("The first prompt:\n")
    screen.print("\n".join(f"    {line}" for line in run.prompt.splitlines()), soft_wrap=True)
    screen.print()
    screen.print(_counts(run))
    if run.most_cost:
        screen.print(f"Cost of the rest: about {_money(run.expected_cost)}, at most {_money(run.most_cost)} per ask.")
        if budget is not None and run.spent + run.expected_cost > budget:
            screen.print(f"That is more than the budget: {_money(budget)}, of which {_money(run.spent)} is spent.")
    else:
        screen.print("No prices were given, so the cost is unknown.")
    screen.print("Nothing was sent.")


def _show(run: JudgeRun, paths: list[Path | None]) -> None:
    if not len(run.votes):
        raise SettingError(" ".join(["No question was answered.", *run.notes]))
    screen = page()
    screen.print(_counts(run))
    if run.spent:
        screen.print(f"Spent so far: {_money(run.spent)}.")
    for note in run.notes:
        screen.print(with_flags(note), style="yellow")
    print_written(paths)


def _counts(run: JudgeRun) -> str:
    earlier = f" ({run.n_from_journal:,} of them before)" if run.n_from_journal else ""
    return f"{run.n_questions:,} questions: {run.n_answered:,} answered{earlier}, {run.n_left:,} left to ask."


def _money(amount: float) -> str:
    return f"{amount:,.2f}" if amount >= 1 or not amount else f"{amount:.4g}"


def _as_dict(run: JudgeRun) -> dict[str, Any]:
    return {
        "questions": run.n_questions,
        "answered": run.n_answered,
        "from_journal": run.n_from_journal,
        "no_answer": run.n_no_answer,
        "left": run.n_left,
        "spent": run.spent,
        "expected_cost": run.expected_cost,
        "most_cost": run.most_cost,
        "people": run.people.to_dicts(),
        "notes": [with_flags(note) for note in run.notes],
    }
