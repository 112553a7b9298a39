"""A headless Chromium that opens a page of ours and tells what happened, through its debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_PATIENCE = 60.0

# The browser reads commands from descriptor 3 and writes answers to descriptor 4.
_WITH_PIPES = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_browser() -> str | None:
    """The browser named by CHROMIUM, or one on the path."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


class Page:
    """One open page: what it said on the console, what it asked for, and what can be asked of it."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def open(self, place: Path | str, width: int, height: int = 900) -> None:
        """Open a file or an address at this width, and wait until it is drawn."""
        if self._session is None:
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
        self.complaints.clear()
        self.requests.clear()
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.call("Page.navigate", url=place if isinstance(place, str) else place.resolve().as_uri())
        while not self.ask("document.readyState === 'complete' && location.protocol !== 'about:'"):
            time.sleep(0.05)

    def ask(self, expression: str) -> Any:
        """The value of an expression on the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def picture(self, path: Path) -> None:
        """Keep what the page looks like, all of it."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer.get("method", ""), answer.get("params", {}))
        raise TimeoutError(f"the browser did not answer {method}")

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._back, 1 << 16)
            if not data:
                raise RuntimeError("the browser has gone")
            self._buffer += data
        message, self._buffer = self._buffer.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: str, told: dict[str, Any]) -> None:
        if event == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(told["args"]))
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(str(told["exceptionDetails"]))
        elif event == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(told["entry"]["text"])
        elif event == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])


@contextmanager
def browsing(browser: str) -> Iterator[Page]:
    """A browser with one page."""
    for_us, to_us = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [sys.executable, "-c", _WITH_PIPES, str(for_us[0]), str(to_us[1]), browser, *_QUIET]
            + ["--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(for_us[0], to_us[1]),
            stderr=subprocess.DEVNULL,
        )
        os.close(for_us[0])
        os.close(to_us[1])
        try:
            yield Page(for_us[1], to_us[0])
        finally:
            process.kill()
            process.wait()
            os.close(for_us[1])
            os.close(to_us[0])
