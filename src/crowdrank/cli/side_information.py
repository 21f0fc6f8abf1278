"""What the command line is told beside the judgments: gold pairs, and how good some annotators are known to be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crowdrank.cli.options import split_pairs
from crowdrank.errors import FormatError, SettingError

if TYPE_CHECKING:
    from crowdrank.data import Comparisons, Judgments, SideInformation
    from crowdrank.models import Model

Words = list[str] | None
GoldPairs = Annotated[
    str | None,
    typer.Option("--gold-pairs", help="A file of pairs whose better item is known; agreed: those nearly all agree on."),
]
Known = Annotated[
    Words, typer.Option("--known", help="How good an annotator is known to be: ann=0.95, or a range, ann=0.6..0.9.")
]
Better = Annotated[Words, typer.Option("--better", help="Who is better than whom: ann>bob.")]


def side_information_of(
    model: Model, gold_pairs: str | None, known: Words, better: Words, query: str | None
) -> SideInformation | None:
    """What is known besides the judgments, for a model that uses it; None if nothing was given."""
    from crowdrank import models
    from crowdrank.data import SideInformation

    if not (gold_pairs or known or better):
        return None
    if not model.accepts_side_information:
        able = [name for name, kind in models.REGISTRY.items() if kind.accepts_side_information]
        raise SettingError(
            "--gold-pairs, --known and --better need comparisons and a model that can be told: "
            f"{', '.join(able[:-1])} or {able[-1]}."
        )
    quality, between = _qualities(known)
    order = [_order(text) for text in better or []]
    agreed: Literal["agreed"] = "agreed"
    gold = None if gold_pairs is None else agreed if gold_pairs == agreed else _read(Path(gold_pairs), query)
    return SideInformation(quality=quality, between=between, better=order, gold=gold)


def describe_side_information(judgments: Judgments, side_information: SideInformation | None) -> str:
    """What was given besides the judgments, in a line; empty if nothing was."""
    from crowdrank.data import Comparisons

    if side_information is None or not isinstance(judgments, Comparisons):
        return ""
    known = side_information.encode(judgments)
    gold, people, orders = len(known.gold_better), len({*known.quality, *known.between}), len(known.better)
    parts = [
        f"{gold:,} gold pair{'' if gold == 1 else 's'}" * bool(gold),
        f"the quality of {people:,} annotator{'' if people == 1 else 's'}" * bool(people),
        f"{orders:,} order{'' if orders == 1 else 's'}" * bool(orders),
    ]
    return f"Told: {', '.join(filter(None, parts))}."


def _read(path: Path, query: str | None) -> Comparisons:
    from crowdrank.data import Comparisons
    from crowdrank.io import read

    try:
        pairs = read(path, kind="comparisons", columns={} if query is None else {"query": query})
    except FormatError as error:
        if "--map" not in str(error):
            raise
        # --map speaks of the judgments: no option names the columns of this file
        what = str(error).split("; say which")[0].split(". ")[0]
        raise FormatError(
            f"{what}. Gold pairs need the columns left, right and winner, or winner and loser."
        ) from error
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
