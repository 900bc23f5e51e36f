"""Streams that the service reads by itself: Redis Streams, and Kafka.

A source yields messages with their positions. What messages say and the position after them go into
one commit: so a message is learned from once, whatever dies, and without a word to the broker.

A message is JSON, as requests are: ``{"row": ..., "label": ...}`` is learned from, ``{"id": ...,
"row": ...}`` is predicted, ``{"id": ..., "label": ...}`` tells a label. Or it has the columns of a
table as its fields, with the label among them.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Protocol
from urllib.parse import parse_qs, urlsplit

import msgspec

from driftline.app.service.bodies import ID, Row
from driftline.app.service.requests import Ask, Learn, Outcome, Read, RefusedError, Request, Tell
from driftline.app.service.served import Feedback, Served, TableServed
from driftline.app.service.writer import Writer
from driftline.errors import InputError

__all__ = ["MOST", "WAIT", "Feeder", "Message", "Source", "source_from", "text_of"]

#: How many messages are read at a time, and how long they are waited for, in seconds.
MOST, WAIT = 1000, 1.0
#: Seconds after which a broken connection is tried again, at first and at most.
PAUSE, LONGEST_PAUSE = 0.2, 10.0


class Message(NamedTuple):
    """A message, and the position after it; ``id`` is unique in its stream."""

    id: str
    fields: dict[str, Any]
    position: str


class Source(Protocol):
    """Where messages come from."""

    #: A name by which the position is kept.
    name: str

    def read(self, position: str) -> Sequence[Message]:
        """Return the next messages after a position, which is empty at first; wait for some."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Content(msgspec.Struct, forbid_unknown_fields=True):
    """What a message of JSON says."""

    id: Annotated[str, msgspec.Meta(max_length=ID)] = ""
    row: Row | None = None
    label: Any = None
    loss: float | None = None


class KafkaSource:
    """A topic of Kafka: ``kafka://host:port?topic=name``. Positions are those of its partitions."""

    def __init__(self, servers: str, topic: str):
        from confluent_kafka import Consumer, TopicPartition

        self.name, self._topic, self._partition = f"kafka {topic}", topic, TopicPartition
        config = {
            "bootstrap.servers": servers,
            "group.id": "driftline",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
        self._consumer = Consumer(config)
        self._offsets: dict[int, int] | None = None

    def read(self, position: str) -> Sequence[Message]:
        """Return the next messages."""
        if self._offsets is None:
            self._begin(position)
        offsets, made = self._offsets or {}, []
        for message in self._consumer.consume(MOST, WAIT):
            if message.error() is not None:
                raise ConnectionError(str(message.error()))
            offsets[message.partition()] = message.offset() + 1
            told = {str(key): value for key, value in sorted(offsets.items())}
            place = msgspec.json.encode(told).decode()
            id = f"{message.partition()}-{message.offset()}"
            made.append(Message(id, {"data": text_of(message.value() or b"")}, place))
        return made

    def _begin(self, position: str) -> None:
        known = {
            int(key): int(value) for key, value in msgspec.json.decode(position or "{}").items()
        }
        about = self._consumer.list_topics(self._topic, timeout=10.0)
        partitions = about.topics[self._topic].partitions
        places = [
            self._partition(self._topic, number, known.get(number, 0)) for number in partitions
        ]
        self._consumer.assign(places)
        self._offsets = known

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()


def source_from(url: str) -> tuple[Source, str]:
    """Return the source at an address, and the model that reads it.

    ``redis://host:6379/0?stream=visits&model=churn`` or ``kafka://host:9092?topic=visits&model=churn``
    """
    parts = urlsplit(url)
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    wanted = {"redis": "stream", "rediss": "stream", "kafka": "topic"}.get(parts.scheme)
    if wanted is None or not query.get(wanted) or not query.get("model"):
        raise InputError(
            f"expected redis://host:port/0?stream=NAME&model=MODEL or "
            f"kafka://host:port?topic=NAME&model=MODEL, but got {url!r:.120}"
        )
    try:
        if wanted == "stream":
            from driftline.app.service.redis_streams import RedisSource

            plain = parts._replace(query="").geturl()
            return RedisSource(plain, query["stream"]), query["model"]
        return KafkaSource(parts.netloc, query["topic"]), query["model"]
    except ImportError as error:
        extra = "redis" if wanted == "stream" else "kafka"
        raise InputError(f"{error}: it comes with the extra {extra}") from error


class Feeder(threading.Thread):
    """Reads a source, and hands its messages to the writer."""

    def __init__(self, source: Source, model: str, writer: Writer, positions: Mapping[str, str]):
        super().__init__(name=source.name, daemon=True)
        self._source, self._model, self._writer = source, model, writer
        #: By which name the position is kept: several models may read one stream.
        self.key = f"{source.name} {model}"
        self.position, self._ending = positions.get(self.key, ""), threading.Event()
        #: How many messages were read, and how many of them refused.
        self.read, self.refused = 0, 0

    def stop(self) -> None:
        """Read nothing more."""
        self._ending.set()
        self.join(5.0 * WAIT)

    def run(self) -> None:
        """Read until the end; a broken connection is tried again."""
        pause = PAUSE
        while not self._ending.is_set():
            try:
                messages = self._source.read(self.position)
                pause = PAUSE
            except Exception as error:  # brokers' own errors
                print(f"{self._source.name}: {error!r:.200}", file=sys.stderr, flush=True)
                self._ending.wait(pause)
                pause = min(2.0 * pause, LONGEST_PAUSE)
                continue
            if messages and not self._taken(messages):
                break
        self._source.close()

    def _taken(self, messages: Sequence[Message]) -> bool:
        """Hand messages to the writer, until they are on the disk; say whether to go on."""
        served = self._served()
        if served is None:
            return False
        requests = self._requests(served, messages)
        last = Read(self._model, self.key, messages[-1].position)
        while self._served() is not None:
            try:
                future = self._writer.submit_together([*requests, last], len(messages))
                *outcomes, done = future.result()
            except RefusedError as error:
                if error.status == 503:
                    return False
                time.sleep(PAUSE)  # the queue or the disk is full
                continue
            if done.status == 200:  # else the model has gone meanwhile, and nothing was written
                self._count(outcomes)
                self.position = messages[-1].position
                return True
        return False

    def _served(self) -> Served | None:
        """Wait for a model in service, since messages are not to be passed over before."""
        said = False
        while not self._ending.is_set():
            try:
                return self._writer.machine.hosted(self._model).served
            except RefusedError as error:
                if not said:
                    waiting = f"{self._source.name}: {error}, and messages wait for it"
                    print(waiting, file=sys.stderr, flush=True)
                said = True
                self._ending.wait(PAUSE)
        return None

    def _count(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            bad = outcome.items is None or outcome.items[0]["status"] >= 400
            self.refused += bad
            if bad:
                said = outcome.body if outcome.items is None else outcome.items[0]
                why = str(said.get("error"))
                print(f"{self._source.name}: {why:.200}", file=sys.stderr, flush=True)

    def _requests(self, served: Served, messages: Sequence[Message]) -> list[Request]:
        """Return what messages ask for; those that cannot be read are counted and passed over."""
        made: list[Request] = []
        for message in messages:
            self.read += 1
            try:
                made.append(self._request(served, message))
            except (RefusedError, InputError, msgspec.MsgspecError, RecursionError) as error:
                self.refused += 1
                said = f"{self._source.name}, message {message.id}: {error}"
                print(f"{said:.300}", file=sys.stderr, flush=True)
        return made

    def _request(self, served: Served, message: Message) -> Request:
        own = f"{self._source.name} {message.id}"
        if list(message.fields) != ["data"]:
            names = served.model.label if isinstance(served, TableServed) else []
            row: dict[str, Any] = dict(message.fields)
            if not names or any(name not in row for name in names):
                raise RefusedError(422, f"the message has no label {names}")
            labels = [row.pop(name) for name in names]
            label = labels[0] if len(labels) == 1 else labels
            return Learn(self._model, [own], [row], [Feedback(label)])
        content = msgspec.json.decode(message.fields["data"], type=Content)
        feedback = Feedback(content.label, content.loss)
        told = (content.label is None) != (content.loss is None)
        if content.row is None:
            if not content.id or not told:
                raise RefusedError(422, "expected a row, or an id with a label")
            return Tell(self._model, [content.id], [feedback])
        if content.label is None:
            return Ask(self._model, [content.id or own], [content.row])
        return Learn(self._model, [content.id or own], [content.row], [feedback])


def text_of(value: Any) -> str:
    """Return what a broker sent as a text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
