"""Files that lie beside judgments and are none: told apart by their columns, so that nobody ranks them by mistake."""

from __future__ import annotations

from crowdrank.errors import FormatError
from crowdrank.files.formats.columns import has
from crowdrank.files.sources import Source

_OTHERS = (
    ("QR Code,Scaled Score,True Score", "No More Marking's results about pupils; the judgments are in its decisions"),
    ("Name,Email,Secret", "Gavel's list of judges, with their secrets; the judgments are in decisions.csv"),
    ("Mu,Sigma Squared,Name,Active", "Gavel's list of projects; the judgments are in decisions.csv"),
    ("Name,Email,Code,ReadWelcome,Seen", "Jury's list of judges, with their codes; export the rankings"),
    ("Name,Table,ChallengeList,Seen,Active", "Jury's list of projects; export the rankings"),
    ("Idea ID,Idea Text,Wins,Losses", "All Our Ideas' list of ideas; the judgments are in its votes"),
)


def refuse_others(source: Source) -> None:
    for columns, told in _OTHERS:
        if has(columns)(source):
            raise FormatError(f"{source.name}: this is {told}.")
