"""What people said: comparisons, ratings, rankings; as immutable columns of codes."""

from crowdrank.judgments.comparison import Comparison
from crowdrank.judgments.comparisons import LEFT, RIGHT, TIE, Comparisons
from crowdrank.judgments.counts import PairCounts
from crowdrank.judgments.health import Health
from crowdrank.judgments.knowledge import Better, Between, Knowledge, Known, agreed_pairs
from crowdrank.judgments.labels import Items
from crowdrank.judgments.rankings import Rankings
from crowdrank.judgments.ratings import Ratings

Judgments = Comparisons | Ratings | Rankings

__all__ = [
    "LEFT", "RIGHT", "TIE", "Better", "Between", "Comparison", "Comparisons", "Health", "Items", "Judgments",
    "Knowledge", "Known", "PairCounts", "Rankings", "Ratings", "agreed_pairs",
]  # fmt: skip
