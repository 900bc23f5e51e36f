"""Runs for people to read: one HTML file that needs nothing else."""

from driftline.reports.report import write_report as write_report
from driftline.reports.story import Story as Story
from driftline.reports.verdict import verdict as verdict
