"""A connection: which of its bytes are parsed, how many of them wait, and when it is closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from driftline.app.service.http import Bounds

__all__ = ["Connection"]

#: How many bytes of headers are parsed at once: few requests have room in them; and of a body: one
#: in chunks may have a call for every six bytes.
SLICE, PART, CHUNKS = 512, 1 << 18, 1 << 14
#: How many bytes of chunks are parsed after the answer, so that a client may read why.
LATE = 1 << 20
#: How many bytes beside a body, such as the sizes of chunks, are parsed for every byte of it.
FRAMES = 8
#: How many bytes the address and the headers of a request may have, and how many every header
#: counts beside its own: it is kept as a pair.
HEAD, PAIR = 1 << 16, 128
#: How many unsent bytes hold up what writes more, and how many bytes are charged to no budget.
UNSENT = 1 << 14
#: How many bytes a client must read, while more of them wait, or else the connection is idle.
PROGRESS = 1 << 16


class Flow(FlowControl):
    """Back-pressure: uvicorn stops reading by itself, but does not decide when reading goes on."""

    def __init__(self, transport: Any, read_on: Callable[[], None]):
        super().__init__(transport)
        self._read_on = read_on

    def resume_reading(self) -> None:
        """Let the connection decide; called when a body is wanted."""
        if self.read_paused:
            self._read_on()

    def really_resume(self) -> None:
        """Read from the socket again."""
        super().resume_reading()


class Connection(HttpToolsProtocol):
    """Reads requests one after the other, whatever a client sends at once.

    While a request is answered, bytes of later ones are held as they came, and no more are read:
    uvicorn would parse them all into its pipeline. Nor does a later request start while the client
    leaves answers unread. A connection is closed if it waits for a request, for a body, or for a
    client that does not read, for longer than ``bounds.idle`` seconds: uvicorn only limits pauses
    after the first answer, and any byte ends a pause.
    """

    _head, _in_head, _seen, _length, _frames, _late = 0, True, 0, 0, 0, 0
    _since, _heard, _timer = 0.0, 0.0, None
    _held, _place, _unsent, _charged = b"", 0, 0, 0
    #: The request that was started last; those in the pipeline wait for it.
    _started: RequestResponseCycle | None = None

    def __init__(self, *given: Any, bounds: Bounds, **named: Any):
        super().__init__(*given, **named)
        self._idle, self._budget = bounds.idle, bounds.budget

    # -- the transport's calls

    def connection_made(self, transport: Any) -> None:
        """Wait for a first request."""
        super().connection_made(transport)
        self.flow: Any = Flow(transport, self._read_on)
        transport.set_write_buffer_limits(UNSENT)
        self._since = self.loop.time()
        self._timer = self.loop.call_later(self._idle, self._end_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Hold nothing, and wait no longer."""
        super().connection_lost(exc)
        self._budget.hold(self, 0)
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Parse a small request at once; take a part of anything larger, and hold the rest."""
        self._heard = self.loop.time()
        if len(data) <= SLICE and not self._held and self._is_ready():
            self._parse(data)
        else:
            self._held, self._place = self._held[self._place :] + data, 0
            self._read_on()

    def pause_writing(self) -> None:
        """Wait for the client to read: too many bytes are unsent."""
        super().pause_writing()
        self._note_progress()
        self._charge()

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        super().resume_writing()
        self._note_progress()
        self._charge()
        self._go_on()

    def abort(self) -> None:
        """Close the connection at once."""
        self._charged = 0
        self.transport.abort()

    # -- the parser's calls

    def on_headers_complete(self) -> None:
        """Count the bytes of a body from now on, not those before it."""
        self._head, self._in_head, self._seen, self._frames, self._late = 0, False, 0, 0, 0
        given = (int(value) for name, value in self.headers if name == b"content-length")
        self._length = next(given, 0)
        super().on_headers_complete()
        if not self.pipeline:
            self._started = self.cycle

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; what comes after a body in chunks (trailers) is dropped."""
        if self._in_head:
            self._head += PAIR
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Count the bytes of a body."""
        self._seen += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Count the bytes before the next body."""
        self._in_head = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Go on to the next request."""
        self.server_state.total_requests += 1
        self._note_progress()
        if self._charged:
            self._charge()
        if self.pipeline or self.flow.read_paused:  # others come first
            self.loop.call_soon(self._go_on)

    # -- what is parsed, and when

    def _is_answering(self) -> bool:
        return self._started is not None and not self._started.response_complete

    def _is_ready(self) -> bool:
        """Say whether bytes may be parsed: of a next request, or of a body that is wanted."""
        cycle = self.cycle
        if self.pipeline or self.transport.is_closing():
            return False
        if cycle is None or cycle.response_complete:
            return not self.flow.write_paused
        return cycle.more_body and len(cycle.body) <= HIGH_WATER_LIMIT

    def _go_on(self) -> None:
        """Start the next request, or parse one, unless a client leaves answers unread."""
        if self._is_answering() or self.flow.write_paused or self.transport.is_closing():
            return
        if self.pipeline:
            self._started, app = self.pipeline.pop()
            self._start_asgi_task(self._started, app)
        elif self.flow.read_paused:
            self._read_on()

    def _read_on(self) -> None:
        """Parse held bytes as far as may be; read more when none are left.

        Others have their turn after every part of a body in chunks.
        """
        while self._place < len(self._held) and self._is_ready():
            start, self._place = self._place, min(self._end(), len(self._held))
            chunks = not self._in_head and not self._length
            self._parse(self._held[start : self._place])
            if chunks and self._place < len(self._held):
                self.flow.pause_reading()
                self.loop.call_soon(self._read_on)
                return
        if self._place < len(self._held):
            self.flow.pause_reading()
        else:
            self._held, self._place = b"", 0
            if self._is_ready():
                self.flow.really_resume()
        self._charge()

    def _end(self) -> int:
        """Return up to where to parse: to the end of headers, or of a body of known length.

        Nothing behind that is parsed before the request is answered; a chunked body ends by an
        empty line, as headers do.
        """
        start = self._place
        if not self._in_head and self._length:
            return start + max(1, min(self._length - self._seen, PART))
        most = start + (SLICE if self._in_head else CHUNKS)
        found = self._held.find(b"\r\n\r\n", start, most)
        return most if found < 0 else found + 4

    def _parse(self, data: bytes) -> None:
        """Parse bytes; refuse a request whose address and headers do not end.

        Nor may there be much beside a body, or much more of one that is answered already.
        """
        if self._in_head:
            self._head += len(data)
            if self._head > HEAD:
                self.send_400_response("the headers are too large")
                return
            if self._head > UNSENT:
                self._charge()
            super().data_received(data)
            return
        before, late = self._seen, not self._length and not self._is_answering()
        super().data_received(data)
        self._frames += len(data) - (self._seen - before)
        self._late += late * len(data)
        if self._frames > HEAD + FRAMES * self._seen or self._late > LATE:
            self.abort()

    # -- what is held, and for how long

    def _charge(self) -> None:
        """Tell the budget what the connection holds, if it is much."""
        size = len(self._held) - self._place + self._head + self._frames
        if self.flow.write_paused:
            size += self.transport.get_write_buffer_size()
        if self.cycle is not None and not self.cycle.response_complete:
            size += len(self.cycle.body)
        if size <= UNSENT:
            size = 0
        if size != self._charged and not self.transport.is_closing():
            self._charged = size
            self._budget.hold(self, size)

    def _note_progress(self) -> None:
        """Count the idle time from now on."""
        self._since, self._unsent = self.loop.time(), self.transport.get_write_buffer_size()

    def _end_if_idle(self) -> None:
        """End the connection if it waits for long; else look again later: one timer for all."""
        now, unsent = self.loop.time(), self.transport.get_write_buffer_size()
        since = self._since
        if unsent and (self.flow.write_paused or not self._is_answering()):
            if self._unsent - unsent >= PROGRESS:
                self._note_progress()
                since = now
        elif self._started is not None and self._is_answering():
            waits = self._started.more_body and not self.flow.read_paused
            since = self._heard if waits else now
        left = since + self._idle - now
        if left > 0:
            self._timer = self.loop.call_later(left, self._end_if_idle)
        else:
            self.transport.abort()
