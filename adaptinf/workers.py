"""Jobs distributed over threads, or over processes that end with the process that started them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from joblib.externals.loky import get_reusable_executor

Job = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function that can be pickled, and its arguments."""
TERMINATED = 128 + int(signal.SIGTERM)
"""The exit code that a shell reports for a process that was asked to stop."""


def n_workers(n_jobs: int) -> int:
    """The number of workers for `n_jobs`."""
    return int(effective_n_jobs(n_jobs))


def spread(jobs: Iterable[Job], n_jobs: int, *, threads: bool = False) -> list[Any]:
    """The result of each job, in the order of the jobs, computed in threads or as by `unordered`."""
    if n_jobs == 1:
        return [function(*arguments) for function, arguments in jobs]
    if threads:
        pool = ThreadPoolExecutor(n_workers(n_jobs))
        try:
            return list(pool.map(lambda job: job[0](*job[1]), jobs))
        finally:  # after an interrupt, no job is started, and nobody waits for those that run
            pool.shutdown(wait=False, cancel_futures=True)
    with _ended_together():
        return list(Parallel(n_jobs=n_jobs)(delayed(function)(*arguments) for function, arguments in jobs))


def unordered(jobs: Iterable[Job], n_jobs: int) -> Iterator[Any]:
    """The result of each job, as soon as the job is done.

    While jobs run, SIGTERM raises SystemExit, unless the process handles the signal itself.
    """
    if n_jobs == 1:
        yield from (function(*arguments) for function, arguments in jobs)
        return
    with _ended_together():
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
        yield from parallel(delayed(function)(*arguments) for function, arguments in jobs)


@contextmanager
def _ended_together() -> Iterator[None]:
    """Kill the workers if this process is told to stop; otherwise, they would finish their jobs."""
    # Python allows only the main thread to set signal handlers.
    in_main = threading.current_thread() is threading.main_thread()
    caught = in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if caught:
        signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        get_reusable_executor().shutdown(wait=False, kill_workers=True)
        raise
    finally:
        if caught:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave(_number: int, _frame: Any) -> None:
    raise SystemExit(TERMINATED)
