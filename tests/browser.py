"""A real browser, driven by the DevTools protocol over two pipes."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from contextlib import suppress

FLAGS = """--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking
--disable-component-update --disable-sync --disable-extensions --remote-debugging-pipe""".split()


def chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One page of a browser."""

    def __init__(self, folder):
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def pipes():  # the protocol speaks over descriptors 3 and 4
            first, second = os.dup(to_read), os.dup(to_write)
            os.dup2(first, 3)
            os.dup2(second, 4)

        command = [chromium(), *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(
            command, preexec_fn=pipes, pass_fds=(3, 4, to_read, to_write), **silent
        )
        os.close(to_read)
        os.close(to_write)
        self._number, self._buffer, self.events = 0, b"", []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def _call(self, method, session=None, **params):
        self._number += 1
        own = self._number
        message = {"id": own, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(30.0)
            if answer is None:
                raise TimeoutError(method)
            if answer.get("id") == own:
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer["result"]
            self.events.append(answer)

    def _next(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self._buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                return None
            self._buffer += os.read(self._read, 1 << 20)
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **params):
        return self._call(method, self._session, **params)

    def open(self, address):
        self.call("Page.navigate", url=address)

    def value(self, script):
        """Return what a script evaluates to in the page."""
        made = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in made:
            raise RuntimeError(made["exceptionDetails"])
        return made["result"].get("value")

    def wait(self, script, seconds=30.0):
        """Wait until a script is true in the page, and return its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with suppress(RuntimeError):  # the page is not there yet
                if made := self.value(script):
                    return made
            time.sleep(0.1)
        said = self.value("document.body.innerText")
        raise TimeoutError(f"never true: {script}; the page says {said[:500]}")

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def complaints(self):
        """Return errors of the console, and addresses that were asked for."""
        self.value("1")
        errors, addresses = [], []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                errors.append(params["exceptionDetails"])
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                errors.append(params["args"])
            elif method == "Network.requestWillBeSent":
                addresses.append(params["request"]["url"])
        return errors, addresses

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)
