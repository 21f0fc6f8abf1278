"""The door: files and frames in, judgments out, with a report of what was left out and why."""

from crowdrank.io.annotator_table import People, read_annotators
from crowdrank.io.converter import write
from crowdrank.io.formats import FORMATS, Format
from crowdrank.io.import_report import ImportReport, Malformed
from crowdrank.io.item_tables import GoldColumns, ItemColumns, columns_of_sides, labels_of, read_gold, read_items
from crowdrank.io.reader import read, read_with_report
from crowdrank.io.scanner import is_long, scan, scan_with_report
from crowdrank.io.writer import write_table

__all__ = [
    "FORMATS",
    "Format",
    "GoldColumns",
    "ImportReport",
    "ItemColumns",
    "Malformed",
    "People",
    "columns_of_sides",
    "is_long",
    "labels_of",
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
