"""Requests to a trial, one transaction each: read what others wrote, decide, write, and only then answer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from adaptinf.designs import Design
from adaptinf.errors import FileError, ParameterError
from adaptinf.trial.journal import Entry, Journal
from adaptinf.trial.opening import design_of
from adaptinf.trial.replay import Replay

_Answer = TypeVar("_Answer")


class Requests:
    """A journal and what it tells, in one process; threads wait for each other."""

    def __init__(self, journal: Journal, design: Design | None) -> None:
        self.journal, self._design = journal, design
        self._replay: Replay | None = None
        self._lock, self._process, self._closed = threading.RLock(), os.getpid(), False

    def read(self, look: Callable[[Replay], _Answer], heads: set[str] | None = None) -> _Answer:
        """What can be seen in the rows that are there now."""
        with self._lock:
            self._refuse_strangers()
            self.journal.begin(write=False)
            try:
                return look(self._caught_up(heads))
            except ParameterError:
                raise
            except BaseException:
                self._forget()
                raise
            finally:
                self.journal.rollback()

    def change(self, act: Callable[[Replay], tuple[_Answer, Entry | None]]) -> _Answer:
        """One transaction: read what others wrote, answer, write the row, and only then give the answer.

        What was refused has changed nothing. After any other failure it is open what the disk has, so the
        memory is given up, and the next request reads the journal from its first row.
        """
        with self._lock:
            self._refuse_strangers()
            self.journal.begin()
            try:
                answer, entry = act(self._caught_up())
                if entry is None:
                    self.journal.rollback()
                else:
                    self.journal.append({"kind": entry["kind"], "time": now(), **entry})
                    self.journal.commit()
                return answer
            except ParameterError:
                self.journal.rollback()
                raise
            except BaseException:
                self._forget()
                self.journal.rollback()
                raise

    def _caught_up(self, heads: set[str] | None = None) -> Replay:
        """The trial after all rows that are there."""
        path = str(self.journal.path)
        for number, entry, digest in self.journal.news():
            if self._replay is None:
                self._replay = Replay(entry, design_of(path, entry, self._design))
            else:
                self._replay.follow(path, number, entry)
            if heads is not None:
                heads.add(digest)
        if self._replay is None:
            raise FileError(path, "read", "it holds no trial")
        return self._replay

    def read_again(self, look: Callable[[Replay], _Answer], heads: set[str]) -> _Answer:
        """What can be seen when all rows are read from the first one on; their digests are added to heads."""
        with self._lock:
            self._forget()
            return self.read(look, heads)

    def _forget(self) -> None:
        self._replay = None
        self.journal.rewind()

    def _refuse_strangers(self) -> None:
        if self._closed:
            raise ParameterError("Trial", ["it was closed: open it again by Trial.open"])
        if self._process != os.getpid():
            raise ParameterError(
                "Trial", ["another process opened it: open it by Trial.open in each process"]
            )

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if not self._closed and self._process == os.getpid():
                self._closed = True
                self.journal.close()
                self._replay = None


def now() -> str:
    """The time of a row."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
