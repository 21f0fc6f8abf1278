"""External formats. Each module defines one or more `Format`s; `registry` lists and detects them."""

from crowdrank.io.formats.base import Format, Writer
from crowdrank.io.formats.registry import detect_format, get_format, list_formats

__all__ = ["Format", "Writer", "detect_format", "get_format", "list_formats"]
