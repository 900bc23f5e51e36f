"""The record of rounds, in columns by name: of a batch, or of a whole run."""

from driftline.trace.batch import Batch as Batch
from driftline.trace.columns import ASKED as ASKED
from driftline.trace.columns import CAME as CAME
from driftline.trace.columns import TOLD as TOLD
from driftline.trace.columns import Column as Column
from driftline.trace.columns import checked as checked
from driftline.trace.columns import column as column
from driftline.trace.columns import joined as joined
from driftline.trace.columns import of_rounds as of_rounds
from driftline.trace.columns import places as places
from driftline.trace.sink import Sink as Sink
from driftline.trace.trace import Trace as Trace
from driftline.trace.trace import at_most_rounding as at_most_rounding
from driftline.trace.trace import read_file as read_file
from driftline.trace.trace import with_suffix as with_suffix
from driftline.trace.trace_file import TraceFile as TraceFile
