"""From the bytes of a text file to UTF-8, or a plain word about why not."""

from __future__ import annotations

import codecs
import gzip
import zlib
from pathlib import Path

from crowdrank.errors import FormatError

_CHUNK = 1 << 24
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def read_bytes(path: Path) -> bytes:
    """What the file holds, unpacked if its name ends in .gz."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path.name}: cannot be read ({(error.strerror or str(error)).lower()}).") from error
    if path.suffix.lower() != ".gz":
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"{path.name}: is not a whole gzip file ({error}).") from error


def as_utf8(data: bytes, name: str, encoding: str | None = None) -> bytes:
    """The same text as UTF-8, without a byte order mark, every line ending in \\n."""
    if encoding is not None:
        data = _decode(data, name, encoding)
    else:
        bom, found = next(((b, e) for b, e in _BOMS if data.startswith(b)), (b"", "utf-8"))
        data = data[len(bom) :] if bom else data
        if found != "utf-8":
            data = _decode(data, name, found)
    _check_utf8(data, name)
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def _decode(data: bytes, name: str, encoding: str) -> bytes:
    try:
        return data.decode(encoding).removeprefix("\ufeff").encode("utf-8")
    except LookupError as error:
        raise FormatError(f"{name}: there is no encoding called {encoding!r}; try utf-8, utf-16 or latin-1.") from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{name}: line {line} is not {encoding} text (byte 0x{data[error.start]:02x}).") from error
    except (UnicodeError, ValueError) as error:
        raise FormatError(f"{name}: cannot be read as {encoding}: {error}.") from error


def _check_utf8(data: bytes, name: str, chunk: int = _CHUNK) -> None:
    if (nul := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, nul) + 1
        raise FormatError(
            f"{name}: line {line} holds a NUL byte, so this is not plain text; "
            "if it is UTF-16 text, say --encoding utf-16-le (or utf-16-be)."
        )
    if data.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), chunk):
        # What the decoder still holds of the chunk before counts towards the position of an error.
        held = len(decoder.getstate()[0])
        try:
            decoder.decode(data[start : start + chunk], final=start + chunk >= len(data))
        except UnicodeDecodeError as error:
            place = start - held + error.start
            line = data.count(b"\n", 0, place) + 1
            raise FormatError(
                f"{name}: line {line} is not UTF-8 text (byte 0x{data[place]:02x}); "
                "if it comes from an older program, say --encoding latin-1."
            ) from error
