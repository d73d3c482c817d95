"""The process that serves a trial: its address, its certificate, its signals, and its access log."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Full, Queue
from typing import NamedTuple

from adaptinf.errors import FileError, MissingDependencyError
from adaptinf.parameters import refuse
from adaptinf.service.api import service
from adaptinf.service.gate import Gate
from adaptinf.service.settings import NOTHING, Settings
from adaptinf.trial import Trial

try:
    import uvicorn
    from uvicorn.protocols.http.auto import AutoHTTPProtocol
except ImportError as error:
    raise MissingDependencyError("a trial over HTTP", "uvicorn", "serve") from error

GRACE, _IDLE, _CONNECTIONS = 30, 75, 1_000
"""Seconds for requests to end, and for idle connections; the largest number of connections."""
HEADERS = 10.0
"""Seconds for a connection to send the headers of a request, from its start or from their first byte."""
_LINES, _LAST = 10_000, 1.0
STANDARD_ERROR = 2
_FULL = 2
"""The generation of the garbage collector that contains all objects."""


class Place(NamedTuple):
    """The address at which a service listens, and the files that TLS requires."""

    host: str
    port: int
    certificate: Path | None = None
    private_key: Path | None = None

    def check(self, more: Sequence[str] = ()) -> None:
        """Raise ParameterError or FileError if the service cannot start; `more` contains further problems."""
        refuse("serve", [*self._problems(), *more])
        for path in (self.certificate, self.private_key):
            if path is not None and not path.is_file():
                raise FileError(str(path), "read", "the file does not exist")

    def _problems(self) -> list[str]:
        port = self.port
        problems = [] if 0 <= port < 2**16 else [f"port must be from 0 to 65,535, got {port}"]
        if (self.certificate is None) != (self.private_key is None):
            problems.append("certificate and private_key belong together: give both or neither")
        elif self.certificate is None and not loopback(self.host):
            problems.append(
                f"other machines can reach {self.host:.60}, so tokens and names need TLS: give certificate= "
                "and private_key=, or keep the host 127.0.0.1 behind a proxy that has them"
            )
        return problems

    def said(self, port: int) -> str:
        """The address for users, with the port that the system chose if none was given."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.certificate is None else 'https'}://{host}:{port}"

    def configured(self, app: Gate) -> uvicorn.Config:
        """Configuration with which uvicorn serves an application at this address."""
        os.environ.setdefault("MPLBACKEND", "Agg")  # Pages draw in a thread, where windows cannot be opened.
        return uvicorn.Config(
            app,
            host=self.host,
            port=self.port,
            http=Connection,
            ssl_certfile=self.certificate,
            ssl_keyfile=self.private_key,
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            timeout_keep_alive=_IDLE,
            timeout_graceful_shutdown=GRACE,
            limit_concurrency=_CONNECTIONS,
        )


def unusable(place: Place) -> FileError:
    """Error stating that no service can listen at this address."""
    told = "another program uses it, or it is not an address of this computer"
    return FileError(f"{place.host}:{place.port}", "used", told)


def serve(
    trial: Trial,
    host: str,
    port: int,
    certificate: Path | None = None,
    private_key: Path | None = None,
    say: Callable[[str], None] = print,
    settings: Settings = NOTHING,
) -> None:
    """Serve a trial until SIGTERM or Ctrl-C; `say` receives the address once requests are accepted.

    Raises ParameterError if other machines could send requests without TLS, and FileError if the address or
    the certificate cannot be used.
    """
    place = Place(host, port, certificate, private_key)
    place.check()
    log = Log(STANDARD_ERROR)
    try:
        Server(place, service(trial, log.line, settings), say).run()
    finally:
        log.close()


def loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Connection(AutoHTTPProtocol):  # type: ignore[valid-type, misc]
    """A connection, which is closed if the headers of its request do not arrive in time.

    uvicorn itself limits only the time between requests, so connections that send nothing, or only an
    occasional byte, could use up all accepted connections.
    """

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._waits()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of the headers, unless all have arrived."""
        super().data_received(data)
        if self._served():
            self._stop()
        elif self._due is None:
            self._waits()

    def connection_lost(self, error: Exception | None) -> None:
        """Stop waiting, because nothing more will arrive."""
        self._stop()
        super().connection_lost(error)

    def _served(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def _waits(self) -> None:
        self._due = asyncio.get_running_loop().call_later(HEADERS, self._close)

    def _stop(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _close(self) -> None:
        self._due = None
        if not self._served():
            self.transport.close()


class Server(uvicorn.Server):
    """A server that reports its address, and ends normally after a signal."""

    def __init__(self, place: Place, app: Gate, say: Callable[[str], None]) -> None:
        super().__init__(place.configured(app))
        self._place, self._say = place, say

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Listen, and say where."""
        try:
            await super().startup(sockets)  # type: ignore[arg-type]
        except SystemExit:
            pass
        else:
            gc.collect()  # Before requests arrive, not between them.
            self._say(self._place.said(self.servers[0].sockets[0].getsockname()[1]))
            return
        raise unusable(self._place)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal which, unlike in uvicorn, is not raised again at the end."""
        with ended_by_signals(self._stop), survivors_set_aside():
            yield

    def _stop(self) -> None:
        self.should_exit = True


@contextmanager
def ended_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call a function at SIGTERM and at Ctrl-C."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def survivors_set_aside() -> Iterator[None]:
    """Let the garbage collector skip objects that have survived a full collection."""
    # Loaded modules and the trial's rows live until the end. To visit them again takes about half a second,
    # during which nothing is answered, and with several workers the lock of the trial may be held.

    def set_aside(phase: str, found: dict[str, int]) -> None:
        if phase == "stop" and found["generation"] == _FULL:
            gc.freeze()

    gc.callbacks.append(set_aside)
    try:
        yield
    finally:
        gc.callbacks.remove(set_aside)
        gc.unfreeze()


class Log:
    """Lines for a stream, written by a thread; a full pipe drops lines instead of stopping the trial."""

    def __init__(self, stream: int) -> None:
        self._stream = stream
        self._lines: Queue[str | None] = Queue(_LINES)
        self._thread = threading.Thread(target=self._write, name="access log", daemon=True)
        self._thread.start()

    def line(self, text: str) -> bool:
        """Write a line; returns False if there was no room for it."""
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
        """Write the waiting lines, unless this takes too long."""
        try:
            self._lines.put_nowait(None)
        except Full:
            return
        self._thread.join(_LAST)
