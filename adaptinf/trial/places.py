"""Where the file of a trial is: what tells it from a copy, and is kept when it is renamed."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Place = dict[str, Any]
PLACE = "place"
"""Name of the field of a row that says where the file is, and kind of one that says no more."""
_HERE, _BORN, _SIZE = -100, 0x800, 256
_MASK, _SECONDS, _NANOSECONDS = slice(0, 4), slice(80, 88), slice(88, 92)
"""Of Linux's statx: the folder that paths begin in, the wish for a birth time, and where it then stands."""


def place_of(path: Path) -> Place:
    """Device, inode and birth time (in nanoseconds, or None where the system does not tell) of a file.

    It is not opened: closing it again would end the locks that SQLite has on it in this process.
    """
    status = os.stat(path)
    return {"device": status.st_dev, "inode": status.st_ino, "born": _born(path, status)}


def same_place(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two places are of one file.

    Inodes are given again as soon as a file is removed, so that the birth time has to agree too: no copying
    sets it. Numbers of devices change when a machine starts again, and serve only where it is not known.
    """
    if one["inode"] != other["inode"]:
        return False
    if one["born"] is not None and other["born"] is not None:
        return bool(one["born"] == other["born"])
    return bool(one["device"] == other["device"])


def _born(path: Path, status: os.stat_result) -> int | None:
    seconds = getattr(status, "st_birthtime", None)
    if seconds is not None:
        return int(getattr(status, "st_birthtime_ns", round(seconds * 1e9)))
    statx = _statx()
    answer = ctypes.create_string_buffer(_SIZE)
    if statx is None or statx(_HERE, os.fsencode(path), 0, _BORN, answer) != 0:
        return None
    mask, whole, rest = (
        int.from_bytes(answer.raw[part], sys.byteorder) for part in (_MASK, _SECONDS, _NANOSECONDS)
    )
    return whole * 1_000_000_000 + rest if mask & _BORN else None


@functools.cache
def _statx() -> Any:
    """Linux's call that tells birth times, which `os.stat` leaves out; None elsewhere."""
    if sys.platform != "linux":
        return None
    try:
        return ctypes.CDLL(None).statx
    except (OSError, AttributeError):
        return None
