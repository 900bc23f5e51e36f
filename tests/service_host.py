"""Starts services that are killed: a process that has imported all, and forks one at a time.

It reads lines from standard input: ``start`` forks a service, and prints its process id.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path


class Host:
    """A process to give orders to."""

    def __init__(self, folder: Path, port: int, *more: str):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        arguments = [sys.executable, "-m", "tests.service_host", str(folder), str(port), *more]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(arguments, text=True, env=environment, **pipes)
        self.pid = 0

    def start(self):
        """Start a service; the one before must have ended."""
        print("start", file=self._process.stdin, flush=True)
        self.pid = int(self._process.stdout.readline())

    def kill(self, signal_number=signal.SIGKILL):
        """End the service, and wait until it has ended; return its exit code, or minus a signal."""
        os.kill(self.pid, signal_number)
        return int(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait(30.0)
        self._process.stdout.close()


def main(folder, port, *more):
    import driftline.app.cli.serve
    import driftline.app.service.routes  # noqa: F401
    import driftline.app.service.server  # noqa: F401
    from driftline.app.cli import main as command

    _warm()
    arguments = ["serve", "--data", folder, "--port", port, *more]
    for _ in sys.stdin:
        child = os.fork()
        if not child:
            silent = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1):
                os.dup2(silent, number)
            command(arguments, standalone_mode=False)
            os._exit(0)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _warm():
    """Compile what a service needs, once."""
    import driftline as dl

    rows = [{"x": i % 7, "label": "yes" if i % 2 else "no"} for i in range(20)]
    model = dl.TableModel.new(rows, label="label", learner="fast")
    model.tell(model.ask({"x": 1}), "yes")
    model.learn(rows)
    model.predict_proba({"x": 1})


if __name__ == "__main__":
    main(*sys.argv[1:])
