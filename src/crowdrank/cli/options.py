"""Options that several commands share, with their help texts, panels and choices."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

INPUT, MODEL, SIDE_INFORMATION = "Input", "Model", "Side information"
OUTPUT, ENGINE, SIMULATION = "Output", "Engine", "Simulation"


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
    """Beliefs that questions are chosen by."""

    AUTO = "auto"
    MCMC = "mcmc"
    ONLINE = "online"


class SimulatedBeliefs(StrEnum):
    """Beliefs that simulated policies use."""

    MCMC = "mcmc"
    ONLINE = "online"


class Labels(StrEnum):
    """How simulated answers arise."""

    ORDER = "order"
    LOGISTIC = "logistic"


def complete_model(incomplete: str) -> list[str]:
    """Names of models that begin with what was typed."""
    from crowdrank.models import REGISTRY

    return [name for name in ("auto", *REGISTRY) if name.startswith(incomplete)]


def complete_policy(incomplete: str) -> list[str]:
    """Names of policies that begin with what was typed."""
    from crowdrank.active import POLICIES

    return [name for name in POLICIES if name.startswith(incomplete)]


def complete_format(incomplete: str) -> list[str]:
    """Names of formats that begin with what was typed."""
    from crowdrank.io import list_formats

    return [known.name for known in list_formats() if known.name.startswith(incomplete)]


Judgments = Annotated[
    Path, typer.Argument(help="Comparisons, ratings or ranked lists, in any format of `crowdrank formats`.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=COLUMN",
        help="Column of a role, e.g. annotator=who. Repeatable; ROLE= if there is none.",
        rich_help_panel=INPUT,
    ),
]
Query = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Column that holds the query. Queries are ranked one by one.", rich_help_panel=INPUT
    ),
]
KindOfRows = Annotated[
    Kind | None, typer.Option(help="What the rows are, if the columns allow several kinds.", rich_help_panel=INPUT)
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
    typer.Option(help="How to treat features without a number: refuse the file, or read zero.", rich_help_panel=INPUT),
]
FeatureTable = Annotated[
    list[str] | None,
    typer.Option(
        "--features-column",
        metavar="ROLE=COLUMN",
        help="Column of a role in the features: item, query or grade. Repeatable; ROLE= if there is none.",
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
        help="Column of a role in the gold: item, query, value (larger is better) or rank (smaller is better).",
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
Engine = Annotated[
    EngineName | None,
    typer.Option(help="Where to compute: this machine's memory, from disk, or a Dask cluster.", rich_help_panel=ENGINE),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Running Dask scheduler, e.g. tcp://host:8786; by default a cluster is started on this machine.",
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
Processes = Annotated[
    int | None,
    typer.Option(help="Simulations that run at the same time. Default: one per core.", min=1, rich_help_panel=ENGINE),
]
