"""Runs: learning from a table, from its first row to the output files."""

from driftline.app.runs.committee_model import CommitteeModel as CommitteeModel
from driftline.app.runs.journal import Journal as Journal
from driftline.app.runs.model import Model as Model
from driftline.app.runs.models import load_model as load_model
from driftline.app.runs.models import new_model as new_model
from driftline.app.runs.reading import Reading as Reading
from driftline.app.runs.reading import Rounds as Rounds
from driftline.app.runs.run import Run as Run
from driftline.app.runs.table_model import TableModel as TableModel
from driftline.app.runs.table_ticket import TableTicket as TableTicket
