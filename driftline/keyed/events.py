"""The rows of one key, some at a time: inputs to predict, and labels that come whenever they come.

For systems that keep a value for every key and hand over what came for it: a stream processor, a
database. A :class:`KeyPlayer` takes that value and new rows, and returns answers and the next
value. Rows with an input are predicted; rows with a label are learned from; a label finds its input
by an id. The learner of a key is the one of :class:`~driftline.Keyed`, with the same bits, however
its rows are cut into pieces.

The value is bytes, plain data that is never executed: a message (:mod:`driftline.state.compact`)
on what waits, then the saved learner, then the tickets that wait for their labels.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from driftline.errors import DAMAGE, InputError
from driftline.keyed.keyed import Keyed
from driftline.keyed.keys import Key, check_key, from_plain, to_plain
from driftline.keyed.playing import FEW
from driftline.learner import Learner, Ticket
from driftline.state import archive, compact
from driftline.state.loading import learner_from
from driftline.typing import Label, Prediction, Saved

__all__ = ["Answer", "Event", "KeyPlayer", "learner_of"]

KIND, VERSION = "KeyEvents", 1
#: How many bytes give the length of the first message, and how every ZIP file begins.
LENGTH, ZIP = 4, b"PK"


class Event(NamedTuple):
    """A row of a key: an input, a label, or both; of equal ``order``, inputs come before labels."""

    id: Any
    order: Any
    input: np.ndarray | None
    label: Label = None
    #: Why the row is refused, if that is known already.
    refused: str | None = None


class Answer(NamedTuple):
    """What was predicted for an id, after how many rounds; or why its row was refused."""

    id: Any
    prediction: Prediction
    rounds: int | None
    error: str | None = None


@dataclass
class _Waiting:
    """What is known of a key's ids. Times are those of arrivals, in milliseconds."""

    #: Tickets in their order: as bytes as long as they only wait.
    tickets: dict[Key, tuple[bytes | Ticket, int]] = field(default_factory=dict)
    #: Labels that came before their inputs.
    early: dict[Key, tuple[Label, int]] = field(default_factory=dict)
    #: The last ids of which no label is expected, and whether their labels were learned from.
    done: dict[Key, bool] = field(default_factory=dict)
    #: When the caller will look again at what waits, None if not at all.
    alarm: int | None = None


class KeyPlayer:
    """Plays rows of keys, whose learners and tickets are values that somebody else keeps.

    A row whose id came before is ignored, and so is a second label. A row that cannot be played is
    refused with an error in its answer, and changes nothing: the row may come again, corrected. A
    label waits for its input as an input waits for its label.

    Parameters
    ----------
    learner
        A new learner, as :class:`~driftline.Keyed` takes it.
    outstanding
        How many inputs of a key may wait for their labels; then the oldest is forgotten.
    early
        How many labels of a key may wait for their inputs; then the oldest is refused.
    remembered
        How many ids of a key are remembered after their labels came, to know those that come twice.
    expires
        After how many milliseconds what waits is given up. Default: never.

    Examples
    --------
    >>> import driftline as dl
    >>> player = KeyPlayer(dl.OGD(dl.losses.Logistic(dl.tasks.Multiclass(2))))
    >>> rows = [Event("a", 1, np.array([0.6, 0.8])), Event("b", 2, np.array([1.0, 0.0]), 1)]
    >>> answers, content = player.play("shop 7", rows)
    >>> answers[1]
    Answer(id='b', prediction=0, rounds=0, error=None)
    >>> answers, content = player.play("shop 7", [Event("a", 3, None, 0)], content)
    >>> learner_of(content).rounds
    2
    """

    def __init__(
        self,
        learner: Learner,
        *,
        outstanding: int = 1000,
        early: int = 1000,
        remembered: int = 1000,
        expires: int | None = None,
    ):
        limits = {"outstanding": outstanding, "early": early, "remembered": remembered}
        for name, value in limits.items():
            if type(value) is not int or value < 0:
                raise InputError(f"{name} is a whole number of 0 or more, not {value!r:.40}")
        if expires is not None and (type(expires) is not int or expires <= 0):
            raise InputError(f"expires is a number of milliseconds, not {expires!r:.40}")
        self._fleet = Keyed(learner)
        self._outstanding, self._early, self._remembered = outstanding, early, remembered
        self._expires = expires
        self.task = learner.task
        if self.task.layout.ragged:
            raise InputError(f"a row is one vector here, but inputs of {self.task!r} have several")
        first: Any = learner
        text = json.dumps([first._config(), self._fleet.seed_of("")], sort_keys=True)
        self._origin = hashlib.sha256(text.encode()).hexdigest()[:16]

    def play(
        self, key: Any, events: Iterable[Event], content: bytes | None = None, now: int = 0
    ) -> tuple[list[Answer], bytes]:
        """Play rows of a key; return their answers, in the order of play, and the next value.

        Parameters
        ----------
        key
            Whose rows these are.
        events
            In any order: they are sorted by theirs.
        content
            What the last call returned for this key, None if this is the first.
        now
            The time in milliseconds, by which things expire.
        """
        key = check_key(key)
        if content is None:
            learner, waiting = self._fleet.learner(key), _Waiting()
            learner._identify(f"{self._fleet.seed_of(key):032x}")  # equal rows have equal bytes
        else:
            learner, waiting = self._read(content)
        play = _Play(self, learner, waiting, now)
        play.expire()
        for event in _sorted(events, play.refuse):
            play.take(event)
        play.flush()
        return play.answers, self._packed(learner, waiting)

    # -- when what waits expires

    def alarm(self, content: bytes) -> tuple[bytes, int | None]:
        """Return the value with the next alarm, and when that is if it must be set now.

        Only one is set at a time, for the oldest that waits: when it is due, call :meth:`play`
        with no rows, after :meth:`alarmed`.
        """
        about, rest = _first(content)
        times = [own[1] for own in about["tickets"]] + [own[2] for own in about["early"]]
        if self._expires is None or not times or about["alarm"] is not None:
            return content, None
        about["alarm"] = min(times) + self._expires
        return _joined(about, [rest]), about["alarm"]

    def alarmed(self, content: bytes) -> bytes:
        """Return the value after its alarm."""
        about, rest = _first(content)
        about["alarm"] = None
        return _joined(about, [rest])

    # -- values

    def _packed(self, learner: Any, waiting: _Waiting) -> bytes:
        parts = [_message(*learner.to_saved())]
        for ticket, _ in waiting.tickets.values():
            parts.append(ticket.to_bytes() if isinstance(ticket, Ticket) else ticket)
        times = [time for _, time in waiting.tickets.values()]
        early = waiting.early.items()
        about = {
            "kind": KIND,
            "version": VERSION,
            "origin": self._origin,
            "tickets": [list(own) for own in zip(to_plain([*waiting.tickets]), times, strict=True)],
            "early": [[*to_plain([id]), label, time] for id, (label, time) in early],
            "done": to_plain([*waiting.done]),
            "told": list(waiting.done.values()),
            "alarm": waiting.alarm,
            "sizes": [len(part) for part in parts],
        }
        return _joined(about, parts)

    def _read(self, content: bytes) -> tuple[Any, _Waiting]:
        about, rest = _first(content)
        if about["origin"] != self._origin:
            raise InputError(
                "the value of this key is that of a learner with other parts or another seed: go "
                "on with the learner that it began with, or begin anew"
            )
        parts = _parts(about, rest)
        try:
            ids = from_plain([own[0] for own in about["tickets"]])
            times = [int(own[1]) for own in about["tickets"]]
            early = [own[1:] for own in about["early"]]
            names = from_plain([own[0] for own in about["early"]])
            done = zip(from_plain(about["done"]), map(bool, about["told"]), strict=True)
            tickets = zip(ids, zip(parts[1:], times, strict=True), strict=True)
            labels = {k: (own[0], int(own[1])) for k, own in zip(names, early, strict=True)}
            waiting = _Waiting(dict(tickets), labels, dict(done), about["alarm"])
        except DAMAGE as error:
            raise InputError(f"the value of a key is damaged: {error!r:.200}") from error
        return _learner(parts[0]), waiting


class _Play:
    """Plays the rows of one call: neighbours of one kind together, with the bits of single rows."""

    def __init__(self, player: KeyPlayer, learner: Any, waiting: _Waiting, now: int):
        self._player, self._learner, self._waiting, self._now = player, learner, waiting, now
        self.answers: list[Answer] = []
        self._pending: dict[Key, Event] = {}
        self._kind: Callable[[list[Event]], None] | None = None

    def take(self, event: Event) -> None:
        """Play a row, now or together with those after it."""
        waiting, id = self._waiting, event.id
        if event.input is None and event.label is None:
            self.refuse(event, "the row has neither an input nor a label")
            return
        if id in self._pending or id in waiting.done or id in waiting.early:
            self.flush()  # what is remembered of an id depends on the rows before
        known = id in waiting.tickets or id in waiting.done
        if event.input is not None and not known:
            if id in waiting.early:  # it came first, and a second label is ignored
                event = event._replace(label=waiting.early[id][0])
            self._add(self._ask if event.label is None else self._step, event)
        elif event.label is not None and id in waiting.tickets:
            self._add(self._tell, event)
        elif event.label is not None and waiting.done.get(id) is False:
            self.refuse(event, "the label came too late: its input was forgotten")
        elif event.label is not None and not known:
            self.flush()
            self._keep(event)

    def _add(self, kind: Callable[[list[Event]], None], event: Event) -> None:
        if self._kind != kind:
            self.flush()
        self._kind, self._pending[event.id] = kind, event

    def flush(self) -> None:
        """Play the rows that were taken."""
        if self._kind is not None:
            kind, events = self._kind, list(self._pending.values())
            self._kind = None
            self._pending.clear()
            kind(events)

    def refuse(self, event: Event, error: object) -> None:
        """Answer that a row is refused."""
        self.answers.append(Answer(event.id, None, None, str(error)))

    # -- three kinds of rows

    def _step(self, events: list[Event]) -> None:
        """Predict rows that have their labels, and learn from them at once."""
        learner, first = self._learner, self._learner.rounds

        def together() -> Sequence[Prediction]:
            rows, labels = _stack(events), [event.label for event in events]
            numbers = learner.run(rows, labels, audit=False).prediction
            return [self._player.task.predictions.value(np.atleast_1d(own)) for own in numbers]

        predictions = self._together(together, events)
        for i, event in enumerate(events):
            rounds = learner.rounds if predictions is None else first + i
            if predictions is not None:
                prediction = predictions[i]
            else:
                try:
                    prediction = learner.step(event.input, event.label).prediction
                except InputError as error:
                    self.refuse(event, error)
                    continue
            self._waiting.early.pop(event.id, None)
            self._finish(event.id, True)
            self.answers.append(Answer(event.id, prediction, rounds))

    def _ask(self, events: list[Event]) -> None:
        """Predict rows whose labels come later."""
        learner, waiting = self._learner, self._waiting
        tickets = self._together(lambda: learner.ask_rows(_stack(events)), events)
        for i, event in enumerate(events):
            if tickets is not None:
                ticket: Ticket = tickets[i]
            else:
                try:
                    ticket = learner.ask(event.input)
                except InputError as error:
                    self.refuse(event, error)
                    continue
            waiting.tickets[event.id] = (ticket, self._now)
            self.answers.append(Answer(event.id, ticket.prediction, ticket.rounds))
        over = len(waiting.tickets) - self._player._outstanding
        self._forget(list(islice(waiting.tickets, max(0, over))))

    def _tell(self, events: list[Event]) -> None:
        """Learn from labels whose inputs were predicted before."""
        learner, tickets = self._learner, [self._ticket(event.id) for event in events]
        labels = [event.label for event in events]

        def together() -> Sequence[None]:
            learner.tell_rows(tickets, labels)
            return [None] * len(events)

        if self._together(together, events) is not None:
            for event in events:
                self._finish(event.id, True)
            return
        for event, ticket in zip(events, tickets, strict=True):
            try:
                learner.tell(ticket, event.label)
            except InputError as error:
                self.refuse(event, error)
            else:
                self._finish(event.id, True)

    def _together(
        self, play: Callable[[], Sequence[Any]], events: Sequence[Event]
    ) -> Sequence[Any] | None:
        """Play many rows; None if they are few, or one of them is refused: then nothing was."""
        if len(events) <= FEW:
            return None
        before = self._learner.state
        try:
            return play()
        except InputError:
            self._learner.restore(before)
            return None

    # -- ids

    def _ticket(self, id: Key) -> Ticket:
        found = self._waiting.tickets[id][0]
        return found if isinstance(found, Ticket) else Ticket.from_bytes(found)

    def _keep(self, event: Event) -> None:
        """Let a label wait for its input, if it can be one."""
        early, task = self._waiting.early, self._player.task
        if event.id in early:
            return
        try:
            task.labels.check(event.label)
        except InputError as error:
            self.refuse(event, error)
            return
        early[event.id] = (np.asarray(event.label).tolist(), self._now)
        if len(early) > self._player._early:
            self._drop(next(iter(early)), "too many labels wait for their inputs")

    def _drop(self, id: Key, why: str) -> None:
        del self._waiting.early[id]
        self.answers.append(Answer(id, None, None, f"a label for an unknown id: {why}"))

    def _forget(self, ids: Sequence[Key]) -> None:
        for id in ids:
            self._learner.forget(self._ticket(id))
            self._finish(id, False)

    def _finish(self, id: Key, told: bool) -> None:
        """Expect no more labels for an id."""
        self._waiting.tickets.pop(id, None)
        done = self._waiting.done
        done[id] = told
        if len(done) > self._player._remembered:
            del done[next(iter(done))]

    def expire(self) -> None:
        """Give up what waits for too long."""
        expires, waiting = self._player._expires, self._waiting
        if expires is None:
            return
        last = self._now - expires
        self._forget([id for id, (_, time) in waiting.tickets.items() if time <= last])
        for id in [id for id, (_, time) in waiting.early.items() if time <= last]:
            self._drop(id, "its input did not come in time")


def learner_of(content: bytes) -> Any:
    """Return the learner in a value, as it is now, which goes on by itself."""
    about, rest = _first(content)
    return _learner(_parts(about, rest)[0])


# -- bytes


def _message(about: Any, arrays: dict[str, np.ndarray]) -> bytes:
    """Return a learner as a short message, or as a file if it has very many arrays."""
    form = compact.packed if len(arrays) <= compact.MOST_ARRAYS else archive.packed
    return form(about, arrays)


def _learner(content: bytes) -> Any:
    form = archive if content.startswith(ZIP) else compact
    saved: Saved = form.unpacked(content, "the learner of a key")
    try:
        return learner_from(*saved)
    except DAMAGE as error:
        raise InputError(f"the learner of a key is damaged: {error!r:.200}") from error


def _joined(about: Any, parts: Sequence[bytes]) -> bytes:
    head = compact.packed(about, {})
    return b"".join((len(head).to_bytes(LENGTH, "little"), head, *parts))


def _first(content: bytes) -> tuple[dict[str, Any], bytes]:
    """Return what is known of all parts, and the parts."""
    content = bytes(content)
    end = LENGTH + int.from_bytes(content[:LENGTH], "little")
    about, _ = compact.unpacked(content[LENGTH:end], "the value of a key")
    if about.get("kind") != KIND or about.get("version") != VERSION:
        raise InputError(f"expected the value of a key, version {VERSION}, not {about!r:.80}")
    if missing := FIELDS - about.keys():
        raise InputError(f"the value of a key lacks {min(missing)!r}")
    return about, content[end:]


FIELDS = {"origin", "tickets", "early", "done", "told", "alarm", "sizes"}


def _parts(about: dict[str, Any], rest: bytes) -> list[bytes]:
    sizes, made, place = about["sizes"], [], 0
    whole = isinstance(sizes, list) and all(type(size) is int and size >= 0 for size in sizes)
    if not whole or not sizes or sum(sizes) != len(rest):
        raise InputError(f"the value of a key has {len(rest)} bytes, not those of {sizes!r:.80}")
    for size in sizes:
        made.append(rest[place : place + size])
        place += size
    return made


# -- rows


def _sorted(events: Iterable[Event], refuse: Callable[[Event, object], None]) -> list[Event]:
    """Return rows in their order, without those that have none or no id."""
    good = []
    for event in events:
        if event.refused is not None:
            refuse(event, event.refused)
        elif event.id is None:
            refuse(event, "the row has no id")
        elif event.order is None:
            refuse(event, "the row has no place in the order of rows")
        elif type(event.id) in (int, str):
            good.append(event)
        else:
            good.append(event._replace(id=check_key(event.id)))
    return sorted(good, key=lambda event: (event.order, event.input is None, str(event.id)))


def _stack(events: Sequence[Event]) -> np.ndarray:
    """Return the inputs of rows, or refuse them if they differ in length."""
    inputs = [np.asarray(event.input) for event in events]
    if len({own.shape for own in inputs}) > 1:
        raise InputError("rows differ in length")
    return np.stack(inputs)
