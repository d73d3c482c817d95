"""The process that serves a trial: its address, its certificate, its signals, and its access log."""

from __future__ import annotations

import ipaddress
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Full, Queue

from adaptinf.errors import FileError, MissingDependencyError
from adaptinf.parameters import refuse
from adaptinf.service.api import service
from adaptinf.service.settings import NOTHING, Settings
from adaptinf.trial import Trial

try:
    import uvicorn
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "uvicorn", "serve") from error

_GRACE, _IDLE, _CONNECTIONS = 30, 75, 1_000
"""Seconds for requests to end, and for connections between requests; most connections."""
_LINES, _LAST = 10_000, 1.0
_STANDARD_ERROR = 2


def serve(
    trial: Trial,
    host: str,
    port: int,
    certificate: Path | None = None,
    private_key: Path | None = None,
    say: Callable[[str], None] = print,
    settings: Settings = NOTHING,
) -> None:
    """Serve a trial until SIGTERM or Ctrl-C; `say` has the address once requests are accepted.

    Raises ParameterError if other machines could send requests without TLS, and FileError if the address or
    the certificate cannot be used.
    """
    refuse("serve", _problems(host, port, certificate, private_key))
    for path in (certificate, private_key):
        if path is not None and not path.is_file():
            raise FileError(str(path), "read", "there is no such file")
    os.environ.setdefault("MPLBACKEND", "Agg")  # Pages draw in a thread, where windows cannot be opened.
    log = _Log(_STANDARD_ERROR)
    config = uvicorn.Config(
        service(trial, log.line, settings),
        host=host,
        port=port,
        ssl_certfile=certificate,
        ssl_keyfile=private_key,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_GRACE,
        limit_concurrency=_CONNECTIONS,
    )
    try:
        _Server(config, say).run()
    finally:
        log.close()


def loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _problems(host: str, port: int, certificate: Path | None, private_key: Path | None) -> list[str]:
    problems = [] if 0 <= port < 2**16 else [f"port must be from 0 to 65,535, got {port}"]
    if (certificate is None) != (private_key is None):
        problems.append("certificate and private_key belong together: give both or neither")
    elif certificate is None and not loopback(host):
        problems.append(
            f"other machines can reach {host:.60}, so tokens and names need TLS: give certificate= and "
            "private_key=, or keep the host 127.0.0.1 behind a proxy that has them"
        )
    return problems


class _Server(uvicorn.Server):
    """A server that says where it listens, and ends normally after a signal."""

    def __init__(self, config: uvicorn.Config, say: Callable[[str], None]) -> None:
        super().__init__(config)
        self._say = say

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        try:
            await super().startup()
        except SystemExit:
            place = f"{self.config.host}:{self.config.port}"
        else:
            self._say(self._where())
            return
        raise FileError(place, "used", "another program has it, or it is not an address of this machine")

    def _where(self) -> str:
        """The address, with the port that the system chose if none was given."""
        port = self.servers[0].sockets[0].getsockname()[1]
        host = f"[{self.config.host}]" if ":" in self.config.host else self.config.host
        return f"{'https' if self.config.is_ssl else 'http'}://{host}:{port}"

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal; unlike uvicorn's own, it is not raised again at the end."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self._stop) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self, *_: object) -> None:
        self.should_exit = True


class _Log:
    """Lines for a stream, written by a thread: a full pipe must not stop the trial, so it loses lines."""

    def __init__(self, stream: int) -> None:
        self._stream = stream
        self._lines: Queue[str | None] = Queue(_LINES)
        self._thread = threading.Thread(target=self._write, name="access log", daemon=True)
        self._thread.start()

    def line(self, text: str) -> bool:
        """Write a line; returns whether there was room for it."""
        try:
            self._lines.put_nowait(text)
        except Full:
            return False
        return True

    def _write(self) -> None:
        # The descriptor, because Python's own stream would be locked at exit by a thread that is stuck.
        while (text := self._lines.get()) is not None:
            try:
                os.write(self._stream, f"{text}\n".encode())
            except OSError:  # Nobody reads it any more.
                return

    def close(self) -> None:
        """Write what waits, if that is possible soon."""
        try:
            self._lines.put_nowait(None)
        except Full:
            return
        self._thread.join(_LAST)
