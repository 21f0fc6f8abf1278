"""Where the arithmetic runs. A model asks for sums over shards and never learns where they were."""

from crowdrank.engines.contract import Engine, Held, Table
from crowdrank.engines.here import Here, here

__all__ = ["Engine", "Held", "Here", "Table", "here"]
