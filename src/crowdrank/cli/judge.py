"""crowdrank judge: have language models compare items, and write their votes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdrank.cli import judge_options, options
from crowdrank.cli.options import parse_columns, parse_pairs
from crowdrank.cli.output import check_table, page, print_json, print_written, progress_bar, require_extra, with_flags
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.judging import JudgeRun


def judge(
    items: judge_options.Items,
    endpoint: judge_options.EndpointUrl,
    llm: judge_options.Models,
    question: judge_options.Question = None,
    out: judge_options.VotesOut = None,
    pairs: judge_options.Pairs = "all",
    template: judge_options.TemplateFile = None,
    both_orders: judge_options.BothOrders = False,
    ties: judge_options.Ties = True,
    reasons: judge_options.Reasons = False,
    columns: judge_options.ItemColumns = None,
    query: options.Query = None,
    annotator: judge_options.AnnotatorName = None,
    temperature: judge_options.Temperature = 0.0,
    max_tokens: judge_options.MaxTokens = 512,
    settings: judge_options.RequestSettings = None,
    key_env: judge_options.KeyVariable = None,
    price_in: judge_options.PriceIn = None,
    price_out: judge_options.PriceOut = None,
    budget: judge_options.Budget = None,
    rate: judge_options.Rate = None,
    concurrency: judge_options.Concurrency = 8,
    asks: judge_options.Asks = 3,
    retries: judge_options.Retries = 5,
    backoff: judge_options.Backoff = 1.0,
    timeout: judge_options.Timeout = 120.0,
    seed: judge_options.Seed = 0,
    journal: judge_options.JournalFile = None,
    people_out: judge_options.PeopleOut = None,
    dry_run: judge_options.DryRun = False,
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
        most = f"at most {_money(run.most_cost)} if each is asked once"
        screen.print(f"Cost of the rest: about {_money(run.expected_cost)}, {most}.")
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
