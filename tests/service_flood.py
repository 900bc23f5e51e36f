"""Clients that send as much as they can and never read, in a process of their own.

    python -m tests.service_flood PORT CONNECTIONS SECONDS KIND

It prints how many connections were closed by the service, and after how many seconds the last one.
"""

import select
import socket
import sys
import time

HOST = b" HTTP/1.1\r\nhost: localhost\r\n"
#: What a connection begins with, and what it repeats.
LEARN = b"POST /models/m/learn" + HOST
KINDS = {
    "pages": (b"", (b"GET /uplot.js" + HOST + b"\r\n") * 1000),
    "minimal requests": (b"", b"GET / HTTP/1.1\r\n\r\n" * 5000),
    "bodies": (b"", (LEARN + b"content-length: 9\r\n\r\n[1, 2, 3]") * 1000),
    "chunked": (b"", (LEARN + b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n") * 2000),
    "large bodies": (b"", LEARN + b"content-length: 4000000\r\n\r\n" + b" " * 4_000_000),
    "partial bodies": (LEARN + b"content-length: 8000000\r\n\r\n" + b" " * 7_900_000, b""),
    "headers": (b"GET /" + HOST + b"x: " + b"y" * 65_000, b""),
    "short headers": (b"GET /" + HOST + b"xy:\r\n" * 12_000, b""),
    "descriptions": (b"", (b"GET /openapi.json" + HOST + b"\r\n") * 1000),
}


#: What says that the other side has closed a connection, though its answers were not read.
CLOSED = select.POLLERR | select.POLLHUP | select.POLLNVAL | getattr(select, "POLLRDHUP", 0)


class Client:
    """A connection that never reads."""

    def __init__(self, port, kind):
        self.rest, self.more = KINDS[kind]
        self.socket = socket.create_connection(("127.0.0.1", port), 60.0)
        self.socket.setblocking(False)

    def send(self):
        """Send what the socket takes; return whether there is more."""
        self.rest = self.rest or self.more
        try:
            self.rest = self.rest[self.socket.send(memoryview(self.rest)[: 1 << 18]) :]
        except BlockingIOError:
            pass
        return bool(self.rest or self.more)


def main(port, count, seconds, kind):
    end, poll, clients, last = time.monotonic() + seconds, select.poll(), {}, 0.0
    for _ in range(count):
        try:
            made = Client(port, kind)
        except OSError:
            continue
        clients[made.socket.fileno()] = made
        poll.register(made.socket, select.POLLOUT | CLOSED)
    began, opened = time.monotonic(), len(clients)
    print("flooding", flush=True)
    while clients and time.monotonic() < end:
        for number, events in poll.poll(500):
            client = clients[number]
            try:
                if events & CLOSED:
                    raise OSError
                if not client.send():
                    poll.modify(client.socket, CLOSED)
            except OSError:
                poll.unregister(number)
                clients.pop(number).socket.close()
                last = time.monotonic() - began
    print(opened, opened - len(clients), round(last, 1), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4])
