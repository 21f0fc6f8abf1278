"""Options that several commands share: help texts, panels, choices, and parsing of their values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.active.policies import BasePolicy

INPUT, MODEL, SIDE_INFORMATION = "Input", "Model", "Side information"
OUTPUT, ENGINE, SIMULATION = "Output", "Engine", "Simulation"

Words = Sequence[str] | None


class Kind(StrEnum):
    """Kinds of judgments."""

    COMPARISONS = "comparisons"
    RATINGS = "ratings"
    RANKINGS = "rankings"


class EngineName(StrEnum):
    """Where to compute."""

    LOCAL = "local"
    OUT_OF_CORE = "out-of-core"
    DASK = "dask"


class UncertaintyMethod(StrEnum):
    """How uncertainty is computed."""

    MODEL = "model"
    BOOTSTRAP = "bootstrap"
    NONE = "none"


class MissingItems(StrEnum):
    """How to treat items that a list leaves out."""

    UNKNOWN = "unknown"
    WORSE = "worse"


class MissingFeatures(StrEnum):
    """How to treat features without a number."""

    REFUSE = "refuse"
    ZERO = "zero"


class Beliefs(StrEnum):
    """How the beliefs behind the choice of questions are computed."""

    AUTO = "auto"
    MCMC = "mcmc"
    ONLINE = "online"


class SimulatedBeliefs(StrEnum):
    """How the beliefs of simulated policies are computed."""

    MCMC = "mcmc"
    ONLINE = "online"


class Labels(StrEnum):
    """How answers are simulated."""

    ORDER = "order"
    LOGISTIC = "logistic"


def complete_model(incomplete: str) -> list[str]:
    """Names of models that begin with the typed text."""
    from crowdrank.models import REGISTRY

    return [name for name in ("auto", *REGISTRY) if name.startswith(incomplete)]


def complete_policy(incomplete: str) -> list[str]:
    """Names of policies that begin with the typed text."""
    from crowdrank.active import POLICIES

    return [name for name in POLICIES if name.startswith(incomplete)]


def complete_format(incomplete: str) -> list[str]:
    """Names of formats that begin with the typed text."""
    from crowdrank.io import list_formats

    return [known.name for known in list_formats() if known.name.startswith(incomplete)]


JudgmentFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="Comparisons, ratings or ranked lists, in any format of `crowdrank formats`; - for standard input.",
        show_default=False,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=COLUMN",
        help="Column for a role, e.g. annotator=who; ROLE= means no column. Repeatable.",
        rich_help_panel=INPUT,
    ),
]
Query = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Column that holds the query. Each query is ranked separately.", rich_help_panel=INPUT
    ),
]
KindOfRows = Annotated[
    Kind | None, typer.Option(help="Kind of judgments, if the columns fit several.", rich_help_panel=INPUT)
]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="Format of the file, if not recognised (see `crowdrank formats`).",
        autocompletion=complete_format,
        rich_help_panel=INPUT,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Text encoding if not UTF-8, e.g. latin-1.", rich_help_panel=INPUT),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a text file names the columns. Default: guessed.",
        show_default=False,
        rich_help_panel=INPUT,
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Fail if any row cannot be used, instead of dropping it.", rich_help_panel=INPUT),
]
Missing = Annotated[
    MissingItems | None,
    typer.Option(
        help="How to treat items missing from a list: unknown (ignore) or worse (rank below the listed ones).",
        rich_help_panel=INPUT,
    ),
]
MissingFeatureCells = Annotated[
    MissingFeatures,
    typer.Option(
        help="How to treat cells that are not numbers: refuse the file, or read them as zero.", rich_help_panel=INPUT
    ),
]
FeatureTable = Annotated[
    list[str] | None,
    typer.Option(
        "--features-column",
        metavar="ROLE=COLUMN",
        help="Column for a role in the features: item, query or grade; ROLE= means no column. Repeatable.",
        rich_help_panel=INPUT,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Setting of the model, e.g. prior_scale=1. Repeatable.",
        rich_help_panel=MODEL,
    ),
]
Gold = Annotated[
    Path | None,
    typer.Option(help="File with the true values of items, to evaluate against.", rich_help_panel=SIDE_INFORMATION),
]
GoldTable = Annotated[
    list[str] | None,
    typer.Option(
        "--gold-column",
        metavar="ROLE=COLUMN",
        help="Column for a role in the gold: item, query, value (larger is better) or rank (smaller is better).",
        rich_help_panel=SIDE_INFORMATION,
    ),
]
GoldPairs = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="File of pairs whose better item is known, or `agreed` for pairs that nearly all annotators agree on.",
        rich_help_panel=SIDE_INFORMATION,
    ),
]
AnnotatorQuality = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Known quality of an annotator, e.g. ann=0.95 or a range ann=0.6..0.9. Repeatable.",
        rich_help_panel=SIDE_INFORMATION,
    ),
]
AnnotatorOrder = Annotated[
    list[str] | None,
    typer.Option(
        metavar="'BETTER>WORSE'",
        help="One annotator is better than another, e.g. 'ann>bob'. Repeatable.",
        rich_help_panel=SIDE_INFORMATION,
    ),
]
People = Annotated[
    Path | None,
    typer.Option(
        help="File about the annotators: annotator, kind (human or llm), family, price.",
        rich_help_panel=SIDE_INFORMATION,
    ),
]
Engine = Annotated[
    EngineName | None,
    typer.Option(help="Where to compute: in memory, from disk, or on a Dask cluster.", rich_help_panel=ENGINE),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Running Dask scheduler, e.g. tcp://host:8786. Default: start a cluster on this machine.",
        rich_help_panel=ENGINE,
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory limit, e.g. 4GB or 512MB. Larger files are streamed from disk.",
        rich_help_panel=ENGINE,
    ),
]
TableOut = Annotated[
    Path | None,
    typer.Option("--out", help="Write the table (.csv, .tsv, .jsonl, .parquet).", rich_help_panel=OUTPUT),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.", rich_help_panel=OUTPUT)]
Wide = Annotated[
    bool,
    typer.Option(
        "--wide",
        help="Show long names in full instead of cutting them to the width of the terminal.",
        rich_help_panel=OUTPUT,
    ),
]
Processes = Annotated[
    int | None,
    typer.Option(
        help="Number of simulations to run in parallel. Default: one per core.", min=1, rich_help_panel=ENGINE
    ),
]


def source_of(files: list[Path]) -> Path | list[Path]:
    """The files of a command as one source."""
    return files if len(files) > 1 else files[0]


def parse_pairs(pairs: Words, option: str, example: str) -> list[tuple[str, str]]:
    """Split each `name=value` of a repeatable option."""
    parsed = []
    for pair in pairs or []:
        name, sign, value = (part.strip() for part in pair.partition("="))
        if not sign or not name:
            raise SettingError(f"{option} takes name=value, such as {option} {example}; got {pair!r}.")
        parsed.append((name, value))
    return parsed


def parse_columns(pairs: Words, query: str | None = None, option: str = "--column") -> dict[str, str | None]:
    """`--column role=column` and `--query column` as one mapping; an empty column means that there is none."""
    roles = {role: column or None for role, column in parse_pairs(pairs, option, "annotator=who")}
    return roles if query is None else {**roles, "query": query or None}


def parse_set(pairs: Words) -> dict[str, str]:
    """`--set name=value`; the text is converted to a value once the model is known."""
    return dict(parse_pairs(pairs, "--set", "prior_scale=1"))


def parse_names(text: str | None) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def parse_quality(pairs: Words) -> dict[str, float | tuple[float, float]]:
    """`--annotator-quality ann=0.95`, or a range `ann=0.6..0.9`."""
    option = "--annotator-quality"
    quality: dict[str, float | tuple[float, float]] = {}
    for name, text in parse_pairs(pairs, option, "ann=0.95"):
        low, dots, high = text.partition("..")
        try:
            value = (float(low), float(high)) if dots else float(text)
        except ValueError as error:
            raise SettingError(f"{option} takes a number or a range, such as ann=0.6..0.9; got {text!r}.") from error
        if quality.setdefault(name, value) != value:
            raise SettingError(f"{option} gives {name} twice, with different values: {quality[name]} and {value}.")
    return quality


def parse_order(pairs: Words) -> list[tuple[str, str]]:
    """`--annotator-order 'ann>bob'`, the better annotator first."""
    option = "--annotator-order"
    order = []
    for text in pairs or []:
        better, sign, worse = (part.strip() for part in text.partition(">"))
        if not (better and sign and worse):
            raise SettingError(f"{option} takes two annotators, such as {option} 'ann>bob'; got {text!r}.")
        order.append((better, worse))
    return order


def parse_policy(text: str) -> BasePolicy:
    """A policy with optional settings: adaptive, gain:exploration=5 or adaptive:epsilon=0.2:floor=5."""
    from crowdrank.active import by_name
    from crowdrank.models.selection import parse_settings

    name, *settings = (part.strip() for part in text.split(":"))
    policy = by_name(name)
    if wrong := [pair for pair in settings if "=" not in pair]:
        raise SettingError(
            f"Write the settings of a policy like adaptive:epsilon=0.2:floor=5; got {wrong[0]!r} in {text!r}."
        )
    return policy(**parse_settings(policy, dict(parse_pairs(settings, "policy", "epsilon=0.2"))))


def process_count(wanted: int | None, trials: int) -> int:
    """One process per core by default, and never more than trials."""
    return max(1, min(os.cpu_count() or 1 if wanted is None else wanted, trials))
