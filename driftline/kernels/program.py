"""A learner's parts as data for the compiled loop: addresses, parameters, sizes.

The layout below is the only agreement between Python and the loop. ``code`` holds the
addresses of the parts' kernels, where each part's parameters end in ``params``, and the
sizes of the buffers; ``state`` is what a learner carries from round to round beside
its weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from driftline.kernels.compile import Kernel

# slots of code: addresses,
ENCODE, DRAW, LOSS, VALUES, MIX, DECODE, RATE, DETECT = range(8)
# ends of the parameters of task, loss, decoder, rate and detector,
TASK_END, LOSS_END, DECODER_END, RATE_END, DETECTOR_END = range(8, 13)
# sizes: scores, the loss's workspace, the decoder's scratch space, the rate's memory; and 1 for
# an intercept.
OUTPUTS, WORK, SCRATCH, RATE_MEMORY, INTERCEPT = range(13, 18)
# and 1 in a replay: steps are those already in the trace, and alarms do not stop the loop; the
# steps and alarms of this rate and detector are recorded beside them.
REPLAY = 18
# and 1 to predict only: rows are scored and predicted, and not learned from; mean loss encodings
# are written to the trace from row MEANS on, and behind them scores, as far as it has such rows.
LOOK = 19
# and the place in the loss's workspace where it leaves its duality gap, -1 if it has none.
GAP = 20
# and 1 if steps are in units of the loss, so that a sample weight would cancel.
RELATIVE = 21

# slots of state, by name: the weights are SCALE times the stored array, NORM_SQ is their squared
# norm, REFRESH the round at which that is next computed afresh, ETA the last recorded
# rate, INNER the inner product with a comparator's weights, ALARM the status of the detector (see
# below), MOST_ETA the largest step that heavy rounds allow, infinite if there were none; the rate's
# own memory follows from MEMORY on, and then the detector's.
STATE = (
    *("scale", "norm_sq", "refresh", "rounds", "largest_input_sq"),
    *("eta", "radius", "inner", "alarm", "most_eta"),
)
SCALE, NORM_SQ, REFRESH, ROUNDS, LARGEST_INPUT_SQ, ETA, RADIUS, INNER, ALARM, MOST_ETA = range(10)
MEMORY = len(STATE)

# values of ALARM: no alarm; an alarm in the last round; an alarm in the last round, after which the
# weights have been reset.
QUIET, GIVEN, HEEDED = 0.0, 1.0, 2.0

# rows of the trace; with a comparator three more: its loss, and before the step the inner product
# of both weights and the squared norm of the learner's; in a replay another two: the rate's own
# step, 0 for none, and 1 where the detector gives an alarm; with a solver two more, the duality
# gaps of the learner's loss and of the comparator's. The scores of a round are written from row
# SCORES on, as far as the trace has such rows.
TRACE_COLUMNS = ("loss", "risk", "target_loss", "eta", "grad_sq")
WATCHED_COLUMNS = (*TRACE_COLUMNS, "comparator_loss", "inner", "norm_sq")
REPLAYED_COLUMNS = (*WATCHED_COLUMNS, "own_eta", "own_alarm")
SOLVED_COLUMNS = (*REPLAYED_COLUMNS, "gap", "comparator_gap")
LOSS_ROW, RISK_ROW, TARGET_ROW, ETA_ROW, GRAD_ROW = range(5)
THEIR_LOSS_ROW, INNER_ROW, NORM_ROW, OWN_ETA_ROW, OWN_ALARM_ROW = range(5, 10)
GAP_ROW, THEIR_GAP_ROW = 10, 11
MEANS, SCORES = len(TRACE_COLUMNS), len(SOLVED_COLUMNS)
ROW = {name: row for row, name in enumerate(SOLVED_COLUMNS)}


def trace_rows(scores: int = 0) -> int:
    """Return how many rows a trace has for rounds with a comparator, or for this many scores."""
    return SCORES + scores if scores else len(WATCHED_COLUMNS)


def state_by_name(vectors: np.ndarray) -> dict[str, np.ndarray]:
    """Return the numbers of a state by name, or of many states, a row each; and their memory."""
    made = dict(zip(STATE, vectors.T, strict=False))
    return made | {"memory": vectors[..., MEMORY:]}


def round_table(
    count: int, columns: Sequence[str] = TRACE_COLUMNS
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return zeros with a row for each column of a record of rounds, and the rows by name."""
    table = np.zeros((len(columns), count))
    return table, dict(zip(columns, table, strict=True))


@dataclass(frozen=True)
class Program:
    """Addresses, sizes and parameters of one learner's parts."""

    code: np.ndarray
    params: np.ndarray

    @classmethod
    def link(
        cls,
        kernels: Sequence[Kernel | None],
        params: Sequence[npt.ArrayLike],
        sizes: tuple[int, int, int, int, int],
        replay: bool = False,
        gap: int = -1,
        relative: bool = False,
    ) -> Program:
        """Put together eight kernels (in the order of the slots), five parts' parameters
        and the sizes.
        """  # noqa: D205
        addresses = [0 if kernel is None else kernel.address for kernel in kernels]
        vectors = [np.asarray(vector, dtype=np.float64).ravel() for vector in params]
        ends = np.cumsum([vector.size for vector in vectors])
        code = np.array([*addresses, *ends, *sizes, replay, False, gap, relative], dtype=np.int64)
        return cls(code, np.concatenate(vectors))

    def looking(self) -> Program:
        """Return the program that predicts without learning."""
        code = self.code.copy()
        code[LOOK], code[GAP] = 1, -1
        return Program(code, self.params)

    def buffer(self, more: int = 0) -> np.ndarray:
        """Return a buffer for the loop, with room for ``more`` numbers at its end."""
        outputs, work, scratch, memory = self.code[OUTPUTS : RATE_MEMORY + 1]
        return np.zeros(6 * outputs + work + scratch + memory + more)
