"""A journal in a SQLite file: connections, error codes, checks of pages, and copies."""

from __future__ import annotations

import os
import shlex
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from adaptinf.errors import AdaptinfError, FileError, JournalError
from adaptinf.files import owners_alone
from adaptinf.trial.databases.libraries import sa
from adaptinf.trial.databases.store import PATIENCE, Store
from adaptinf.trial.trial_places import Place, files_of, make_owners, place_of

_DAMAGES = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "SQLITE_ERROR", "SQLITE_SCHEMA")
_DAMAGES_TOLD = {
    "SQLITE_NOTADB": "SQLITE_NOTADB, which means that it is not a database",
    "SQLITE_ERROR": "SQLITE_ERROR, for example because a table is missing",
}
_REASONS = {
    "SQLITE_BUSY": f"another process has been using it for {PATIENCE:g} s",
    "SQLITE_FULL": "the disk is full",
    "SQLITE_READONLY": "it is read-only",
}
_COPIED, _MARK_PLACE = 1, slice(60, 64)
"""SQLite's user version in a copy, and its position in the file, as a big-endian number."""


class SqliteFile(Store):
    """One file, and its write-ahead log in the same directory."""

    failures = (sa.exc.DBAPIError, sqlite3.Error, UnicodeDecodeError)
    """The last of these errors occurs if SQLite quotes a damaged name in a message."""
    node = "json_extract(entry, '$.node')"

    def __init__(self, path: Path) -> None:
        self.address = self._path = path
        self.engine = {"url": "sqlite://"}

    def prepare(self, create: bool) -> None:
        """Create the file, readable only by its owner; or refuse a path at which no file exists."""
        if create:
            make_owners(self._path)
        elif not self._path.exists():
            problem = "the file does not exist: use Trial.create to create a trial"
            raise FileError(str(self._path), "read", problem)

    def opened(self, create: bool) -> Any:
        """A connection that syncs each commit and overwrites what is deleted."""
        name = f"file:{quote(os.path.abspath(self._path))}?mode=rw"
        driver = sqlite3.connect(
            name, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            # A commit returns only when the data are on disk.
            driver.execute("PRAGMA synchronous = FULL")
            driver.execute("PRAGMA cell_size_check = ON")
            # Deleted content is overwritten, because erasure must not leave remains.
            driver.execute("PRAGMA secure_delete = ON")
            if create:
                driver.execute("PRAGMA journal_mode = WAL")
        except self.failures:
            # Otherwise the connection to a damaged file would hold its -shm until it is garbage collected.
            driver.close()
            raise
        return driver

    def place(self, driver: Any) -> Place:
        """The file's location, which is preserved when the file is renamed."""
        return place_of(self._path)

    def begin(self, driver: Any, write: bool) -> None:
        """Begin a transaction; if it writes, SQLite's lock for writing is acquired immediately."""
        driver.execute("BEGIN IMMEDIATE" if write else "BEGIN")

    def refuse_open(self) -> None:
        """Refuse an empty file that others can open."""
        if owners_alone(self._path) is False:
            problem = (
                "an empty file of that name exists, and other users can open it: remove it, or choose "
                "another name"
            )
            raise FileError(str(self._path), "written", problem)

    def readers(self, driver: Any) -> str:
        """Files with wider permissions than `create` sets."""
        wide = [file for file in files_of(self._path) if owners_alone(file) is False]
        if not wide:
            return ""
        names = " ".join(shlex.quote(str(file)) for file in wide)
        problem = (
            "users other than the owner can open the trial's file, which contains all outcomes, names and "
            "upcoming arms"
        )
        return f"{problem}: run chmod 600 {names}"

    def damage(self, connection: sa.Connection) -> str:
        """The first problem that SQLite finds when it checks every page."""
        found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        return "" if found == ["ok"] else f"SQLite's integrity check reported {found[0]!s:.200}"

    def content(self, driver: Any) -> bytes:
        """The whole current file, including its write-ahead log, marked as a copy."""
        whole = bytearray(driver.serialize())
        whole[_MARK_PLACE] = _COPIED.to_bytes(4, "big")
        return bytes(whole)

    def marked(self, connection: sa.Connection) -> bool:
        """Whether SQLite's user version marks a copy."""
        return bool(connection.exec_driver_sql("PRAGMA user_version").scalar())

    def take_up(self, connection: sa.Connection) -> None:
        """Clear the user version, within the transaction."""
        connection.exec_driver_sql("PRAGMA user_version = 0")

    def purge(self, driver: Any) -> bool:
        """Move everything that was committed into the file itself, and truncate its write-ahead log."""
        # After this, neither file contains anything that was overwritten.
        busy: int = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        return not busy

    def discard(self, connection: sa.Connection, tables: sa.MetaData) -> None:
        """Drop the tables."""
        tables.drop_all(connection)

    def told(self, error: Exception, done: str) -> AdaptinfError:
        """SQLite's code in words."""
        origin = getattr(error, "orig", None) or error
        name = str(getattr(origin, "sqlite_errorname", "SQLITE_ERROR"))
        if name.startswith(_DAMAGES):
            return JournalError(str(self._path), f"SQLite reported {_DAMAGES_TOLD.get(name, name)}")
        known = (reason for start, reason in _REASONS.items() if name.startswith(start))
        return FileError(str(self._path), done, next(known, f"SQLite reported {name}"))
