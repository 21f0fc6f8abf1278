"""Columns kept in files: written once, then memory-mapped one chunk at a time."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from crowdrank.arrays import AnyArray, Int32Array

Columns = Mapping[str, AnyArray]

# Large enough to make the overhead per chunk negligible, small enough to fit in any memory.
ROWS_PER_CHUNK = 1 << 20


class TemporaryFolder:
    """A folder that is deleted when it is no longer referenced, at the latest when Python ends.

    Parameters
    ----------
    parent : str or Path, optional
        Where to create the folder; the system's temporary folder by default.
    """

    def __init__(self, parent: str | Path | None = None):
        self.path = Path(tempfile.mkdtemp(prefix="crowdrank-", dir=parent))
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of columns in files. The object itself is small and can be sent to another process.

    Parameters
    ----------
    folder : str
        The folder of the files, one per column.
    dtypes : tuple of (str, str)
        The name and the type of each column.
    start, stop : int
        The rows of the chunk.
    """

    folder: str
    dtypes: tuple[tuple[str, str], ...]
    start: int
    stop: int

    @property
    def rows(self) -> int:
        return self.stop - self.start

    def load(self) -> dict[str, AnyArray]:
        """Memory-map the columns."""
        found: dict[str, AnyArray] = {}
        for name, dtype in self.dtypes:
            offset = self.start * np.dtype(dtype).itemsize
            found[name] = np.memmap(f"{self.folder}/{name}", dtype, "r", offset, (self.rows,))
        return found

    def read_ahead(self) -> None:
        """Ask the system to read these rows in the background."""
        if not hasattr(os, "posix_fadvise"):
            return
        for name, dtype in self.dtypes:
            size = np.dtype(dtype).itemsize
            with Path(self.folder, name).open("rb") as file:
                os.posix_fadvise(file.fileno(), self.start * size, self.rows * size, os.POSIX_FADV_WILLNEED)


@dataclass(frozen=True, eq=False)
class ColumnStore:
    """Columns in the files of a folder, cut into chunks.

    Parameters
    ----------
    folder : TemporaryFolder
        Keeps the files alive.
    path : str
        The folder of the files, within `folder`.
    dtypes : tuple of (str, str)
        The name and the type of each column.
    bounds : tuple of int
        The first row of each chunk, and the number of rows at the end.
    """

    folder: TemporaryFolder
    path: str
    dtypes: tuple[tuple[str, str], ...]
    bounds: tuple[int, ...]

    @property
    def rows(self) -> int:
        return self.bounds[-1]

    @property
    def chunks(self) -> list[Chunk]:
        return [Chunk(self.path, self.dtypes, a, b) for a, b in pairwise(self.bounds)]

    def load_all(self) -> dict[str, AnyArray]:
        """Memory-map all rows."""
        return Chunk(self.path, self.dtypes, 0, self.rows).load()


def write_columns(pieces: Iterator[Columns], folder: TemporaryFolder) -> ColumnStore:
    """Write pieces of columns one after the other; a column that some pieces lack is zero there."""
    path = Path(tempfile.mkdtemp(dir=folder.path))
    dtypes: dict[str, str] = {}
    rows = 0
    with ExitStack() as open_files:
        files: dict[str, BinaryIO] = {}
        for columns in pieces:
            count = len(next(iter(columns.values())))
            for name, column in columns.items():
                if name not in files:
                    files[name] = open_files.enter_context((path / name).open("wb"))
                    dtypes[name] = column.dtype.str
                    np.zeros(rows, column.dtype).tofile(files[name])
                np.ascontiguousarray(column).tofile(files[name])
            for name in files.keys() - columns.keys():
                np.zeros(count, dtypes[name]).tofile(files[name])
            rows += count
    return ColumnStore(folder, str(path), tuple(dtypes.items()), (*range(0, rows, ROWS_PER_CHUNK), rows))


def remap_codes(store: ColumnStore, new_codes: Mapping[str, Int32Array]) -> None:
    """Replace the codes of some columns in place: code c becomes `new_codes[name][c]`."""
    for chunk in store.chunks:
        for name, new_code in new_codes.items():
            dtype = dict(chunk.dtypes)[name]
            offset = chunk.start * np.dtype(dtype).itemsize
            column = np.memmap(f"{chunk.folder}/{name}", dtype, "r+", offset, (chunk.rows,))
            column[:] = new_code[column]


@dataclass(frozen=True)
class ChunkLoader:
    """Builds one shard of a table from its chunk when called. It is small and can be sent to another process.

    Parameters
    ----------
    chunk : Chunk
        The rows of the shard.
    build : callable
        Builds the shard from the columns and the number of their first row in the whole table.
    """

    chunk: Chunk
    build: Callable[..., Any]

    def __call__(self) -> Any:
        return self.build(self.chunk.load(), self.chunk.start)

    def read_ahead(self) -> None:
        self.chunk.read_ahead()


@dataclass(frozen=True)
class ChunkedTable:
    """A table whose shards are built when they are needed.

    Parameters
    ----------
    loaders : tuple of callables
        Each builds one shard.
    rows : int
        Number of rows of all shards.
    """

    loaders: tuple[Any, ...]
    rows: int

    def joined(self, shard: Any) -> ChunkedTable:
        """Return the table with one more shard, which is in memory."""
        return ChunkedTable((*self.loaders, LoadedShard(shard)), self.rows + shard.rows)


@dataclass(frozen=True)
class LoadedShard:
    """A shard in memory, with the interface of `ChunkLoader`."""

    shard: Any

    def __call__(self) -> Any:
        return self.shard

    def read_ahead(self) -> None:
        """Do nothing: the shard is in memory."""
