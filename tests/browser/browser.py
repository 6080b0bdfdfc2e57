"""A headless Chromium, driven through the pipe of its debugging protocol."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 30.0


def program() -> str | None:
    """The browser of this machine, if there is one."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """One page. It keeps what the page's script throws, and what the page asks the network for."""

    def __init__(self, folder: Path) -> None:
        found = program()
        assert found is not None
        self.thrown: list[str] = []
        self.requested: list[str] = []
        self._next = 0
        self._rest = b""
        from_us, self._out = os.pipe()
        self._in, to_us = os.pipe()
        # The browser reads its file 3 and writes its file 4, whatever their numbers are here.
        pipe = f'exec 3<&{from_us} 4>&{to_us}; exec "$@"'
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
        argv = (found, *options, "--remote-debugging-pipe", f"--user-data-dir={folder}")
        self._process = subprocess.Popen(
            ["bash", "-c", pipe, "bash", *argv],
            pass_fds=(from_us, to_us),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(to_us)
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def open(self, url: str, *, width: int = 1240, height: int = 1400, dark: bool = False) -> None:
        """Load a page; its script runs."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url=url)
        self.wait(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def value(self, script: str) -> Any:
        """What an expression of JavaScript is in the page."""
        told = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def wait(self, script: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.value(script):
            if time.monotonic() > deadline:
                shown = self.value("document.body && document.body.innerText")
                raise AssertionError(f"still not: {script}; thrown: {self.thrown}; page: {shown}")
            self._read(0.05)

    def picture(self, file: Path) -> bytes:
        """Write a PNG of the page, and return it."""
        told = self.call("Page.captureScreenshot", format="png")
        picture = base64.b64decode(told["data"])
        file.write_bytes(picture)
        return picture

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the debugging protocol for this page."""
        return self._call(method, self._session, **parameters)

    def _call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for answer in self._read(1.0):
                if answer.get("id") == message["id"]:
                    assert "error" not in answer, answer
                    result: dict[str, Any] = answer["result"]
                    return result
        raise AssertionError(f"the browser did not answer {method}")

    def _read(self, timeout_s: float) -> list[dict[str, Any]]:
        """The messages that have come, after a wait of at most ``timeout_s`` seconds."""
        if not select.select([self._in], [], [], timeout_s)[0]:
            return []
        part = os.read(self._in, 1 << 20)
        assert part, "the browser has ended"
        *whole, self._rest = (self._rest + part).split(b"\0")
        messages = [json.loads(text) for text in whole]
        for message in messages:
            parameters = message.get("params", {})
            if message.get("method") == "Runtime.exceptionThrown":
                self.thrown.append(json.dumps(parameters["exceptionDetails"]))
            if message.get("method") == "Network.requestWillBeSent":
                self.requested.append(parameters["request"]["url"])
        return messages
