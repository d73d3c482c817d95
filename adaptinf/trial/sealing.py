"""Encrypted parts of a trial's file: fields of participants, and snapshots.

A row's sealed fields are JSON, padded, under AES-256-GCM with a fresh nonce, bound to the number of the row.
The digests of the rows cover the ciphertexts, and the secrets are in a separate table: if a secret is
destroyed, no one can read what was sealed with it, but the rows still follow from each other. If the trial
has a key, the table contains ciphertexts of the secrets under its data key.

A snapshot, the state after a certain row of the journal, is a cache: a trial is opened without recomputing
all decisions. The changes between two snapshots form a part, which is written once; the digest of a part
covers all earlier parts. The design's memory is written again each time, and its digest covers all parts, the
number of the row and the row's own digest. Snapshots contain fields of all participants; they are sealed with
one secret, which changes at each erasure.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import platform
import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numba
import numpy as np

from adaptinf.compilation import package_hash
from adaptinf.errors import FileError, JournalError
from adaptinf.log.storage.stored import decode, encode
from adaptinf.sessions.session_rounds import Marks
from adaptinf.trial.databases.libraries import AESGCM, InvalidTag, sa
from adaptinf.trial.databases.sql_statements import Prepared
from adaptinf.trial.journal import Journal
from adaptinf.trial.journal_rows import GONE, Entry, as_text
from adaptinf.trial.snapshot_bytes import Snapshot, pack, unpacked

SEALED = {
    "assign": ("key", "unit", "context"),
    "record": ("key",),
    "amend": ("key", "reason"),
    "unblind": ("reason",),
}
"""Fields readable only with the secret of a row's decision, by the kind of the row."""
MARKS, SNAPSHOTS = 0, -1
"""Numbers of two secrets: with the first, names and keys that were erased are recognised; the other seals
snapshots. All further numbers are decisions."""
_BYTES, _NONCE, _PADDED, _MARK, _LONGEST = 32, 12, 32, 32, 2**30
_DESTROYED = bytes(_BYTES)
_PAGE = 2**16
"""Snapshots of a trial with a key are padded to a multiple of this length."""
_LAYOUT = b"sealed\0\1"
"""Prefix of a sealed snapshot."""
_TABLE = sa.Table(
    "secrets",
    sa.MetaData(),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("secret", sa.LargeBinary, nullable=False),
)
_WANTED = Prepared(sa.select(_TABLE.c.secret).where(_TABLE.c.number == sa.bindparam("wanted")))
_NEXT = Prepared(
    sa.select(_TABLE.c.number, _TABLE.c.secret).where(
        _TABLE.c.number.between(sa.bindparam("first"), sa.bindparam("last"))
    )
)
_LARGEST = Prepared(sa.select(sa.func.max(_TABLE.c.number)))
_ADDED = Prepared(sa.insert(_TABLE))


class Sealing:
    """The secrets of a journal, within its transactions. Rows of the table are only added or overwritten."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._many: dict[int, bytes] = {}
        self._largest: int | None = None

    def start(self) -> None:
        """Create the table, with the secret for marks."""
        _TABLE.create(self._journal.connection)
        self._add(MARKS)

    def sealed(self, number: int, entry: Entry) -> Entry:
        """An entry as stored in row `number`; the first entry of a decision creates a new secret."""
        names = SEALED.get(entry["kind"], ())
        if not names:
            return entry
        decision = _decision(entry)
        secret = self.secret(decision) or self._add(decision)
        text = as_text(encode({name: entry[name] for name in names})).encode()
        text += b" " * (-len(text) % _PADDED)  # Padding hides the exact length of names.
        content = _closed(secret, text, _place(number, entry))
        kept = {name: value for name, value in entry.items() if name not in names}
        return {**kept, "sealed": base64.b64encode(content).decode()}

    def opened(self, number: int, entry: Entry) -> Entry:
        """The entry of a row with its sealed fields, or `GONE` if their secret was destroyed."""
        if entry.get("kind") not in SEALED:
            return entry
        kept = {name: value for name, value in entry.items() if name != "sealed"}
        try:
            self._settle(_decision(entry))
            self._look_ahead(_decision(entry))
            secret = self.secret(_decision(entry))
            if secret is None:
                return {**kept, GONE: True}
            content = base64.b64decode(entry["sealed"], validate=True)
            text = _opened(secret, content, _place(number, entry))
            return {**kept, **decode(json.loads(text))}
        except (InvalidTag, ValueError, KeyError, TypeError, OverflowError):
            # The original errors contain the content that was read, so they are replaced.
            problem = f"the sealed fields of row {number} do not match their secret"
        raise JournalError(str(self._journal.path), problem)

    def sealed_snapshot(self, content: bytes, place: str) -> bytes:
        """The snapshot in the form in which the file stores it, with its own name."""
        if len(content) >= _LONGEST:
            raise FileError(str(self._journal.path), "written", "the snapshot is too long")
        if self._journal.key is not None:
            content += bytes(-len(content) % _PAGE)
        secret = self.secret(SNAPSHOTS) or self._add(SNAPSHOTS)
        return _LAYOUT + _closed(secret, content, place.encode())

    def opened_snapshot(self, content: bytes, place: str) -> bytes | None:
        """The inverse of `sealed_snapshot`; None for an earlier layout, which was not sealed."""
        if not content.startswith(_LAYOUT):
            return None
        secret = self.secret(SNAPSHOTS)
        with suppress(InvalidTag, ValueError):
            return _opened(secret or _DESTROYED, content.removeprefix(_LAYOUT), place.encode())
        raise JournalError(str(self._journal.path), "its snapshot does not match its secret")

    def renew_snapshots(self) -> None:
        """Make remains of snapshots unreadable: later ones use another secret."""
        if self.secret(SNAPSHOTS) is not None:
            self._overwrite(SNAPSHOTS, secrets.token_bytes(_BYTES))

    def secret(self, number: int) -> bytes | None:
        """A secret; None if it does not exist or was destroyed."""
        found: Any = self._many.get(number)
        if found is None and number <= self._newest():
            connection = self._journal.connection
            found = self._journal.ask("read", lambda: _WANTED.value(connection, wanted=number))
        if found is None:
            return None
        secret = self._plain(number, found)
        return None if secret == _DESTROYED else bytes(secret)

    def _stored(self, number: int, secret: bytes) -> bytes:
        """A secret as stored in the table."""
        key = self._journal.key
        return secret if key is None else key.closed(secret, f"secret {number}")

    def _plain(self, number: int, stored: Any) -> Any:
        """The inverse of `_stored`."""
        key = self._journal.key
        if key is None:
            return stored
        with suppress(InvalidTag, ValueError, TypeError):
            return key.opened(bytes(stored), f"secret {number}")
        problem = f"the secret of number {number} was not sealed with the trial's key for this position"
        raise JournalError(str(self._journal.path), problem)

    def _look_ahead(self, number: int) -> None:
        """Also read the secrets of the next decisions if the database is on another machine."""
        ahead = self._journal.store.ahead
        if not ahead or number in self._many:
            return
        between = {"first": number, "last": number + ahead}
        connection = self._journal.connection
        cursor = self._journal.ask("read", lambda: _NEXT.cursor(connection, **between))
        self._many.update(self._journal.ask("read", cursor.fetchall))

    def _newest(self) -> int:
        """An upper limit for the numbers of secrets in the file; later numbers are found with their rows."""
        if self._largest is None:
            found = self._journal.ask("read", lambda: _LARGEST.value(self._journal.connection))
            self._largest = MARKS if found is None else int(found)
        return self._largest

    def _settle(self, number: int) -> None:
        """Record that there may be a secret with this number."""
        self._largest = max(self._newest(), number)

    def load(self) -> None:
        """Load all secrets until `let_go`, for many rows."""
        self._many = dict(map(tuple, self._read(sa.select(_TABLE.c.number, _TABLE.c.secret))))

    def let_go(self) -> None:
        """Keep no secrets in memory."""
        self._many = {}

    def forget(self) -> None:
        """Forget the secrets that were read, when the rows are also read again."""
        self._many, self._largest = {}, None

    def problems(self, decisions: int, erased: Iterable[int]) -> list[str]:
        """Problems with the secrets of this number of decisions, some of which were erased."""
        gone, stored = set(erased), self._read(sa.select(_TABLE.c.number, _TABLE.c.secret))
        known = {number: self._plain(number, secret) for number, secret in stored}
        # The secret of snapshots is created with the first one and belongs to no decision.
        known.pop(SNAPSHOTS, None)
        wanted = set(range(MARKS, decisions + 1))
        odd = sorted(wanted ^ set(known))
        whole = sorted(number for number in gone & set(known) if known[number] != _DESTROYED)
        lost = sorted(n for n in (wanted & set(known)) - gone if known[n] == _DESTROYED)
        problems = [f"the secret of decision {odd[0]} is missing or belongs to no decision"] if odd else []
        problems += [f"decision {whole[0]} was erased, but its secret still exists"] if whole else []
        return problems + (
            [f"the secret of decision {lost[0]} is gone, although no row records an erasure"] if lost else []
        )

    def destroy(self, number: int) -> None:
        """Overwrite a secret in place: a deleted row could leave a copy in its page."""
        self._overwrite(number, _DESTROYED)

    def _overwrite(self, number: int, secret: bytes) -> None:
        stored = self._stored(number, secret)
        change = sa.update(_TABLE).where(_TABLE.c.number == number).values(secret=stored)
        self._journal.write()
        self._many.pop(number, None)
        self._journal.ask("written", lambda: self._journal.connection.execute(change))

    def mark(self, what: str, value: Any) -> str | None:
        """Substitute for the name of an erased unit or key; None after the secret was destroyed.

        The same name always has the same substitute, which reveals nothing without the secret.
        """
        secret = self.secret(MARKS)
        if secret is None:
            return None
        text = json.dumps([what, value]).encode()
        return hmac.digest(secret, text, hashlib.sha256).hex()[:_MARK]

    def _add(self, number: int) -> bytes:
        secret = secrets.token_bytes(_BYTES)
        stored = self._many[number] = self._stored(number, secret)
        self._settle(number)
        self._journal.add(_ADDED, {"number": number, "secret": stored})
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
    """Context to which a ciphertext is bound: it cannot be opened in another row."""
    return f"{number} {entry['kind']} {_decision(entry)}".encode()


_SNAPSHOTS = sa.MetaData()
_PARTS = sa.Table(
    "snapshot_parts",
    _SNAPSHOTS,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
)
_STATE = sa.Table(
    "snapshot_state",
    _SNAPSHOTS,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("head", sa.Text, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
)


class Snapshots:
    """The snapshot in a journal's file, read and written within the journal's transactions."""

    def __init__(self, journal: Journal, sealing: Sealing) -> None:
        self._journal, self._sealing = journal, sealing

    def read(self) -> Snapshot | None:
        """The snapshot, fully verified; None if there is none, or if other code wrote it."""
        found, parts = self._journal.ask("read", self._rows)
        if found is None:
            return None
        number, head, content, digest = found
        try:
            before = ""
            for row, packed, stated in parts:
                before = self._matching(_part_digest(before, row, packed), stated)
            self._matching(_state_digest(before, number, head, content), digest)
            right = head == self._journal.digest(number)
        except TypeError:  # The file contains a value of another type than was written.
            right = False
        if not right:
            raise self._damaged()
        state = self._state(number, content)
        if state is None or state["versions"] != versions():
            return None
        opened = [self._sealing.opened_snapshot(packed, f"part {row}") for row, packed, _ in parts]
        return Snapshot(number, head, [unpacked(part) for part in opened if part is not None], state)

    def _state(self, number: int, content: bytes) -> Any:
        opened = self._sealing.opened_snapshot(content, f"state {number}")
        return None if opened is None else unpacked(opened)

    def _rows(self) -> tuple[Any, list[Any]]:
        found = self._row()
        if found is None:
            return None, []
        return found, list(self._journal.connection.execute(sa.select(_PARTS).order_by(_PARTS.c.number)))

    def _row(self) -> Any:
        if not sa.inspect(self._journal.connection).has_table(_STATE.name):
            return None
        return self._journal.connection.execute(sa.select(_STATE)).first()

    def _matching(self, digest: str, stated: Any) -> str:
        if digest != stated:
            raise self._damaged()
        return digest

    def _damaged(self) -> JournalError:
        return JournalError(str(self._journal.path), "its snapshot does not follow from its rows")

    def last(self) -> tuple[int, Marks]:
        """The row of the snapshot, and the amount of data in the session at that row; 0 if there is none."""
        found = self._row()
        if found is None:
            return 0, Marks()
        number, head, content, digest = found
        self._matching(_state_digest(self._before(), number, head, content), digest)
        state = self._state(number, content)
        if state is None or state["versions"] != versions():
            raise self._damaged()
        decided, told, amended, keys = state["marks"]
        return number, Marks(decided, told, amended, tuple(keys))

    def number(self) -> int:
        """The row of the snapshot, which is not checked; 0 if there is none."""
        connection = self._journal.connection
        if not sa.inspect(connection).has_table(_STATE.name):
            return 0
        return int(connection.execute(sa.select(_STATE.c.number)).scalar() or 0)

    def _before(self) -> str:
        """The digest of the last part."""
        newest = sa.select(_PARTS.c.digest).order_by(_PARTS.c.number.desc()).limit(1)
        return str(self._journal.connection.execute(newest).scalar() or "")

    def write(self, part: dict[str, Any], state: dict[str, Any]) -> None:
        """Add the changes since the last snapshot, and the state after the rows that have been read."""
        connection, number, head = self._journal.connection, self._journal.rows, self._journal.head
        _SNAPSHOTS.create_all(connection)
        packed = self._sealing.sealed_snapshot(pack(part), f"part {number}")
        whole = pack({**state, "versions": versions()})
        content = self._sealing.sealed_snapshot(whole, f"state {number}")
        digest = _part_digest(self._before(), number, packed)
        connection.execute(sa.insert(_PARTS), {"number": number, "content": packed, "digest": digest})
        connection.execute(sa.delete(_STATE))
        row = {"number": number, "head": head, "content": content}
        row["digest"] = _state_digest(digest, number, head, content)
        connection.execute(sa.insert(_STATE), row)

    def drop(self) -> None:
        """Remove the snapshot: the next one will cover all rows."""
        self._journal.discard(_SNAPSHOTS)


def versions() -> dict[str, str]:
    """Fingerprint of the code that made a snapshot's decisions; other code recomputes all decisions."""
    return {
        "adaptinf": package_hash(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "machine": f"{platform.python_version()} {platform.machine()}",
    }


def _part_digest(before: str, number: int, content: bytes) -> str:
    return hashlib.sha256(f"{before} {number} ".encode() + content).hexdigest()


def _state_digest(before: str, number: int, head: str, content: bytes) -> str:
    return hashlib.sha256(f"{before} {number} {head} ".encode() + content).hexdigest()
