"""A language model as an annotator of a collection server: it draws questions, is asked, and votes."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from crowdrank.errors import EndpointError, SettingError
from crowdrank.io.source_table import replace_surrogates
from crowdrank.judging.asking import Asker, AskingRules, LLMJudge, Question, ShowProgress, check_at_least, make_question
from crowdrank.judging.endpoint import Endpoint, check_url, read_key
from crowdrank.judging.journal import Budget, Journal, RateLimit, pause
from crowdrank.judging.prompts import (
    DEFAULT_TEMPLATE,
    DEFAULT_TEMPLATE_WITH_QUERY,
    Item,
    Pair,
    Template,
    answer_instruction,
    answer_schema,
)
from crowdrank.judging.run import (
    check_budget,
    describe_problems,
    read_template,
    require_httpx,
    run_loop,
    silent,
)
from crowdrank.judging.votes import make_judges, request_settings

LINK_VARIABLE = "CROWDRANK_LINK"
# How often to look whether a paused study goes on.
_POLL_SECONDS = 5.0
# Questions that the endpoint refuses so often are skipped.
_MAX_REFUSALS = 3
_MAX_CONFLICTS = 3


@dataclass(frozen=True, kw_only=True)
class Participation:
    """What a language model did in a study.

    Parameters
    ----------
    n_votes, n_skipped : int
        The votes and the skipped questions of this run.
    n_from_journal : int
        How many of these votes were answered by an earlier run that could not send them.
    spent : float
        The cost of all requests in the journal.
    finished : str
        Why the study has no more questions: "quota", "no_pairs_left", "decided" or "closed"; "" if it has.
    notes : tuple of str
        Caveats: why the run stopped, and what went wrong.
    """

    n_votes: int
    n_skipped: int
    n_from_journal: int
    spent: float
    finished: str
    notes: tuple[str, ...]


def take_part(
    *,
    endpoint: str,
    llm: str,
    link: str | None = None,
    question: str = "",
    template: str | PathLike[str] | None = None,
    reasons: bool = False,
    temperature: float | None = 0.0,
    max_tokens: int = 512,
    settings: Mapping[str, Any] | None = None,
    price_in: float = 0.0,
    price_out: float = 0.0,
    budget: float | None = None,
    rate: float | None = None,
    asks: int = 3,
    retries: int = 5,
    backoff: float = 1.0,
    timeout: float = 120.0,
    key_env: str | None = None,
    journal: str | PathLike[str] | None = None,
    on_progress: ShowProgress | None = None,
) -> Participation:
    """Have a language model take part in a study on a collection server, until no question is left.

    The model answers one question at a time, as a person would. The server shows it each pair in both orders. Every
    request to the endpoint is in the journal before it is sent, and every answer before it becomes a vote. So the same
    call after an interruption continues, and asks nothing again that was answered.

    Parameters
    ----------
    endpoint : str
        The base URL of the OpenAI-compatible endpoint.
    llm : str
        The model.
    link : str, optional
        The personal link of a language model, which the organiser creates. By default it is read from the environment
        variable CROWDRANK_LINK, because other users of the machine can see command lines.
    question : str, default ""
        What is asked; by default the instructions and the question of the study.
    template : str or path, optional
        The prompt, or a file with it. The fields are ``{question}``, ``{query}``, ``{left}`` and ``{right}``.
    reasons, temperature, max_tokens, settings
        What is requested, as for `judge`.
    price_in, price_out, budget, rate, asks, retries, backoff, timeout, key_env
        Limits, and the API key, as for `judge`.
    journal : path, optional
        The journal; by default the name of the model followed by ``.journal``.
    on_progress : callable, optional
        Called with the number of answers so far, the quota (or the next number, if there is none), and a detail.

    Returns
    -------
    Participation
        How many votes were sent, and why the run ended.

    Raises
    ------
    EndpointError
        If the endpoint or the server fails. All answers are in the journal or are votes already.
    """
    url = check_url(endpoint)
    (judge,) = make_judges(llm, None, price_in, price_out)
    check_budget(budget, url, [judge])
    check_at_least(timeout=(timeout, 0.001))
    rules = AskingRules(ties=True, schema={}, concurrency=1, asks=asks, retries=retries, backoff=backoff)
    sent = request_settings(temperature, max_tokens, settings)
    study = Study(link or os.environ.get(LINK_VARIABLE, ""), timeout, retries, backoff)
    require_httpx()
    path = Path(journal) if journal is not None else Path(f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', llm)}.journal")
    with Journal(path) as log:
        judge.largest_cost = log.largest_cost(judge.annotator)
        client = Endpoint(url, read_key(url, key_env), timeout)
        asker = Asker(client, log, Budget(budget, log.spent), RateLimit(rate), rules, on_progress or silent)
        prompts = Prompts(judge, url, sent, question, None if template is None else read_template(template), reasons)
        annotator = Annotator(asker, study, prompts)
        run_loop(asker, annotator.run)
        if asker.interrupted:
            raise KeyboardInterrupt
        if asker.error is not None:
            raise asker.error
        return annotator.result()


class Study:
    """A study on a collection server, as the holder of a personal link reaches it.

    Parameters
    ----------
    link : str
        The personal link. Its token appears nowhere else.
    timeout : float
        Seconds to wait for a response.
    retries : int
        How often to send a request again if the server does not answer.
    backoff : float
        Seconds before the first retry; they double with each.
    """

    def __init__(self, link: str, timeout: float, retries: int, backoff: float):
        base, found, token = link.strip().rpartition("/join/")
        if not (found and token) or "/" in token:
            raise SettingError(
                f"Set the environment variable {LINK_VARIABLE} to the personal link of a language model, such as "
                "https://example.org/join/TOKEN. The organiser creates it on the page Links."
            )
        self._base, self._token = base, token
        self._timeout, self._retries, self._backoff = timeout, retries, backoff

    async def __aenter__(self) -> Self:
        import httpx

        headers = {"Authorization": f"Bearer {self._token}"}
        self._client = httpx.AsyncClient(headers=headers, timeout=self._timeout)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def question(self, stop: asyncio.Event) -> dict[str, Any]:
        """Return the question that the annotator holds, or the next one."""
        status, found = await self._send("GET", "question", None, stop)
        if status != 200:
            raise EndpointError(f"The collection server answers HTTP {status}: {_message(found)}")
        return found

    async def vote(self, body: Mapping[str, Any], stop: asyncio.Event) -> dict[str, Any] | None:
        """Store a vote and return the next question; None if the server no longer wants this one.

        Sending a vote again is safe: the server stores it once.
        """
        status, found = await self._send("POST", "votes", body, stop)
        if status in (404, 409, 410):
            return None
        if status != 200:
            raise EndpointError(f"The collection server answers HTTP {status}: {_message(found)}")
        following: dict[str, Any] = found["next"]
        return following

    async def _send(
        self, method: str, name: str, body: Mapping[str, Any] | None, stop: asyncio.Event
    ) -> tuple[int, dict[str, Any]]:
        """Send a request until the server answers it, even if the run is stopping: a vote may be waiting."""
        import httpx

        for attempt in range(self._retries + 1):
            try:
                response = await self._client.request(method, f"{self._base}/api/v1/{name}", json=body)
                reason = f"HTTP {response.status_code}"
                if response.status_code != 429 and response.status_code < 500:
                    return response.status_code, response.json()
            except httpx.TransportError as error:
                reason = type(error).__name__
            except ValueError as error:  # not JSON
                raise EndpointError(f"{self._base} is not a collection server: its answer is not JSON.") from error
            if attempt < self._retries:
                await asyncio.sleep(self._backoff * 2.0**attempt)
        raise EndpointError(f"The collection server at {self._base} does not answer ({reason}).")


def _message(found: Any) -> str:
    error = found.get("error", {}) if isinstance(found, dict) else {}
    return str(error.get("message", "no message"))[:300]


@dataclass(frozen=True, eq=False)
class Prompts:
    """How a question of the server becomes a question for a language model.

    Parameters
    ----------
    judge : LLMJudge
        The model.
    url : str
        The endpoint.
    settings : mapping
        Parameters of a request.
    question : str
        What is asked; "" for what the study asks.
    template : str or None
        The prompt; None for the usual one.
    reasons : bool
        Whether a reason is part of the answer.
    """

    judge: LLMJudge
    url: str
    settings: Mapping[str, Any]
    question: str
    template: str | None
    reasons: bool

    def make(self, assignment: Mapping[str, Any], shown: Mapping[str, Any]) -> Question:
        """A question for the model; `shown` is what the server gives language models besides the assignment."""
        query = shown["context"] or assignment["query"]
        texts = [replace_surrogates(str(text)) for text in shown["texts"]]
        left, right = (Item(label="", query=query, text=text, columns={}) for text in texts)
        asked = self.question or "\n\n".join(filter(None, (shown["instructions"].strip(), shown["question"])))
        usual = DEFAULT_TEMPLATE_WITH_QUERY if query else DEFAULT_TEMPLATE
        template = Template(usual if self.template is None else self.template)
        template.check(asked if "question" in template.fields else "", bool(query), ())
        prompt = f"{template.fill(asked, left, right)}\n\n{answer_instruction(shown['ties'], self.reasons)}"
        pair = Pair(query, *(str(assignment[side]["id"]) for side in ("left", "right")))
        form = answer_schema(shown["ties"], self.reasons)
        return make_question(self.judge, pair, prompt, self.url, self.settings, form)


class Annotator:
    """The loop of a language model in a study: draw a question, ask the model, vote.

    Parameters
    ----------
    asker : Asker
        Asks the model.
    study : Study
        The study.
    prompts : Prompts
        Makes the prompts.
    """

    def __init__(self, asker: Asker, study: Study, prompts: Prompts):
        self.asker, self.study, self.prompts = asker, study, prompts
        self.n_votes = self.n_skipped = self.n_from_journal = 0
        self.finished = ""

    def result(self) -> Participation:
        return Participation(
            n_votes=self.n_votes,
            n_skipped=self.n_skipped,
            n_from_journal=self.n_from_journal,
            spent=self.asker.journal.spent,
            finished=self.finished,
            notes=tuple(describe_problems(self.asker)),
        )

    async def run(self) -> None:
        """Answer questions until the study has no more, the budget is used up, or something fails."""
        stop = self.asker.stop
        with self.asker.finishing_on_interrupt():
            async with self.asker.endpoint, self.study:
                try:
                    await self._run(stop)
                except EndpointError as error:
                    self.asker.error = self.asker.error or error

    async def _run(self, stop: asyncio.Event) -> None:
        state, conflicts = await self.study.question(stop), 0
        while not stop.is_set():
            if state.get("finished"):
                self.finished = state["reason"]
                return
            if "assignment" not in state:  # paused
                await pause(_POLL_SECONDS, stop)
                state = await self.study.question(stop)
                continue
            answer = await self._answer(state)
            if answer is None:
                return
            following = await self.study.vote({"token": state["assignment"]["token"], **answer}, stop)
            if following is None:
                conflicts += 1
                if conflicts > _MAX_CONFLICTS:
                    raise EndpointError("The collection server does not accept the votes on its own questions.")
                state = await self.study.question(stop)
                continue
            state, conflicts = following, 0
            self._count(state, answer)

    def _count(self, state: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        skipped = answer["outcome"] == "skip"
        self.n_skipped += skipped
        self.n_votes += not skipped
        progress, spent = state["progress"], self.asker.budget.spent
        total = progress["quota"] or progress["done"] + 1
        self.asker.on_progress(progress["done"], total, f"cost {spent:.4f}" if spent else "")

    async def _answer(self, state: Mapping[str, Any]) -> dict[str, str] | None:
        """The outcome of a question; None if the run stops before the model has answered."""
        assignment, shown = state["assignment"], state.get("model")
        if shown is None:
            raise EndpointError(
                "This link is that of a person. Ask the organiser for a link for a language model: its votes are then "
                "shown apart from those of people."
            )
        if assignment["task"] != "pair" or assignment.get("criteria"):
            raise EndpointError("Language models can compare two items by one question, and this study asks more.")
        if any(assignment[side]["kind"] == "image" for side in ("left", "right")):
            return {"outcome": "skip", "reason": "An item is an image."}
        question, journal = self.prompts.make(assignment, shown), self.asker.journal
        form = answer_schema(shown["ties"], self.prompts.reasons)
        self.asker.rules = replace(self.asker.rules, ties=shown["ties"], schema=form)
        self.n_from_journal += question.key in journal.answers
        for _ in range(_MAX_REFUSALS):
            if question.key in journal.answers or journal.unreadable.get(question.key, 0) >= self.asker.rules.asks:
                break
            await self.asker.ask(question)
            if self.asker.stop.is_set() and question.key not in journal.answers:
                return None
        found = journal.answers.get(question.key)
        if found is None:
            return {"outcome": "skip", "reason": "The model gave no answer that can be understood."}
        return {"outcome": found["winner"]}
