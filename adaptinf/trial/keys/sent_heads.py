"""Heads of a trial, which are sent elsewhere after each write; no request waits for this."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import warnings
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from adaptinf.errors import AdaptinfWarning
from adaptinf.files import as_path
from adaptinf.parameters import refuse

_MOST, _PATIENCE, _LAST = 10_000, 60.0, 10.0
"""Limits: heads that wait, seconds for a command, and seconds for waiting heads when a trial closes."""


class SentHeads:
    """A thread that appends heads to a file, or gives the latest to a command.

    A head covers all rows before it, so a slow command misses only heads that a later one covers. Failures do
    not stop the trial; `warn` reports each of them once.
    """

    def __init__(self, subject: str, where: Any) -> None:
        self._command = list(where) if isinstance(where, (list, tuple)) else None
        words = self._command is None or (
            self._command and all(isinstance(one, str) for one in self._command)
        )
        refuse(subject, [] if words else ["heads must be a file, or a command as a list of strings"])
        self._path = as_path(subject, "heads", where) if self._command is None else None
        self._waiting: deque[str] = deque(maxlen=_MOST)
        self._changed, self._closed, self._problem = threading.Condition(), False, ""
        self._thread: threading.Thread | None = None

    def send(self, rows: int, head: str) -> None:
        """Queue a head for sending."""
        said = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "rows": rows, "head": head}
        with self._changed:
            self._waiting.append(json.dumps(said) + "\n")
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="trial heads", daemon=True)
            self._thread.start()

    def warn(self) -> None:
        """Warn if a head could not be sent, and state why."""
        problem, self._problem = self._problem, ""
        if problem:
            warnings.warn(f"heads were not sent: {problem}", AdaptinfWarning, stacklevel=2)

    def close(self) -> None:
        """Send the waiting heads, but stop if this takes too long."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(_LAST)
        self.warn()

    def _work(self) -> None:
        while lines := self._next():
            try:
                self._sent(lines)
            except subprocess.TimeoutExpired:
                self._problem = f"the command did not finish within {_PATIENCE:g} s"
            except subprocess.CalledProcessError as error:
                self._problem = f"the command failed with exit code {error.returncode}"
            except (OSError, ValueError) as error:
                self._problem = f"{self._path or 'the command'}: {getattr(error, 'strerror', None) or error}"

    def _next(self) -> Sequence[str]:
        """The waiting lines; empty if there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            lines = list(self._waiting)
            self._waiting.clear()
        return lines

    def _sent(self, lines: Sequence[str]) -> None:
        if self._command is not None:
            line = lines[-1].encode()
            options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "timeout": _PATIENCE, "check": True}
            subprocess.run(self._command, input=line, **options)
        elif self._path is not None:
            # One call for each write: processes that append to one file do not mix their lines.
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(handle, "".join(lines).encode())
                os.fsync(handle)
            finally:
                os.close(handle)
