"""The data key of a trial, and the ciphertexts of rows, secrets and the data key itself, with their lengths.

Each text is encrypted by AES-256-GCM with its own key, which is the HMAC-SHA256 of 24 bytes that are stored
with the ciphertext. These bytes are HMAC-SHA256 of 32 random bytes, the place and the text: even if two
copies of a machine draw the same random bytes, different texts have different keys. Associated data are the
trial and the place, which is, for a row, its number and the digest of the row before it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Any

from adaptinf.log.storage.stored import encode
from adaptinf.trial.databases.libraries import AESGCM
from adaptinf.trial.journal_rows import Entry, as_text
from adaptinf.trial.trial_noise import NODE

SCOPE_BYTES = 16
TAG_TEXT = 24
"""Number of characters at the beginning of a row that are unique."""
_NONCE, _GCM, _TAG, _DRAWN = 24, 12, 18, 32
_CLASS, _REST, _NAMES, _NUMBER = 256, 320, 352, 26
"""Numbers of characters: the step of row lengths, a row without arms, names, and the longest number."""


class Cipher:
    """Texts sealed under a secret, for one trial, each bound to its place."""

    def __init__(self, secret: bytes, scope: bytes) -> None:
        self.secret, self.scope = secret, scope
        self._keys, self._nonces, self._tags = (
            hmac.new(
                hmac.digest(secret, b"adaptinf %s " % use + scope, hashlib.sha256), digestmod=hashlib.sha256
            )
            for use in (b"keys", b"nonces", b"tags")
        )

    def closed(self, text: bytes, place: str) -> bytes:
        """A text as stored at a place."""
        bound = self.scope + place.encode()
        nonce = _of(self._nonces, secrets.token_bytes(_DRAWN) + _sized(bound) + text)[:_NONCE]
        return nonce + AESGCM(_of(self._keys, nonce)).encrypt(nonce[-_GCM:], text, bound)

    def opened(self, content: bytes, place: str) -> bytes:
        """The text at a place; `InvalidTag` or `ValueError` if it is not what was stored there."""
        nonce, sealed = content[:_NONCE], content[_NONCE:]
        return AESGCM(_of(self._keys, nonce)).decrypt(nonce[-_GCM:], sealed, self.scope + place.encode())

    def tag(self, name: str) -> bytes:
        """A substitute for a name, which reveals only whether two names are equal."""
        return _of(self._tags, name.encode())[:_TAG]


class DataKey(Cipher):
    """The cipher of a trial's rows and secrets. The length of a row does not depend on the arm."""

    _rest, _shortest, _context, _arms = _REST, 4 * _CLASS, 0, 0

    def declare(self, first: Entry) -> None:
        """Make rows long enough for the labels and numbers that a trial's first entry declares."""
        features = list(map(_length, first["features"] or ()))
        per_arm = len(first["arms"]) if first["per_arm"] else 1
        self._context = max(features, default=0) + _NUMBER * (first["dimension"] or 0) * per_arm
        self.allow(first["arms"])

    def allow(self, arms: Sequence[Any]) -> None:
        """Make rows long enough for all arms of a trial, including those that have joined it."""
        if len(arms) == self._arms:
            return
        self._arms = len(arms)
        self._rest = _REST + _NUMBER * len(arms) + max(map(_length, arms))
        whole = self._rest + _NAMES + self._context * 4 // 3
        self._shortest = whole + -whole % _CLASS

    def row(self, number: int, before: str, entry: Entry) -> str:
        """An entry as the text of a row after the one with digest `before`."""
        text = as_text(encode(entry))
        padded = text.ljust(self._width(len(text), len(entry.get("sealed", ""))))
        # No two rows of noise may be about one node: the first characters of rows are unique.
        tag = self.tag(entry[NODE]) if entry["kind"] == NODE else secrets.token_bytes(_TAG)
        sealed = self.closed(padded.encode(), _row(number, before, tag))
        return base64.b64encode(tag + sealed).decode()

    def text(self, number: int, before: str, row: str) -> str:
        """The entry in a row, as JSON; `InvalidTag` or `ValueError` if it is not what was stored there."""
        content = base64.b64decode(row, validate=True)
        tag = content[:_TAG]
        return self.opened(content[_TAG:], _row(number, before, tag)).decode()

    def _width(self, whole: int, names: int) -> int:
        """The length of a row with the longest possible arms and outcomes, and names as they are."""
        needed, width = max(whole - names, self._rest) + names, self._shortest
        while width < needed:
            width *= 2
        return width


def _row(number: int, before: str, tag: bytes) -> str:
    return f"row {number} after {before} {tag.hex()}"


def _length(label: Any) -> int:
    return len(as_text(encode(label)))


def _sized(text: bytes) -> bytes:
    """A text preceded by its length, so that it cannot be mistaken for the beginning of another."""
    return len(text).to_bytes(8, "big") + text


def _of(keyed: hmac.HMAC, text: bytes) -> bytes:
    """HMAC-SHA256 of a text, with a key that was prepared once."""
    mac = keyed.copy()
    mac.update(text)
    return mac.digest()
