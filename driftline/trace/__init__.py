"""The record of rounds, in columns by name: of a batch, or of a whole run."""

from driftline.trace.batch import Batch as Batch
from driftline.trace.sink import Sink as Sink
from driftline.trace.trace import Trace as Trace
from driftline.trace.trace import at_most_rounding as at_most_rounding
from driftline.trace.trace import column as column
from driftline.trace.trace import joined as joined
from driftline.trace.trace import predictions as predictions
from driftline.trace.trace import read_file as read_file
from driftline.trace.trace import rounds_that_came as rounds_that_came
from driftline.trace.trace import with_suffix as with_suffix
from driftline.trace.trace_file import TraceFile as TraceFile
