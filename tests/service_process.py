"""A service in a process of its own, with what it prints; parts of it can be made to hang."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading


class Process:
    """A service on a folder; ``before`` is Python that runs before the command."""

    def __init__(self, folder, *options, before="", prefix=(), wait=True):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.port, self.address = port, f"http://127.0.0.1:{port}"
        code = f"import time\n{before}\nfrom driftline.app.cli import main\nmain()"
        arguments = ["serve", "--data", str(folder), "--port", str(port), *options]
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-c", code, *arguments],
            text=True,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.pid, self.said, self._lines = self.process.pid, [], threading.Condition()
        for stream in (self.process.stdout, self.process.stderr):
            threading.Thread(target=self._read, args=(stream,), daemon=True).start()
        if wait:
            self.wait_for("listening at")

    def _read(self, stream):
        for line in stream:
            with self._lines:
                self.said.append(line)
                self._lines.notify_all()
        stream.close()

    def wait_for(self, words, seconds=60.0):
        """Wait until the service says something."""
        with self._lines:
            assert self._lines.wait_for(lambda: words in "".join(self.said), seconds), self.said

    def send(self, number):
        os.kill(self.pid, number)

    def memory(self):
        """Return the resident memory, in megabytes."""
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(self.pid)], capture_output=True)
        return int(shown.stdout) / 1024

    def stop(self, number=signal.SIGTERM, seconds=30.0):
        """Tell the service to end; return its exit code, or kill it if it does not end."""
        self.send(number)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
