"""What a row of a trial's journal is: an entry as JSON, with a salt, in which sealed fields may be gone."""

from __future__ import annotations

import json
import secrets
from typing import Any

Entry = dict[str, Any]
GONE = "gone"
"""In an entry: its sealed fields cannot be read any more, as the secret was destroyed."""
SALT, _SALT_BYTES = "salt", 16
as_text = json.JSONEncoder(separators=(",", ":")).encode
"""An entry, or a part of one, as JSON; made once, as `json.dumps` would make it for each row."""


def salted(entry: Entry) -> Entry:
    """An entry with 128 bits that only who has the file knows, whatever else of it can be guessed."""
    # They are the system's, and no coins of the trial's seed: a replay reads over them.
    return {**entry, SALT: secrets.token_hex(_SALT_BYTES)}
