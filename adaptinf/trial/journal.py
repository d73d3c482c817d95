"""The journal of a trial: chained rows in one SQLite file, written to disk before any answer.

A row is an entry, as JSON, and the digest of the row before it followed by the entry. Each entry has a salt,
so nobody who knows only digests can guess the entries between them.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from adaptinf.errors import AdaptinfError, FileError, JournalError, MissingDependencyError
from adaptinf.files import owners_alone
from adaptinf.log.storage.stored import decode, encode
from adaptinf.trial.journal_rows import SALT, Entry, as_text, salted
from adaptinf.trial.journal_statements import Prepared
from adaptinf.trial.trial_places import make_owners, place_of

try:
    import sqlalchemy as sa
except ImportError as error:
    raise MissingDependencyError("a live trial", "SQLAlchemy", "trial") from error

_START = ""
_PATIENCE = 60.0
_AT_ONCE = 10_000
_DAMAGES = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_ERROR", "SQLITE_SCHEMA")
_DAMAGES_TOLD = {
    "SQLITE_NOTADB": "that it is not a database (SQLITE_NOTADB)",
    "SQLITE_ERROR": "SQLITE_ERROR, as it does where a table is missing",
}
_REASONS = {
    "SQLITE_BUSY": f"another process has been using it for {_PATIENCE:g} s",
    "SQLITE_FULL": "the disk is full",
    "SQLITE_READONLY": "it is write-protected",
}
FAILURES = (sa.exc.DBAPIError, sqlite3.Error, UnicodeDecodeError)
"""The last one occurs if SQLite quotes a damaged name in a message."""
_ROWS = sa.Table(
    "journal",
    sa.MetaData(),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("entry", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
)
_ADDED = Prepared(sa.insert(_ROWS))
_NEWS = Prepared(sa.select(_ROWS).where(_ROWS.c.number > sa.bindparam("known")).order_by(_ROWS.c.number))
_KIND = sa.func.json_extract(_ROWS.c.entry, "$.kind")
_ONCE = "CREATE UNIQUE INDEX nodes ON journal (json_extract(entry, '$.node'))"
"""No two rows have the same noise node; all other rows have none and do not count."""

_COPIED, _MARK_PLACE = 1, slice(60, 64)
"""SQLite's user version in a copy, and its position in the file: big-endian."""

_Answer = TypeVar("_Answer")


class Journal:
    """The rows of a file that have been read: `rows` of them, the last with digest `head`.

    One transaction at a time: `begin`, then `news` and `append`, then `commit` or `rollback`. Additions wait
    for the commit, which writes all rows of a table at once.
    """

    def __init__(self, path: Path, create: bool = False) -> None:
        self.path, self.rows, self.head = path, 0, _START
        self._open = False
        self._appended: tuple[int, str] | None = None
        self._waiting: dict[Prepared, list[dict[str, Any]]] = {}
        if create:
            make_owners(path)
        elif not path.exists():
            raise FileError(str(path), "read", "the file does not exist: use Trial.create to create a trial")

        def opened() -> sqlite3.Connection:
            name = f"file:{quote(os.path.abspath(path))}?mode=rw"
            driver = sqlite3.connect(
                name, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
            )
            try:
                # A commit returns only when the data are on disk.
                driver.execute("PRAGMA synchronous = FULL")
                driver.execute("PRAGMA cell_size_check = ON")
                # Deleted content is overwritten, because erasure must not leave remains.
                driver.execute("PRAGMA secure_delete = ON")
                if create:
                    driver.execute("PRAGMA journal_mode = WAL")
            except FAILURES:
                # Otherwise the connection to a damaged file would hold its -shm until it is garbage
                # collected.
                driver.close()
                raise
            return driver

        self._engine = sa.create_engine(
            "sqlite://", creator=opened, poolclass=sa.pool.NullPool, hide_parameters=True
        )
        self.connection = self.ask("written" if create else "read", self._engine.connect)
        self.place = place_of(path)

    def start(self, entry: Entry, also: Callable[[], None]) -> None:
        """Create the table, with its first row and anything else requested; refused if anything exists."""
        self.begin()
        try:
            self.ask("written", lambda: self._make(entry, also))
            self.commit()
        except BaseException:
            self.rollback()
            raise

    def _make(self, entry: Entry, also: Callable[[], None]) -> None:
        if sa.inspect(self.connection).get_table_names():
            raise FileError(str(self.path), "written", "it already contains a trial or other tables")
        if owners_alone(self.path) is False:
            problem = (
                "an empty file of that name exists, and other users can open it: remove it, or choose "
                "another name"
            )
            raise FileError(str(self.path), "written", problem)
        _ROWS.create(self.connection)
        also()
        if "noise" in entry:
            self.connection.exec_driver_sql(_ONCE)
        self.append(entry)

    def ask(self, done: str, act: Callable[[], _Answer]) -> _Answer:
        """The database's answer, or one error with the code of what failed."""
        # The error is raised outside the handler: the database's own error quotes statements and rows, and
        # would be displayed with it as its cause.
        try:
            return act()
        except FAILURES as error:
            told = self._told(error, done)
        raise told

    def begin(self, write: bool = True) -> None:
        """Begin a transaction; one that writes prevents all others from writing until it ends."""
        # The driver does it, because SQLAlchemy takes longer than SQLite. Statements of SQLAlchemy join the
        # transaction that has begun.
        self._drop()
        text = "BEGIN IMMEDIATE" if write else "BEGIN"
        self._open = True
        self.ask("written" if write else "read", lambda: self._driver.execute(text))

    @property
    def _driver(self) -> Any:
        """The driver's connection."""
        return self.connection.connection.driver_connection

    @property
    def _begun(self) -> Any:
        """What ends the transaction: SQLAlchemy, if one of its statements fell into it, or the driver."""
        return self.connection if self.connection.in_transaction() else self._driver

    def news(self) -> Iterator[tuple[int, Entry, str]]:
        """Numbers, entries and digests of rows not yet read, each verified."""
        # A row counts as read only when the next one is requested, so a row that causes an error is read
        # again.
        cursor = self.ask("read", lambda: _NEWS.cursor(self.connection, known=self.rows))
        while lot := self.ask("read", lambda: cursor.fetchmany(_AT_ONCE)):
            for number, text, digest in lot:
                head = self._checked(number, text, digest)
                yield number, self._entry(number, text), head
                self.rows, self.head = number, head

    def _entry(self, number: int, text: str) -> Entry:
        """The entry in a row; the content of an unreadable one is not shown."""
        try:
            entry: Entry = decode(json.loads(text))
            entry.pop(SALT, None)  # Rows in the previous format have no salt.
            return entry
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            problem = JournalError(str(self.path), f"row {number} has the wrong layout")
        raise problem

    def _checked(self, number: Any, text: Any, digest: Any) -> str:
        """The digest of a row, if it follows the previous one."""
        if number != self.rows + 1:
            raise JournalError(str(self.path), f"row {self.rows + 1} is missing")
        if not isinstance(text, str) or _digest(self.head, text) != digest:
            raise JournalError(str(self.path), f"row {number} does not follow from the rows before it")
        return str(digest)

    @property
    def next(self) -> int:
        """Number of the next row."""
        return (self.rows if self._appended is None else self._appended[0]) + 1

    def append(self, entry: Entry) -> None:
        """Add a row."""
        text = as_text(salted(encode(entry)))
        head = self.head if self._appended is None else self._appended[1]
        number, digest = self.next, _digest(head, text)
        self.add(_ADDED, {"number": number, "entry": text, "digest": digest})
        self._appended = number, digest

    def add(self, statement: Prepared, row: dict[str, Any]) -> None:
        """Allow a row in any table to be written in this transaction."""
        self._waiting.setdefault(statement, []).append(row)

    def write(self) -> None:
        """Write what was added, within the transaction."""
        waiting, self._waiting = self._waiting, {}
        for statement, rows in waiting.items():
            self.ask("written", partial(statement.write, self.connection, rows))

    def _drop(self) -> None:
        self._appended, self._waiting = None, {}

    def commit(self) -> None:
        """End the transaction: what was added is on disk when this returns."""
        self.write()
        self.ask("written", lambda: self._begun.commit())
        self._open = False
        if self._appended is not None:
            self.rows, self.head = self._appended
            self._appended = None

    def rollback(self) -> None:
        """End the transaction as if nothing had been added."""
        self._drop()
        if not self._open:
            return
        self._open = False
        try:
            self._begun.rollback()
        except FAILURES:  # The earlier failure has already ended the transaction.
            self.connection.invalidate()

    def purge(self) -> None:
        """Move everything committed into the file itself, and truncate its write-ahead log."""
        # After this, neither file contains anything that was overwritten.
        text = "PRAGMA wal_checkpoint(TRUNCATE)"
        if self.ask("written", lambda: self._driver.execute(text).fetchone()[0]):  # it is busy
            problem = (
                f"another process has been reading it for {_PATIENCE:g} s: send the request again "
                "with its key"
            )
            raise FileError(str(self.path), "purged", problem)

    def holds_trial(self) -> bool:
        """Whether the table exists."""
        self.begin(write=False)
        try:
            return self.ask("read", lambda: sa.inspect(self.connection).has_table(_ROWS.name))
        finally:
            self.rollback()

    def rewind(self) -> None:
        """Forget the rows read, so that `news` begins with the first row."""
        self.rows, self.head = 0, _START

    def skip(self, number: int, head: str) -> None:
        """Continue after a row as if all rows up to it had been read."""
        self.rows, self.head = number, head

    def digest(self, number: int) -> Any:
        """The digest stored in a row; None if there is no such row."""
        query = sa.select(_ROWS.c.digest).where(_ROWS.c.number == number)
        return self.ask("read", lambda: self.connection.execute(query).scalar())

    def nodes(self) -> list[tuple[int, Entry, str]]:
        """Numbers, entries and digests of the rows of noise, in order."""
        of_noise = sa.func.json_extract(_ROWS.c.entry, "$.node").is_not(None)
        query = sa.select(_ROWS).where(of_noise).order_by(_ROWS.c.number)
        rows = self.ask("read", lambda: self.connection.execute(query).all())
        return [(number, decode(json.loads(text)), digest) for number, text, digest in rows]

    def check_pages(self) -> None:
        """Let SQLite check every page of the file."""
        checked = "PRAGMA integrity_check"
        found = self.ask("read", lambda: self.connection.exec_driver_sql(checked).scalars().all())
        if found != ["ok"]:
            raise JournalError(str(self.path), f"SQLite finds {found[0]!s:.200}")

    def content(self) -> bytes:
        """The whole current file, including its write-ahead log, marked as a copy."""
        whole = bytearray(self.ask("read", lambda: self._driver.serialize()))
        whole[_MARK_PLACE] = _COPIED.to_bytes(4, "big")
        return bytes(whole)

    def behind(self, digest: str) -> list[str] | None:
        """Kinds of the rows after the one with this digest; None if there is no such row."""
        query = sa.select(_ROWS.c.number).where(_ROWS.c.digest == digest)
        number = self.ask("read", lambda: self.connection.execute(query).scalar())
        if number is None:
            return None
        later = sa.select(_KIND).where(_ROWS.c.number > number)
        return self.ask("read", lambda: list(self.connection.execute(later).scalars()))

    def marked(self) -> bool:
        """Whether the file is a copy made by `content`."""
        marked = "PRAGMA user_version"
        return bool(self.ask("read", lambda: self.connection.exec_driver_sql(marked).scalar()))

    def take_up(self) -> None:
        """Remove the mark of such a copy, within the transaction."""
        self.ask("written", lambda: self.connection.exec_driver_sql("PRAGMA user_version = 0"))

    def close(self) -> None:
        """Close the file."""
        self.connection.close()
        self._engine.dispose()

    def _told(self, error: Exception, done: str) -> AdaptinfError:
        """SQLite's message as one error that names the file and the code, and quotes nothing."""
        origin = getattr(error, "orig", None) or error
        name = str(getattr(origin, "sqlite_errorname", "SQLITE_ERROR"))
        if name.startswith(_DAMAGES):
            return JournalError(str(self.path), f"SQLite says {_DAMAGES_TOLD.get(name, name)}")
        known = (reason for start, reason in _REASONS.items() if name.startswith(start))
        return FileError(str(self.path), done, next(known, f"SQLite says {name}"))


def _digest(before: str, text: str) -> str:
    return hashlib.sha256(f"{before}{text}".encode()).hexdigest()
