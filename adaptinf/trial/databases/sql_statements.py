"""The statements of all requests, each compiled once for a database and passed to its driver."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from adaptinf.trial.databases.libraries import sa

Row = dict[str, Any]


class Prepared:
    """A statement that the driver executes; it returns rows in the form that the driver uses."""

    # SQLAlchemy looks a statement up, and prepares its result, at each execution: ten times the database's
    # own time for a row.
    def __init__(self, statement: sa.ClauseElement) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, tuple[str, ...] | None]] = {}

    def _text(self, connection: sa.Connection) -> tuple[str, tuple[str, ...] | None]:
        """The text in the database's dialect and, if parameters are passed by position, their names."""
        dialect = connection.dialect
        found = self._compiled.get(dialect.name)
        if found is None:
            made: Any = self._statement.compile(dialect=dialect)
            found = str(made), tuple(made.positiontup) if made.positional else None
            self._compiled[dialect.name] = found
        return found

    def _sent(self, connection: sa.Connection, rows: Sequence[Row]) -> Any:
        """The cursor after the statement was executed for all rows of parameters at once."""
        text, names = self._text(connection)
        given: list[Any] = list(rows) if names is None else [[row[name] for name in names] for row in rows]
        cursor = connection.connection.cursor()
        if len(given) == 1:
            cursor.execute(text, given[0])
        else:
            cursor.executemany(text, given)
        return cursor

    def write(self, connection: sa.Connection, rows: Sequence[Row]) -> None:
        """Execute the statement for all rows of parameters."""
        self._sent(connection, rows).close()

    def cursor(self, connection: sa.Connection, **values: Any) -> Any:
        """The driver's cursor, before the first row found."""
        return self._sent(connection, [values])

    def value(self, connection: sa.Connection, **values: Any) -> Any:
        """The first value of the first row; None if there is none."""
        with closing(self.cursor(connection, **values)) as cursor:
            row = cursor.fetchone()
        return None if row is None else row[0]
