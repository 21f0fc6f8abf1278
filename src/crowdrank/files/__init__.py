"""The door: files and frames in, judgments out, with a report of what was left out and why."""

from crowdrank.files.converting import write
from crowdrank.files.formats import FORMATS, Format
from crowdrank.files.gold import GoldColumns, read_gold
from crowdrank.files.items import ItemColumns, columns_of_sides, labels_of, read_items
from crowdrank.files.people import People, read_annotators
from crowdrank.files.reading import read, read_with_report
from crowdrank.files.report import ImportReport, Malformed
from crowdrank.files.scanning import is_long, scan, scan_with_report
from crowdrank.files.writing import write_table

__all__ = [
    "FORMATS", "Format", "GoldColumns", "ImportReport", "ItemColumns", "Malformed", "People", "columns_of_sides",
    "is_long", "labels_of", "read", "read_annotators", "read_gold", "read_items", "read_with_report", "scan",
    "scan_with_report", "write", "write_table",
]  # fmt: skip
