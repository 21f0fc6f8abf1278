"""crowdrank judge: have language models compare items, and write their votes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdrank.cli import judge_options, options
from crowdrank.cli.options import parse_columns, parse_pairs
from crowdrank.cli.output import check_table, page, print_json, print_written, progress_bar, require_extra, with_flags
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.judging import JudgeRun, Participation


def judge(
    endpoint: judge_options.EndpointUrl,
    llm: judge_options.Models,
    items: judge_options.Items = None,
    server: judge_options.Server = False,
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
    """Have language models compare items, and write their votes; or have one take part in a study on a server."""
    require_extra("httpx", extra="judge")
    from crowdrank import judging

    asked: dict[str, Any] = {
        "endpoint": endpoint,
        "question": question or "",
        "template": template,
        "reasons": reasons,
        "temperature": None if temperature < 0 else temperature,
        "max_tokens": max_tokens,
        "settings": _parse_settings(settings),
        "price_in": price_in or 0.0,
        "price_out": price_out or 0.0,
        "budget": budget,
        "rate": rate,
        "asks": asks,
        "retries": retries,
        "backoff": backoff,
        "timeout": timeout,
        "key_env": key_env,
        "journal": journal,
    }
    if server:
        by_the_study = {
            "ITEMS": items,
            "--out": out,
            "--people-out": people_out,
            "--pairs": pairs != "all",
            "--both-orders": both_orders,
            "--no-ties": not ties,
            "--column": columns,
            "--query": query,
            "--annotator": annotator,
            "--dry-run": dry_run,
        }
        _take_part(llm, asked, [name for name, given in by_the_study.items() if given], as_json)
        return
    if items is None:
        raise SettingError("Name a file of items, or take part in a study on a server with --server.")
    check_table(out)
    check_table(people_out)
    with progress_bar("Asking") as show:
        run = judging.judge(
            items,
            llm=llm,
            out=out,
            pairs=_pairs(pairs),
            columns=parse_columns(columns, query),
            both_orders=both_orders,
            ties=ties,
            annotator=annotator,
            concurrency=concurrency,
            people_out=people_out,
            seed=seed,
            dry_run=dry_run,
            on_progress=show,
            **asked,
        )
    if as_json:
        print_json(_as_dict(run))
    elif dry_run:
        _show_estimate(run, budget)
    else:
        _show(run, [out, people_out])


def _take_part(llm: Sequence[str], asked: Mapping[str, Any], refused: Sequence[str], as_json: bool) -> None:
    """Have a model take part in a study on a server."""
    from crowdrank import judging

    if refused:
        raise SettingError(f"With --server, the study decides what is asked: leave out {', '.join(refused)}.")
    prices = {name: asked[name] or [0.0] for name in ("price_in", "price_out")}
    if max(map(len, (llm, *prices.values()))) > 1:
        raise SettingError("With --server, one model takes part, with one price: each has a personal link of its own.")
    with progress_bar("Voting") as show:
        done = judging.take_part(
            llm=llm[0], **{**asked, **{name: price[0] for name, price in prices.items()}}, on_progress=show
        )
    if as_json:
        print_json({**asdict(done), "notes": [with_flags(note) for note in done.notes]})
    else:
        _show_participation(done)


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


_REASONS = {
    "quota": "The quota of this link is reached.",
    "no_pairs_left": "It has answered every pair in both orders.",
    "decided": "The decision of the study is reached.",
    "closed": "The study is closed, or this model was excluded.",
}


def _show_participation(done: Participation) -> None:
    screen = page()
    skipped = f" and skipped {done.n_skipped:,}" if done.n_skipped else ""
    screen.print(f"Sent {done.n_votes:,} votes{skipped}. {_REASONS.get(done.finished, '')}".rstrip())
    if done.spent:
        screen.print(f"Spent so far: {_money(done.spent)}.")
    for note in done.notes:
        screen.print(with_flags(note), style="yellow")


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
