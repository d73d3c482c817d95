"""Rows of a trial's journal: an entry as JSON, with a salt; sealed fields may have been erased."""

from __future__ import annotations

import json
import secrets
from typing import Any

Entry = dict[str, Any]
GONE = "gone"
"""In an entry: its sealed fields can no longer be read, because the secret was destroyed."""
SALT, _SALT_BYTES = "salt", 16
as_text = json.JSONEncoder(separators=(",", ":")).encode
"""An entry, or a part of one, as JSON; encoded once, as `json.dumps` would for each row."""


def salted(entry: Entry) -> Entry:
    """An entry with 128 bits known only from the file, whatever else about it can be guessed."""
    # They are the system's, and no coins of the trial's seed: a replay reads over them.
    return {**entry, SALT: secrets.token_hex(_SALT_BYTES)}
