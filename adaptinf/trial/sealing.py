"""What a journal holds of a person, encrypted with a secret of its own, so that it can be made unreadable.

A row's sealed fields are JSON, padded, under AES-256-GCM with a fresh nonce, bound to the number of the row.
The digests of the rows cover the ciphertexts, and the secrets lie in a table beside them: where one is
destroyed nobody can read what it sealed, and the rows still follow from each other. Snapshots, which hold
fields of all participants, have one secret, which an erasure changes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from adaptinf.errors import FileError, JournalError, MissingDependencyError
from adaptinf.log.storage.stored import decode, encode
from adaptinf.trial.journal import Entry, Journal, as_text

try:
    import sqlalchemy as sa
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
except ImportError as error:
    raise MissingDependencyError("a live trial", "SQLAlchemy and cryptography", "trial") from error

SEALED = {
    "assign": ("key", "unit", "context"),
    "record": ("key",),
    "amend": ("key", "reason"),
    "unblind": ("reason",),
}
"""Fields that only who has the secret of a row's decision can read, by the kind of the row."""
GONE = "gone"
"""In an entry: its sealed fields cannot be read any more, as the secret was destroyed."""
MARKS, SNAPSHOTS = 0, -1
"""Numbers of two secrets: under the first, names and keys that were erased are known again; the other seals
snapshots. All further ones are decisions."""
_BYTES, _NONCE, _PADDED, _MARK, _LONGEST = 32, 12, 32, 32, 2**30
_DESTROYED = bytes(_BYTES)
_LAYOUT = b"sealed\0\1"
"""What a sealed snapshot begins with."""
_TABLE = sa.Table(
    "secrets",
    sa.MetaData(),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("secret", sa.LargeBinary, nullable=False),
)
_WANTED = sa.select(_TABLE.c.secret).where(_TABLE.c.number == sa.bindparam("wanted"))
_LARGEST = sa.select(sa.func.max(_TABLE.c.number))
_ADDED = sa.insert(_TABLE)


class Sealing:
    """The secrets of a journal, in its transactions. Rows of the table are only added or overwritten."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._many: dict[int, bytes] = {}
        self._last: int | None = None

    def start(self) -> None:
        """Make the table, with the secret of marks."""
        _TABLE.create(self._journal.connection)
        self._add(MARKS)

    def sealed(self, number: int, entry: Entry) -> Entry:
        """An entry as row `number` keeps it; the first one of a decision has a new secret made."""
        names = SEALED.get(entry["kind"], ())
        if not names:
            return entry
        decision = _decision(entry)
        secret = self.secret(decision) or self._add(decision)
        text = as_text(encode({name: entry[name] for name in names})).encode()
        text += b" " * (-len(text) % _PADDED)  # the length of a name is no longer told to the letter
        content = _closed(secret, text, _place(number, entry))
        kept = {name: value for name, value in entry.items() if name not in names}
        return {**kept, "sealed": base64.b64encode(content).decode()}

    def opened(self, number: int, entry: Entry) -> Entry:
        """The entry of a row with its sealed fields; with `GONE` where their secret was destroyed.

        Raises
        ------
        JournalError
            If they do not fit the secret.
        """
        if entry.get("kind") not in SEALED:
            return entry
        kept = {name: value for name, value in entry.items() if name != "sealed"}
        try:
            secret = self.secret(_decision(entry))
            if secret is None:
                return {**kept, GONE: True}
            content = base64.b64decode(entry["sealed"], validate=True)
            text = _opened(secret, content, _place(number, entry))
            return {**kept, **decode(json.loads(text))}
        except (InvalidTag, ValueError, KeyError, TypeError):  # which hold what was read
            problem = f"the sealed fields of row {number} do not fit their secret"
        raise JournalError(str(self._journal.path), problem)

    def sealed_snapshot(self, content: bytes, place: str) -> bytes:
        """What a snapshot keeps under a name of its own, as the file has it.

        Raises
        ------
        FileError
            If it is longer than what is sealed at once.
        """
        if len(content) >= _LONGEST:
            raise FileError(str(self._journal.path), "written", "the snapshot is too long")
        secret = self.secret(SNAPSHOTS) or self._add(SNAPSHOTS)
        return _LAYOUT + _closed(secret, content, place.encode())

    def opened_snapshot(self, content: bytes, place: str) -> bytes | None:
        """What `sealed_snapshot` was given; None of a layout before, which was not sealed.

        Raises
        ------
        JournalError
            If it does not fit the secret.
        """
        if not content.startswith(_LAYOUT):
            return None
        secret = self.secret(SNAPSHOTS)
        with suppress(InvalidTag, ValueError):
            return _opened(secret or _DESTROYED, content.removeprefix(_LAYOUT), place.encode())
        raise JournalError(str(self._journal.path), "its snapshot does not fit its secret")

    def renew_snapshots(self) -> None:
        """Make unreadable what was left of snapshots: the next ones have another secret."""
        if self.secret(SNAPSHOTS) is not None:
            self._overwrite(SNAPSHOTS, secrets.token_bytes(_BYTES))

    def secret(self, number: int) -> bytes | None:
        """A secret; None where there is none, or it was destroyed."""
        found: Any = self._many.get(number)
        if found is None and number <= self._newest():
            found = next((row[0] for row in self._read(_WANTED, {"wanted": number})), None)
        return None if found is None or found == _DESTROYED else bytes(found)

    def _newest(self) -> int:
        """The largest number of a secret in the file, which is asked for once until `let_go`."""
        if self._last is None:
            self._last = self._read(_LARGEST)[0][0]
        return MARKS if self._last is None else int(self._last)

    def load(self) -> None:
        """Have all secrets at hand until `let_go`, for many rows."""
        self._many = dict(map(tuple, self._read(sa.select(_TABLE.c.number, _TABLE.c.secret))))

    def let_go(self) -> None:
        """Keep no secret in memory."""
        self._many, self._last = {}, None

    def problems(self, decisions: int, erased: Iterable[int]) -> list[str]:
        """What is wrong with the secrets of so many decisions, of which some were erased."""
        gone, known = set(erased), dict(map(tuple, self._read(sa.select(_TABLE.c.number, _TABLE.c.secret))))
        known.pop(SNAPSHOTS, None)
        wanted = set(range(MARKS, decisions + 1))
        odd = sorted(wanted ^ set(known))
        whole = sorted(number for number in gone & set(known) if known[number] != _DESTROYED)
        lost = sorted(n for n in (wanted & set(known)) - gone if known[n] == _DESTROYED)
        problems = [f"the secret of decision {odd[0]} is missing or of no decision"] if odd else []
        problems += [f"decision {whole[0]} was erased, and its secret is there"] if whole else []
        return problems + ([f"the secret of decision {lost[0]} is gone without a row"] if lost else [])

    def destroy(self, number: int) -> None:
        """Overwrite a secret where it lies: a deleted row could leave a copy in its page."""
        self._overwrite(number, _DESTROYED)

    def _overwrite(self, number: int, secret: bytes) -> None:
        change = sa.update(_TABLE).where(_TABLE.c.number == number).values(secret=secret)
        self._journal.write()
        self._many.pop(number, None)
        self._journal.ask("written", lambda: self._journal.connection.execute(change))

    def mark(self, what: str, value: Any) -> str | None:
        """What stands for the name of a unit or a key that was erased; None after the secret was destroyed.

        It is known again under the same value, and tells nothing without the secret.
        """
        secret = self.secret(MARKS)
        if secret is None:
            return None
        text = json.dumps([what, value]).encode()
        return hmac.digest(secret, text, hashlib.sha256).hex()[:_MARK]

    def _add(self, number: int) -> bytes:
        secret = self._many[number] = secrets.token_bytes(_BYTES)
        self._journal.add(_ADDED, {"number": number, "secret": secret})
        return secret

    def _read(self, query: Any, values: dict[str, Any] | None = None) -> list[Any]:
        connection = self._journal.connection
        return self._journal.ask("read", lambda: list(connection.execute(query, values).all()))


def _closed(secret: bytes, text: bytes, place: bytes) -> bytes:
    nonce = secrets.token_bytes(_NONCE)
    return nonce + AESGCM(secret).encrypt(nonce, text, place)


def _opened(secret: bytes, content: bytes, place: bytes) -> bytes:
    return AESGCM(secret).decrypt(content[:_NONCE], content[_NONCE:], place)


def _decision(entry: Entry) -> int:
    return int(entry["round" if entry["kind"] == "assign" else "decision"])


def _place(number: int, entry: Entry) -> bytes:
    """What a ciphertext is bound to: in another row it does not open."""
    return f"{number} {entry['kind']} {_decision(entry)}".encode()
