"""Options of crowdrank judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crowdrank.cli.options import INPUT, MODEL, OUTPUT

_QUESTIONS, _LIMITS = "Questions", "Limits"

Items = Annotated[
    Path | None, typer.Argument(help="Items: item, and optionally query, text and other columns.", show_default=False)
]
Server = Annotated[
    bool,
    typer.Option(
        "--server",
        help="Take part in a study on a collection server, by the personal link in CROWDRANK_LINK.",
        rich_help_panel=INPUT,
    ),
]
EndpointUrl = Annotated[
    str, typer.Option(metavar="URL", help="OpenAI-compatible endpoint, e.g. http://localhost:8000/v1.")
]
Models = Annotated[list[str], typer.Option(metavar="MODEL", help="Model to ask. Repeatable.")]
Question = Annotated[
    str | None, typer.Option(help='What is asked, e.g. "Which answer is better?".', rich_help_panel=_QUESTIONS)
]
VotesOut = Annotated[
    Path | None, typer.Option(help="Votes to write (.csv, .tsv, .jsonl, .parquet).", rich_help_panel=OUTPUT)
]
Pairs = Annotated[
    str,
    typer.Option(
        metavar="all|N|FILE",
        help="All pairs of each query, N pairs per item, or a file of pairs: left, right and query.",
        rich_help_panel=_QUESTIONS,
    ),
]
TemplateFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Prompt with the fields {question}, {query}, {left}, {right}, {left.COLUMN}, {right.COLUMN}.",
        rich_help_panel=_QUESTIONS,
    ),
]
BothOrders = Annotated[
    bool,
    typer.Option("--both-orders", help="Ask each pair twice, with sides swapped.", rich_help_panel=_QUESTIONS),
]
Ties = Annotated[
    bool, typer.Option("--ties/--no-ties", help="Whether a tie is a valid answer.", rich_help_panel=_QUESTIONS)
]
Reasons = Annotated[
    bool, typer.Option("--reasons", help="Ask for a reason before the verdict.", rich_help_panel=_QUESTIONS)
]
ItemColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=COLUMN",
        help="Column for a role of the items: item, query or text; ROLE= means no column. Repeatable.",
        rich_help_panel=INPUT,
    ),
]
AnnotatorName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Name of the annotator in the votes. Default: the model.", rich_help_panel=_QUESTIONS
    ),
]
Temperature = Annotated[
    float, typer.Option(help="Temperature. If negative, the endpoint's default.", rich_help_panel=MODEL)
]
MaxTokens = Annotated[
    int,
    typer.Option(help="Maximum number of tokens per answer. Reasoning models need more.", min=1, rich_help_panel=MODEL),
]
RequestSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Additional request parameter, e.g. reasoning_effort=low. Repeatable.",
        rich_help_panel=MODEL,
    ),
]
KeyVariable = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Environment variable with the API key. Default: CROWDRANK_API_KEY.",
        rich_help_panel=MODEL,
    ),
]
PriceIn = Annotated[
    list[float] | None,
    typer.Option(help="Price of a million tokens of prompts. Repeatable, per model.", rich_help_panel=_LIMITS),
]
PriceOut = Annotated[
    list[float] | None,
    typer.Option(help="Price of a million tokens of answers. Repeatable, per model.", rich_help_panel=_LIMITS),
]
Budget = Annotated[
    float | None,
    typer.Option(help="Maximum total cost, including earlier runs with this journal.", rich_help_panel=_LIMITS),
]
Rate = Annotated[float | None, typer.Option(help="Maximum number of requests per minute.", rich_help_panel=_LIMITS)]
Concurrency = Annotated[
    int, typer.Option(help="Maximum number of requests at the same time.", min=1, rich_help_panel=_LIMITS)
]
Asks = Annotated[
    int,
    typer.Option(
        help="How often to ask a question before giving up on a valid answer.", min=1, rich_help_panel=_LIMITS
    ),
]
Retries = Annotated[
    int, typer.Option(help="How often to send a request again after an error.", min=0, rich_help_panel=_LIMITS)
]
Backoff = Annotated[
    float,
    typer.Option(help="Seconds before the first retry. They double with each retry.", min=0, rich_help_panel=_LIMITS),
]
Timeout = Annotated[float, typer.Option(help="Seconds to wait for a response.", rich_help_panel=_LIMITS)]
Seed = Annotated[
    int, typer.Option(help="Seed of the pairs, their order and their sides.", min=0, rich_help_panel=_QUESTIONS)
]
JournalFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Journal of requests and answers. Default: OUT.journal.", rich_help_panel=OUTPUT),
]
PeopleOut = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File to write, with a table of the models: annotator, kind, family, price.",
        rich_help_panel=OUTPUT,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Send nothing: show the first prompt and the cost.", rich_help_panel=_LIMITS),
]
