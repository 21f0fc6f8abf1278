"""The door: files and frames in, judgments out, with a report of what was left out and why."""

from crowdrank.files.gold import GoldColumns, read_gold
from crowdrank.files.items import ItemColumns, columns_of_sides, labels_of, read_items
from crowdrank.files.people import People, read_annotators
from crowdrank.files.reading import read, read_with_report
from crowdrank.files.report import ImportReport, Malformed
from crowdrank.files.writing import write_table

__all__ = [
    "GoldColumns", "ImportReport", "ItemColumns", "Malformed", "People", "columns_of_sides", "labels_of", "read",
    "read_annotators", "read_gold", "read_items", "read_with_report", "write_table",
]  # fmt: skip
