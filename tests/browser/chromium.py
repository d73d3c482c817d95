"""Debian's Chromium without a window, asked through a pipe by the DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions", "--remote-debugging-pipe")
_PATIENCE = 60.0


class Tab:
    """One page of a browser: what it shows, and what happened while it was loaded."""

    def __init__(self, asked: int, told: int) -> None:
        self._asked, self._told, self._number, self._rest = asked, told, 0, b""
        self._session: dict[str, str] = {}
        self.events: list[dict[str, Any]] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": found["sessionId"]}
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **values: Any) -> Any:
        """The answer to a command; events are kept."""
        self._number += 1
        sent = {"id": self._number, "method": method, "params": values, **self._session}
        os.write(self._asked, json.dumps(sent).encode() + b"\0")
        number = self._number
        while True:
            told = self._next()
            if told.get("id") == number:
                assert "error" not in told, told
                return told["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._told, 2**20)
            assert more, "the browser has ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(line)
        if "method" in told:
            self.events.append(told)
        return told

    def run(self, code: str) -> Any:
        """The value of an expression in the page, or of what it promises."""
        found = self.ask("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def go(self, address: str) -> None:
        """Open an address, and wait until it and its pictures are loaded."""
        self.events.clear()
        self.ask("Page.navigate", url=address)
        self.wait("location.href !== 'about:blank' && document.readyState === 'complete'")

    def wait(self, condition: str) -> None:
        """Wait until something is true of the page."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            with suppress(AssertionError):  # The page may be about to be replaced.
                if self.run(condition):
                    return
            time.sleep(0.05)
        raise TimeoutError(condition)

    def show(self, width: int, dark: bool) -> None:
        """The width of the window in pixels, and the colours that its owner prefers."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=features)

    def press(self, key: str) -> None:
        """Press a key."""
        codes, texts = {"Tab": 9, "Enter": 13, " ": 32}, {"Enter": "\r", " ": " "}
        text = {"text": texts[key]} if key in texts else {}
        for kind in ("keyDown", "keyUp"):
            self.ask(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=codes[key],
                **text,
            )

    def type(self, text: str) -> None:
        """Write a text where the cursor is."""
        self.ask("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        """Write what the whole page looks like."""
        found = self.ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def told(self) -> list[str]:
        """What the console says: errors, warnings, exceptions, and what a policy refused."""
        found = []
        for one in self.events:
            kind, values = one["method"], one["params"]
            if kind == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
                found.append(values["entry"]["text"])
            elif kind == "Runtime.exceptionThrown" or (
                kind == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning")
            ):
                found.append(json.dumps(values)[:300])
        return found

    def requested(self) -> list[str]:
        """Addresses that were asked for."""
        return [
            one["params"]["request"]["url"]
            for one in self.events
            if one["method"] == "Network.requestWillBeSent"
        ]


@contextmanager
def chromium() -> Iterator[Tab]:
    """A browser with a profile of its own."""
    asked, told = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The browser reads commands from descriptor 3, and writes answers to 4.
        command = ["chromium", *_OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        start = f'exec "$@" 3<&{asked[0]} 4>&{told[1]}'
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(
            ["bash", "-c", start, "chromium", *command], pass_fds=(asked[0], told[1]), **quiet
        )
        os.close(asked[0])
        os.close(told[1])
        try:
            yield Tab(asked[1], told[0])
        finally:
            process.terminate()
            process.wait()
            os.close(asked[1])
            os.close(told[0])
