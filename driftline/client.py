"""A client of ``driftline serve``, with nothing but the standard library.

Whatever it sends has an id, and the service carries an id out once. So a request whose answer was
lost is sent again, with the same ids, and nothing is doubled.
"""

from __future__ import annotations

import http.client
import json
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlsplit

from driftline.errors import InputError
from driftline.parts import check_flag

__all__ = ["Client", "ServiceError"]

#: How many connections are kept open for the next requests.
MOST_IDLE = 16
#: Seconds between two tries, at first and at most.
PAUSE, LONGEST_PAUSE = 0.05, 2.0
#: Statuses after which a request is sent again.
AGAIN = (429, 502, 503, 504, 507)
#: How many reasons a message has, if many rows of a list were refused.
REASONS = 3


class ServiceError(RuntimeError):
    """The service refused a request, or could not be reached; ``status`` is 0 then.

    If it refused some rows of a list, and carried the others out, ``answers`` has the answers to
    all rows, in their order, each with a ``status`` of its own; else it is None. ``status`` is that
    of the first row that was refused.
    """

    def __init__(self, status: int, message: str, answers: list[Any] | None = None):
        super().__init__(message)
        self.status, self.answers = status, answers

    def __reduce__(self) -> Any:
        """Return how it is made again, in another process."""
        return type(self), (self.status, str(self), self.answers)


class Client:
    """Predicts and learns by a service; any number of threads may use one client.

    Parameters
    ----------
    url
        Where the service is, such as ``http://127.0.0.1:8000``.
    token
        Its bearer token, if it has one.
    seconds
        How long one try may take.
    tries
        How often a request is sent before it fails: after a broken connection, a full queue or a
        restart; with pauses that double, up to two seconds.

    Examples
    --------
    >>> client = Client("http://127.0.0.1:8000")
    >>> client
    Client('http://127.0.0.1:8000')
    >>> client.predict("churn", {"age": 31, "plan": "free"}, id="visit 17")  # doctest: +SKIP
    {'id': 'visit 17', 'prediction': 'go', 'probabilities': {'go': 0.8, 'stay': 0.2}}
    >>> client.label("churn", "visit 17", "stay")  # doctest: +SKIP
    {'id': 'visit 17', 'learned': True}
    """

    def __init__(
        self, url: str, *, token: str | None = None, seconds: float = 30.0, tries: int = 8
    ):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"expected an address such as http://127.0.0.1:8000, not {url!r:.80}")
        self.url, self._parts = url.rstrip("/"), parts
        self._token, self._seconds, self._tries = token, seconds, tries
        #: Connections that nobody uses now; a deque may be used by several threads.
        self._idle: deque[http.client.HTTPConnection] = deque(maxlen=MOST_IDLE)

    def close(self) -> None:
        """Close all connections; they are opened again when they are needed."""
        with suppress(IndexError):  # another thread may take the last one
            while True:
                self._idle.pop().close()

    def __enter__(self) -> Self:
        """Return the client, which is closed at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections."""
        self.close()

    def __repr__(self) -> str:
        """Name the service."""
        return f"Client({self.url!r})"

    # -- models

    def models(self) -> list[Any]:
        """Return all models, with their learners and curves."""
        return self._json("GET", "/models")

    def model(self, name: str) -> Any:
        """Return a model, with its learners and curves."""
        return self._json("GET", _path(name))

    def create(
        self,
        name: str,
        label: str | Sequence[str],
        *,
        rows: Sequence[Mapping[str, Any]] | None = None,
        columns: Mapping[str, Any] | None = None,
        learner: str = "auto",
        exist_ok: bool = False,
        **options: Any,
    ) -> Any:
        """Make a model, from rows to guess columns from, or by saying what these hold.

        Parameters
        ----------
        name, label
            Of the model; of the column to predict, or of several.
        rows
            Rows with labels, as for :meth:`driftline.TableModel.new`; they are not learned from.
        columns
            ``{"age": "number", "plan": ["free", "pro"]}``, for example.
        learner
            By its name, as ``driftline run --help`` lists them.
        exist_ok
            Whether it may be there already; then nothing changes.
        options
            ``seed``, ``classes``, ``coverage``, or ``options`` as of :meth:`TableModel.new`. With
            ``guarded=True`` rows may have ``"given"``, the label that a model of yours predicts: it
            is the answer while the model is good.
        """
        check_flag("exist_ok", exist_ok)
        body = {"name": name, "label": label, "learner": learner, **options}
        if rows is not None:
            body["rows"] = list(rows)
        if columns is not None:
            body["columns"] = dict(columns)
        return self._create("POST", "/models", name, body, exist_ok)

    def upload(self, name: str, path: str | Path, *, exist_ok: bool = False) -> Any:
        """Take a model from a file that ``save`` wrote."""
        return self._create("PUT", _path(name), name, Path(path).read_bytes(), exist_ok)

    def _create(self, method: str, path: str, name: str, body: Any, exist_ok: bool) -> Any:
        try:
            return self._json(method, path, body)
        except ServiceError as error:
            if error.status == 409 and exist_ok:
                return {"model": name}
            raise

    def delete(self, name: str) -> Any:
        """Delete a model."""
        return self._json("DELETE", _path(name))

    # -- rows

    def predict(self, name: str, rows: Any, id: Any = None) -> Any:
        """Predict a row, or a list of rows; labels are told later by their ids.

        Ids are made up if none are given, and are in the answers. If a row is refused, it raises
        :class:`ServiceError`; of a list the other rows are predicted all the same, and the error
        has all ``answers``.
        """
        single = isinstance(rows, Mapping)
        given = [rows] if single else list(rows)
        ids = _ids(id, len(given), single)
        body = [{"id": own, "row": row} for own, row in zip(ids, given, strict=True)]
        return self._rows(name, "predict", body, single)

    def label(self, name: str, id: Any, label: Any = None, *, loss: Any = None) -> Any:
        """Tell the label of a row by its id, or the loss; or lists of both.

        If one is refused, it raises :class:`ServiceError`. Of a list the others are learned from
        all the same, and the error has all ``answers``, each with a ``status`` of its own:

        >>> try:  # doctest: +SKIP
        ...     client.label("churn", ids, labels)
        ... except ServiceError as error:
        ...     refused = [own for own in error.answers or [] if own["status"] >= 400]
        """
        single = isinstance(id, (str, int))
        ids, key = (
            [str(own) for own in ([id] if single else id)],
            "label" if loss is None else "loss",
        )
        given = label if loss is None else loss
        values = [given] if single else list(given)
        body = [{"id": own, key: value} for own, value in zip(ids, values, strict=True)]
        return self._rows(name, "labels", body, single)

    def learn(self, name: str, rows: Any, label: Any, id: Any = None) -> Any:
        """Learn from a row with its label, or from lists of both.

        If one is refused, it raises :class:`ServiceError`. Of a list the others are learned from
        all the same, and the error has all ``answers``.
        """
        single = isinstance(rows, Mapping)
        given, labels = ([rows], [label]) if single else (list(rows), list(label))
        ids = _ids(id, len(given), single)
        triples = zip(ids, given, labels, strict=True)
        body = [{"id": own, "row": row, "label": value} for own, row, value in triples]
        return self._rows(name, "learn", body, single)

    def _rows(self, name: str, what: str, body: list[Any], single: bool) -> Any:
        """Send rows; if some of a list are refused, say so after all of them were answered."""
        answers = self._json("POST", f"{_path(name)}/{what}", body[0] if single else body)
        refused = [] if single else [own for own in answers if own["status"] >= 400]
        if refused:
            some = [f"id {own['id']!r}: {own['error']}" for own in refused[:REASONS]]
            said = "; ".join([*some, "..."] if len(refused) > REASONS else some)
            message = f"{len(refused)} of {len(answers)} rows were refused: {said}"
            raise ServiceError(refused[0]["status"], message, answers)
        return answers

    # -- challengers

    def challenge(self, name: str, challenger: str, learner: str = "auto", after: int = 0) -> Any:
        """Let another learner read the log of a model, after a record."""
        body = {"name": challenger, "learner": learner, "after": after}
        return self._json("POST", f"{_path(name)}/challengers", body)

    def promote(self, name: str, challenger: str) -> Any:
        """Let another learner of a model answer from now on."""
        return self._json("PUT", f"{_path(name)}/champion", {"learner": challenger})

    def certificate(self, name: str) -> Any:
        """Return what was paid so far, and what bounds it."""
        return self._json("GET", f"{_path(name)}/certificate")

    def ready(self) -> bool:
        """Say whether the service learns."""
        try:
            return bool(self._once("GET", "/ready", None)[0] == 200)
        except (OSError, http.client.HTTPException):
            return False

    # -- requests

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request until it is answered, and return the answer."""
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        pause, said = PAUSE, ""
        for left in reversed(range(self._tries)):
            try:
                status, answer = self._once(method, path, content)
            except (OSError, http.client.HTTPException) as error:
                status, answer, said = 0, b"", f"{self.url} does not answer: {error!r}"
                self.close()  # others that wait for the next request are as old
            else:
                said = ""
            if status and status not in AGAIN:
                return self._answer(status, answer)
            if left:
                time.sleep(pause)
                pause = min(2.0 * pause, LONGEST_PAUSE)
        raise ServiceError(status, said or _error(answer))

    def _answer(self, status: int, answer: bytes) -> Any:
        if status >= 400:
            raise ServiceError(status, _error(answer))
        return json.loads(answer)

    def _once(self, method: str, path: str, content: bytes | None) -> tuple[int, bytes]:
        binary = content is not None and path.count("/") == 2 and method == "PUT"
        headers = {"content-type": "application/octet-stream" if binary else "application/json"}
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token}"
        connection = self._connection()
        try:
            connection.request(method, self._parts.path.rstrip("/") + path, content, headers)
            answer = connection.getresponse()
            made = answer.status, answer.read()
        except BaseException:
            connection.close()
            raise
        if len(self._idle) < MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()
        return made

    def _connection(self) -> http.client.HTTPConnection:
        """Return a connection that nobody else uses."""
        try:
            return self._idle.pop()
        except IndexError:
            secure = self._parts.scheme == "https"
            kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
            return kind(self._parts.hostname or "", self._parts.port, timeout=self._seconds)


def _path(name: str) -> str:
    return f"/models/{quote(name, safe='')}"


def _ids(given: Any, count: int, single: bool) -> list[str]:
    if given is None:
        return [uuid.uuid4().hex for _ in range(count)]
    ids = [given] if single else list(given)
    if len(ids) != count:
        raise InputError(f"there are {count} rows, but {len(ids)} ids")
    return [str(own) for own in ids]


def _error(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["error"])
    except (ValueError, KeyError, TypeError):
        return answer.decode(errors="replace")[:200]
