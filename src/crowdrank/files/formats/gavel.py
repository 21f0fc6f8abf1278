"""Gavel's decisions: ids only; who they are stands in judges.csv, with secrets, and is not read."""

from __future__ import annotations

from crowdrank.files.formats.columns import declared, has
from crowdrank.files.formats.format import Format

GAVEL = Format(
    name="gavel",
    description="Gavel's decisions.csv: Annotator ID, Winner ID, Loser ID, Time.",
    known_by="columns Annotator ID, Winner ID, Loser ID and Time",
    recognises=has("Annotator ID,Winner ID,Loser ID,Time"),
    read=declared("gavel", annotator="Annotator ID", winner="Winner ID", loser="Loser ID", time="Time?"),
)
