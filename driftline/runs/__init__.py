"""Learning from a person's own table, from the first row to the files that are left."""

from driftline.runs.journal import Journal as Journal
from driftline.runs.model import Model as Model
from driftline.runs.reading import Reading as Reading
from driftline.runs.reading import Rounds as Rounds
from driftline.runs.run import Run as Run
