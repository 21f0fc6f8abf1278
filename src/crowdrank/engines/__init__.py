"""Engines: where sums over the judgments run. Models ask for sums over shards and do not know where they are."""

from crowdrank.engines.dask import Dask
from crowdrank.engines.local import LOCAL, LocalEngine
from crowdrank.engines.out_of_core import OutOfCore
from crowdrank.engines.protocol import Engine, ProgressEngine, ShardedData, StreamedTable, Table

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
