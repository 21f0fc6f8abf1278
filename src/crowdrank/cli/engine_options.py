"""Where crowdrank rank and learn compute, how much memory they may take, and where a climb starts from."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdrank.errors import SettingError

if TYPE_CHECKING:
    from crowdrank.data import Comparisons, Judgments
    from crowdrank.engines import Engine
    from crowdrank.io import ImportReport

ENGINES = ("here", "out-of-core", "dask")
EngineName = Annotated[
    str | None, typer.Option("--engine", help="Where to compute: here, out-of-core (of folders) or dask.")
]
Scheduler = Annotated[
    str | None, typer.Option("--scheduler", help="Of a Dask cluster that runs: tcp://host:8786. Else one is started.")
]
Memory = Annotated[
    str | None, typer.Option("--memory", help="What may be taken up: 4GB, 512MB … Longer files are passed over.")
]
WarmStart = Annotated[
    Path | None, typer.Option("--warm-start", help="An earlier ranking (.json of --out) whose scores to start from.")
]


def check_engine(name: str | None, scheduler: str | None, memory: str | None) -> None:
    """Refuse what cannot be, before anything is read."""
    from crowdrank.engines.memory import bytes_of

    if name is not None and name not in ENGINES:
        raise SettingError(f"--engine must be one of {', '.join(ENGINES)}, got {name!r}.")
    if scheduler is not None and name != "dask":
        raise SettingError("--scheduler is of a Dask cluster: say --engine dask, too.")
    if memory is not None:
        bytes_of(memory)
        if name == "here" or scheduler is not None:
            raise SettingError("--memory limits --engine out-of-core, and a Dask cluster that is started here.")


def read_or_scan(
    file: Path,
    engine: str | None,
    memory: str | None,
    roles: Mapping[str, str | None],
    strict: bool,
    at_once: Mapping[str, Any],
) -> tuple[Judgments, ImportReport]:
    """The judgments in memory; a folder, a pattern, or whatever memory is not to hold, as files of codes.

    `at_once` are wishes that only files read at once can grant.
    """
    from crowdrank.cli.progress import doing
    from crowdrank.io import needs_scan, read_with_report, scan_with_report

    if not needs_scan(file) and engine != "out-of-core" and memory is None:
        with doing(f"Reading {file.name}"):
            return read_with_report(file, columns=roles, strict=strict, **at_once)
    for name, value in at_once.items():
        if value and (name, value) != ("kind", "comparisons"):
            what = "--features other than position" if name == "features" else f"--{name}"
            raise SettingError(f"{what} is of files that are read into memory; {file} is passed over.")
    with watching(f"Reading {file.name}", "{:,} judgments") as tell:
        return scan_with_report(file, columns=roles, strict=strict, progress=tell)


def check_spreads(engine: str | None, model: str) -> None:
    """Refuse to start a cluster that would have nothing to do."""
    from crowdrank.models import REGISTRY

    if engine == "dask" and not REGISTRY[model].distributable:
        able = ", ".join(name for name, kind in REGISTRY.items() if kind.distributable)
        raise SettingError(f"{model} computes on one machine: leave --engine out, or take one of {able}.")


@contextmanager
def running(name: str | None, scheduler: str | None, memory: str | None, what: str = "Ranking") -> Iterator[Engine]:
    """The engine, as long as it is needed; says how many passes it has made."""
    from crowdrank.engines import Watched

    with watching(what, "pass {:,}") as tell, opened(name, scheduler, memory) as engine:
        yield Watched(engine, tell)


@contextmanager
def opened(name: str | None, scheduler: str | None = None, memory: str | None = None) -> Iterator[Engine]:
    """The engine that goes by this name, as long as it is needed."""
    from crowdrank.engines import Dask, OutOfCore, here

    if name == "dask":
        with _cluster(scheduler, memory) as client:
            yield Dask(client)
    elif name == "out-of-core" or memory is not None:
        yield OutOfCore() if memory is None else OutOfCore(memory)
    else:
        yield here


@contextmanager
def _cluster(scheduler: str | None, memory: str | None) -> Iterator[Any]:
    """A client of a cluster: the one named, or one of processes on this machine."""
    from crowdrank.engines.local import cores
    from crowdrank.engines.memory import bytes_of

    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise SettingError("--engine dask needs Dask: pip install 'crowdrank[dask]'.") from error
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout="10s")
        except (OSError, ValueError) as error:
            raise SettingError(f"No Dask scheduler answers at {scheduler!r}.") from error
        with client:
            yield client
        return
    workers = cores()
    limit = "auto" if memory is None else bytes_of(memory) // workers
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


def warmed(model: Any, judgments: Judgments, earlier: Path | None) -> Judgments:
    """The judgments with the scores of an earlier ranking to start from, for a model that climbs."""
    from crowdrank import models
    from crowdrank.data import Comparisons
    from crowdrank.results import Ranking

    if earlier is None:
        return judgments
    if not model.supports_warm_start or not isinstance(judgments, Comparisons):
        able = [name for name, kind in models.REGISTRY.items() if kind.supports_warm_start]
        raise SettingError(f"--warm-start needs comparisons and a model that climbs: {', '.join(able)}.")
    ranking = Ranking.load(earlier)
    found: Comparisons = judgments.starting_at(ranking.items, ranking.scores)
    return found


@contextmanager
def watching(what: str, so_far: str) -> Iterator[Callable[[int], None]]:
    """To be told how far it is; shows that beside a spinner, on a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda count: None
        return
    with console.status(f"{what} …") as status:
        yield lambda count: status.update(f"{what}: {so_far.format(count)} …")
