"""The journal of a trial: rows that follow from each other, in one SQLite file, on the disk before an answer.

A row is an entry, as JSON, and the digest of the row before it followed by the entry.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from adaptinf.errors import AdaptinfError, FileError, JournalError, MissingDependencyError
from adaptinf.log.storage.plain import decode, encode

try:
    import sqlalchemy as sa
except ImportError as error:
    raise MissingDependencyError("a live trial", "SQLAlchemy", "trial") from error

_START = ""
_PATIENCE = 60.0
_AT_ONCE = 10_000
_DAMAGES = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_ERROR", "SQLITE_SCHEMA")
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
_ONCE = "CREATE UNIQUE INDEX nodes ON journal (json_extract(entry, '$.node'))"
"""No node of noise has two rows; the rows of all else have none and do not count."""

_COPIED, _PLACE = 1, slice(60, 64)
"""What SQLite's user version says in a copy, and where a file has it: big-endian."""

Entry = dict[str, Any]


class Journal:
    """The rows of a file, as far as they have been read: `rows` of them, the last with the digest `head`.

    One transaction at a time: `begin`, then `news` and `append`, then `commit` or `rollback`. What is added
    waits for the commit, which writes all rows of a table at once.
    """

    def __init__(self, path: Path, create: bool = False) -> None:
        self.path, self.rows, self.head = path, 0, _START
        self._appended: tuple[int, str] | None = None
        self._waiting: dict[sa.Insert, list[dict[str, Any]]] = {}
        if not create and not path.exists():
            raise FileError(str(path), "read", "there is no such file: Trial.create makes a trial")
        mode = "rwc" if create else "rw"

        def opened() -> sqlite3.Connection:
            name = f"file:{quote(os.path.abspath(path))}?mode={mode}"
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

        self._engine = sa.create_engine("sqlite://", creator=opened, poolclass=sa.pool.NullPool)
        sa.event.listen(self._engine, "begin", _begin)
        try:
            self.connection = self._engine.connect()
        except FAILURES as error:
            raise self.told(error, "written" if create else "read") from error

    def start(self, entry: Entry, also: Callable[[], None]) -> None:
        """Make the table, with its first row, and what else is wanted; refused where there is anything."""
        self.begin()
        try:
            if sa.inspect(self.connection).get_table_names():
                raise FileError(str(self.path), "written", "it holds a trial or other tables already")
            _ROWS.create(self.connection)
            also()
            if "noise" in entry:
                self.connection.exec_driver_sql(_ONCE)
            self.append(entry)
            self.commit()
        except FAILURES as error:
            self.rollback()
            raise self.told(error, "written") from error
        except BaseException:
            self.rollback()
            raise

    def begin(self, write: bool = True) -> None:
        """Begin a transaction; one that writes keeps all others from writing until it ends."""
        self.connection.info["begin"] = "BEGIN IMMEDIATE" if write else "BEGIN"
        self._drop()
        try:
            self.connection.begin()
        except FAILURES as error:
            raise self.told(error, "written" if write else "read") from error

    def news(self) -> Iterator[tuple[int, Entry, str]]:
        """Numbers, entries and digests of the rows that have not been read yet, each checked.

        A row counts as read when the next one is asked for.
        """
        query = sa.select(_ROWS).where(_ROWS.c.number > self.rows).order_by(_ROWS.c.number)
        try:
            for number, text, digest in self.connection.execute(query).yield_per(_AT_ONCE):
                head = self._checked(number, text, digest)
                yield number, decode(json.loads(text)), head
                self.rows, self.head = number, head
        except FAILURES as error:
            raise self.told(error, "read") from error

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
        text = json.dumps(encode(entry), separators=(",", ":"))
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
        try:
            for statement, rows in waiting.items():
                self.connection.execute(statement, rows)
        except FAILURES as error:
            raise self.told(error, "written") from error

    def _drop(self) -> None:
        self._appended, self._waiting = None, {}

    def commit(self) -> None:
        """End the transaction: what was added is on the disk when this returns."""
        self.write()
        try:
            self.connection.commit()
        except FAILURES as error:
            raise self.told(error, "written") from error
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
        """Bring all that was committed into the file itself, and cut off its write-ahead log.

        Nothing that was overwritten is left in either then.
        """
        driver: Any = self.connection.connection.driver_connection
        try:
            busy = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except FAILURES as error:
            raise self.told(error, "written") from error
        if busy:
            problem = f"another process has read it for {_PATIENCE:g} s: send the request again with its key"
            raise FileError(str(self.path), "purged", problem)

    def holds_trial(self) -> bool:
        """Whether the table is there."""
        self.begin(write=False)
        try:
            return sa.inspect(self.connection).has_table(_ROWS.name)
        except FAILURES as error:
            raise self.told(error, "read") from error
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
        try:
            return self.connection.execute(query).scalar()
        except FAILURES as error:
            raise self.told(error, "read") from error

    def nodes(self) -> list[tuple[int, Entry, str]]:
        """Numbers, entries and digests of the rows of noise, in their order."""
        of_noise = sa.func.json_extract(_ROWS.c.entry, "$.node").is_not(None)
        query = sa.select(_ROWS).where(of_noise).order_by(_ROWS.c.number)
        try:
            return [
                (number, decode(json.loads(text)), digest)
                for number, text, digest in self.connection.execute(query)
            ]
        except FAILURES as error:
            raise self.told(error, "read") from error

    def check_pages(self) -> None:
        """Let SQLite look over every page of the file."""
        try:
            found = self.connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        except FAILURES as error:
            raise self.told(error, "read") from error
        if found != ["ok"]:
            raise JournalError(str(self.path), f"SQLite finds {found[0]!s:.200}")

    def content(self) -> bytes:
        """The whole file as of now, what is still in its write-ahead log included, marked as a copy."""
        driver: Any = self.connection.connection.driver_connection
        try:
            whole = bytearray(driver.serialize())
        except FAILURES as error:
            raise self.told(error, "read") from error
        whole[_PLACE] = _COPIED.to_bytes(4, "big")
        return bytes(whole)

    def copied(self) -> bool:
        """Whether the file is a copy of one that may have gone on."""
        try:
            return bool(self.connection.exec_driver_sql("PRAGMA user_version").scalar())
        except FAILURES as error:
            raise self.told(error, "read") from error

    def take_up(self) -> None:
        """Take the mark of a copy away, in the transaction."""
        try:
            self.connection.exec_driver_sql("PRAGMA user_version = 0")
        except FAILURES as error:
            raise self.told(error, "written") from error

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()
        self._engine.dispose()

    def told(self, error: Exception, done: str) -> AdaptinfError:
        """What SQLite says, as one error that names the file."""
        origin = getattr(error, "orig", None) or error
        name = str(getattr(origin, "sqlite_errorname", "SQLITE_ERROR"))
        if name.startswith(_DAMAGES):
            return JournalError(str(self.path), f"SQLite says {origin!s:.200}")
        reasons = {
            "SQLITE_BUSY": f"another process has held it for {_PATIENCE:g} s",
            "SQLITE_FULL": "the disk is full",
            "SQLITE_READONLY": "it is protected against writing",
        }
        known = (reason for start, reason in reasons.items() if name.startswith(start))
        return FileError(str(self.path), done, next(known, f"{origin} ({name})"))


def _begin(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.info["begin"])


def _digest(before: str, text: str) -> str:
    return hashlib.sha256(f"{before}{text}".encode()).hexdigest()
