"""Snapshots of a trial: what its rows came to, so that it is opened without all decisions made again.

A snapshot is a cache at a row of the journal. What came between two snapshots is a part, which is written
once; the digest of a part covers those before it. The design's memory is written anew each time, and its
digest covers all parts, the number of the row and the row's own digest. Both are sealed, as the names, keys
and contexts in the rows are.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
from typing import Any, NamedTuple

import numba
import numpy as np
import sqlalchemy as sa

from adaptinf.compilation import package_hash
from adaptinf.errors import JournalError
from adaptinf.sessions.rounds import Marks
from adaptinf.trial.journal import Journal
from adaptinf.trial.sealing import Sealing

_TABLES = sa.MetaData()
_PARTS = sa.Table(
    "snapshot_parts",
    _TABLES,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
)
_STATE = sa.Table(
    "snapshot_state",
    _TABLES,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("head", sa.Text, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
)
_SIZE = 8
"""Bytes that tell the length of what follows."""
_KINDS = "iuf"
"""Arrays of whole numbers and of floats: nothing else is read from a file."""


class Snapshot(NamedTuple):
    """What the rows up to `number`, whose digest is `head`, came to."""

    number: int
    head: str
    parts: list[dict[str, Any]]
    state: dict[str, Any]


class Snapshots:
    """The snapshot in the file of a journal, read and written in the journal's transactions."""

    def __init__(self, journal: Journal, sealing: Sealing) -> None:
        self._journal, self._sealing = journal, sealing

    def read(self) -> Snapshot | None:
        """The snapshot, all of it checked; None where there is none, or one of another version of the code.

        Raises
        ------
        JournalError
            If it is damaged.
        """
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
        except TypeError:  # a value of another type than was written
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
        """The row of the snapshot, and how much the session had kept then; 0 and nothing where there is none.

        Raises
        ------
        JournalError
            If it cannot be added to.
        """
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

    def _before(self) -> str:
        """The digest of the last part."""
        newest = sa.select(_PARTS.c.digest).order_by(_PARTS.c.number.desc()).limit(1)
        return str(self._journal.connection.execute(newest).scalar() or "")

    def write(self, part: dict[str, Any], state: dict[str, Any]) -> None:
        """Add what came since the last snapshot, and the state after the rows that have been read."""
        connection, number, head = self._journal.connection, self._journal.rows, self._journal.head
        _TABLES.create_all(connection)
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
        """Remove the snapshot: the next one is of all rows."""
        self._journal.ask("written", lambda: _TABLES.drop_all(self._journal.connection))


def versions() -> dict[str, str]:
    """Of the code whose decisions a snapshot stands for: another one makes them all again."""
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


def pack(value: dict[str, Any]) -> bytes:
    """Plain values and arrays of numbers in bytes: JSON, and the arrays behind it in their order."""
    arrays: list[bytes] = []

    def laid(item: Any) -> Any:
        if not isinstance(item, np.ndarray):
            raise TypeError(f"a snapshot cannot hold {item!r:.60}")
        arrays.append(item.tobytes())
        return {"array": [item.dtype.str, list(item.shape)]}

    text = json.dumps(value, default=laid, sort_keys=True, separators=(",", ":")).encode()
    return len(text).to_bytes(_SIZE, "big") + text + b"".join(arrays)


def unpacked(content: bytes) -> Any:
    """What `pack` was given."""
    at = _SIZE + int.from_bytes(content[:_SIZE], "big")

    def lifted(found: dict[str, Any]) -> Any:
        nonlocal at
        if set(found) != {"array"}:
            return found
        kind, shape = found["array"]
        dtype = np.dtype(kind)
        if dtype.kind not in _KINDS:
            raise ValueError(f"a snapshot has no arrays of {kind}")
        array = np.frombuffer(content, dtype, math.prod(shape), at).reshape(shape)
        at += array.nbytes
        return array

    return json.loads(content[_SIZE:at], object_hook=lifted)
