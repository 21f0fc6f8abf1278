"""`judge`: have language models compare items, and write their votes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any

from crowdrank.errors import CrowdrankError, FormatError, SettingError
from crowdrank.io.source_table import replace_surrogates
from crowdrank.io.writer import DATA_SUFFIXES
from crowdrank.judging.asking import Asker, AskingRules, LLMJudge, ShowProgress, check_at_least
from crowdrank.judging.endpoint import Endpoint, check_url, is_local, read_key
from crowdrank.judging.journal import Budget, Journal, RateLimit
from crowdrank.judging.prompts import (
    DEFAULT_TEMPLATE,
    DEFAULT_TEMPLATE_WITH_QUERY,
    Template,
    answer_schema,
    choose_pairs,
    read_texts,
)
from crowdrank.judging.votes import JudgeRun, JudgingPlan, collect_run, make_judges, request_settings, write_whole


def judge(
    items: Any,
    question: str = "",
    *,
    endpoint: str,
    llm: str | Sequence[str],
    out: str | PathLike[str] | None = None,
    pairs: Any = "all",
    template: str | PathLike[str] | None = None,
    columns: Mapping[str, str | None] | None = None,
    both_orders: bool = False,
    ties: bool = True,
    reasons: bool = False,
    annotator: str | None = None,
    temperature: float | None = 0.0,
    max_tokens: int = 512,
    settings: Mapping[str, Any] | None = None,
    price_in: float | Sequence[float] = 0.0,
    price_out: float | Sequence[float] = 0.0,
    budget: float | None = None,
    rate: float | None = None,
    concurrency: int = 8,
    asks: int = 3,
    retries: int = 5,
    backoff: float = 1.0,
    timeout: float = 120.0,
    key_env: str | None = None,
    journal: str | PathLike[str] | None = None,
    people_out: str | PathLike[str] | None = None,
    seed: int = 0,
    dry_run: bool = False,
    on_progress: ShowProgress | None = None,
) -> JudgeRun:
    """Have language models compare items, two at a time.

    The models are asked at an OpenAI-compatible chat endpoint. Every request is written to a journal before it is
    sent, and every answer when it arrives. The same call after an interruption asks only what is not answered yet.

    Parameters
    ----------
    items : path, data frame or mapping of str to sequence
        One row per item: item, and optionally query and text. Items are compared within their query. Without a column
        of texts, the labels are compared.
    question : str, default ""
        What is asked, such as "Which answer is better?". Needed unless the template has no field ``{question}``.
    endpoint : str
        The base URL, such as ``http://localhost:8000/v1``.
    llm : str or sequence of str
        The model, or several. Each is an annotator in the votes.
    out : path, optional
        The file of votes to write (.csv, .tsv, .jsonl, .parquet).
    pairs : "all", int or path, default "all"
        All pairs of each query, a number of pairs per item (a balanced random design), or a table of pairs with the
        columns left, right and optionally query.
    template : str or path, optional
        The prompt, or a file with it. The fields are ``{question}``, ``{query}``, ``{left}``, ``{right}``,
        ``{left.COLUMN}`` and ``{right.COLUMN}``. How to answer is added at the end.
    columns : mapping of str to str or None, optional
        The column of the roles `item`, `query` and `text`.
    both_orders : bool, default False
        Whether each pair is asked twice, with left and right swapped. Otherwise the order is random.
    ties : bool, default True
        Whether a model may answer that both are equally good.
    reasons : bool, default False
        Whether a model gives a reason before its verdict.
    annotator : str, optional
        The name in the votes; by default the name of the model. Only with a single model.
    temperature : float or None, default 0.0
        The temperature of sampling; None for the default of the endpoint.
    max_tokens : int, default 512
        The most tokens of an answer. Models that think need more.
    settings : mapping, optional
        More parameters of the request, such as ``{"reasoning_effort": "low"}``.
    price_in, price_out : float or sequence of float, default 0.0
        The price of a million tokens of the prompt and of the answer: one for all models, or one per model.
    budget : float, optional
        The most that all requests in the journal may cost, including those of earlier runs. A request is sent only
        if what it may cost at most fits.
    rate : float, optional
        The most requests per minute.
    concurrency : int, default 8
        The most requests in flight.
    asks : int, default 3
        How often a question is asked until its answer can be understood.
    retries : int, default 5
        How often a request is sent again after a timeout, a closed connection, or HTTP 408, 409, 425, 429 or 5xx.
    backoff : float, default 1.0
        The seconds before the first retry. They double with each retry, up to a minute.
    timeout : float, default 120.0
        Seconds to wait for a response.
    key_env : str, optional
        The environment variable that holds the API key. By default CROWDRANK_API_KEY, and for OpenAI's endpoints
        also OPENAI_API_KEY.
    journal : path, optional
        The journal; by default the name of `out` followed by ``.journal``.
    people_out : path, optional
        A table of the models to write: annotator, kind, family, price.
    seed : int, default 0
        Seed of the design, of the order of asking and of the sides.
    dry_run : bool, default False
        Whether to send nothing, and only count and estimate the cost.
    on_progress : callable, optional
        Called with the number of questions done, their total, and a detail.

    Returns
    -------
    JudgeRun
        The votes, and what is left to ask.

    Raises
    ------
    EndpointError
        If the endpoint refuses all requests or does not answer. The answers so far are written.

    Examples
    --------
    >>> run = judge(
    ...     {"item": ["a", "b", "c"], "text": ["one", "two", "three"]},
    ...     "Which is longer?",
    ...     endpoint="http://localhost:8000/v1",
    ...     llm="my-model",
    ...     both_orders=True,
    ...     dry_run=True,
    ... )
    >>> run.n_questions, run.n_left
    (6, 6)
    """
    url = check_url(endpoint)
    judges = make_judges(llm, annotator, price_in, price_out)
    texts = read_texts(items, columns)
    usual = DEFAULT_TEMPLATE_WITH_QUERY if texts.has_queries else DEFAULT_TEMPLATE
    asked = Template(usual if template is None else read_template(template))
    asked.check(question, texts.has_queries, texts.column_names)
    rules = AskingRules(
        ties=ties,
        schema=answer_schema(ties, reasons),
        concurrency=concurrency,
        asks=asks,
        retries=retries,
        backoff=backoff,
    )
    sent = request_settings(temperature, max_tokens, settings)
    _check_tables(out, people_out)
    check_at_least(timeout=(timeout, 0.001))
    check_budget(budget, url, judges)
    plan = JudgingPlan(
        items=texts,
        pairs=choose_pairs(texts, pairs, seed, both_orders),
        judges=judges,
        template=asked,
        question=replace_surrogates(question),
        url=url,
        settings=sent,
        ties=ties,
        reasons=reasons,
        asks=asks,
    )
    path = _journal_path(journal, out, dry_run)
    if dry_run:
        log = Journal(path)
        return collect_run(plan, log, plan.count_answered(log))
    require_httpx()
    client = Endpoint(url, read_key(url, key_env), timeout)
    with Journal(path) as log:
        asker = Asker(client, log, Budget(budget, log.spent), RateLimit(rate), rules, on_progress or silent)
        return _ask_all(asker, plan, log, out, people_out)


def check_budget(budget: float | None, url: str, judges: Sequence[LLMJudge]) -> None:
    """Raise an error for a budget that cannot hold: an endpoint elsewhere without prices."""
    if budget is not None and not is_local(url) and not all(judge.prices for judge in judges):
        raise SettingError("A budget needs prices per million tokens: give price_in= and price_out=.")


def require_httpx() -> None:
    if find_spec("httpx") is None:
        raise SettingError("Asking language models needs an extra: pip install 'crowdrank[judge]'")


def _ask_all(
    asker: Asker,
    plan: JudgingPlan,
    log: Journal,
    out: str | PathLike[str] | None,
    people_out: str | PathLike[str] | None,
) -> JudgeRun:
    """Ask what is left, and write the votes however it ends."""
    before = plan.count_answered(log)
    for one in plan.judges:
        one.largest_cost = log.largest_cost(one.annotator)
    try:
        _run_loop(asker, plan, log)
    finally:
        run = collect_run(plan, log, before, describe_problems(asker))
        write_whole(run.votes, out)
        write_whole(run.people, people_out)
    if asker.interrupted:
        raise KeyboardInterrupt
    if asker.error is not None:
        raise _with_progress(asker.error, run)
    return run


def _run_loop(asker: Asker, plan: JudgingPlan, log: Journal) -> None:
    total = sum(1 for _ in plan.left_to_ask(log))

    run_loop(asker, lambda: asker.run(plan.left_to_ask(log), total))


def run_loop(asker: Asker, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine that asks; in a thread of its own if this thread has a loop already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        try:
            asyncio.run(work())
        except asyncio.CancelledError:
            asker.interrupted = True
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: asyncio.run(work())).result()


def _with_progress(error: CrowdrankError, run: JudgeRun) -> CrowdrankError:
    """The error that stopped a run, with what was kept."""
    kept = f"{run.n_answered:,} of {run.n_questions:,} answers are kept; the same call continues."
    error.problem = f"{error.problem} {kept}"
    return error


def silent(done: int, total: int, detail: str) -> None:
    """No progress is shown."""


def describe_problems(asker: Asker) -> list[str]:
    """Why a run stopped, and what went wrong, in sentences."""
    notes = []
    if asker.out_of_budget:
        notes.append(f"Stopped at the budget: {asker.budget.spent:.4f} of {asker.budget.limit:g} was spent.")
    if asker.n_cut:
        notes.append(f"{asker.n_cut:,} answers were cut at the limit of tokens: give a larger max_tokens=.")
    notes += [f"{count:,} questions failed: {reason}." for reason, count in asker.problems.items()]
    return notes


def _journal_path(journal: str | PathLike[str] | None, out: str | PathLike[str] | None, dry_run: bool) -> Path | None:
    if journal is not None:
        path = Path(journal)
    elif out is not None:
        path = Path(f"{os.fspath(out)}.journal")
    elif dry_run:
        return None
    else:
        raise SettingError("Answers that are paid for must be kept: give a file of votes with out=, or journal=.")
    if not dry_run and out is not None and Path(out).exists() and not path.exists():
        raise SettingError(f"{Path(out)} exists, but its journal {path} does not: choose another file with out=.")
    return path


def read_template(template: str | PathLike[str]) -> str:
    """The text of a template, which is in a file unless it is a string."""
    if isinstance(template, str):
        return template
    path = Path(template)
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path}: the template cannot be read: {error}.") from error


def _check_tables(*paths: str | PathLike[str] | None) -> None:
    """Raise an error if a table cannot be written to a file, before anything is asked."""
    for path in paths:
        if path is not None and Path(path).suffix.lower() not in DATA_SUFFIXES:
            raise FormatError(f"{Path(path).name}: tables are written as {', '.join(DATA_SUFFIXES)}.")
        if path is not None and not Path(path).parent.is_dir():
            raise FormatError(f"{Path(path)}: there is no folder {Path(path).parent} to write into.")
