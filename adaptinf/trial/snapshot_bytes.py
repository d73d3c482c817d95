"""A snapshot of a trial as bytes: plain values in JSON, followed by arrays of numbers."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import numpy as np

_SIZE = 8
"""Number of bytes that give the length of what follows."""
_KINDS = "iuf"
"""Kinds of arrays that are read from a file: integers and floats only."""


class Snapshot(NamedTuple):
    """The state after the rows up to `number`, whose digest is `head`."""

    number: int
    head: str
    parts: list[dict[str, Any]]
    state: dict[str, Any]


def pack(value: dict[str, Any]) -> bytes:
    """Plain values and arrays of numbers as bytes: JSON, then the arrays in order."""
    arrays: list[bytes] = []

    def laid(item: Any) -> Any:
        if not isinstance(item, np.ndarray):
            raise TypeError(f"a snapshot cannot store {item!r:.60}")
        arrays.append(item.tobytes())
        return {"array": [item.dtype.str, list(item.shape)]}

    text = json.dumps(value, default=laid, sort_keys=True, separators=(",", ":")).encode()
    return len(text).to_bytes(_SIZE, "big") + text + b"".join(arrays)


def unpacked(content: bytes) -> Any:
    """The inverse of `pack`."""
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
