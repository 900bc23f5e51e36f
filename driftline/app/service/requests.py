"""What may be asked of the machine, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from driftline.app.service.catch_up import CatchUp
from driftline.app.service.served import Feedback
from driftline.typing import Json

__all__ = [
    "ALONE",
    "Ask",
    "Challenge",
    "Create",
    "Delete",
    "Expire",
    "Learn",
    "Outcome",
    "Promote",
    "Read",
    "RefusedError",
    "Request",
    "Retire",
    "Tell",
]


class RefusedError(Exception):
    """A request that is not carried out: the status of HTTP, and why."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class Ask(NamedTuple):
    """Predict rows, each by an id of its own, and keep tickets for their labels."""

    model: str
    ids: Sequence[str]
    rows: Sequence[Any]


class Tell(NamedTuple):
    """Learn what came of earlier predictions, by their ids.

    Where a prediction was answered with a token, this comes back; else it is empty.
    """

    model: str
    ids: Sequence[str]
    feedback: Sequence[Feedback]
    tokens: Sequence[str] = ()


class Learn(NamedTuple):
    """Learn from rows that come with their labels; ``ids`` may be empty texts."""

    model: str
    ids: Sequence[str]
    rows: Sequence[Any]
    feedback: Sequence[Feedback]


class Read(NamedTuple):
    """Remember up to where a model has read a stream, in the commit of what was read from it."""

    model: str
    source: str
    position: str


class Create(NamedTuple):
    """Add a model, by the bytes of its file."""

    name: str
    content: bytes


class Delete(NamedTuple):
    """Remove a model. Its records stay in the log until they are too old."""

    model: str


class Challenge(NamedTuple):
    """Add a learner that reads the same log, from a record on.

    ``ahead`` is the learner, if it has read a good part of the log already, beside the writer.
    """

    model: str
    name: str
    content: bytes
    after: int
    ahead: CatchUp | None = None


class Promote(NamedTuple):
    """Let another learner of a model answer from now on. Going back is the same request."""

    model: str
    learner: str


class Retire(NamedTuple):
    """Remove a learner that does not answer."""

    model: str
    learner: str


class Expire(NamedTuple):
    """Forget tickets of a model that are older than a time in milliseconds."""

    model: str
    before: int


Request: TypeAlias = (
    Ask | Tell | Learn | Read | Create | Delete | Challenge | Promote | Retire | Expire
)

#: Requests that have a batch of their own: what they change is needed to validate others.
ALONE = (Create, Delete, Challenge, Promote, Retire, Expire)


class Outcome(NamedTuple):
    """The answer to a request: the status of HTTP, and plain data.

    ``items`` has a dict for every row of the request, each with a ``status`` of its own; it is None
    for requests without rows.
    """

    status: int
    body: Json
    items: Sequence[Json] | None = None
