"""Several processes that serve one trial in a database: they share an address, and replace each other."""

from __future__ import annotations

import multiprocessing as mp
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaptinf.errors import AdaptinfError, FileError
from adaptinf.service.api import service
from adaptinf.service.figures import SHARED
from adaptinf.service.server import GRACE, STANDARD_ERROR, Log, Place, Server, ended_by_signals, unusable
from adaptinf.service.settings import Settings
from adaptinf.trial import Trial

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

MOST = 32
_BACKLOG, _POLL, _PAUSE = 2_048, 0.2, 1.0
"""Connections that may wait; seconds between looks for signals, and between two starts of a worker."""
_START, _MORE = 120.0, 5.0
"""Seconds within which a worker must start, and within which it must end after its last request."""
_VISITS, _WATCHES = "visits", 0
"""The file of visits, which must not be named like the files of figures; and the worker that watches."""


def worker_problems(trial: Trial, workers: int) -> list[str]:
    """Problems with a number of workers."""
    if not 1 <= workers <= MOST:
        return [f"workers must be from 1 to {MOST}, got {workers}"]
    if workers > 1 and isinstance(trial._requests.journal.path, Path):
        return ["workers must be 1 for a trial in a file: keep it in PostgreSQL"]
    return []


def serve_by_workers(
    opened: Callable[[], Trial], workers: int, place: Place, say: Callable[[str], None], settings: Settings
) -> None:
    """Serve a trial, which each worker opens for itself, until SIGTERM or Ctrl-C.

    Raises FileError if the address cannot be used, or if a worker does not start.
    """
    stopped = threading.Event()
    with _shared_folder() as folder, _bound(place) as bound, ended_by_signals(stopped.set):
        crew = _Crew(
            lambda number, ready: (opened, number, ready, bound, place, settings, folder / _VISITS), workers
        )
        try:
            crew.start(stopped)
            if not stopped.is_set():
                say(place.said(bound.getsockname()[1]))
            while not stopped.is_set():
                crew.look_after()
        finally:
            crew.stop()


@contextmanager
def _shared_folder() -> Iterator[Path]:
    """A folder for the workers' shared data, in which they also add up their figures."""
    with tempfile.TemporaryDirectory(prefix="adaptinf-") as name:
        os.environ[SHARED] = name
        try:
            yield Path(name)
        finally:
            del os.environ[SHARED]


def _bound(place: Place) -> socket.socket:
    """A socket that listens, so that connections wait until a worker accepts them."""
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    try:
        return socket.create_server((place.host, place.port), family=family, backlog=_BACKLOG)
    except OSError:
        raise unusable(place) from None


def _loaded() -> Any:
    """Starts processes from one that has loaded only what they need, if the system supports this."""
    if "forkserver" not in mp.get_all_start_methods():
        return mp.get_context("spawn")
    context = mp.get_context("forkserver")
    context.set_forkserver_preload([__name__, "adaptinf.designs", "adaptinf.trial.requests"])
    return context


class _Crew:
    """The workers of a service, and when each was started."""

    def __init__(self, given: Callable[[int, Any], tuple[Any, ...]], workers: int) -> None:
        self._context, self._given, self._workers = _loaded(), given, workers
        self._processes: dict[int, BaseProcess] = {}
        self._started: dict[int, float] = {}

    def _begin(self, number: int) -> Any:
        """Start a worker; returns an event that is set when the worker accepts requests."""
        ready = self._context.Event()
        process = self._context.Process(
            target=_work, args=self._given(number, ready), name=f"worker {number}"
        )
        process.start()
        self._processes[number], self._started[number] = process, time.monotonic()
        return ready

    def start(self, stopped: threading.Event) -> None:
        """Start all workers, and wait until each accepts requests."""
        waiting = {number: self._begin(number) for number in range(self._workers)}
        until = time.monotonic() + _START
        while waiting and not stopped.is_set():
            late = time.monotonic() > until
            for number, ready in list(waiting.items()):
                if ready.wait(_POLL):
                    del waiting[number]
                elif late or not self._processes[number].is_alive():
                    raise FileError(
                        "a worker", "started", "it ended, or took too long: see what it wrote above"
                    )

    def look_after(self) -> None:
        """Wait briefly, and restart the workers that have ended."""
        wait([process.sentinel for process in self._processes.values()], _POLL)
        for number, process in list(self._processes.items()):
            if not process.is_alive():
                time.sleep(max(0.0, self._started[number] + _PAUSE - time.monotonic()))
                self._begin(number)

    def stop(self) -> None:
        """Let all workers answer the requests that they have accepted, and end."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.join(GRACE + _MORE)
            process.kill()
            process.join()


def _work(
    opened: Callable[[], Trial],
    number: int,
    ready: Any,
    bound: socket.socket,
    place: Place,
    settings: Settings,
    visits: Path,
) -> None:
    """One worker, from its start to a signal."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    log = Log(STANDARD_ERROR)
    try:
        with opened() as trial:
            app = service(trial, log.line, settings, visits, watches=number == _WATCHES)
            Server(place, app, lambda _: ready.set()).run([bound])
    except AdaptinfError as error:
        log.line(str(error))
        raise SystemExit(1) from None
    finally:
        log.close()


def _end_with_parent() -> None:
    """End, as at a signal, when the process that started this one has ended."""
    parent = mp.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
