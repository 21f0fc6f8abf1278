"""Comparative judgement in education: tables of judge, candidate chosen and not chosen; No More Marking's decisions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from crowdrank.data import Comparisons
from crowdrank.io.formats.base import (
    Format,
    Writer,
    assign_roles,
    find_optional,
    find_required,
    optional,
    reads_columns,
    winner_loser_frame,
    without_ties,
    words,
)
from crowdrank.io.rows import parse_labels
from crowdrank.io.source_table import SourceTable, with_columns_computed
from crowdrank.io.sources import Source
from crowdrank.io.writer import TABLE_SUFFIXES, write_table

_CJ_NAME = "comparative-judgement"


def _write(votes: Comparisons, path: Path) -> list[str]:
    kept, notes = without_ties(votes, _CJ_NAME)
    write_table(winner_loser_frame(kept, "judge", "candidate_chosen", "candidate_not_chosen", "time_taken"), path)
    return notes


COMPARATIVE_JUDGEMENT = Format(
    name=_CJ_NAME,
    description="Comparative judgement: judge, candidate chosen, candidate not chosen, in any spelling.",
    known_by="columns judge, candidate_chosen and candidate_not_chosen (also Candidate.Chosen, Candidate Chosen …)",
    read=reads_columns(
        _CJ_NAME,
        annotator="judge",
        winner="candidate_chosen",
        loser="candidate_not_chosen",
        duration="time_taken?",
        time="date_created|created_at?",
        query="query?",
        weight="weight?",
    ),
    writer=Writer(("comparisons",), TABLE_SUFFIXES, optional("annotator query weight duration"), _write),
)


_NMM_NAME = "no-more-marking"
_MILLISECONDS = "timeTaken_ms"


def _read(source: Source) -> SourceTable:
    table = assign_roles(
        source.table,
        _NMM_NAME,
        annotator="judgeId",
        winner="chosen",
        loser="notChosen",
        query="task?",
        time="createdAt?",
        duration="timeTaken?",
    )
    if not (column := table.roles["duration"]):
        return table
    taken = table.load([column], None).rename({column: _MILLISECONDS})
    return replace(with_columns_computed(table, taken), roles={**table.roles, "duration": _MILLISECONDS})


_SHINY_NAME = "shiny-cj"
_ARROW = " -> "


def _recognises_shiny(source: Source) -> bool:
    column = find_optional(source.table, "decision")
    return column is not None and bool(words(source.table.sample[column]).str.contains(_ARROW, literal=True).any())


def _read_shiny(source: Source) -> SourceTable:
    """Read decisions such as "19,2 -> 2,19": the items as they were shown, and as the judge ordered them."""
    column = find_required(source.table, "decision", _SHINY_NAME)
    cells = parse_labels(source.table.load([column], None)[column], strip_spaces=True)
    sides = cells.str.split_exact(_ARROW, 1).struct.unnest()
    shown, ordered = (sides.to_series(n).str.split(",").list.eval(pl.element().str.strip_chars()) for n in (0, 1))
    decided = cells.str.contains(_ARROW, literal=True).fill_null(False)
    pairs = decided & (ordered.list.len() == 2).fill_null(False)
    duration = find_optional(source.table, "time_taken")
    computed: dict[str, pl.Series] = {}
    roles = {"annotator": "judge_id|judge?"}
    aside = {"not a decision": ~decided.to_numpy()}
    if pairs.any():
        get = {"left": (shown, 0), "right": (shown, 1), "winner": (ordered, 0)}
        computed |= {name: cells.list.get(place, null_on_oob=True) for name, (cells, place) in get.items()}
        aside["ranking of more than two"] = (decided & ~pairs).to_numpy()
    else:
        computed["order"] = ordered.set(~decided, None)
    if duration is not None:
        computed[_MILLISECONDS] = source.table.load([duration], None)[duration]
        roles["duration"] = _MILLISECONDS
    table = with_columns_computed(source.table, pl.DataFrame(computed), set_aside=aside)
    return assign_roles(table, _SHINY_NAME, **roles, **{name: name for name in computed if name != _MILLISECONDS})


SHINY_CJ = Format(
    name=_SHINY_NAME,
    description="A comparative-judgement app: decisions as items shown -> items ordered, time_taken in milliseconds.",
    known_by='columns judge_id and decision; decisions such as "19,2 -> 2,19"',
    recognises=_recognises_shiny,
    read=_read_shiny,
)


NO_MORE_MARKING = Format(
    name=_NMM_NAME,
    description="No More Marking's decisions: judgeId, chosen, notChosen, timeTaken in milliseconds.",
    known_by="columns judgeId, chosen and notChosen",
    read=_read,
)
