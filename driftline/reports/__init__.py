"""Reports of runs, each in one self-contained HTML file."""

from driftline.reports.changed_inputs import ChangedInput as ChangedInput
from driftline.reports.changed_inputs import InputChange as InputChange
from driftline.reports.changed_inputs import inputs_in_words as inputs_in_words
from driftline.reports.key_table import KeyTable as KeyTable
from driftline.reports.key_table import keys_in_words as keys_in_words
from driftline.reports.report import write_report as write_report
from driftline.reports.report_data import WEIGHTED as WEIGHTED
from driftline.reports.report_data import ReportData as ReportData
from driftline.reports.time_axis import TimeAxis as TimeAxis
from driftline.reports.verdict import alarms_in_words as alarms_in_words
from driftline.reports.verdict import champion_in_words as champion_in_words
from driftline.reports.verdict import verdict as verdict
