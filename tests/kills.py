"""Runs that are really killed: a process that forks one of them at a time, and tells how it ended.

Started as a program it reads orders from standard input, a line of JSON each: the arguments of a
command, and where it is killed, at which operation on a file (``point``) or after how many
seconds (``after``). All is imported and compiled once. Clocks stand still there, so that all
that runs leave behind can be compared byte by byte; a checkpoint is written after every piece, or
none on the way if more than no seconds are to be between them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path


class Killed:
    """A process to give orders to."""

    def __init__(self, rows=40, seconds=0.0):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(rows), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, *arguments, point=None, after=None, warm=False):
        """Return how the command ended: its exit code, minus the signal if it was killed.

        With ``warm`` it is run by the process itself, so that later ones find all compiled.
        """
        order = {"arguments": [str(a) for a in arguments], "point": point, "after": after}
        order["warm"] = warm
        print(json.dumps(order), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def serve(rows, seconds):
    from click.testing import CliRunner

    from driftline import files
    from driftline.app import tables
    from driftline.app.cli import main
    from driftline.app.runs import (  # noqa: F401  # noqa: F401
        audit_buffer,
        audit_file,
        guarantee,
        outputs,
        schedule,
        stop,
        telling,
    )

    schedule.SECONDS, schedule.SHARE = seconds, float("inf")
    tables.open_table = partial(tables.open_table, rows=rows)
    sleeping = time.sleep
    now = time.localtime(1e9)
    time.localtime = lambda *_: now
    time.perf_counter = lambda: 0.0

    class Failing(files.Disk):
        """Kills the process at an operation; of what is written, half is there then."""

        def __init__(self, point):
            self.point, self.count = point, 0

        def _reached(self):
            if self.count == self.point:
                os.kill(os.getpid(), signal.SIGKILL)
            self.count += 1

        def write(self, handle, content):
            self._reached()
            half = len(content) // 2
            super().write(handle, content[:half])
            self._reached()
            super().write(handle, content[half:])

    def counted(name):
        original = getattr(files.Disk, name)

        def operation(self, *arguments):
            self._reached()
            return original(self, *arguments)

        return operation

    for name in ("open", "truncate", "sync", "rename", "remove", "sync_folder"):
        setattr(Failing, name, counted(name))

    for line in sys.stdin:
        order = json.loads(line)
        if order["warm"]:
            done = CliRunner().invoke(main, order["arguments"])
            print(json.dumps({"code": done.exit_code, "output": done.output}), flush=True)
            continue
        receiving, sending = os.pipe()
        child = os.fork()
        if not child:
            files.disk = Failing(order["point"])
            done = CliRunner().invoke(main, order["arguments"])
            about = {"points": files.disk.count, "output": done.output}
            os.write(sending, json.dumps(about).encode())
            os._exit(done.exit_code)
        os.close(sending)
        if order["after"] is not None:
            sleeping(order["after"])
            os.kill(child, signal.SIGKILL)  # no harm to one that has ended, and waits for us
        with os.fdopen(receiving) as pipe:
            said = pipe.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        try:
            about = json.loads(said)
        except ValueError:
            about = {"points": 0, "output": ""}
        print(json.dumps(about | {"code": code}), flush=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


if __name__ == "__main__":
    serve(int(sys.argv[1]), float(sys.argv[2]))
