"""A PostgreSQL server of the tests' own, apart from any that the machine has, and databases in it."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ADMIN, CLERK, PASSWORD = "postgres", "clerk", "pa55:w/rd"
"""The server's first user, whom it trusts, and one with a password, as in most installations."""
_SETTINGS = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '{folder}'
max_connections = 120
shared_buffers = 32MB
fsync = on
"""
_RULES = f"""
local all {ADMIN} trust
host all {ADMIN} 127.0.0.1/32 trust
host all {CLERK} 127.0.0.1/32 scram-sha-256
"""


def programs() -> Path | None:
    """The folder of the server's programs, which Debian keeps off the path; None if there are none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda one: float(one.parts[4]))
    place = shutil.which("initdb")
    return found[-1].parent if found else None if place is None else Path(place).parent


class Server:
    """A server in a folder of its own, on a free port of this machine; it ends with this process.

    Its data are in memory where the system can, unless `on_disk`.
    """

    def __init__(self, on_disk: bool = False) -> None:
        folder = programs()
        assert folder is not None
        self._programs, self._made = folder, itertools.count(1)
        memory = "/dev/shm" if Path("/dev/shm").is_dir() and not on_disk else None
        self.folder = Path(tempfile.mkdtemp(prefix="postgres-", dir=memory))
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(self.folder, "postgres", "postgres")
        self._data, self._process = self.folder / "data", os.getpid()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._call("initdb", "-D", self._data, "-U", ADMIN, "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(_SETTINGS.format(port=self.port, folder=self.folder))
        (self._data / "pg_hba.conf").write_text(_RULES, encoding="utf-8")
        atexit.register(self.end)
        self.start()
        self.ask(f"CREATE ROLE {CLERK} LOGIN PASSWORD '{PASSWORD}'")

    def _call(self, program: str, *given: str | Path) -> None:
        command = [str(self._programs / program), *map(str, given)]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        done = subprocess.run(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout.decode(errors="replace")

    def start(self, *options: str) -> None:
        """Start it, with settings such as fsync=off."""
        given = " ".join(f"-c {option}" for option in options)
        log = self.folder / "log"
        self._call("pg_ctl", "start", "-w", "-s", "-D", self._data, "-l", log, "-o", given)

    def stop(self, how: str = "fast") -> None:
        """Stop it: fast, or immediate, as a crash does."""
        self._call("pg_ctl", "stop", "-w", "-s", "-D", self._data, "-m", how)

    def kill(self) -> None:
        """Kill it, as the machine's failure does, and start it again."""
        self.stop("immediate")
        self.start()

    def end(self) -> None:
        """Stop it for good, in the process that started it."""
        if os.getpid() == self._process:
            with suppress(AssertionError):
                self.stop("immediate")
            shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, statement: str, database: str = "postgres") -> Sequence[tuple[object, ...]]:
        """The rows that a statement of the first user finds."""
        import psycopg

        address = f"host={self.folder} port={self.port} user={ADMIN} dbname={database}"
        with psycopg.connect(address, autocommit=True) as connection:
            found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def database(self) -> Database:
        """An empty database."""
        return Database(self, f"trial_{os.getpid()}_{next(self._made)}")

    def cut(self, database: str) -> None:
        """End all connections to a database."""
        self.ask(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{database}' AND pid <> pg_backend_pid()"
        )


class Database(str):
    """The address of a database, which has the names that the tests use of a path."""

    server: Server
    name: str

    def __new__(cls, server: Server, name: str) -> Database:
        """Create it on the server if it is not there yet."""
        if not server.ask(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"):
            server.ask(f"CREATE DATABASE {name} STRATEGY file_copy")
        made = super().__new__(cls, f"postgresql://{ADMIN}@127.0.0.1:{server.port}/{name}")
        made.server, made.name = server, name
        return made

    def with_name(self, name: str) -> Database:
        """Another database beside it."""
        return Database(self.server, f"{self.name}_{name.removesuffix('.db')}")

    def ask(self, statement: str) -> Sequence[tuple[object, ...]]:
        """The rows that a statement finds in it."""
        return self.server.ask(statement, self.name)

    def copy(self, name: str) -> Database:
        """A copy under another name; nobody may be connected."""
        self.server.cut(self.name)
        whole = f"{self.name}_{name}"
        self.server.ask(f"CREATE DATABASE {whole} TEMPLATE {self.name} STRATEGY file_copy")
        return Database(self.server, whole)

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """A connection of the first user, whose changes are committed at the end."""
        import psycopg

        with psycopg.connect(str(self)) as connection:
            yield connection

    def dump(self) -> bytes:
        """All rows of all tables, as text."""
        tables = self.ask("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return b"".join(repr(self.ask(f"SELECT * FROM {name}")).encode() for (name,) in tables)


_SERVERS: list[Server] = []


def server() -> Server:
    """The server of the tests in this process."""
    if not _SERVERS:
        _SERVERS.append(Server())
    return _SERVERS[0]
