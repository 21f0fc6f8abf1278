"""Where the arithmetic runs. A model asks for sums over shards and never learns where they were."""

from crowdrank.engines.base import Engine, ProgressEngine, ShardedData, StreamedTable, Table
from crowdrank.engines.dask import Dask
from crowdrank.engines.local import LOCAL, LocalEngine
from crowdrank.engines.out_of_core import OutOfCore

__all__ = [
    "LOCAL",
    "Dask",
    "Engine",
    "LocalEngine",
    "OutOfCore",
    "ProgressEngine",
    "ShardedData",
    "StreamedTable",
    "Table",
]
