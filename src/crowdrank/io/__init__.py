"""Read and write judgments: sources, column roles, row validation, formats, and tables that accompany judgments.

What one ranking of a file does not need is imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from crowdrank.data.tables import ImportReport, MalformedRow
from crowdrank.io.reader import explain, read, read_with_report
from crowdrank.io.sources import needs_scan

if TYPE_CHECKING:
    from crowdrank.io.formats.base import Format
    from crowdrank.io.formats.registry import list_formats
    from crowdrank.io.item_tables import (
        AnnotatorTable,
        GoldTable,
        ItemTable,
        as_labels,
        column_names,
        find_side_columns,
        read_annotators,
        read_gold,
        read_items,
        read_people,
    )
    from crowdrank.io.scanner import scan, scan_with_report
    from crowdrank.io.writer import Addition, check_addition, write, write_table

_HOME = {
    "Addition": "writer",
    "AnnotatorTable": "item_tables",
    "Format": "formats.base",
    "GoldTable": "item_tables",
    "ItemTable": "item_tables",
    "as_labels": "item_tables",
    "check_addition": "writer",
    "column_names": "item_tables",
    "find_side_columns": "item_tables",
    "list_formats": "formats.registry",
    "read_annotators": "item_tables",
    "read_gold": "item_tables",
    "read_items": "item_tables",
    "read_people": "item_tables",
    "scan": "scanner",
    "scan_with_report": "scanner",
    "write": "writer",
    "write_table": "writer",
}

__all__ = [
    "Addition",
    "AnnotatorTable",
    "Format",
    "GoldTable",
    "ImportReport",
    "ItemTable",
    "MalformedRow",
    "as_labels",
    "check_addition",
    "column_names",
    "explain",
    "find_side_columns",
    "list_formats",
    "needs_scan",
    "read",
    "read_annotators",
    "read_gold",
    "read_items",
    "read_people",
    "read_with_report",
    "scan",
    "scan_with_report",
    "write",
    "write_table",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"crowdrank.io.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
