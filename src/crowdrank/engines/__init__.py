"""Where the arithmetic runs. A model asks for sums over shards and never learns where they were."""

from crowdrank.engines.base import Engine, Held, Table, TableInParts, Watched
from crowdrank.engines.dask import Dask
from crowdrank.engines.local import Here, here
from crowdrank.engines.out_of_core import OutOfCore

__all__ = ["Dask", "Engine", "Held", "Here", "OutOfCore", "Table", "TableInParts", "Watched", "here"]
