"""The journal of a trial: chained rows in one database, written to disk before any answer.

A row consists of an entry, as JSON, and a digest of the entry and of the previous row's digest. Each entry
has a salt, so no one who knows only digests can guess the entries between them. In a trial with a key, a row
is the ciphertext of its entry, and digests cover the ciphertext.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from adaptinf.errors import AdaptinfError, FileError, JournalError
from adaptinf.log.storage.stored import decode, encode
from adaptinf.trial.databases.addresses import Address, ServerAddress
from adaptinf.trial.databases.libraries import InvalidTag, sa
from adaptinf.trial.databases.sql_statements import Prepared
from adaptinf.trial.databases.sqlite_file import SqliteFile
from adaptinf.trial.databases.store import AGAIN, PATIENCE, Store
from adaptinf.trial.journal_rows import SALT, START, Entry, as_text, digest_after, salted
from adaptinf.trial.keys.data_key import TAG_TEXT, DataKey
from adaptinf.trial.trial_noise import NODE
from adaptinf.trial.trial_places import PLACE, Place

_AT_ONCE = 10_000
_ROWS = sa.Table(
    "journal",
    sa.MetaData(),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("entry", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
)
_ADDED = Prepared(sa.insert(_ROWS))
_UNIQUE = f"substr(entry, 1, {TAG_TEXT})"
"""SQL for the first characters of a sealed row; in rows of noise, they represent the node."""
_NEWS = Prepared(sa.select(_ROWS).where(_ROWS.c.number > sa.bindparam("known")).order_by(_ROWS.c.number))

_Answer = TypeVar("_Answer")


class Journal:
    """The rows of a database that have been read: `rows` is their number, `head` the digest of the last.

    Transactions follow one another, each with `begin`, then `news` and `append`, then `commit` or `rollback`.
    Additions wait for the commit, which writes all rows of a table at once. A connection that was lost is
    replaced by the next `begin`; `renewed` then indicates that everything must be read again.
    """

    def __init__(self, address: Address, create: bool = False) -> None:
        self.path, self.rows, self.head, self.renewed = address, 0, START, False
        self.store = _store_of(address)
        self.failures: tuple[type[Exception], ...] = (AdaptinfError, *self.store.failures)
        self.place: Place = {}
        self.key: DataKey | None = None
        self._open = False
        self._appended: tuple[int, str] | None = None
        self._waiting: dict[Prepared, list[dict[str, Any]]] = {}
        self._quiet: list[int] = []
        self._sorted = 0
        self.store.prepare(create)

        def opened() -> Any:
            driver = self.store.opened(create)
            self.place, self.renewed = self.store.place(driver), True
            return driver

        self._engine = sa.create_engine(
            **self.store.engine, creator=opened, poolclass=sa.pool.NullPool, hide_parameters=True
        )
        self.connection = self.ask("written" if create else "read", self._engine.connect)

    def start(self, entry: Entry, also: Callable[[], None]) -> None:
        """Create the table, with its first row and anything else requested; an error if it already exists."""
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
        self.store.refuse_open()
        _ROWS.create(self.connection)
        also()
        if self.key is not None or "noise" in entry:
            # No two rows have the same noise node; all other rows have none and do not count.
            node = self.store.node if self.key is None else _UNIQUE
            self.connection.exec_driver_sql(f"CREATE UNIQUE INDEX nodes ON journal ({node})")
        self.place = self.store.place(self._driver)
        self.append({**entry, PLACE: self.place})

    def ask(self, done: str, act: Callable[[], _Answer]) -> _Answer:
        """The database's answer, or one error with the code of the failure."""
        # The error is raised outside the handler: the database's own error quotes statements and rows, and
        # would be displayed with it as its cause.
        try:
            return act()
        except self.store.failures as error:
            told = self.store.told(error, done)
        raise told

    def begin(self, write: bool = True) -> None:
        """Begin a transaction; one that writes prevents all others from writing until it ends."""
        self._drop()
        try:
            self._begin(write)
        except AdaptinfError:
            self.rollback()
            if not self.connection.invalidated:
                raise
            self._begin(write)  # The connection had been lost, and nothing had been asked yet.

    def _begin(self, write: bool) -> None:
        # The driver does it, because SQLAlchemy takes longer than the database. Statements of SQLAlchemy join
        # the transaction that has begun.
        self._open = True
        self.ask("written" if write else "read", lambda: self.store.begin(self._driver, write))

    @property
    def _driver(self) -> Any:
        """The driver's connection."""
        return self.connection.connection.driver_connection

    @property
    def _begun(self) -> Any:
        """What ends the transaction: SQLAlchemy, if it executed a statement in it, or else the driver."""
        return self.connection if self.connection.in_transaction() else self._driver

    def news(self) -> Iterator[tuple[int, Entry, str]]:
        """Numbers, entries and digests of rows not yet read, each verified."""
        # A row counts as read only when the next one is requested, so a row that causes an error is read
        # again.
        for number, text, digest in self.stored(self.rows):
            head = self._checked(number, text, digest)
            yield number, self._entry(number, text, self.head), head
            self.rows, self.head = number, head

    def _entry(self, number: int, text: str, before: str) -> Entry:
        """The entry in a row after the one with digest `before`; errors do not quote an unreadable row."""
        try:
            key = self.key
            entry: Entry = decode(json.loads(text if key is None else key.text(number, before, text)))
            entry.pop(SALT, None)  # Rows in the previous format have no salt.
            if key is not None and number == 1:
                key.declare(entry)
            return entry
        except InvalidTag:
            told = "was not sealed with the trial's key for this position"
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            told = "has the wrong layout"
        raise JournalError(str(self.path), f"row {number} {told}")

    def _text(self, number: int, entry: Entry, before: str) -> str:
        """The text of an entry's row."""
        if self.key is None:
            return as_text(salted(encode(entry)))
        if number == 1:
            self.key.declare(entry)
        return self.key.row(number, before, entry)

    def _checked(self, number: Any, text: Any, digest: Any) -> str:
        """The digest of a row, if the row follows the previous one."""
        if number != self.rows + 1:
            raise JournalError(str(self.path), f"row {self.rows + 1} is missing")
        if not isinstance(text, str) or digest_after(self.head, text) != digest:
            raise JournalError(str(self.path), f"row {number} does not follow from the rows before it")
        return str(digest)

    @property
    def next(self) -> int:
        """Number of the next row."""
        return (self.rows if self._appended is None else self._appended[0]) + 1

    def append(self, entry: Entry) -> None:
        """Add a row."""
        head = self.head if self._appended is None else self._appended[1]
        text = self._text(self.next, entry, head)
        number, digest = self.next, digest_after(head, text)
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
        """End the transaction: when this returns, what was added is on disk."""
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
            if not self.connection.invalidated:
                self._begun.rollback()
        except self.store.failures:  # The earlier failure has already ended the transaction.
            self.connection.invalidate()
        if self.connection.invalidated:
            self.connection.rollback()  # Only SQLAlchemy's own, without which it would not connect again.

    def purge(self) -> None:
        """Remove overwritten content from the database's files, as far as the database can."""
        if not self.ask("written", lambda: self.store.purge(self._driver)):
            problem = f"another process has been reading it for {PATIENCE:g} s: {AGAIN}"
            raise FileError(str(self.path), "purged", problem)

    def discard(self, tables: sa.MetaData) -> None:
        """Remove all rows of tables that may not exist."""
        self.ask("written", lambda: self.store.discard(self.connection, tables))

    def readers(self) -> str:
        """Who else may read the trial, and the command that prevents it; empty if no one else can."""
        return self.ask("read", lambda: self.store.readers(self._driver))

    def holds_trial(self) -> bool:
        """Whether the table exists."""
        self.begin(write=False)
        try:
            return self.ask("read", lambda: sa.inspect(self.connection).has_table(_ROWS.name))
        finally:
            self.rollback()

    def stored(self, known: int = 0) -> Iterator[tuple[int, str, str]]:
        """Numbers, texts and digests of all rows after row `known`, as they are stored."""
        cursor = self.ask("read", lambda: _NEWS.cursor(self.connection, known=known))
        while lot := self.ask("read", lambda: cursor.fetchmany(_AT_ONCE)):
            yield from lot

    def rewind(self) -> None:
        """Forget the rows read, so that `news` begins with the first row."""
        self.rows, self.head = 0, START
        self._quiet, self._sorted = [], 0

    def skip(self, number: int, head: str) -> None:
        """Continue after a row as if all rows up to it had been read."""
        self.rows, self.head = number, head

    def digest(self, number: int) -> Any:
        """The digest stored in a row; None if there is no such row."""
        query = sa.select(_ROWS.c.digest).where(_ROWS.c.number == number)
        return self.ask("read", lambda: self.connection.execute(query).scalar())

    def nodes(self) -> list[tuple[int, Entry, str]]:
        """Numbers, entries and digests of the rows of noise, in order."""
        if self.key is not None:
            return [row for row in self.after(0, START) if row[1]["kind"] == NODE]
        of_noise = sa.literal_column(f"({self.store.node})").is_not(None)
        query = sa.select(_ROWS).where(of_noise).order_by(_ROWS.c.number)
        rows = self.ask("read", lambda: self.connection.execute(query).all())
        return [(number, decode(json.loads(text)), digest) for number, text, digest in rows]

    def after(self, known: int, before: str) -> Iterator[tuple[int, Entry, str]]:
        """Numbers, entries and digests of all rows after the one with a given digest, read or not."""
        for number, text, digest in self.stored(known):
            yield number, self._entry(number, text, before), digest
            before = digest

    def chain(self) -> Iterator[tuple[int, str]]:
        """Numbers and digests of all rows, each verified, which needs no key."""
        for number, text, digest in self.stored(self.rows):
            self.rows, self.head = number, self._checked(number, text, digest)
            yield number, self.head

    def between(self, first: int, last: int) -> list[tuple[int, Entry]]:
        """Numbers and entries of some rows, whether or not they were read."""
        query = sa.select(_ROWS).where(_ROWS.c.number.between(first - 1, last)).order_by(_ROWS.c.number)
        before, found = START, []
        for number, text, digest in self.ask("read", lambda: self.connection.execute(query).all()):
            if number >= first:
                found.append((number, self._entry(number, text, before)))
            before = digest
        return found

    def quiet(self) -> list[int]:
        """Numbers of the rows that have been read and contain no noise."""
        # The number of rows between two decisions of a private trial depends on the arm.
        while self._sorted < self.rows:
            last = min(self.rows, self._sorted + _AT_ONCE)
            rows = self.between(self._sorted + 1, last)
            self._quiet += [number for number, entry in rows if entry["kind"] != NODE]
            self._sorted = last
        return self._quiet

    def check_pages(self) -> None:
        """Let the database check its own pages, if it can."""
        if problem := self.ask("read", lambda: self.store.damage(self.connection)):
            raise JournalError(str(self.path), problem)

    def content(self) -> bytes:
        """The whole trial as the bytes of a file marked as a copy."""
        return self.ask("read", lambda: self.store.content(self._driver))

    def behind(self, digest: str) -> list[str] | None:
        """Kinds of the rows after the one with this digest; None if there is no such row."""
        query = sa.select(_ROWS.c.number).where(_ROWS.c.digest == digest)
        number = self.ask("read", lambda: self.connection.execute(query).scalar())
        if number is None:
            return None
        return [str(entry["kind"]) for _, entry, _ in self.after(number, digest)]

    def marked(self) -> bool:
        """Whether the database is a copy made by `content`."""
        return self.ask("read", lambda: self.store.marked(self.connection))

    def take_up(self) -> None:
        """Remove the mark of a copy made by `content`, within the transaction."""
        self.ask("written", lambda: self.store.take_up(self.connection))

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
        self._engine.dispose()


def _store_of(address: Address) -> Store:
    if not isinstance(address, ServerAddress):
        return SqliteFile(address)
    # Its driver is another extra, so it is loaded only when a server is asked for.
    from adaptinf.trial.databases.postgres_server import PostgresServer

    return PostgresServer(address)
