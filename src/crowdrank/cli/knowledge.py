"""What the command line is told beside the judgments: gold pairs, and how good some annotators are known to be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli.settings import split_pairs
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.judgments import Comparisons, Judgments

Words = list[str] | None
GoldPairs = Annotated[
    str | None,
    typer.Option("--gold-pairs", help="A file of pairs whose better item is known; agreed: those nearly all agree on."),
]
Known = Annotated[
    Words, typer.Option("--known", help="How good an annotator is known to be: ann=0.95, or a range, ann=0.6..0.9.")
]
Better = Annotated[Words, typer.Option("--better", help="Who is better than whom: ann>bob.")]


def told(
    model: Any, judgments: Judgments, gold_pairs: str | None, known: Words, better: Words, query: str | None
) -> Judgments:
    """The judgments with what is known beside them, for a model that weighs annotators."""
    from crowdrank.judgments import Comparisons

    if not (gold_pairs or known or better):
        return judgments
    if not getattr(model, "weighs_annotators", False) or not isinstance(judgments, Comparisons):
        raise SettingError(
            "--gold-pairs, --known and --better tell of annotators: use them with comparisons and a model that weighs "
            "annotators, such as crowd-bt."
        )
    quality, between = _qualities(known)
    order = [_order(text) for text in better or []]
    if gold_pairs == "agreed":
        return judgments.knowing(quality=quality, between=between, better=order, gold="agreed")
    gold = None if gold_pairs is None else _read(Path(gold_pairs), query)
    return judgments.knowing(quality=quality, between=between, better=order, gold=gold)


def _read(path: Path, query: str | None) -> Comparisons:
    from crowdrank.files import read
    from crowdrank.judgments import Comparisons

    pairs = read(path, kind="comparisons", columns={} if query is None else {"query": query})
    assert isinstance(pairs, Comparisons)
    return pairs


def _qualities(known: Words) -> tuple[dict[str, float], dict[str, tuple[float, float]]]:
    quality: dict[str, float] = {}
    between: dict[str, tuple[float, float]] = {}
    for name, text in split_pairs(known, "--known", "ann=0.95"):
        low, dots, high = text.partition("..")
        try:
            if dots:
                between[name] = (float(low), float(high))
            else:
                quality[name] = float(text)
        except ValueError as error:
            raise SettingError(f"--known takes a number or a range, such as ann=0.6..0.9; got {text!r}.") from error
    return quality, between


def _order(text: str) -> tuple[str, str]:
    better, sign, worse = (part.strip() for part in text.partition(">"))
    if not (better and sign and worse):
        raise SettingError(f"--better takes two annotators, such as --better 'ann>bob'; got {text!r}.")
    return better, worse
