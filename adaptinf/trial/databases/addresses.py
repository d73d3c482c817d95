"""The location of a trial as given by a user: the path of a file, or the address of a database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adaptinf.errors import ParameterError
from adaptinf.files import as_path

_FILE = "sqlite:///"
_SERVERS = ("postgresql", "postgres", "postgresql+psycopg")
_FORM = "a SQLite file, given by its path, or a PostgreSQL database, postgresql://user@host/database"


class ServerAddress:
    """The address of a PostgreSQL database; its text shows neither a password nor options."""

    def __init__(self, url: Any) -> None:
        self._url = url
        self.name = str(url.database or url.username or "")
        """The database."""

    def options(self) -> dict[str, Any]:
        """The options with which psycopg connects, including the password."""
        _, options = self._url.get_dialect()().create_connect_args(self._url)
        return dict(options)

    def __str__(self) -> str:
        whole = self._url
        shown = {"username": whole.username, "host": whole.host, "port": whole.port, "database": self.name}
        return str(type(whole).create("postgresql", **shown))

    def __repr__(self) -> str:
        return f"ServerAddress({str(self)!r})"


Address = Path | ServerAddress


def address_of(subject: str, value: Any) -> Address:
    """The address that a user gave; errors never quote it, because it may contain a password."""
    if isinstance(value, ServerAddress):
        return value
    if isinstance(value, str) and value.startswith(_FILE):
        value = value.removeprefix(_FILE)
    if not isinstance(value, str) or "://" not in value:
        return as_path(subject, "path", value)
    kind, _, rest = value.partition("://")
    if kind not in _SERVERS:
        raise ParameterError(subject, [f"a trial must be stored in {_FORM}; got {kind!r:.30}://"])
    made = _server(f"postgresql+psycopg://{rest}")
    if made is None:
        problem = f"the address cannot be read: it must be {_FORM[_FORM.index('postgresql') :]}"
        raise ParameterError(
            subject, [f"{problem}; in a password, write @ as %40, / as %2F, and : ? # % likewise"]
        )
    return made


def _server(text: str) -> ServerAddress | None:
    """The address in a text; None if there is none, or if a password may have been read as another part."""
    from adaptinf.trial.databases.libraries import sa

    try:
        url = sa.engine.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        return None
    odd = any("@" in part for part in (url.host or "", url.database or ""))
    return None if odd or "\0" in text else ServerAddress(url)
