"""Judgments as immutable tables of codes: comparisons, ratings and rankings, with conversions and diagnostics."""

from crowdrank.data.comparisons import LEFT, RIGHT, TIE, Comparison, Comparisons
from crowdrank.data.diagnostics import DataDiagnostics
from crowdrank.data.labels import Items
from crowdrank.data.pair_counts import PairCounts
from crowdrank.data.rankings import Rankings
from crowdrank.data.ratings import Ratings
from crowdrank.data.side_information import (
    AnnotatorDetails,
    EncodedSideInformation,
    SideInformation,
    agreed_pairs,
    people_from_names,
)
from crowdrank.data.tables import ImportReport, JudgmentTable, MalformedRow

Judgments = Comparisons | Ratings | Rankings

__all__ = [
    "LEFT",
    "RIGHT",
    "TIE",
    "AnnotatorDetails",
    "Comparison",
    "Comparisons",
    "DataDiagnostics",
    "EncodedSideInformation",
    "ImportReport",
    "Items",
    "JudgmentTable",
    "Judgments",
    "MalformedRow",
    "PairCounts",
    "Rankings",
    "Ratings",
    "SideInformation",
    "agreed_pairs",
    "people_from_names",
]
