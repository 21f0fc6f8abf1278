"""Read and write judgments: sources, column roles, row validation, formats, and tables that accompany judgments."""

from crowdrank.data.tables import ImportReport, MalformedRow
from crowdrank.io.annotator_table import AnnotatorTable, read_annotators
from crowdrank.io.containers import needs_scan
from crowdrank.io.formats import Format, list_formats
from crowdrank.io.item_tables import (
    GoldTable,
    ItemTable,
    as_labels,
    column_names,
    find_side_columns,
    read_gold,
    read_items,
)
from crowdrank.io.reader import explain, read, read_with_report
from crowdrank.io.scanner import scan, scan_with_report
from crowdrank.io.writer import write, write_table

__all__ = [
    "AnnotatorTable",
    "Format",
    "GoldTable",
    "ImportReport",
    "ItemTable",
    "MalformedRow",
    "as_labels",
    "column_names",
    "explain",
    "find_side_columns",
    "list_formats",
    "needs_scan",
    "read",
    "read_annotators",
    "read_gold",
    "read_items",
    "read_with_report",
    "scan",
    "scan_with_report",
    "write",
    "write_table",
]
