"""The operations that a journal requires of a database, apart from statements common to all databases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from adaptinf.errors import AdaptinfError
from adaptinf.trial.databases.addresses import Address
from adaptinf.trial.databases.libraries import sa
from adaptinf.trial.trial_places import Place

PATIENCE = 60.0
"""Seconds for which a request waits for requests of other processes."""
AGAIN = "send the request again with its key"


class Store(ABC):
    """A database in which a journal is kept; `driver` is the driver's connection, `connection` SQLAlchemy's.

    Attributes
    ----------
    address : Address
        The file, or the address of the database.
    engine : dict
        Arguments with which SQLAlchemy creates its engine; connections come from `opened`.
    failures : tuple of exception classes
        What its driver raises.
    node : str
        SQL for the noise node that a row of the journal names; null in all other rows.
    ahead : int
        Number of further secrets that are read together with a requested one, because each reply of a server
        takes time.
    remains : str
        Where a secret that was overwritten can still be read; empty if there is no such place.
    """

    address: Address
    engine: dict[str, Any]
    failures: tuple[type[Exception], ...]
    node: str
    ahead: int = 0
    remains: str = ""

    @abstractmethod
    def prepare(self, create: bool) -> None:
        """Create what a connection requires, or raise an error if nothing exists at the address."""

    @abstractmethod
    def opened(self, create: bool) -> Any:
        """A new connection of the driver, on which a commit returns only when the data are on disk."""

    @abstractmethod
    def place(self, driver: Any) -> Place:
        """The facts that distinguish the trial's own database from a copy with the same rows."""

    @abstractmethod
    def begin(self, driver: Any, write: bool) -> None:
        """Begin a transaction; one that writes prevents all others from writing until it ends."""

    @abstractmethod
    def refuse_open(self) -> None:
        """Refuse to create a trial in a location that others can access."""

    @abstractmethod
    def readers(self, driver: Any) -> str:
        """Who else can read the trial, and the command that prevents it; empty if no one else can."""

    @abstractmethod
    def damage(self, connection: sa.Connection) -> str:
        """The first fault in the database's own pages; empty if there is none."""

    @abstractmethod
    def content(self, driver: Any) -> bytes:
        """The trial as the bytes of a file marked as a copy, or an error that explains how to make one."""

    @abstractmethod
    def marked(self, connection: sa.Connection) -> bool:
        """Whether this is a copy made by `content`."""

    @abstractmethod
    def take_up(self, connection: sa.Connection) -> None:
        """Remove the mark of a copy made by `content`."""

    @abstractmethod
    def purge(self, driver: Any) -> bool:
        """Remove overwritten content as far as the database can; returns whether that was possible."""

    @abstractmethod
    def discard(self, connection: sa.Connection, tables: sa.MetaData) -> None:
        """Remove all rows of tables that may not exist."""

    @abstractmethod
    def told(self, error: Exception, done: str) -> AdaptinfError:
        """The database's message as one error, which contains only the address and the code."""
