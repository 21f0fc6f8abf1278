"""The table of formats, and the detection of a source's format.

A signature (columns, keys of JSON objects, or the first line of a text) decides before any format module is imported.
Only formats whose signature fits are imported, to confirm by looking at more of the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from crowdrank.errors import FormatError, SettingError
from crowdrank.io.column_roles import normalize_name
from crowdrank.io.sources import Source

if TYPE_CHECKING:
    from crowdrank.io.formats.base import Format

TIDY = "tidy"


@dataclass(frozen=True)
class Signature:
    """Features by which a source of a format is recognised.

    Parameters
    ----------
    name : str
        Name of the format.
    module : str
        The module in `crowdrank.io.formats` that defines it.
    columns : frozenset of str
        Columns that must all be present. All names are compared without case and punctuation.
    any_of : frozenset of str
        Columns of which at least `at_least` must be present, if there are any.
    at_least : int
        See `any_of`.
    without : frozenset of str
        Columns that must be absent.
    only_with : frozenset of str, optional
        The only other columns that may be present.
    json : bool
        Whether the source must be JSON.
    first_line : re.Pattern, optional
        What the first line of a text file must match.
    test : callable, optional
        Any other condition.
    """

    name: str
    module: str
    columns: frozenset[str] = frozenset()
    any_of: frozenset[str] = frozenset()
    at_least: int = 1
    without: frozenset[str] = frozenset()
    only_with: frozenset[str] | None = None
    json: bool = False
    first_line: re.Pattern[str] | None = None
    test: Callable[[Source], bool] | None = None

    def fits(self, source: Source) -> bool:
        if self.first_line is not None:
            return bool(source.head) and self.first_line.match(source.head[0].strip()) is not None
        if self.json and not source.json:
            return False
        names = source.names
        return (
            self.columns <= names
            and not self.without & names
            and (not self.any_of or len(self.any_of & names) >= self.at_least)
            and (self.only_with is None or names <= self.columns | self.only_with)
            and (self.test is None or self.test(source))
        )


def _names(columns: str) -> frozenset[str]:
    return frozenset(normalize_name(name) for name in columns.split(",") if name.strip())


def _prefixed(*prefixes: str) -> Callable[[Source], bool]:
    return lambda source: all(any(c.startswith(prefix) for c in source.columns) for prefix in prefixes)


# Formats known by their first line come before those known by columns, which not every text has.
SIGNATURES = (
    Signature("preflib", "preflib", first_line=re.compile(r"#|\d{1,6}$")),
    Signature("letor", "retrieval", first_line=re.compile(r"#|.*\bqid:")),
    Signature("pgn", "chess", first_line=re.compile(r'\[\w+\s+".*"\]$')),
    Signature("trec-qrels", "retrieval", first_line=re.compile(r"\S+\s+(\d+|Q0)\s+\S+\s+\S+$")),
    Signature("trec-run", "retrieval", first_line=re.compile(r"\S+\s+(\d+|Q0)\s+\S+\s+\d+\s+\S+\s+\S+$")),
    # A matrix: numbers, or an empty cell before the names of the columns.
    Signature("asap", "toolkits", first_line=re.compile(r'[\d\s.,;eE+nNaA"-]+$|"?\s*"?\s*[,;\t]')),
    Signature("label-studio", "label_studio", _names("annotations,data"), json=True),
    Signature("label-studio-min", "label_studio", _names("annotation_id,annotator,lead_time,updated_at")),
    Signature("argilla", "annotation_tools", test=lambda source: any(c.endswith(".responses") for c in source.columns)),
    Signature("potato", "annotation_tools", json=True),
    Signature("prodigy", "annotation_tools", _names("answer,mapping,accept,reject"), json=True),
    Signature("fastchat", "arenas", _names("tstamp,type,models"), json=True),
    Signature(
        "lmsys",
        "arenas",
        _names("model_a,model_b,winner"),
        any_of=_names("conversation_a,question_id,tstamp,judge,judge_hash,conv_metadata"),
    ),
    Signature("lmsys-55k", "arenas", _names("model_a,model_b,winner_model_a,winner_model_b")),
    Signature("comparia", "arenas", _names("model_a_name,model_b_name,chosen_model_name,both_equal")),
    Signature("mt-bench", "arenas", _names("model_1,model_2,g1_winner,g2_winner")),
    Signature("mt-bench-grades", "arenas", _names("question_id,model,judge,judgment,score"), json=True),
    Signature("alpaca-eval", "arenas", _names("generator_1,generator_2,preference,output_1,output_2")),
    Signature("judgebench", "arenas", _names("pair_id,response_A,response_B,label")),
    Signature("pandalm", "arenas", _names("cmp_key,response1,response2,annotator1")),
    Signature("arena-hard", "arenas", _names("question_id,model,games"), json=True),
    Signature("openai-summaries", "arenas", _names("summaries,choice,worker"), json=True),
    Signature("qualtrics", "questionnaires", _names("StartDate,EndDate,ResponseId")),
    Signature("surveymonkey", "questionnaires", _names("Respondent ID,Collector ID")),
    Signature("mturk", "crowd_platforms", _names("HITId,AssignmentId,WorkerId,AssignmentStatus")),
    Signature("toloka", "crowd_platforms", test=_prefixed("INPUT:", "OUTPUT:", "ASSIGNMENT:")),
    Signature("appen", "crowd_platforms", _names("_unit_id,_golden")),
    Signature(
        "all-our-ideas",
        "voting_apps",
        _names("Vote ID,Session ID,Winner ID,Loser ID,Left Choice ID,Right Choice ID"),
    ),
    Signature(
        "all-our-ideas-non-votes",
        "voting_apps",
        _names("Record Type,Skip ID,Session ID,Left Choice ID,Right Choice ID"),
    ),
    Signature("gavel", "voting_apps", _names("Annotator ID,Winner ID,Loser ID,Time")),
    Signature("jury", "voting_apps", _names("Name,Code,Ranked,Unranked")),
    Signature("no-more-marking", "comparative_judgement", _names("judgeId,chosen,notChosen")),
    Signature("shiny-cj", "comparative_judgement", _names("decision"), any_of=_names("judge_id,judge")),
    Signature("comparative-judgement", "comparative_judgement", _names("judge,candidate_chosen,candidate_not_chosen")),
    Signature("pwcmp", "toolkits", _names("condition_A,condition_B,is_A_selected")),
    Signature("crowd-kit", "toolkits", _names("worker,left,right,label"), without=_names("winner")),
    Signature(
        "evalica",
        "toolkits",
        _names("left,right,winner"),
        only_with=_names("id,prompt,model_x,model_y,worker,query,weight") | {""},
    ),
    Signature(
        "crowdrank",
        "tidy",
        _names("annotator,left,right,winner"),
        any_of=_names("is_gold,valid,response_ms,answered_at"),
        at_least=2,
    ),
    Signature(TIDY, "tidy"),
)
_BY_NAME = {signature.name: signature for signature in SIGNATURES}

# Files that platforms export alongside the judgments, and that nobody should rank by mistake.
_NOT_JUDGMENTS = {
    _names("QR Code,Scaled Score,True Score"): "No More Marking's results about pupils; read its decisions instead",
    _names("Name,Email,Secret"): "Gavel's list of judges, with their secrets; read decisions.csv instead",
    _names("Mu,Sigma Squared,Name,Active"): "Gavel's list of projects; read decisions.csv instead",
    _names("Name,Email,Code,ReadWelcome,Seen"): "Jury's list of judges, with their codes; export the rankings instead",
    _names("Name,Table,ChallengeList,Seen,Active"): "Jury's list of projects; export the rankings instead",
    _names("Idea ID,Idea Text,Wins,Losses"): "All Our Ideas' list of ideas; read its votes instead",
}


def detect_format(source: Source) -> str:
    """Return the name of the first format that recognises the source; "tidy" if no other does."""
    for signature in SIGNATURES[:-1]:
        if signature.fits(source) and confirms_format(signature.name, source):
            return signature.name
    for columns, description in _NOT_JUDGMENTS.items():
        if columns <= source.names:
            raise FormatError(f"{source.name}: this is {description}.")
    return TIDY


def confirms_format(name: str, source: Source) -> bool:
    """Return whether a format whose signature fits also recognises the content of the source."""
    recognises = get_format(name).recognises
    return recognises is None or recognises(source)


def check_format_name(name: str) -> str:
    """Return the name if there is such a format; the error suggests the nearest and lists all."""
    if name in _BY_NAME:
        return name
    from difflib import get_close_matches

    nearest = get_close_matches(name, list(_BY_NAME), n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
    raise SettingError(f"No format named {name!r}{hint} There are: {', '.join(_BY_NAME)}.")


def get_format(name: str) -> Format:
    """Import and return a format.

    Parameters
    ----------
    name : str
        Name of the format, for example "crowd-kit".

    Raises
    ------
    SettingError
        If there is no such format.
    """
    module = import_module(f"crowdrank.io.formats.{_BY_NAME[check_format_name(name)].module}")
    found: Format = getattr(module, name.upper().replace("-", "_"))
    return found


def list_formats() -> tuple[Format, ...]:
    """Return all formats, in the order in which they are tried.

    Examples
    --------
    >>> [known.name for known in list_formats() if known.writer][:3]
    ['preflib', 'trec-qrels', 'trec-run']
    """
    return tuple(get_format(name) for name in _BY_NAME)
