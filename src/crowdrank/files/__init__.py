"""The door: files and frames in, judgments out, with a report of what was left out and why."""

from crowdrank.files.gold import GoldColumns, read_gold
from crowdrank.files.reading import read, read_with_report
from crowdrank.files.report import ImportReport, Malformed
from crowdrank.files.writing import write_table

__all__ = ["GoldColumns", "ImportReport", "Malformed", "read", "read_gold", "read_with_report", "write_table"]
