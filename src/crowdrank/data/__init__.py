"""What people said: comparisons, ratings, rankings; as immutable columns of codes."""

from crowdrank.data.comparisons import LEFT, RIGHT, TIE, Comparison, Comparisons
from crowdrank.data.diagnostics import Health
from crowdrank.data.labels import Items
from crowdrank.data.pair_counts import PairCounts
from crowdrank.data.rankings import Rankings
from crowdrank.data.ratings import Ratings
from crowdrank.data.side_information import EncodedSideInformation, SideInformation, agreed_pairs

Judgments = Comparisons | Ratings | Rankings

__all__ = [
    "LEFT",
    "RIGHT",
    "TIE",
    "Comparison",
    "Comparisons",
    "EncodedSideInformation",
    "Health",
    "Items",
    "Judgments",
    "PairCounts",
    "Rankings",
    "Ratings",
    "SideInformation",
    "agreed_pairs",
]
