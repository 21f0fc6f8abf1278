"""Where the arithmetic runs. A model asks for sums over shards and never learns where they were."""

from crowdrank.engines.contract import Engine, Held, Table, TableInParts
from crowdrank.engines.dask import Dask
from crowdrank.engines.here import Here, here
from crowdrank.engines.out_of_core import OutOfCore
from crowdrank.engines.watched import Watched

__all__ = ["Dask", "Engine", "Held", "Here", "OutOfCore", "Table", "TableInParts", "Watched", "here"]
