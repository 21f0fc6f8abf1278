"""Columns kept in files: written once from the first row to the last, mapped a part at a time."""

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

# Enough that a pass spends its time on rows, few enough that a part is a small share of any memory.
ROWS_PER_PART = 1 << 20


class Folder:
    """A folder that goes when nobody needs it any more, at the latest when Python ends."""

    def __init__(self, beside: str | Path | None = None):
        self.path = Path(tempfile.mkdtemp(prefix="crowdrank-", dir=beside))
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@dataclass(frozen=True)
class Part:
    """Some rows of columns in files; small itself, so that it can be sent to wherever these are needed."""

    folder: str
    kinds: tuple[tuple[str, str], ...]
    """The columns and their types."""
    start: int
    stop: int

    @property
    def rows(self) -> int:
        return self.stop - self.start

    def load(self) -> dict[str, AnyArray]:
        """The columns, mapped: what is not read takes no memory, and what was is given back with the last array."""
        found: dict[str, AnyArray] = {}
        for name, kind in self.kinds:
            offset = self.start * np.dtype(kind).itemsize
            found[name] = np.memmap(f"{self.folder}/{name}", kind, "r", offset, (self.rows,))
        return found

    def read_ahead(self) -> None:
        """Have the system read these rows while something else is being computed."""
        if not hasattr(os, "posix_fadvise"):
            return
        for name, kind in self.kinds:
            size = np.dtype(kind).itemsize
            with Path(self.folder, name).open("rb") as file:
                os.posix_fadvise(file.fileno(), self.start * size, self.rows * size, os.POSIX_FADV_WILLNEED)


@dataclass(frozen=True, eq=False)
class Storage:
    """Columns in the files of a folder, and where they are cut."""

    folder: Folder
    path: str
    """Of a folder within."""
    kinds: tuple[tuple[str, str], ...]
    cuts: tuple[int, ...]
    """Where each part begins, and the end of the last."""

    @property
    def rows(self) -> int:
        return self.cuts[-1]

    @property
    def parts(self) -> list[Part]:
        return [Part(self.path, self.kinds, a, b) for a, b in pairwise(self.cuts)]

    def whole(self) -> dict[str, AnyArray]:
        """All rows, mapped."""
        return Part(self.path, self.kinds, 0, self.rows).load()


def store(pieces: Iterator[Columns], folder: Folder) -> Storage:
    """Write pieces of columns one after another."""
    path = Path(tempfile.mkdtemp(dir=folder.path))
    kinds: dict[str, str] = {}
    rows = 0
    with ExitStack() as open_files:
        files: dict[str, BinaryIO] = {}
        for columns in pieces:
            for name, column in columns.items():
                if name not in files:
                    files[name] = open_files.enter_context((path / name).open("wb"))
                    kinds[name] = column.dtype.str
                np.ascontiguousarray(column).tofile(files[name])
            rows += len(column)
    return Storage(folder, str(path), tuple(kinds.items()), (*range(0, rows, ROWS_PER_PART), rows))


def renumber(storage: Storage, places: Mapping[str, Int32Array]) -> None:
    """Give the codes of some columns the places they have in the end."""
    for part in storage.parts:
        for name, place in places.items():
            kind = dict(part.kinds)[name]
            offset = part.start * np.dtype(kind).itemsize
            column = np.memmap(f"{part.folder}/{name}", kind, "r+", offset, (part.rows,))
            column[:] = place[column]


@dataclass(frozen=True)
class Recipe:
    """A shard that is not there yet: call it, and it is made of its part. It can be sent anywhere."""

    part: Part
    make: Callable[..., Any]
    """Takes the columns, and the row of the whole that they begin with."""

    def __call__(self) -> Any:
        return self.make(self.part.load(), self.part.start)

    def read_ahead(self) -> None:
        self.part.read_ahead()


@dataclass(frozen=True)
class InParts:
    """A table whose shards are made when they are needed."""

    loaders: tuple[Any, ...]
    rows: int

    def joined(self, shard: Any) -> InParts:
        """With one more shard, which is there already."""
        return InParts((*self.loaders, Made(shard)), self.rows + shard.rows)


@dataclass(frozen=True)
class Made:
    """A shard that is there."""

    shard: Any

    def __call__(self) -> Any:
        return self.shard

    def read_ahead(self) -> None:
        """Nothing to read."""
