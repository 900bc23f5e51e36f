"""One thread that owns the machine: requests wait in a queue, and are committed in groups."""

from __future__ import annotations

import asyncio
import math
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import groupby, islice
from typing import Any

from driftline.app.service.clock import LogClock
from driftline.app.service.log import DiskFullError, Generation, LogFailedError, SqliteLog
from driftline.app.service.machine import Machine
from driftline.app.service.planning import check_challenge
from driftline.app.service.requests import (
    ALONE,
    Challenge,
    Expire,
    Outcome,
    RefusedError,
    Request,
)
from driftline.app.service.sizes import MEMORY
from driftline.app.service.snapshots import SnapshotFolder, covered_by, due
from driftline.typing import Saved

__all__ = ["Limits", "Writer"]


#: Groups of so many rows tell how fast the writer is.
MANY = 20
#: The share of the rows that may wait from which on others are refused unread.
CROWDED = 0.75
#: How many bytes the file of a model may have beside its state.
NAMES = 16 << 20


class Limits:
    """How much is taken at a time, and how long things are kept."""

    def __init__(
        self,
        queue: int = 100_000,
        group: int = 2_000,
        queue_seconds: float = 2.0,
        snapshot_seconds: float = 60.0,
        snapshot_records: int = 50_000,
        expire_seconds: float = 30 * 86_400.0,
        keep_seconds: float = math.inf,
        models: int = 1000,
        challengers: int = 20,
        memory: int = MEMORY,
    ):
        #: The most rows that wait for the writer, and the most in one commit; and for how many
        #: seconds rows may wait, by how fast others were.
        self.queue, self.group, self.queue_seconds = queue, group, queue_seconds
        #: Seconds between snapshots, or records; and seconds after which a row without a label is
        #: forgotten.
        self.snapshot_seconds, self.expire_seconds = snapshot_seconds, expire_seconds
        self.snapshot_records = snapshot_records
        #: Seconds after which records are deleted that are in snapshots.
        self.keep_seconds = keep_seconds
        #: The most models, and the most challengers of each: all of them are in memory.
        self.models, self.challengers = models, challengers
        #: The most bytes of the state of each.
        self.memory = memory

    @property
    def upload(self) -> int:
        """The most bytes of a model's file: those of its state, and of the names in it."""
        return self.memory + NAMES


class Writer(threading.Thread):
    """Takes requests from any thread, and answers them when they are on the disk.

    While a group is written, others gather (group commit): the more there is to do, the larger the
    groups.

    Parameters
    ----------
    machine, log, snapshots
        What it owns; no other thread may call them, but for what says so.
    clock
        The one of the machine.
    failed
        Called when the disk has failed: the process must end, since nobody knows what was written.
    published
        Called after every group, and now and then while there is none, in this thread.
    """

    def __init__(
        self,
        machine: Machine,
        log: SqliteLog,
        snapshots: SnapshotFolder,
        clock: LogClock,
        limits: Limits,
        failed: Callable[[BaseException], None],
        published: Callable[[], None] = lambda: None,
    ):
        super().__init__(name="writer", daemon=True)
        self.machine, self.log, self.snapshots, self._clock = machine, log, snapshots, clock
        self._limits, self._failed, self._publish = limits, failed, published
        self._queue: deque[tuple[Any, int, Any, Any]] = deque()
        self._waiting, self._ready = 0, threading.Condition()
        self._ending = False
        self._next_snapshot = time.monotonic() + limits.snapshot_seconds
        self._next_expiry = time.monotonic() + 1.0
        self._writing: threading.Thread | None = None
        self._snapshot_seq = machine.seq
        self._speed = 1000.0
        #: Whether the disk was full at the last commit; and how many commits there were.
        self.disk_full, self.commits = log.full, 0
        #: Whether old records may be deleted: not while a challenger reads them.
        self.trims = True
        #: Why rows do not expire and records are not deleted, empty if they are.
        self.held = ""

    # -- any thread

    @property
    def waiting(self) -> int:
        """How many rows wait."""
        return self._waiting

    def check_crowded(self) -> None:
        """Refuse more rows before they are even read, while nearly as many wait as may.

        To read rows only to refuse them would take the time from those that wait.
        """
        if self._waiting > CROWDED * self._most_waiting:
            raise RefusedError(429, f"{self._waiting} rows wait already: try again in a second")

    def submit(self, request: Request, rows: int = 1) -> asyncio.Future[Outcome]:
        """Queue a request of the running event loop; refuse it if too many rows wait."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._put([request], rows, future, loop)
        return future

    def call(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Queue a function that looks at the machine between two groups."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._put(function, 1, future, loop)
        return future

    def submit_together(self, requests: Sequence[Request], rows: int) -> Future[list[Outcome]]:
        """Queue requests of another thread, which go into one commit."""
        future: Future[list[Outcome]] = Future()
        self._put(list(requests), rows, future, None)
        return future

    def _put(self, work: Any, rows: int, future: Any, loop: Any) -> None:
        with self._ready:
            if self._ending:
                raise RefusedError(503, "the service is stopping")
            if self._waiting and self._waiting + rows > self._most_waiting:
                raise RefusedError(429, f"{self._waiting} rows wait already: try again in a second")
            self._queue.append((work, rows, future, loop))
            self._waiting += rows
            if len(self._queue) == 1:
                self._ready.notify()

    @property
    def _most_waiting(self) -> float:
        """How many rows may wait: as many as are processed in some seconds, and not too many."""
        limits = self._limits
        return min(limits.queue, max(limits.group, limits.queue_seconds * self._speed))

    def stop(self) -> None:
        """Process what waits, write a snapshot, and end."""
        with self._ready:
            self._ending = True
            self._ready.notify()
        self.join()

    # -- the writer's thread

    def run(self) -> None:
        """Process groups until the end."""
        try:
            while True:
                with self._ready:
                    if not self._queue and not self._ending:
                        self._ready.wait(0.5)
                    taken = self._taken()
                    if not taken and self._ending:
                        break
                if taken:
                    began = time.perf_counter()
                    self._process(taken)
                    self._note_speed(sum(own[1] for own in taken), time.perf_counter() - began)
                else:
                    self._published()  # what was too early after the last group
                self._housekeeping()
            self._end()
        except BaseException as error:
            self._failed(error)

    def _published(self) -> None:
        """Tell who watches that something has changed; what fails there concerns no request."""
        try:
            self._publish()
        except Exception:
            traceback.print_exc()

    def _note_speed(self, rows: int, seconds: float) -> None:
        """Average the rows a second of large groups: small ones are not slow, but few."""
        if rows >= MANY:
            self._speed += 0.1 * (rows / seconds - self._speed)

    def _taken(self) -> list[Any]:
        made: list[Any] = []
        rows = 0
        while self._queue and (not made or rows + self._queue[0][1] <= self._limits.group):
            made.append(self._queue.popleft())
            rows += made[-1][1]
        self._waiting -= rows
        return made

    def _process(self, taken: Sequence[Any]) -> None:
        answers: list[tuple[Any, Any, Any]] = []
        group: list[tuple[Any, Any, Any]] = []
        for work, _, future, loop in taken:
            if callable(work):
                answers += self._answered(group)
                group = []
                if future is None:
                    work()
                else:
                    answers.append((future, loop, _result(work)))
            else:
                group.append((work, future, loop))
        answers += self._answered(group)
        self._published()
        by_loop: dict[Any, list[tuple[Any, Any]]] = {}
        for future, loop, result in answers:
            by_loop.setdefault(loop, []).append((future, result))
        for loop, pairs in by_loop.items():
            if loop is None:
                _resolve(pairs)
                continue
            with suppress(RuntimeError):  # the loop has ended, and with it who asked
                loop.call_soon_threadsafe(_resolve, pairs)

    def _answered(self, group: Sequence[tuple[Any, Any, Any]]) -> list[tuple[Any, Any, Any]]:
        """Process requests, those together that have one commit; return what each is answered."""
        made = []
        for alone, part in groupby(group, key=lambda own: isinstance(own[0][0], ALONE)):
            for several in [[own] for own in part] if alone else [list(part)]:
                made += self._committed(several)
        return made

    def _committed(self, group: Sequence[tuple[Any, Any, Any]]) -> list[tuple[Any, Any, Any]]:
        """Process requests in one commit; if the disk is full, none of them is carried out."""
        try:
            requests = [request for several, _, _ in group for request in several]
            outcomes = iter(self.machine.process(requests))
            self.disk_full = False
            self.commits += 1
        except DiskFullError:
            self.disk_full = True
            error = RefusedError(507, "the disk is full: nothing was learned, try again later")
            return [(future, loop, error) for _, future, loop in group]
        made = []
        for several, future, loop in group:
            own = list(islice(outcomes, len(several)))
            made.append((future, loop, own if loop is None else own[0]))
        return made

    def _housekeeping(self) -> None:
        """Write snapshots and forget old rows, now and then."""
        now = time.monotonic()
        try:
            if now >= self._next_expiry:
                self._next_expiry = now + 10.0
                if not self._is_held() and self._tidied():
                    self._next_expiry = now + 0.1  # there is more
            many = self.machine.seq - self._snapshot_seq >= self._limits.snapshot_records
            if (many or now >= self._next_snapshot) and self._writing is None:
                self._next_snapshot = now + self._limits.snapshot_seconds
                self.snapshot()
        except DiskFullError:
            self.disk_full = True
        except LogFailedError:
            raise
        except Exception:  # such as a MemoryError: the log has everything, and later is soon enough
            traceback.print_exc()

    def _is_held(self) -> bool:
        """Say whether the clock is in doubt, and tell when that changes."""
        self.held, before = self._clock.settle(), self.held
        if self.held != before:
            said = f"{self.held}: rows do not expire until clocks have agreed for an hour"
            print(said if self.held else "rows expire again", file=sys.stderr, flush=True)
        return bool(self.held)

    def _tidied(self) -> int:
        """Forget rows that are too old, and delete some records that are; return how many."""
        before = self._clock.before(int(1000 * self._limits.expire_seconds))
        for name in list(self.machine.names):
            self.machine.process([Expire(name, before)])
        return self._trim() if math.isfinite(self._limits.keep_seconds) else 0

    def hold_trimming(self, request: Challenge) -> tuple[int, int]:
        """Delete nothing while a challenger reads; return its model, and how much was deleted."""
        number = check_challenge(self.machine, request)
        self.trims = False
        return number, self.log.deleted

    def _trim(self) -> int:
        """Delete some records that are too old, and that the older snapshots of all models have.

        None is deleted while a model is out of service: its records may be all that is left of it.
        """
        verified = self.snapshots.verified.__contains__
        machine = self.machine
        covered = covered_by(self.log.snapshots(), machine.models, verified, machine.seq)
        if not covered or machine.quarantined or not self.trims:
            return 0
        kept = int(1000 * self._limits.keep_seconds)
        return self.log.trim(self._clock.before(kept), covered, self._clock.before(2 * kept))

    def snapshot(self, wait: bool = False) -> None:
        """Write the states of models that have changed; while that is done, groups go on."""
        machine = self.machine
        for number in machine.models.keys() & self.log.snapshots().keys():
            self.log.drop_snapshots(number, self.snapshots.damaged)
        known = self.log.snapshots()
        machine.flush()  # tickets of rows up to now are on the disk before a state needs them
        self._snapshot_seq = machine.seq
        wanted, hold = due(known, machine.models, machine.seq)
        pairs = [(self._saved(number), former) for number, former in wanted.items()]
        saved = [(own, machine.seq, former) for own, former in pairs if own is not None]
        self.log.put_snapshots(hold)
        work: list[Callable[[], Any]] = [partial(self._written, *own) for own in saved]
        if math.isfinite(self._limits.keep_seconds):
            fresh = {own.file for several in known.values() for own in several}
            work.append(partial(self.snapshots.verify, fresh - self.snapshots.verified))
        if wait:
            self._all_written(work, lambda then: then())
        elif work:
            aside = partial(self._all_written, work, self._later)
            thread = threading.Thread(target=aside, name="snapshots", daemon=True)
            thread.start()
            self._writing = thread

    def _saved(self, number: int) -> Saved | None:
        """Return the state of a model; one that has none is taken out of service."""
        hosted = self.machine.models[number]
        try:
            return hosted.to_saved()
        except MemoryError:  # later is soon enough
            traceback.print_exc()
        except Exception as error:
            traceback.print_exc()
            self.machine.quarantine(number, hosted.seq, f"it has no state to save: {error!r:.200}")
        return None

    def _written(self, saved: Saved, until: int, former: str) -> tuple[int, Generation]:
        made = self.snapshots.write(saved, until, former)
        if math.isfinite(self._limits.keep_seconds):
            self.snapshots.verify([made.file])
        return saved[0]["number"], made

    def _all_written(
        self, work: Sequence[Callable[[], Any]], then: Callable[[Callable[[], None]], None]
    ) -> None:
        """Write states; the writer then names them in the log. What fails is tried again later."""
        made = []
        for own in work:
            try:
                made.append(own())
            except Exception as error:  # the log has everything
                print(f"a snapshot could not be written: {error}", file=sys.stderr, flush=True)
        then(partial(self._name_snapshots, [own for own in made if own is not None]))

    def _later(self, work: Callable[[], None]) -> None:
        """Let the writer do something between two groups."""
        with self._ready:
            self._queue.append((work, 0, None, None))
            self._ready.notify()

    def _name_snapshots(self, made: Sequence[tuple[int, Generation]]) -> None:
        self._writing = None
        try:
            models = self.machine.models
            self.log.put_snapshots([own for own in made if own[0] in models])
            self.snapshots.sweep()
        except DiskFullError:  # the log has everything: a later snapshot will do
            self.disk_full = True
        except OSError as error:
            print(f"old snapshots could not be deleted: {error}", file=sys.stderr, flush=True)

    def _end(self) -> None:
        try:
            if self._writing is not None:
                self._writing.join()
                self._process(self._taken())
            self.snapshot(wait=True)
        except LogFailedError:
            raise
        except Exception as error:  # the log has everything
            print(f"there is no last snapshot: {error!r:.200}", file=sys.stderr, flush=True)
        self.log.close()


def _result(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except LogFailedError:
        raise
    except Exception as error:
        return error


def _resolve(pairs: Sequence[tuple[Any, Any]]) -> None:
    """Set results in the thread of their event loop."""
    for future, result in pairs:
        if future.done():  # whoever asked has gone
            continue
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
