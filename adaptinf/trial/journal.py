"""The journal of a trial: rows that follow from each other, in one SQLite file, on the disk before an answer.

A row is an entry, as JSON, and the digest of the row before it followed by the entry. Each entry has a salt,
so that nobody who is told digests alone can guess what stands between them. Where a file is, which is kept
when it is renamed, tells the trial's own from a copy.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import os
import secrets
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from adaptinf.errors import AdaptinfError, FileError, JournalError, MissingDependencyError
from adaptinf.files import OWNER_ONLY, owners_alone, told
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import AdaptiveLog
from adaptinf.log.storage.stored import decode, encode
from adaptinf.parameters import Count, Is, OrNone, problems_of

Place = dict[str, Any]
PLACE = "place"
"""Name of the field of a row that says where the file is, and kind of one that says no more."""
_HERE, _BORN, _SIZE = -100, 0x800, 256
_MASK, _SECONDS, _NANOSECONDS = slice(0, 4), slice(80, 88), slice(88, 92)
"""Of Linux's statx: the folder that paths begin in, the wish for a birth time, and where it then stands."""
TAKEN = ("restore", "moved")
"""Kinds of rows by which a file takes the trial's place; each says where it is, and brings fresh coins."""
MARKED = (
    "the file is a copy that backup made, and its trial may have gone on: restore it where it takes the "
    "trial's place"
)
ELSEWHERE = (
    "the file is another one than its journal names, so a copy whose trial may have gone on: restore it "
    "where it takes the trial's place, or say by moved that it is the trial itself and that no other goes on"
)
_HEAD, _RUNS = OrNone(Is(str, "the text of a head")), OrNone(Count(0))
_NOTHING = (
    "the trial's file was replaced by a copy, and draws made after the copy are unknown (restore was called "
    "without head= and runs=)"
)


def word_problems(head: Any, runs: Any, behind: Callable[[str], Sequence[str] | None]) -> list[str]:
    """What is wrong with what is said of the lost file; `behind` gives the kinds of the rows after a head."""
    # Erasures alone may follow: copies take them, and they draw nothing.
    problems = problems_of(head=(head, _HEAD), runs=(runs, _RUNS))
    if problems or head is None:
        return problems
    if runs is not None:
        return ["give head= or runs=, not both: the right head says that there were none"]
    instead = "say by runs= how many files went on from it and are lost, or leave both out: no promise then"
    kinds = behind(head)
    if kinds is None:
        return [f"no row of the copy has this head, so the trial went on after the copy was made: {instead}"]
    if set(kinds) - {"erase"}:
        return [
            f"{len(kinds):,} rows of the copy come after this head, so it is not the last one that is known "
            f"of the lost file: {instead}"
        ]
    return []


def as_taken(log: AdaptiveLog, acts: Iterable[Mapping[str, Any]]) -> AdaptiveLog:
    """The log with what is promised after files took the trial's place."""
    # An outcome enters nodes of each file that went on from a copy and is lost, and of the one in its place;
    # the noise of those behind the copy is drawn in all of them. What a run spends on an outcome is at most
    # epsilon over all its nodes, so that several runs, each chosen by what the ones before told, spend their
    # sum.
    taken = [act for act in acts if act["kind"] in TAKEN]
    if any(act["kind"] == "restore" and act.get("head") is None and act.get("runs") is None for act in taken):
        return log.unpromised_by(_NOTHING)
    if log.guarantee is None or not taken:
        return log
    lost = sum(act.get("runs") or 0 for act in taken)
    stated = [act for act in taken if act.get("head") is None]
    made = copy(log)
    for name in ("guarantee", "reward_guarantee"):
        if (promised := getattr(log, name)) is not None:
            setattr(made, name, _once_more(promised, lost, len(taken), bool(stated)))
    if stated:
        made.guarantee_source = "stated"
    made.kept = {}
    return made


def _once_more(promised: PrivacyGuarantee, lost: int, taken: int, stated: bool) -> PrivacyGuarantee:
    """What so many lost runs and the present one spend together."""
    times = "once" if taken == 1 else f"{taken} times"
    whose = "the operator states" if stated else "the last head that was kept shows"
    runs = "1 lost run" if lost == 1 else f"{lost:,} lost runs"
    reason = f"another file took the trial's place {times}; {whose} that {runs} went on from it"
    return replace(
        promised,
        epsilon=promised.epsilon * (1 + lost),
        delta=min(1.0, promised.delta * (1 + lost)),
        reasons=(*promised.reasons, reason),
    )


def place_of(path: Path) -> Place:
    """Device, inode and birth time (in nanoseconds, or None where the system does not tell) of a file."""
    # It is not opened: closing it again would end the locks that SQLite has on it in this process.
    status = os.stat(path)
    return {"device": status.st_dev, "inode": status.st_ino, "born": _born(path, status)}


def same_place(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two places are of one file."""
    # Inodes are given again as soon as a file is removed, so that the birth time has to agree too: no copying
    # sets it. Numbers of devices change when a machine starts again, and serve only where it is not known.
    if one["inode"] != other["inode"]:
        return False
    if one["born"] is not None and other["born"] is not None:
        return bool(one["born"] == other["born"])
    return bool(one["device"] == other["device"])


def _born(path: Path, status: os.stat_result) -> int | None:
    seconds = getattr(status, "st_birthtime", None)
    if seconds is not None:
        return int(getattr(status, "st_birthtime_ns", round(seconds * 1e9)))
    statx = _statx()
    answer = ctypes.create_string_buffer(_SIZE)
    if statx is None or statx(_HERE, os.fsencode(path), 0, _BORN, answer) != 0:
        return None
    mask, whole, rest = (
        int.from_bytes(answer.raw[part], sys.byteorder) for part in (_MASK, _SECONDS, _NANOSECONDS)
    )
    return whole * 1_000_000_000 + rest if mask & _BORN else None


@functools.cache
def _statx() -> Any:
    """Linux's call that tells birth times, which `os.stat` leaves out; None elsewhere."""
    if sys.platform != "linux":
        return None
    try:
        return ctypes.CDLL(None).statx
    except (OSError, AttributeError):
        return None


try:
    import sqlalchemy as sa
except ImportError as error:
    raise MissingDependencyError("a live trial", "SQLAlchemy", "trial") from error

SALT, _SALT_BYTES = "salt", 16
_START = ""
_PATIENCE = 60.0
_AT_ONCE = 10_000
_DAMAGES = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_ERROR", "SQLITE_SCHEMA")
_DAMAGES_TOLD = {
    "SQLITE_NOTADB": "that it is not a database (SQLITE_NOTADB)",
    "SQLITE_ERROR": "SQLITE_ERROR, as it does where a table is missing",
}
_REASONS = {
    "SQLITE_BUSY": f"another process has held it for {_PATIENCE:g} s",
    "SQLITE_FULL": "the disk is full",
    "SQLITE_READONLY": "it is protected against writing",
}
FAILURES = (sa.exc.DBAPIError, sqlite3.Error, UnicodeDecodeError)
"""The last is of messages in which SQLite quotes a damaged name."""
_ROWS = sa.Table(
    "journal",
    sa.MetaData(),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("entry", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
)
_ADDED = sa.insert(_ROWS)
_NEWS = sa.select(_ROWS).where(_ROWS.c.number > sa.bindparam("known")).order_by(_ROWS.c.number)
_KIND = sa.func.json_extract(_ROWS.c.entry, "$.kind")
_ONCE = "CREATE UNIQUE INDEX nodes ON journal (json_extract(entry, '$.node'))"
"""No node of noise has two rows; the rows of all else have none and do not count."""

_COPIED, _MARK_PLACE = 1, slice(60, 64)
"""What SQLite's user version says in a copy, and where a file has it: big-endian."""

Entry = dict[str, Any]
as_text = json.JSONEncoder(separators=(",", ":")).encode
"""An entry, or a part of one, as JSON; made once, as `json.dumps` would make it for each row."""
_Answer = TypeVar("_Answer")


class Journal:
    """The rows of a file, as far as they have been read: `rows` of them, the last with the digest `head`.

    One transaction at a time: `begin`, then `news` and `append`, then `commit` or `rollback`. What is added
    waits for the commit, which writes all rows of a table at once.
    """

    def __init__(self, path: Path, create: bool = False) -> None:
        self.path, self.rows, self.head = path, 0, _START
        self._appended: tuple[int, str] | None = None
        self._waiting: dict[sa.Insert, list[dict[str, Any]]] = {}
        if create:
            make_owners(path)
        elif not path.exists():
            raise FileError(str(path), "read", "there is no such file: Trial.create makes a trial")

        def opened() -> sqlite3.Connection:
            name = f"file:{quote(os.path.abspath(path))}?mode=rw"
            driver = sqlite3.connect(
                name, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                driver.execute("PRAGMA synchronous = FULL")  # a commit returns when the disk has it
                driver.execute("PRAGMA cell_size_check = ON")
                driver.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
                if create:
                    driver.execute("PRAGMA journal_mode = WAL")
            except FAILURES:
                driver.close()  # of a damaged file, whose -shm it would hold until it is collected
                raise
            return driver

        self._engine = sa.create_engine(
            "sqlite://", creator=opened, poolclass=sa.pool.NullPool, hide_parameters=True
        )
        sa.event.listen(self._engine, "begin", _begin)
        self.connection = self.ask("written" if create else "read", self._engine.connect)
        self.place = place_of(path)

    def start(self, entry: Entry, also: Callable[[], None]) -> None:
        """Make the table, with its first row, and what else is wanted; refused where there is anything."""
        self.begin()
        try:
            self.ask("written", lambda: self._make(entry, also))
            self.commit()
        except BaseException:
            self.rollback()
            raise

    def _make(self, entry: Entry, also: Callable[[], None]) -> None:
        if sa.inspect(self.connection).get_table_names():
            raise FileError(str(self.path), "written", "it holds a trial or other tables already")
        if owners_alone(self.path) is False:
            problem = "an empty file of that name is there, and open to others: remove it, or name another"
            raise FileError(str(self.path), "written", problem)
        _ROWS.create(self.connection)
        also()
        if "noise" in entry:
            self.connection.exec_driver_sql(_ONCE)
        self.append(entry)

    def ask(self, done: str, act: Callable[[], _Answer]) -> _Answer:
        """What the database answers, or one error with the code of what failed."""
        # It is raised where the database's own error is handled no more: that one quotes statements and rows,
        # and would be shown beside it.
        try:
            return act()
        except FAILURES as error:
            told = self._told(error, done)
        raise told

    def begin(self, write: bool = True) -> None:
        """Begin a transaction; one that writes keeps all others from writing until it ends."""
        self.connection.info["begin"] = "BEGIN IMMEDIATE" if write else "BEGIN"
        self._drop()
        self.ask("written" if write else "read", self.connection.begin)

    def news(self) -> Iterator[tuple[int, Entry, str]]:
        """Numbers, entries and digests of the rows that have not been read yet, each checked."""
        # A row counts as read when the next one is asked for.
        known = {"known": self.rows}
        lots = self.ask(
            "read", lambda: self.connection.execute(_NEWS, known).yield_per(_AT_ONCE).partitions()
        )
        while lot := self.ask("read", lambda: next(lots, None)):
            for number, text, digest in lot:
                head = self._checked(number, text, digest)
                yield number, self._entry(number, text), head
                self.rows, self.head = number, head

    def _entry(self, number: int, text: str) -> Entry:
        """The entry of a row; what stands in one that cannot be read is not told."""
        try:
            entry: Entry = decode(json.loads(text))
            entry.pop(SALT, None)  # rows of the format before have none
            return entry
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            problem = JournalError(str(self.path), f"row {number} is not laid out as one")
        raise problem

    def _checked(self, number: Any, text: Any, digest: Any) -> str:
        """The digest of a row, if it is the next one."""
        if number != self.rows + 1:
            raise JournalError(str(self.path), f"row {self.rows + 1} is missing")
        if not isinstance(text, str) or _digest(self.head, text) != digest:
            raise JournalError(str(self.path), f"row {number} does not follow from the rows before it")
        return str(digest)

    @property
    def next(self) -> int:
        """Number of the row that is added next."""
        return (self.rows if self._appended is None else self._appended[0]) + 1

    def append(self, entry: Entry) -> None:
        """Add a row."""
        text = as_text(salted(encode(entry)))
        head = self.head if self._appended is None else self._appended[1]
        number, digest = self.next, _digest(head, text)
        self.add(_ADDED, {"number": number, "entry": text, "digest": digest})
        self._appended = number, digest

    def add(self, statement: sa.Insert, row: dict[str, Any]) -> None:
        """Let a row of any table be written in this transaction."""
        self._waiting.setdefault(statement, []).append(row)

    def write(self) -> None:
        """Write what was added, in the transaction."""
        waiting, self._waiting = self._waiting, {}
        for statement, rows in waiting.items():
            self.ask("written", partial(self.connection.execute, statement, rows))

    def _drop(self) -> None:
        self._appended, self._waiting = None, {}

    def commit(self) -> None:
        """End the transaction: what was added is on the disk when this returns."""
        self.write()
        self.ask("written", self.connection.commit)
        if self._appended is not None:
            self.rows, self.head = self._appended
            self._appended = None

    def rollback(self) -> None:
        """End the transaction as if nothing had been added."""
        self._drop()
        try:
            self.connection.rollback()
        except FAILURES:  # what failed before has ended it
            self.connection.invalidate()

    def purge(self) -> None:
        """Bring all that was committed into the file itself, and cut off its write-ahead log."""
        # Nothing that was overwritten is left in either then.
        driver: Any = self.connection.connection.driver_connection
        busy = self.ask("written", lambda: driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
        if busy:
            problem = f"another process has read it for {_PATIENCE:g} s: send the request again with its key"
            raise FileError(str(self.path), "purged", problem)

    def holds_trial(self) -> bool:
        """Whether the table is there."""
        self.begin(write=False)
        try:
            return self.ask("read", lambda: sa.inspect(self.connection).has_table(_ROWS.name))
        finally:
            self.rollback()

    def rewind(self) -> None:
        """Forget what was read, so that `news` begins with the first row."""
        self.rows, self.head = 0, _START

    def skip(self, number: int, head: str) -> None:
        """Go on behind a row as if all up to it had been read."""
        self.rows, self.head = number, head

    def digest(self, number: int) -> Any:
        """What a row says its digest is; None where there is no such row."""
        query = sa.select(_ROWS.c.digest).where(_ROWS.c.number == number)
        return self.ask("read", lambda: self.connection.execute(query).scalar())

    def nodes(self) -> list[tuple[int, Entry, str]]:
        """Numbers, entries and digests of the rows of noise, in their order."""
        of_noise = sa.func.json_extract(_ROWS.c.entry, "$.node").is_not(None)
        query = sa.select(_ROWS).where(of_noise).order_by(_ROWS.c.number)
        rows = self.ask("read", lambda: self.connection.execute(query).all())
        return [(number, decode(json.loads(text)), digest) for number, text, digest in rows]

    def check_pages(self) -> None:
        """Let SQLite look over every page of the file."""
        checked = "PRAGMA integrity_check"
        found = self.ask("read", lambda: self.connection.exec_driver_sql(checked).scalars().all())
        if found != ["ok"]:
            raise JournalError(str(self.path), f"SQLite finds {found[0]!s:.200}")

    def content(self) -> bytes:
        """The whole file as of now, what is still in its write-ahead log included, marked as a copy."""
        driver: Any = self.connection.connection.driver_connection
        whole = bytearray(self.ask("read", driver.serialize))
        whole[_MARK_PLACE] = _COPIED.to_bytes(4, "big")
        return bytes(whole)

    def behind(self, digest: str) -> list[str] | None:
        """Kinds of the rows after the one with a digest; None where there is no such row."""
        query = sa.select(_ROWS.c.number).where(_ROWS.c.digest == digest)
        number = self.ask("read", lambda: self.connection.execute(query).scalar())
        if number is None:
            return None
        later = sa.select(_KIND).where(_ROWS.c.number > number)
        return self.ask("read", lambda: list(self.connection.execute(later).scalars()))

    def marked(self) -> bool:
        """Whether the file is a copy that `content` made."""
        marked = "PRAGMA user_version"
        return bool(self.ask("read", lambda: self.connection.exec_driver_sql(marked).scalar()))

    def take_up(self) -> None:
        """Take the mark of such a copy away, in the transaction."""
        self.ask("written", lambda: self.connection.exec_driver_sql("PRAGMA user_version = 0"))

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()
        self._engine.dispose()

    def _told(self, error: Exception, done: str) -> AdaptinfError:
        """What SQLite says, as one error that names the file and the code, and quotes nothing."""
        origin = getattr(error, "orig", None) or error
        name = str(getattr(origin, "sqlite_errorname", "SQLITE_ERROR"))
        if name.startswith(_DAMAGES):
            return JournalError(str(self.path), f"SQLite says {_DAMAGES_TOLD.get(name, name)}")
        known = (reason for start, reason in _REASONS.items() if name.startswith(start))
        return FileError(str(self.path), done, next(known, f"SQLite says {name}"))


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.info["begin"])


def make_owners(path: Path) -> None:
    """Make the file, for its owner alone, before SQLite does; one that is there stays."""
    # No link is followed. SQLite gives the files that it makes beside it the same mode, whatever the umask
    # is.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with told(path, "written"):
        try:
            os.close(os.open(path, flags, OWNER_ONLY))
        except FileExistsError:
            # It is not opened: closing it again would end the locks that SQLite has on it in this process.
            if path.is_symlink():
                problem = "it is a link, and others may put it there: name the file itself"
                raise FileError(str(path), "written", problem) from None


def files_of(path: Path) -> list[Path]:
    """The files that SQLite may have: the database, and those beside it."""
    return [path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm", "-journal")]


def salted(entry: Entry) -> Entry:
    """An entry with 128 bits that only who has the file knows, whatever else of it can be guessed."""
    # They are the system's, and no coins of the trial's seed: a replay reads over them.
    return {**entry, SALT: secrets.token_hex(_SALT_BYTES)}


def _digest(before: str, text: str) -> str:
    return hashlib.sha256(f"{before}{text}".encode()).hexdigest()
