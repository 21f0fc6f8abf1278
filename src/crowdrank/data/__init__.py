"""What people said: comparisons, ratings, rankings; as immutable columns of codes."""

from crowdrank.data.comparisons import LEFT, RIGHT, TIE, Comparison, Comparisons
from crowdrank.data.diagnostics import Health
from crowdrank.data.labels import Items
from crowdrank.data.pair_counts import PairCounts
from crowdrank.data.rankings import Rankings
from crowdrank.data.ratings import Ratings
from crowdrank.data.side_information import Better, Between, Knowledge, Known, agreed_pairs

Judgments = Comparisons | Ratings | Rankings

__all__ = [
    "LEFT",
    "RIGHT",
    "TIE",
    "Better",
    "Between",
    "Comparison",
    "Comparisons",
    "Health",
    "Items",
    "Judgments",
    "Knowledge",
    "Known",
    "PairCounts",
    "Rankings",
    "Ratings",
    "agreed_pairs",
]
