"""The HTML report: one self-contained page."""

from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.page import report, write_report

__all__ = ["Findings", "report", "write_report"]
