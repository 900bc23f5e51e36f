"""Validation: what requests become, before anything is written."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence, Set
from itertools import islice
from typing import TYPE_CHECKING, Any

from driftline.app.service.batch import NEW, Batch, Plan, Results
from driftline.app.service.hosted import Hosted
from driftline.app.service.records import EXPIRED, Kind, Mark, digest, packed_json
from driftline.app.service.requests import (
    Ask,
    Challenge,
    Create,
    Delete,
    Expire,
    Learn,
    Outcome,
    Promote,
    Read,
    RefusedError,
    Request,
    Retire,
    Tell,
)
from driftline.app.service.served import Feedback
from driftline.errors import InputError
from driftline.typing import Json

if TYPE_CHECKING:
    from driftline.app.service.machine import Machine

__all__ = ["Planner", "check_challenge"]


class Planner:
    """Validates the requests of a batch, and adds records for those that are accepted."""

    def __init__(self, machine: Machine, batch: Batch):
        self._machine, self._batch = machine, batch
        #: The rows of requests that were checked, by the ids of these, as learners take them.
        self._checked: dict[int, Sequence[Any]] = {}
        #: New classes of the requests so far, by the numbers of models.
        self._classes: dict[int, Set[str]] = {}

    def check_together(self, requests: Sequence[Request]) -> None:
        """Check all rows of a model in one call; if one is refused, they are checked one by one."""
        rows: dict[str, list[Any]] = {}
        feedback: dict[str, list[Any]] = {}
        for request in requests:
            if isinstance(request, (Ask, Learn)):
                rows.setdefault(request.model, []).extend(request.rows)
            if isinstance(request, (Tell, Learn)):
                feedback.setdefault(request.model, []).extend(request.feedback)
        for name in {*rows, *feedback} & self._machine.names.keys():
            try:
                hosted = self._machine.hosted(name)
                read = iter(hosted.served.check_rows(rows[name]) if name in rows else ())
                if name in feedback:
                    self._check_feedback(hosted, feedback[name])
            except Exception:  # found again below, where it is known which request it is
                continue
            for request in requests:
                if request[0] == name:
                    count = len(request.rows) if isinstance(request, (Ask, Learn)) else 0
                    self._checked[id(request)] = list(islice(read, count))

    def plan(self, request: Request) -> Plan:
        """Validate a request; return how it is answered when its records were applied."""
        if isinstance(request, Ask):
            return self._ask(request)
        if isinstance(request, Tell):
            return self._tell(request)
        if isinstance(request, Learn):
            return self._learn(request)
        if isinstance(request, Read):
            self._machine.hosted(request.model)  # refused, if it has refused all that was read
            self._batch.positions[request.source] = request.position
            return lambda _: Outcome(200, {})
        return self._administer(request)

    def _check_feedback(self, hosted: Hosted, given: Sequence[Feedback]) -> None:
        """Check feedback beside that of the requests before: all learners get its new classes."""
        before = self._classes.get(hosted.number, frozenset())
        classes = hosted.served.check_feedback(given, before)
        if classes:
            for reader in hosted.readers.values():
                reader.served.check_size(len(classes))
        self._classes[hosted.number] = classes

    def _mark(self, hosted: Hosted, id: str) -> Mark | None:
        key = hosted.number, id
        known = self._batch.marks.get(key)
        return self._machine.log.find(*key) if known is None else known

    # -- rows

    def _ask(self, request: Ask) -> Plan:
        machine, batch = self._machine, self._batch
        hosted = machine.hosted(request.model)
        read = self._checked.get(id(request))
        if read is None:
            read = hosted.served.check_rows(request.rows)
        if len(request.rows) > 1:  # one is never too large
            hosted.served.check_tickets(len(request.rows))
        found: list[Any] = []
        for name, row, own in zip(request.ids, request.rows, read, strict=True):
            said, mark = digest(row), self._mark(hosted, name)
            if mark is None:
                fresh = Mark(NEW, 0, said, b"")
                found.append(batch.add(hosted.number, Kind.ASK, name, packed_json(row), own, fresh))
            elif mark.told == EXPIRED and not mark.asked:
                found.append(_gone(name))
            elif mark.row != said or not mark.asked:
                found.append(_conflict(name, "another row was given by this id"))
            elif mark.asked == NEW:
                found.append((hosted.number, Kind.ASK, name))
            else:
                known = machine.answer(mark.asked) or {"error": "the answer is no longer kept"}
                found.append(_answered(name, known) | {"duplicate": True})

        return _plan(request.ids, found, _answered)

    def _tell(self, request: Tell) -> Plan:
        batch, hosted = self._batch, self._machine.hosted(request.model)
        if id(request) not in self._checked:
            self._check_feedback(hosted, request.feedback)
        found: list[Any] = []
        tokens = request.tokens or [""] * len(request.ids)
        for name, feedback, token in zip(request.ids, request.feedback, tokens, strict=True):
            said, mark = digest(list(feedback)), self._mark(hosted, name)
            if mark is None and token:
                found.append(self._tell_token(hosted, name, feedback, token, said))
            elif mark is None:
                item = {"id": name, "status": 404, "error": f"no row was asked for by id {name!r}"}
                found.append(item)
            elif mark.told == EXPIRED:
                found.append(_gone(name))
            elif mark.told:
                kind = Kind.TELL if mark.asked or not mark.row else Kind.LEARN
                found.append(self._again(hosted, kind, name, mark, mark.label == said))
            else:
                told = mark._replace(told=NEW, label=said)
                found.append(batch.add(hosted.number, Kind.TELL, name, b"", feedback, told))

        return _plan(request.ids, found, _learned)

    def _tell_token(
        self, hosted: Hosted, name: str, feedback: Feedback, token: str, said: bytes
    ) -> Any:
        """Add the label of a row whose ticket is in its token."""
        at, forgotten = self._batch.at, self._machine.log.forgotten
        try:
            kept, row = self._machine.tokens.read(token, hosted.number, name, at, forgotten)
        except RefusedError as error:  # the other labels of the request are not concerned
            return {"id": name, "status": error.status, "error": str(error)}
        tickets = {str(number): b64encode(own).decode() for number, own in kept.items()}
        asked = {"tickets": tickets, "row": row}
        known = asked, feedback
        fresh = Mark(0, NEW, b"", said)
        body = packed_json([asked, *feedback])
        return self._batch.add(hosted.number, Kind.TELL, name, body, known, fresh)

    def _again(self, hosted: Hosted, kind: Kind, name: str, mark: Mark, same: bool) -> Any:
        """Return the item of an id whose label came before, or the key of its result."""
        if not same:
            return _conflict(name, "another label, or another row, was given by this id before")
        if mark.told == NEW:
            return hosted.number, kind, name
        refused = self._machine.answer(mark.told)
        made = {"status": 200, "learned": True} if refused is None else {"status": 422, **refused}
        return {"id": name, **made, "duplicate": True}

    def _learn(self, request: Learn) -> Plan:
        batch, hosted = self._batch, self._machine.hosted(request.model)
        if id(request) not in self._checked:
            hosted.served.check_rows(request.rows)
            self._check_feedback(hosted, request.feedback)
        found: list[Any] = []
        for name, row, feedback in zip(request.ids, request.rows, request.feedback, strict=True):
            said = digest(row), digest(list(feedback))
            mark = self._mark(hosted, name) if name else None
            if mark is not None and mark.told == EXPIRED:
                found.append(_gone(name))
                continue
            if mark is not None:
                same = not mark.asked and (mark.row, mark.label) == said
                found.append(self._again(hosted, Kind.LEARN, name, mark, same))
                continue
            body = packed_json([row, *feedback])
            fresh = Mark(0, NEW, *said) if name else None
            known = row, feedback
            found.append(batch.add(hosted.number, Kind.LEARN, name, body, known, fresh))

        return _plan(request.ids, found, _predicted)

    # -- models

    def _administer(self, request: Request) -> Plan:
        machine, batch = self._machine, self._batch
        if isinstance(request, Create):
            if request.name in machine.names:
                raise RefusedError(409, f"there is a model {request.name!r} already")
            if (count := len(machine.models)) >= machine.most_models:
                raise RefusedError(409, f"there are {count} models, and no more may be: delete one")
            served = machine.load(request.content)
            served.check_size()
            number = machine.seq + 1  # that of its record, which is the only one of its batch
            key = batch.add(number, Kind.CREATE, request.name, request.content, served)
            return _done(key, Outcome(201, {"model": request.name}))
        if isinstance(request, Delete):  # of one that is out of service, too
            number = machine.number(request.model)
            key = batch.add(number, Kind.DELETE, request.model, b"")
            batch.dropped.append(number)
            return _done(key, Outcome(200, {"model": request.model}))
        hosted = machine.hosted(request[0])
        number = hosted.number
        if isinstance(request, Challenge):
            check_challenge(machine, request)
            ahead = request.ahead
            served = machine.load(request.content) if ahead is None else ahead.reader.served
            served.check_size()
            if served.about().get("task") != hosted.served.about().get("task"):
                raise RefusedError(422, "the challenger has another task than the model")
            body = request.after.to_bytes(8, "big") + request.content
            known = request.name, request.after, request.content, ahead
            key = batch.add(number, Kind.CHALLENGE, request.name, body, known)
            done = Outcome(201, {"model": hosted.name, "learner": request.name})
        elif isinstance(request, Expire):
            return self._expire(hosted, request)
        else:
            assert isinstance(request, (Promote, Retire))
            reader = hosted.reader(request.learner)
            if reader is None:
                raise RefusedError(404, f"there is no learner {request.learner!r:.80}")
            if isinstance(request, Retire) and reader.number == hosted.champion:
                raise RefusedError(409, f"{request.learner!r} answers: promote another one first")
            kind = Kind.PROMOTE if isinstance(request, Promote) else Kind.RETIRE
            key = batch.add(number, kind, request.learner, packed_json(reader.number))
            done = Outcome(200, {"model": hosted.name, "learner": request.learner})
        return _done(key, done)

    def _expire(self, hosted: Hosted, request: Expire) -> Plan:
        batch, old = self._batch, []
        for name, seq in self._machine.log.waiting(hosted.number, request.before):
            mark = self._mark(hosted, name)
            if mark is not None and not mark.told:
                old.append([seq, name])
                batch.marks[hosted.number, name] = mark._replace(told=EXPIRED)
        if old:
            batch.add(hosted.number, Kind.EXPIRE, "", packed_json(old))
        return lambda _: Outcome(200, {"expired": len(old)})


def check_challenge(machine: Machine, request: Challenge) -> int:
    """Refuse a challenger that cannot read the log of its model; return the model's number."""
    hosted = machine.hosted(request.model)
    if hosted.reader(request.name) is not None:
        raise RefusedError(409, f"there is a learner {request.name!r} already")
    if (count := len(hosted.readers) - 1) >= machine.most_challengers:
        raise RefusedError(
            409, f"the model has {count} challengers, and no more may be: delete one"
        )
    if request.after < machine.log.trimmed:
        raise RefusedError(
            410, f"the log begins after record {machine.log.trimmed}: older ones are deleted"
        )
    if request.after > machine.seq:
        raise RefusedError(
            422, f"the log ends with record {machine.seq}: nothing comes after a later one"
        )
    return hosted.number


def _done(key: Any, done: Outcome) -> Plan:
    """Return how a request with one record is answered, unless this could not be applied."""

    def answer(results: Results) -> Outcome:
        made = results[key]
        failed = isinstance(made, RefusedError)
        return Outcome(made.status, {"error": str(made)}) if failed else done

    return answer


def _plan(ids: Sequence[str], found: Sequence[Any], item_of: Callable[[str, Any], Json]) -> Plan:
    """Return how a list is answered: an item that is known, or one made of a record's result."""

    def item(id: str, made: Any) -> Json:
        if isinstance(made, RefusedError):  # the record could not be applied
            return {"id": id, "status": made.status, "error": str(made)}
        return item_of(id, made)

    def answer(results: Results) -> Outcome:
        pairs = zip(ids, found, strict=True)
        items = [own if isinstance(own, dict) else item(id, results[own]) for id, own in pairs]
        return Outcome(200, {}, items)

    return answer


def _answered(name: str, answer: Json) -> Json:
    """Return the item of a row that was asked for."""
    return {"id": name, "status": 422 if "error" in answer else 200, **answer}


def _learned(name: str, result: Any) -> Json:
    """Return the item of a row that was learned from, or refused by its learner."""
    if isinstance(result, InputError):
        return {"id": name, "status": 422, "error": str(result)}
    return {"id": name, "status": 200, "learned": True}


def _predicted(name: str, result: Any) -> Json:
    """Return the item of a row with its label, and what was predicted before that was seen."""
    made = _learned(name, result)
    return made if "error" in made else made | {"prediction": result}


def _gone(name: str) -> Json:
    return {"id": name, "status": 410, "error": "the row was forgotten: it is too old"}


def _conflict(name: str, why: str) -> Json:
    return {"id": name, "status": 409, "error": why}
