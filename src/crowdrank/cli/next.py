"""crowdrank next: the most useful questions, and whom to ask them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli.options import parse_columns, parse_settings
from crowdrank.cli.progress import doing
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    import polars as pl

    from crowdrank.active import Question, Rules
    from crowdrank.data import Comparisons, Items
    from crowdrank.io import ItemColumns, People

Words = list[str] | None
_ONLINE_FROM = 50_000


def next_questions(
    file: Annotated[Path | None, typer.Argument(help="The judgments so far; none to begin a collection.")] = None,
    items: Annotated[Path | None, typer.Option(help="A file of items: item, and perhaps query and owner.")] = None,
    annotators: Annotated[
        Path | None, typer.Option(help="A file of annotators: annotator, and perhaps quota, price, available.")
    ] = None,
    count: Annotated[int, typer.Option(help="How many questions.", min=1)] = 20,
    policy: Annotated[str, typer.Option(help="What chooses: adaptive, thompson, gain, epsilon-greedy …")] = "adaptive",
    annotator: Annotated[str | None, typer.Option(help="Questions for this annotator only.")] = None,
    quota: Annotated[int | None, typer.Option(help="Questions for one annotator at most, old ones included.")] = None,
    repeats: Annotated[bool, typer.Option("--repeats", help="Let annotators get the same pair again.")] = False,
    until: Annotated[
        str | None, typer.Option(help='Say how near a decision is, and ask no more once it is settled: "top 3" …')
    ] = None,
    level: Annotated[float, typer.Option(help="How sure a decision must be to be settled.")] = 0.95,
    beliefs: Annotated[str, typer.Option(help="What steers: mcmc, online, or auto by the size of the data.")] = "auto",
    query: Annotated[str | None, typer.Option(help="The column of the judgments that holds the query.")] = None,
    columns: Annotated[Words, typer.Option("--map", help="What a column of the judgments holds.")] = None,
    settings: Annotated[Words, typer.Option("--set", help="A setting of the policy: epsilon=0.2, floor=5 …")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the questions: .csv .tsv .jsonl .parquet.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same questions.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines instead of a table.")] = False,
) -> None:
    """Choose the most useful questions to ask next, and whom to ask them."""
    import numpy as np

    from crowdrank import active, io, online

    if beliefs not in ("auto", "mcmc", "online"):
        raise SettingError(f"--beliefs must be auto, mcmc or online, got {beliefs!r}.")
    kind = active.by_name(policy)
    chooser = kind(**parse_settings(kind, settings, None))
    known = None if items is None else io.read_items(items)
    people = None if annotators is None else io.read_annotators(annotators)
    votes = None if file is None else _comparisons(file, parse_columns(columns, query))
    if known is None and votes is None:
        raise SettingError("Name a file of judgments, or of items with --items: there is nothing to ask about.")
    names = _annotators(votes, people, annotator)
    with doing("Making up our mind"):
        model, state = _beliefs(beliefs, votes, known, names, seed)
        asked = active.QuestionHistory(state, _rules(known, people, quota, repeats), votes)
        settled, standing = _standing(until, level, model, state)
    if settled:
        count = 0
    with doing(f"Choosing {count:,} questions"):
        chosen = list(active.batch(chooser, state, asked, count, np.random.default_rng(seed), annotator))
    frame = _frame(chosen)
    if out is not None:
        io.write_table(frame, out)
    if as_json:
        import json

        typer.echo(json.dumps(frame.to_dicts(), ensure_ascii=False))
        return
    name = "mcmc" if isinstance(model, online.SequentialMCMC) else "online beliefs"
    _show(frame, chosen, count, [f"{_facts(votes, state)}; steered by {name}.", *standing], out)


def _comparisons(file: Path, roles: dict[str, str | None]) -> Comparisons:
    from crowdrank.io import read
    from crowdrank.models import BayesianCrowdBT
    from crowdrank.models.conversion import as_read_by

    with doing(f"Reading {file.name}"):
        votes: Any = as_read_by(BayesianCrowdBT(), read(file, columns=roles))[0]
    return votes  # type: ignore[no-any-return]


def _annotators(votes: Comparisons | None, people: People | None, only: str | None) -> list[str]:
    """Those of the file, those who judged before, and the one who was asked for."""
    told = [] if people is None else list(people.annotators)
    before = [] if votes is None else ([""] if votes.annotator is None else votes.annotators.tolist())
    names = list(dict.fromkeys([*told, *before, *([] if only is None else [only])]))
    if not names:
        raise SettingError("Nobody to ask: name annotators in a file, --annotators, or one with --annotator.")
    return names


def _items(known: ItemColumns | None) -> Items | list[str]:
    from crowdrank.data.labels import encode_items

    if known is None:
        return []
    if known.query is None:
        return list(known.item)
    return encode_items([known.item], ["item"], known.query)[0]


def _beliefs(
    wish: str, votes: Comparisons | None, known: ItemColumns | None, names: list[str], seed: int
) -> tuple[Any, Any]:
    """What is believed of everything, by the posterior or, for many judgments, by one update after another."""
    from crowdrank import online

    many = votes is not None and len(votes) > _ONLINE_FROM
    online_wanted = wish == "online" or (wish == "auto" and many)
    model: Any = online.CrowdBT() if online_wanted else online.SequentialMCMC(seed=seed)
    state = model.start(_items(known), names)
    if votes is not None:
        state = model.fold(state, votes)
    return model, state


def _rules(known: ItemColumns | None, people: People | None, quota: int | None, repeats: bool) -> Rules:
    from crowdrank.active import Rules
    from crowdrank.io import labels_of

    own: dict[str, set[str]] = {}
    if known is not None and "owner" in known:
        for item, owner in zip(known.item, labels_of(known.columns["owner"]), strict=True):
            own.setdefault(owner, set()).add(item)
    limits: Any = quota
    if people is not None and people.quota:
        limits = dict.fromkeys(people.annotators, quota) if quota is not None else {}
        limits |= people.quota
    return Rules(
        available=None if people is None else people.available,
        quota=limits,
        price=1.0 if people is None or not people.price else people.price,
        own=own,
        repeats=repeats,
    )


def _frame(chosen: list[Question]) -> pl.DataFrame:
    """A row a question; a column `winner`, to be filled in, makes it a file of judgments."""
    import polars as pl

    columns: dict[str, list[Any]] = {
        "annotator": [q.annotator for q in chosen],
        "query": [q.query for q in chosen],
        "left": [q.left for q in chosen],
        "right": [q.right for q in chosen],
        "policy": [q.policy for q in chosen],
        "probability": [q.probability for q in chosen],
    }
    text = dict.fromkeys(("annotator", "query", "left", "right", "policy"), pl.String)
    frame = pl.DataFrame(columns, schema_overrides={**text, "probability": pl.Float64})
    return frame if any(columns["query"]) else frame.drop("query")


def _facts(votes: Comparisons | None, state: Any) -> str:
    so_far = "no judgments yet" if votes is None else f"{len(votes):,} judgments so far"
    return f"{len(state.items):,} items, {len(state.annotators):,} annotators, {so_far}"


def _standing(until: str | None, level: float, model: Any, state: Any) -> tuple[bool, list[str]]:
    """Whether what is to be decided is settled, and how it stands, in words."""
    from crowdrank.active import decision, forecast, is_confirmed
    from crowdrank.online import SequentialMCMC

    if until is None:
        return False, []
    if not 0 < level < 1:
        raise SettingError(f"--level must lie between 0 and 1, got {level}.")
    wish = decision(until)
    if not isinstance(model, SequentialMCMC):
        raise SettingError("--until needs joint beliefs: leave --beliefs online out.")
    if not state.n_judgments:
        return False, [f"{until}: open, nothing was judged yet."]
    if is_confirmed(wish, state, model, level):
        return True, [f"{until}: settled. Nothing more needs to be asked."]
    longer = model.resample(state)
    chance = wish.probability(longer.draws.scores, longer.items)
    return False, [f"{until}: open, at {chance:.2f} of {wish.threshold(level):.2f}; {forecast(longer, wish, level)}."]


def _show(frame: pl.DataFrame, chosen: list[Question], wanted: int, headlines: list[str], out: Path | None) -> None:
    from collections import Counter

    from rich.console import Console

    from crowdrank.reports import questions_table

    console = Console(highlight=False, markup=False)
    for line in headlines:
        console.print(line)
    if len(chosen) < wanted:
        console.print(f"Only {len(chosen):,} questions are left to ask.", style="yellow")
    if chosen:
        by = ", ".join(f"{count:,} {name}" for name, count in Counter(q.policy for q in chosen).most_common())
        people = len({q.annotator for q in chosen})
        to_whom = "one annotator" if people == 1 else f"{people:,} annotators"
        console.print(f"{len(chosen):,} questions for {to_whom}: {by}.\n")
        console.print(questions_table(frame))
    if out is not None:
        console.print(f"Written to {out}{'' if chosen else ', without a question'}.", soft_wrap=True)
