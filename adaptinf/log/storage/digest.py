"""A digest of what a log holds, whatever the format that holds it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def content_digest(header: Mapping[str, Any], releases: Any, columns: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over a header and releases as JSON, and over the names, types and values of the columns.

    Shapes: columns (T,).
    """
    digest = hashlib.sha256()
    for part in (header, releases):
        _add(digest, json.dumps(part, allow_nan=False, sort_keys=True).encode())
    for name, values in columns.items():
        _add(digest, name.encode())
        _add(digest, values.dtype.str.encode())
        for part in _parts(values):
            _add(digest, part)
    return digest.hexdigest()


def _add(digest: Any, part: bytes) -> None:
    # With its length, so that no two contents run together into the same bytes.
    digest.update(len(part).to_bytes(8))
    digest.update(part)


def _parts(values: NDArray[Any]) -> list[bytes]:
    if values.dtype.kind == "O":
        texts = [text.encode() for text in values.tolist()]
        return [np.array([len(text) for text in texts], dtype="<i8").tobytes(), b"".join(texts)]
    if values.dtype.kind == "f":
        # Every NaN is one value; text keeps no other bits of it.
        values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    return [np.ascontiguousarray(values).tobytes()]
