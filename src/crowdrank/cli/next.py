"""crowdrank next: choose the most useful questions, and who should answer them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.cli import options
from crowdrank.cli.options import INPUT, MODEL, parse_columns, parse_set
from crowdrank.cli.output import check_table, console, print_json, spinner
from crowdrank.errors import SettingError

if TYPE_CHECKING:
    import polars as pl

    from crowdrank.active import Purchase, Question, Rules
    from crowdrank.data import Comparisons, Items
    from crowdrank.io import AnnotatorTable, ItemTable

# From this number of judgments on, online updates are clearly faster than refitting.
_ONLINE_FROM = 50_000
_QUESTIONS = "Questions"


# The options.

Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE...]",
        help="Judgments so far; - for standard input. Omit it to start a new collection.",
        show_default=False,
    ),
]
ItemsOption = Annotated[
    Path | None,
    typer.Option(help="File of items: item, and optionally query and owner.", rich_help_panel=INPUT),
]
Annotators = Annotated[
    Path | None,
    typer.Option(
        help="File of annotators: annotator, and optionally quota, price and available.", rich_help_panel=INPUT
    ),
]
Query = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of the judgments that holds the query.", rich_help_panel=INPUT),
]
Count = Annotated[int, typer.Option(help="Number of questions.", min=1, rich_help_panel=_QUESTIONS)]
Ask = Annotated[
    list[str] | None,
    typer.Option(
        metavar="gold|human|NAME",
        help="Whose answers to buy, by expected gain per unit of price: gold (an expert's), any human, or an "
        "annotator. Repeatable.",
        rich_help_panel=_QUESTIONS,
    ),
]
GoldPairs = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Pairs whose better item is known already, for --ask.",
        rich_help_panel=options.SIDE_INFORMATION,
    ),
]
Annotator = Annotated[
    str | None, typer.Option(metavar="NAME", help="Questions for this annotator only.", rich_help_panel=_QUESTIONS)
]
Quota = Annotated[
    int | None,
    typer.Option(
        help="Maximum number of questions per annotator, including answered ones.", rich_help_panel=_QUESTIONS
    ),
]
Repeats = Annotated[
    bool,
    typer.Option("--repeats", help="Allow the same pair twice for an annotator.", rich_help_panel=_QUESTIONS),
]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="DECISION",
        help='Stop asking once this is decided, e.g. "top 3"; shows how close it is.',
        rich_help_panel=_QUESTIONS,
    ),
]
Level = Annotated[
    float, typer.Option(help="Probability required for --until to be decided.", rich_help_panel=_QUESTIONS)
]
Policy = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Policy that chooses the questions: adaptive, best-annotator, thompson, gain …",
        autocompletion=options.complete_policy,
        rich_help_panel=MODEL,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Setting of the policy, e.g. epsilon=0.2. Repeatable.",
        rich_help_panel=MODEL,
    ),
]
Beliefs = Annotated[
    options.Beliefs,
    typer.Option(help="How beliefs are computed: mcmc, online updates, or auto (by data size).", rich_help_panel=MODEL),
]
Seed = Annotated[int, typer.Option(help="Seed of the random numbers.", min=0, rich_help_panel=MODEL)]


def next_questions(
    files: Files = None,
    items: ItemsOption = None,
    annotators: Annotators = None,
    columns: options.Columns = None,
    query: Query = None,
    count: Count = 20,
    ask: Ask = None,
    people: options.People = None,
    gold_pairs: GoldPairs = None,
    annotator: Annotator = None,
    quota: Quota = None,
    repeats: Repeats = False,
    until: Until = None,
    level: Level = 0.95,
    policy: Policy = "adaptive",
    settings: Settings = None,
    beliefs: Beliefs = options.Beliefs.AUTO,
    seed: Seed = 0,
    wide: options.Wide = False,
    out: options.TableOut = None,
    as_json: options.Json = False,
) -> None:
    """Choose the most useful questions to ask next, and who should answer them."""
    import numpy as np

    from crowdrank import active, io, online
    from crowdrank.models.selection import parse_settings

    check_table(out)
    if ask:
        _buy(files, parse_columns(columns, query), ask, count, people, gold_pairs, seed, out, as_json, wide)
        return
    if people is not None or gold_pairs is not None:
        raise SettingError("--people and --gold-pairs are for --ask; the annotators of other questions: --annotators.")
    policy_class = active.by_name(policy)
    chooser = policy_class(**parse_settings(policy_class, parse_set(settings)))
    item_table = None if items is None else io.read_items(items)
    table = None if annotators is None else io.read_annotators(annotators)
    votes = None if not files else _comparisons(files, parse_columns(columns, query))
    if item_table is None and votes is None:
        raise SettingError("Nothing to ask about: give a file of judgments, or items with --items.")
    names = _annotators(votes, table, annotator)
    with spinner("Updating beliefs"):
        model, state = _beliefs(beliefs, votes, item_table, names, seed)
        asked = active.QuestionHistory(state, _rules(item_table, table, quota, repeats), votes)
        decided, status = _decision_status(until, level, model, state)
    if decided:
        count = 0
    with spinner(f"Choosing {count:,} questions"):
        chosen = list(active.batch(chooser, state, asked, count, np.random.default_rng(seed), annotator))
    frame = _frame(chosen)
    if out is not None:
        io.write_table(frame, out)
    if as_json:
        print_json(frame.to_dicts())
        return
    name = "posterior sampling" if isinstance(model, online.SequentialMCMC) else "online updates"
    _show(frame, chosen, count, [f"{_facts(votes, state)}; beliefs from {name}.", *status], out, wide)


def _buy(
    files: list[Path] | None,
    roles: dict[str, str | None],
    ask: list[str],
    count: int,
    people: Path | None,
    gold_pairs: Path | None,
    seed: int,
    out: Path | None,
    as_json: bool,
    wide: bool,
) -> None:
    """Choose answers by expected gain per price."""
    from crowdrank import io
    from crowdrank.active import choose_answers
    from crowdrank.data.side_information import people_from_names

    if not files:
        raise SettingError("--ask needs a file of judgments: it weighs what an answer adds to them.")
    votes = _comparisons(files, roles)
    known = people_from_names(map(str, votes.annotators)) if people is None else io.read_people(people)
    gold: Any = None
    if gold_pairs is not None:
        gold = io.read(gold_pairs, kind="comparisons", columns={k: v for k, v in roles.items() if k == "query"})
    with spinner(f"Choosing {count:,} answers"):
        chosen = choose_answers(votes, ask, count, people=known, gold=gold, seed=seed)
    frame = _purchases(chosen)
    if out is not None:
        io.write_table(frame, out)
    if as_json:
        print_json(frame.to_dicts())
        return
    screen = console(wide=wide)
    if len(chosen) < count:
        screen.print(f"Only {len(chosen):,} answers are left to buy.", style="yellow")
    if chosen:
        gain, price = sum(one.gain for one in chosen), sum(one.price for one in chosen)
        answers = "1 answer" if len(chosen) == 1 else f"{len(chosen):,} answers"
        screen.print(
            f"{answers} at a price of {price:g}: expected to put {gain:.1f} more pairs of items in the right order.\n"
        )
        from crowdrank.reports import questions_table

        screen.print(questions_table(frame))
    if out is not None:
        screen.print(f"Written to {out}{'' if chosen else ' (no questions)'}.", soft_wrap=True)


def _purchases(chosen: list[Purchase]) -> pl.DataFrame:
    """One row per answer. With a column `winner` filled in, it is a file of judgments, or of gold pairs."""
    import polars as pl

    text = dict.fromkeys(("annotator", "query", "left", "right"), pl.String)
    schema = {**text, "gain": pl.Float64, "price": pl.Float64, "gain_per_price": pl.Float64}
    frame = pl.DataFrame([(*one, one.gain_per_price) for one in chosen], schema, orient="row")
    return frame if frame["query"].is_not_null().any() else frame.drop("query")


def _comparisons(files: list[Path], roles: dict[str, str | None]) -> Comparisons:
    from crowdrank.io import read
    from crowdrank.models import BayesianCrowdBT
    from crowdrank.models.selection import convert_for

    with spinner(f"Reading {files[0].name}"):
        votes: Any = convert_for(BayesianCrowdBT(), read(options.source_of(files), columns=roles))[0]
    return votes  # type: ignore[no-any-return]


def _annotators(votes: Comparisons | None, people: AnnotatorTable | None, only: str | None) -> list[str]:
    """Annotators of the file, those who judged before, and the one named on the command line."""
    listed = [] if people is None else list(people.annotators)
    before = [] if votes is None else ([""] if votes.annotator is None else votes.annotators.tolist())
    names = list(dict.fromkeys([*listed, *before, *([] if only is None else [only])]))
    if not names:
        raise SettingError("No annotators to ask: give a file of them with --annotators, or one name with --annotator.")
    return names


def _items(item_table: ItemTable | None) -> Items | list[str]:
    from crowdrank.data.labels import encode_items

    if item_table is None:
        return []
    if item_table.query is None:
        return list(item_table.item)
    return encode_items([item_table.item], ["item"], item_table.query)[0]


def _beliefs(
    kind: options.Beliefs, votes: Comparisons | None, item_table: ItemTable | None, names: list[str], seed: int
) -> tuple[Any, Any]:
    """The online model and its state after these votes."""
    from crowdrank import online

    many = votes is not None and len(votes) > _ONLINE_FROM
    use_online = kind == "online" or (kind == "auto" and many)
    model: Any = online.CrowdBT() if use_online else online.SequentialMCMC(seed=seed)
    state = model.start(_items(item_table), names)
    if votes is not None:
        state = model.fold(state, votes)
    return model, state


def _rules(item_table: ItemTable | None, people: AnnotatorTable | None, quota: int | None, repeats: bool) -> Rules:
    from crowdrank.active import Rules
    from crowdrank.io import as_labels

    own: dict[str, set[str]] = {}
    if item_table is not None and "owner" in item_table:
        for item, owner in zip(item_table.item, as_labels(item_table.columns["owner"]), strict=True):
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
    """One row per question. With a column `winner` filled in, it is a file of judgments."""
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


def _decision_status(until: str | None, level: float, model: Any, state: Any) -> tuple[bool, list[str]]:
    """Whether the decision of --until is made, and a sentence on how close it is."""
    from crowdrank.active import decision, forecast, is_confirmed
    from crowdrank.online import SequentialMCMC

    if until is None:
        return False, []
    if not 0 < level < 1:
        raise SettingError(f"--level must be between 0 and 1, got {level}.")
    target = decision(until)
    if not isinstance(model, SequentialMCMC):
        raise SettingError("--until needs posterior draws: omit --beliefs online.")
    if not state.n_judgments:
        return False, [f"{until}: not decided, no judgments yet."]
    if is_confirmed(target, state, model, level):
        return True, [f"{until}: decided. No more questions are needed."]
    longer = model.resample(state)
    probability = target.probability(longer.draws.scores, longer.items)
    needed = target.threshold(level)
    expectation = forecast(longer, target, level)
    return False, [f"{until}: not decided, probability {probability:.2f}, needs {needed:.2f}; {expectation}."]


def _show(
    frame: pl.DataFrame, chosen: list[Question], wanted: int, headlines: list[str], out: Path | None, wide: bool
) -> None:
    from collections import Counter

    from crowdrank.reports import questions_table

    screen = console(wide=wide)
    for line in headlines:
        screen.print(line)
    if len(chosen) < wanted:
        left = f"Only {len(chosen):,} questions are" if chosen else "No question is"
        screen.print(f"{left} left to ask.", style="yellow")
    if chosen:
        by = ", ".join(f"{count:,} {name}" for name, count in Counter(q.policy for q in chosen).most_common())
        people = len({q.annotator for q in chosen})
        to_whom = "1 annotator" if people == 1 else f"{people:,} annotators"
        screen.print(f"{len(chosen):,} questions for {to_whom}: {by}.\n")
        screen.print(questions_table(frame))
    if out is not None:
        screen.print(f"Written to {out}{'' if chosen else ' (no questions)'}.", soft_wrap=True)
