"""A report as one web page."""

from crowdrank.reports.html.findings import Findings
from crowdrank.reports.html.page import check_report, report, write_report

__all__ = ["Findings", "check_report", "report", "write_report"]
