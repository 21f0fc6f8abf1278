"""Engines: where sums over the judgments run. Models request sums over shards, wherever these are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crowdrank.engines.local import (
    LOCAL,
    Engine,
    LocalEngine,
    ProgressEngine,
    ShardedData,
    StreamedTable,
    Table,
    available_cores,
)
from crowdrank.errors import SettingError, UnknownNameError

if TYPE_CHECKING:
    from crowdrank.engines.dask import Dask
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

ENGINES = ("local", "out-of-core", "dask")


def __getattr__(name: str) -> Any:
    """Engines for more than the memory of one process are imported on first use."""
    home = {"Dask": "dask", "OutOfCore": "out_of_core"}
    if name in home:
        return getattr(import_module(f"crowdrank.engines.{home[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def check_engine(name: str | None, scheduler: str | None = None, memory: str | int | None = None) -> None:
    """Raise SettingError for an invalid combination of engine, scheduler and memory limit."""
    if name is not None and name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    if scheduler is not None and name != "dask":
        raise SettingError("scheduler= is the address of a Dask cluster: also pass engine='dask'.")
    if memory is not None:
        from crowdrank.engines.out_of_core import parse_bytes

        parse_bytes(memory)
        if name == "local" or scheduler is not None:
            raise SettingError(
                "memory= limits engine='out-of-core' or a Dask cluster started here, not engine='local' or a cluster "
                "that is already running."
            )


@contextmanager
def open_engine(name: str | None, scheduler: str | None = None, memory: str | int | None = None) -> Iterator[Engine]:
    """Open an engine by name and close it, with any cluster started for it, on exit.

    Parameters
    ----------
    name : {"local", "out-of-core", "dask"} or None
        None is "out-of-core" if `memory` is given, else "local".
    scheduler : str, optional
        Address of a running Dask scheduler, such as "tcp://host:8786". Without it, a cluster of processes is started
        on this machine.
    memory : str or int, optional
        Memory limit, such as "4GB".
    """
    check_engine(name, scheduler, memory)
    if name == "dask":
        from crowdrank.engines.dask import Dask

        with _dask_client(scheduler, memory) as client:
            yield Dask(client)
    elif name == "out-of-core" or memory is not None:
        from crowdrank.engines.out_of_core import OutOfCore

        yield OutOfCore() if memory is None else OutOfCore(memory)
    else:
        yield LOCAL


@contextmanager
def _dask_client(scheduler: str | None, memory: str | int | None) -> Iterator[Any]:
    import logging

    from crowdrank.engines.out_of_core import parse_bytes

    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise SettingError("engine='dask' needs Dask: pip install 'crowdrank[dask]'.") from error
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout="10s")
        except (OSError, ValueError) as error:
            raise SettingError(f"No Dask scheduler responds at {scheduler!r}.") from error
        with client:
            yield client
        return
    workers = available_cores()
    limit = "auto" if memory is None else parse_bytes(memory) // workers
    with (
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=limit,
            dashboard_address=":0",
            silence_logs=logging.ERROR,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
