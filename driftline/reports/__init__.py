"""Runs for people to read: one HTML file that needs nothing else."""

from driftline.reports.report import write_report as write_report
from driftline.reports.report_data import ReportData as ReportData
from driftline.reports.verdict import verdict as verdict
