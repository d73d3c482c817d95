"""Rows of a trial's journal: an entry as JSON, with a salt; sealed fields may have been erased."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator
from typing import Any

Entry = dict[str, Any]
Rows = Entry | Iterator[Entry] | None
"""The rows that an action writes: none, one or several, each of which may depend on the previous ones."""
GONE = "gone"
"""Mark of an entry whose sealed fields can no longer be read, because the secret was destroyed."""
SALT, _SALT_BYTES = "salt", 16
START = ""
"""The value used as the digest before the first row."""
as_text = json.JSONEncoder(separators=(",", ":")).encode
"""An entry or a part of one as the JSON that `json.dumps` returns, encoded once for all rows."""


def salted(entry: Entry) -> Entry:
    """An entry with 128 random bits, which cannot be guessed even if the rest of it can."""
    # The bits come from the system and not from the trial's seed. A replay ignores them, so it draws the same
    # coins.
    return {**entry, SALT: secrets.token_hex(_SALT_BYTES)}


def digest_after(before: str, text: str) -> str:
    """The digest of a row after the one with digest `before`."""
    return hashlib.sha256(f"{before}{text}".encode()).hexdigest()
