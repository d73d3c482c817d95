"""The data key of a trial as stored in its database, encrypted with the outside key."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from adaptinf.errors import JournalError, ParameterError
from adaptinf.trial.databases.libraries import InvalidTag, sa
from adaptinf.trial.keys.data_key import SCOPE_BYTES, Cipher, DataKey
from adaptinf.trial.keys.outside_key import BY_COMMAND, BY_FILE, KEY_BYTES

if TYPE_CHECKING:
    from adaptinf.trial.journal import Journal

_PLACE = "data key"
_TABLE = sa.Table(
    "wrapped_key",
    sa.MetaData(),
    sa.Column("scope", sa.LargeBinary, primary_key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
)
NO_KEY = (
    f"the trial was created with a key: give key_file=, or set {BY_FILE} or {BY_COMMAND} in the environment"
)
NEEDLESS = (
    f"the trial was created without a key: omit key_file=, and unset {BY_FILE} and {BY_COMMAND} in the "
    "environment"
)
NEVER = "the trial was created without a key: create a new trial with key_file="
WRONG = "the key does not open the trial: it is not the key of the trial's creation or its last rekeying"


def begun(journal: Journal, outside: bytes) -> DataKey:
    """A new data key, wrapped in a new table, within a transaction."""
    _TABLE.create(journal.connection)
    scope, secret = secrets.token_bytes(SCOPE_BYTES), secrets.token_bytes(KEY_BYTES)
    row = {"scope": scope, "content": Cipher(outside, scope).closed(secret, _PLACE)}
    journal.connection.execute(sa.insert(_TABLE), row)
    return DataKey(secret, scope)


def keyed(journal: Journal) -> bool:
    """Whether the trial has a data key, within a transaction."""
    return journal.ask("read", lambda: sa.inspect(journal.connection).has_table(_TABLE.name))


def data_key(journal: Journal, subject: str, outside: bytes | None) -> DataKey | None:
    """The data key of a trial, or None if it has none; an error if the outside key does not match."""
    journal.begin(write=False)
    try:
        return _data_key(journal, subject, outside)
    finally:
        journal.rollback()


def _data_key(journal: Journal, subject: str, outside: bytes | None) -> DataKey | None:
    if not keyed(journal):
        if outside is not None:
            raise ParameterError(subject, [NEEDLESS])
        return None
    if outside is None:
        raise ParameterError(subject, [NO_KEY])
    scope, content = _wrapped(journal)
    secret = _unwrapped(outside, scope, content)
    if secret is None:
        raise ParameterError(subject, [WRONG])
    return DataKey(secret, scope)


def wrapped_anew(journal: Journal, outside: bytes) -> None:
    """Replace the key that opens the trial, within a transaction."""
    if journal.key is None:
        raise ParameterError("rekey", [NEVER])
    scope, content = _wrapped(journal)
    if _unwrapped(outside, scope, content) is not None:
        raise ParameterError(
            "rekey", ["the trial already has this key: make another with adaptinf trial key"]
        )
    change = sa.update(_TABLE).values(content=Cipher(outside, scope).closed(journal.key.secret, _PLACE))
    journal.write()
    journal.ask("written", lambda: journal.connection.execute(change))


def _wrapped(journal: Journal) -> tuple[bytes, bytes]:
    """The trial's name, which is random, and its data key in the form in which it is stored."""
    rows = journal.ask("read", lambda: journal.connection.execute(sa.select(_TABLE)).all())
    if len(rows) != 1 or any(isinstance(part, str) for part in rows[0]):
        raise JournalError(str(journal.path), "its wrapped key is missing or damaged")
    scope, content = rows[0]
    return bytes(scope), bytes(content)


def _unwrapped(outside: bytes, scope: bytes, content: bytes) -> bytes | None:
    """The data key; None if the outside key does not open it."""
    try:
        return Cipher(outside, scope).opened(content, _PLACE)
    except (InvalidTag, ValueError):
        return None
