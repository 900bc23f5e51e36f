"""Learners as values, and the files they are kept in."""

from driftline.state.draws import Draws as Draws
from driftline.state.state import State as State
from driftline.state.stateful import Checkpoint as Checkpoint
from driftline.state.stateful import Stateful as Stateful
