"""Where the bytes of a source are: files, folders, patterns of names, compressed files, archives, standard input."""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import TextIO

import polars as pl

from crowdrank.errors import FormatError

STANDARD_INPUT = "-"
COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
PARQUET_SUFFIXES = (".parquet", ".pq")
ARROW_SUFFIXES = (".arrow", ".feather")
# Suffixes of data in folders and archives. Only files of the first suffix that occurs are read.
_DATA_SUFFIXES = (
    *PARQUET_SUFFIXES,
    *ARROW_SUFFIXES,
    ".jsonl",
    ".ndjson",
    ".csv",
    ".tsv",
    ".tab",
    ".json",
    ".txt",
    ".xlsx",
)
# Files that describe a data set and hold no rows of it.
_DESCRIPTIONS = re.compile(r"(readme|license|licence|dataset_infos?|dataset_dict|state|metadata|\.|_).*", re.IGNORECASE)
_URL = re.compile(r"(https?|ftp|s3|gs|hf):/", re.IGNORECASE)
# Larger folders are streamed from disk.
MAX_FOLDER_BYTES = 500_000_000


@dataclass(frozen=True)
class Container:
    """The bytes of one file.

    Parameters
    ----------
    name : str
        The name in messages.
    suffix : str
        The suffix of its content, without that of a compression.
    read : callable
        Reads the bytes, decompressed.
    path : Path, optional
        The file, if its bytes are not changed on the way.
    """

    name: str
    suffix: str
    read: Callable[[], bytes]
    path: Path | None = None


def find_containers(source: str | PathLike[str]) -> list[Container]:
    """Return the files of a path, a folder, a pattern of names, an archive, or standard input."""
    text = str(source)
    if text == STANDARD_INPUT:
        return _from_bytes("standard input", _read_stream(sys.stdin))
    if _URL.match(text):
        raise FormatError(f"{text}: URLs are not read.", remedy="Download the file, then pass its path.")
    if is_folder_or_pattern(source):
        return [found for path in find_files(text) for found in _open_file(path)]
    return _open_file(Path(source))


@lru_cache(maxsize=1)
def _read_stream(stream: TextIO) -> bytes:
    """Read standard input, which gives its content once; some commands look at their source twice."""
    return stream.buffer.read()


def is_folder_or_pattern(source: str | PathLike[str]) -> bool:
    path = Path(source)
    try:
        return path.is_dir() or (glob.has_magic(str(source)) and not path.exists())
    except (OSError, ValueError):
        return False


def find_files(source: str) -> list[Path]:
    """Return the data files of a folder or a pattern, sorted by name; of a folder, those of one suffix."""
    if not Path(source).is_dir():
        files = sorted(path for path in map(Path, glob.glob(source, recursive=True)) if path.is_file())
        if not files:
            raise FormatError(f"{source}: no file has such a name.")
        return files
    found = sorted(path for path in Path(source).rglob("*") if path.is_file())
    chosen = _data_files([path.relative_to(source).as_posix() for path in found])
    if not chosen:
        raise FormatError(f"{source}: is a folder without data files ({', '.join(_DATA_SUFFIXES)}).")
    return [Path(source) / name for name in chosen]


def needs_scan(source: str | PathLike[str]) -> bool:
    """Return whether a source is a folder or a pattern of Parquet or CSV files too large to be read into memory."""
    if not is_folder_or_pattern(source):
        return False
    files = find_files(str(source))
    scannable = all(content_suffix(path.name) in (*PARQUET_SUFFIXES, ".csv", ".tsv", ".tab") for path in files)
    return scannable and sum(path.stat().st_size for path in files) > MAX_FOLDER_BYTES


def content_suffix(name: str) -> str:
    """Return the suffix of the content: .csv for votes.csv.gz."""
    path = PurePosixPath(name)
    return (PurePosixPath(path.stem) if path.suffix.lower() in COMPRESSED_SUFFIXES else path).suffix.lower()


def _data_files(names: Sequence[str]) -> list[str]:
    data = [n for n in names if not any(_DESCRIPTIONS.fullmatch(part) for part in PurePosixPath(n).parts)]
    for suffix in _DATA_SUFFIXES:
        if chosen := [name for name in data if content_suffix(name) == suffix]:
            return chosen
    return []


def _open_file(path: Path) -> list[Container]:
    try:
        exists = path.exists()
    except (OSError, ValueError) as error:
        raise FormatError(f"{str(path)[:100]!r} is not a valid path ({error}).") from error
    if not exists:
        raise FormatError(f"{path}: there is no such file.")
    suffix = content_suffix(path.name)
    if suffix == ".zip":
        return _from_archive(path.name, read_file(path))
    plain = path.suffix.lower() not in COMPRESSED_SUFFIXES
    return [Container(path.name, suffix, lambda: decompress(read_file(path), path.name), path if plain else None)]


def _from_bytes(name: str, data: bytes) -> list[Container]:
    """Return the file that bytes without a name are, by their first bytes."""
    data = decompress(data, name)
    if data.startswith(b"PK\x03\x04"):
        if b"xl/workbook.xml" in data:
            return [Container(name, ".xlsx", lambda: data)]
        return _from_archive(name, data)
    start = data.lstrip()[:1]
    suffix = ".parquet" if data.startswith(b"PAR1") else ".json" if start and start in b"[{" else ""
    return [Container(name, suffix, lambda: data)]


def _from_archive(name: str, data: bytes) -> list[Container]:
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        members = [member for member in archive.namelist() if not member.endswith("/")]
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise FormatError(f"{name}: is not a complete zip file ({error}).") from error
    chosen = _data_files(members)
    if not chosen:
        raise FormatError(f"{name}: contains no data file ({', '.join(_DATA_SUFFIXES)}).")

    def read(member: str) -> bytes:
        try:
            return decompress(archive.read(member), member)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, zlib.error, EOFError, OSError) as error:
            raise FormatError(f"{name}: {member} cannot be extracted ({error}).") from error

    return [
        Container(f"{name}/{PurePosixPath(member).name}", content_suffix(member), lambda member=member: read(member))  # type: ignore[misc]
        for member in chosen
    ]


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path.name}: cannot be read ({(error.strerror or str(error)).lower()}).") from error


def decompress(data: bytes, name: str) -> bytes:
    """Decompress data by their first bytes, whatever the file is called."""
    for magic, (program, unpack) in _COMPRESSIONS.items():
        if data.startswith(magic):
            try:
                return unpack(data)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, pl.exceptions.PolarsError) as error:
                reason = str(error).strip().split("\n", 1)[0]
                raise FormatError(f"{name}: is not a complete {program} file ({reason}).") from error
    if name.lower().endswith(COMPRESSED_SUFFIXES):
        raise FormatError(f"{name}: is not a complete {name.rpartition('.')[2]} file (its first bytes are others).")
    return data


def _unpack_zstd(data: bytes) -> bytes:
    # Python reads Zstandard from version 3.14 on, and polars always does: line by line, without interpreting quotes.
    lines = pl.read_csv(data, has_header=False, separator="\x01", quote_char=None, infer_schema=False)
    return "\n".join(line or "" for line in lines.to_series()).encode()


_COMPRESSIONS: dict[bytes, tuple[str, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": ("gzip", gzip.decompress),
    b"BZh": ("bzip2", bz2.decompress),
    b"\xfd7zXZ\x00": ("xz", lzma.decompress),
    b"\x28\xb5\x2f\xfd": ("zstd", _unpack_zstd),
}
