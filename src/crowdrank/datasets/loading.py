"""Finding, checking and reading a data set."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from crowdrank.data import Judgments
from crowdrank.datasets.catalogue import CATALOGUE, DatasetInfo
from crowdrank.errors import DataError, SettingError, UnknownNameError
from crowdrank.evaluation import Gold
from crowdrank.io import read

VARIABLE = "CROWDRANK_DATA"
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A data set as returned by `load`.

    Parameters
    ----------
    info : DatasetInfo
        Source, licence and citation.
    judgments : Comparisons, Ratings or Rankings
        The judgments, for `crowdrank.rank` and the models.
    gold : Gold or None
        True values of the items, if the set has them.
    """

    info: DatasetInfo
    judgments: Judgments
    gold: Gold | None

    def __repr__(self) -> str:
        return f"Dataset({self.info.name!r}, {self.judgments!r}, gold={self.gold!r})"


def load(name: str, folder: str | Path | None = None, *, verify: bool = True) -> Dataset:
    """Load a public data set from your own copy.

    Parameters
    ----------
    name : str
        Name of the set, see `CATALOGUE`.
    folder : path, optional
        The folder with the data sets. By default the folder that the environment variable `CROWDRANK_DATA` names.
    verify : bool, default True
        Compare the checksums of the files. An original file has none, and is read as it is.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If the set is not in the folder; the message says where it can be obtained. Also if a checksum differs.

    Examples
    --------
    >>> import crowdrank as cr
    >>> data = cr.datasets.load("sushi", folder="my-data")  # doctest: +SKIP
    >>> cr.rank(data.judgments)  # doctest: +SKIP
    """
    if name not in CATALOGUE:
        raise UnknownNameError("data set", name, CATALOGUE)
    info, home = CATALOGUE[name], _folder(folder)
    path = home / info.file
    if not path.is_file():
        return Dataset(info, _read(_original(info, home), info.original_columns), None)
    if verify:
        _verify(path, info.sha256)
    return Dataset(info, _read(path, info.columns), _gold(info, home, verify))


def available(folder: str | Path | None = None) -> list[str]:
    """Return the names of the data sets that are in the folder.

    Parameters
    ----------
    folder : path, optional
        As in `load`.
    """
    home = _folder(folder)
    return [name for name, info in CATALOGUE.items() if (home / info.file).is_file() or _originals(info, home)]


def _folder(folder: str | Path | None) -> Path:
    given = folder or os.environ.get(VARIABLE)
    if not given:
        raise SettingError(f"No folder of data sets: pass folder=… or set the environment variable {VARIABLE}.")
    if not Path(given).is_dir():
        raise SettingError(f"There is no folder {given}: pass another folder=… or set {VARIABLE}.")
    return Path(given)


def _originals(info: DatasetInfo, home: Path) -> list[Path]:
    """Original files in the folder of the set. A pattern may match several; the first in order is read."""
    return sorted((home / info.file).parent.glob(info.original)) if info.original else []


def _original(info: DatasetInfo, home: Path) -> Path:
    if found := _originals(info, home):
        return found[0]
    either = f", or the original file {info.original} in the same folder" if info.original else ""
    raise DataError(
        f"The data set {info.name} is not in the folder {home} and can be obtained from {info.source} "
        f"(licence: {info.licence}). Expected {info.file} with the columns {info.layout}{either}."
    )


def _verify(path: Path, expected: str) -> None:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    if digest.hexdigest() != expected:
        raise DataError(
            f"{path} is not the file that is known by this name: its SHA-256 is {digest.hexdigest()}, expected "
            f"{expected}.",
            remedy="Pass verify=False to read it anyway.",
        )


def _read(path: Path, columns: Mapping[str, str]) -> Judgments:
    return read(path, columns=dict(columns) or None, warn=False)


def _gold(info: DatasetInfo, home: Path, verify: bool) -> Gold | None:
    path = home / info.gold_file
    if not info.gold_file or not path.is_file():
        return None
    if verify:
        _verify(path, info.gold_sha256)
    if info.gold_file != info.file:
        return Gold.read(path)
    # The better of two items is named in each row of the judgments.
    frame = pl.read_csv(path, infer_schema=False)
    query = pl.concat_str(info.columns["query"].split("+"), separator="+").alias("query")
    pairs = frame.select(query, "left", "right", "gold").unique(["query"], maintain_order=True)
    rows = [(query, item, float(item == best)) for query, *shown, best in pairs.iter_rows() for item in shown]
    queries, items, values = zip(*rows, strict=True)
    return Gold.of(items, values, query=queries)
