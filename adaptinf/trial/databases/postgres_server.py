"""A journal in a PostgreSQL database: connections, the lock, error codes, and copies."""

from __future__ import annotations

from typing import Any

from adaptinf.errors import (
    AdaptinfError,
    FileError,
    JournalError,
    MissingDependencyError,
    ParameterError,
)
from adaptinf.trial.databases.addresses import ServerAddress
from adaptinf.trial.databases.libraries import sa
from adaptinf.trial.databases.store import AGAIN, PATIENCE, Store
from adaptinf.trial.trial_places import SERVER, Place

try:
    import psycopg
    from psycopg.pq import TransactionStatus
except ImportError as error:
    raise MissingDependencyError("a trial in PostgreSQL", "psycopg", "postgres") from error

_TRIALS = 0x61646170
"""The first number of the lock of every trial, which distinguishes it from the locks of other programs; the
second is the oid of its table, or 0 while a trial is created."""
_CONNECTED = {"connect_timeout": 10, "client_encoding": "utf8", "application_name": "adaptinf"}
_SETTINGS = (
    # A commit returns only when the data are on disk, here and on synchronous standbys.
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')",
    f"SET lock_timeout = '{PATIENCE:g}s'",
    # A client that has vanished must not keep the lock.
    "SET tcp_keepalives_idle = 20",
    "SET tcp_keepalives_interval = 10",
    "SET tcp_keepalives_count = 3",
)
_IDENTITY = """
SELECT current_setting('fsync'),
    (SELECT system_identifier::text FROM pg_control_system()),
    (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
    to_regclass('journal')::oid::bigint,
    CASE WHEN pg_is_in_recovery() THEN NULL ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END
"""
_READABLE = "SELECT has_table_privilege('public', 'journal', 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')"
_DAMAGES = ("XX001", "XX002", "42P01", "42703")
_LOST = f"the connection to its server was lost or could not be made: {AGAIN}"
_REASONS = {
    "08": _LOST,
    "57P": _LOST,
    "53100": "the disk is full",
    "53300": f"its server has reached its limit of connections: {AGAIN}",
    "55P03": f"another process has been using it for {PATIENCE:g} s",
    "25006": "it is read-only, as a standby server is",
    "42501": "its user lacks a privilege (SQLSTATE 42501)",
    "3F000": "none of the schemas in its search_path exists",
}
_REFUSALS = {
    "Connection refused": "its server does not answer",
    "timeout expired": "its server does not answer",
    "resolve host": "there is no server with that name",
    "No such file": "its server does not answer",
    "password authentication failed": "its server rejected the user name or the password",
    "no password supplied": "its server requires a password",
    "no pg_hba.conf entry": "its server rejected the user, the database or this computer",
    'role "': "its server rejected the user",
    "does not exist": "the database does not exist: create it on the server, and then use Trial.create",
    "starting up": f"its server is starting: {AGAIN}",
    "shutting down": f"its server is stopping: {AGAIN}",
}
"""Parts of the messages of a server or of libpq if no connection can be made; such errors have no code."""


class PostgresServer(Store):
    """A database on a PostgreSQL server, or one schema in it."""

    failures = (sa.exc.DBAPIError, psycopg.Error)
    # Only rows of noise are read as JSON, because PostgreSQL refuses some texts that JSON allows.
    node = """(CASE WHEN left(entry, 15) = '{"kind":"node",' THEN CAST(entry AS json) ->> 'node' END)"""
    ahead = 128
    remains = (
        "the secret was overwritten, but PostgreSQL keeps its earlier value in dead rows of the table "
        "secrets until VACUUM FULL is run, in the write-ahead log and its archive, and in replicas and dumps "
        "made earlier"
    )

    def __init__(self, address: ServerAddress) -> None:
        self.address = self._server = address
        # A connection is closed and never lent again, so it needs no reset, whose failure would be logged.
        self.engine = {
            "url": "postgresql+psycopg://",
            "use_native_hstore": False,
            "pool_reset_on_return": None,
        }
        self._begins = ("", "")

    def prepare(self, create: bool) -> None:
        """Do nothing: no preparation is needed before the connection."""

    def opened(self, create: bool) -> Any:
        """A connection to a server that syncs each commit, in which transactions are begun explicitly."""
        driver = psycopg.connect(autocommit=True, **{**_CONNECTED, **self._server.options()})
        try:
            for setting in _SETTINGS:
                driver.execute(setting)
            synced, *_, table, _ = self._identity(driver)
            if synced != "on":
                problem = (
                    "its server runs with fsync = off, so a power failure may lose requests: set fsync = on"
                )
                raise FileError(str(self.address), "written", problem)
        except BaseException:
            driver.close()
            raise
        # The lock comes before the first snapshot of the data: rows seen in one taken earlier could be old.
        lock = f"SELECT pg_advisory_xact_lock({_TRIALS}, oid({table or 0})::int4)"
        self._begins = (
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            f"BEGIN ISOLATION LEVEL READ COMMITTED; {lock}",
        )
        return driver

    def _identity(self, driver: Any) -> tuple[Any, ...]:
        found: tuple[Any, ...] = driver.execute(_IDENTITY).fetchone()
        return found

    def place(self, driver: Any) -> Place:
        """Server, database, table, and timeline, which changes when a standby or an archive takes over."""
        _, system, database, table, timeline = self._identity(driver)
        return {SERVER: system, "database": database, "table": table, "timeline": timeline}

    def begin(self, driver: Any, write: bool) -> None:
        """Begin, and wait for other writers of this trial; readers see one state and do not wait."""
        if driver.info.transaction_status != TransactionStatus.IDLE:
            driver.rollback()  # An interrupted request may have left its transaction open.
        driver.execute(self._begins[write])

    def refuse_open(self) -> None:
        """Do nothing: only its owner has access to a new table."""

    def readers(self, driver: Any) -> str:
        """Every user of the server, if they were given access to the table."""
        if not driver.execute(_READABLE).fetchone()[0]:
            return ""
        problem = (
            "every user of the database may read or change the trial, which contains all outcomes, names "
            "and upcoming arms"
        )
        return f"{problem}: run REVOKE ALL ON ALL TABLES IN SCHEMA its_schema FROM PUBLIC"

    def damage(self, connection: sa.Connection) -> str:
        """Empty: the server checks its pages itself if data checksums are on, and digests cover the rows."""
        return ""

    def content(self, driver: Any) -> bytes:
        """Refuse, because a database is copied with its own tools."""
        problem = (
            f"{self.address} is not a file: use pg_dump; a database restored from the dump elsewhere opens "
            "as a copy"
        )
        raise ParameterError("Trial.backup", [problem])

    def marked(self, connection: sa.Connection) -> bool:
        """False, because copies are recognised by their place alone."""
        return False

    def take_up(self, connection: sa.Connection) -> None:
        """Do nothing, because no copy has a mark."""

    def purge(self, driver: Any) -> bool:
        """Do nothing: only the server can remove overwritten rows, as `remains` explains."""
        return True

    def discard(self, connection: sa.Connection, tables: sa.MetaData) -> None:
        """Delete the rows: dropping the table would wait for readers, and then make their queries fail."""
        known = sa.inspect(connection)
        for table in tables.sorted_tables:
            if known.has_table(table.name):
                connection.execute(sa.delete(table))

    def told(self, error: Exception, done: str) -> AdaptinfError:
        """The meaning of the SQLSTATE, or the reason why no connection could be made."""
        origin = getattr(error, "orig", None) or error
        state = getattr(origin, "sqlstate", None)
        if state is None and not isinstance(origin, (psycopg.OperationalError, psycopg.InterfaceError)):
            return FileError(str(self.address), done, f"psycopg reported {type(origin).__name__}")
        if state is None:
            text = str(origin)
            known = (reason for part, reason in _REFUSALS.items() if part in text)
            return FileError(str(self.address), done, next(known, _LOST))
        if state in _DAMAGES:
            return JournalError(str(self.address), f"PostgreSQL reported SQLSTATE {state}")
        known = (reason for start, reason in _REASONS.items() if state.startswith(start))
        return FileError(str(self.address), done, next(known, f"PostgreSQL reported SQLSTATE {state}"))
