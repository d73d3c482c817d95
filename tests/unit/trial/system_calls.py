"""Kills inside a commit: SQLite's own calls of the system are counted, and one is the last."""

from __future__ import annotations

import ctypes
from pathlib import Path

from crashes import die

TORN = "pwrite, half of it"
CALLS = {"pwrite": 60, TORN: 60, "fcntl": 60, "pread": 6, "close": 3, "open": 4}
"""Calls, and how many of each a process makes in some ten requests, about."""
_FUNCTIONS_BEFORE = 13
"""Of `sqlite3_vfs`, before xSetSystemCall."""

_kept: list[object] = []


def library() -> ctypes.CDLL | None:
    """The SQLite that Python has loaded; None where it is a part of Python itself."""
    import sqlite3

    maps = Path("/proc/self/maps")
    names = {line.split()[-1] for line in maps.read_text().splitlines()} if maps.exists() else set()
    found = [name for name in names if "libsqlite3" in name]
    del sqlite3
    return ctypes.CDLL(found[0]) if found else None


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("size", ctypes.c_int),
        ("longest", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("functions", ctypes.c_void_p * _FUNCTIONS_BEFORE),
        ("set", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)),
    )


_LONG = ctypes.CFUNCTYPE(ctypes.c_ssize_t, *[ctypes.c_ssize_t] * 4)


def arm_call(name: str, count: int) -> None:
    """Kill this process at SQLite's so manieth call of a function; with TORN when half is written."""
    sqlite, torn = library(), name == TORN
    assert sqlite is not None
    call = "pwrite" if torn else name
    sqlite.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    vfs = sqlite.sqlite3_vfs_find(None)
    whole = getattr(ctypes.CDLL(None, use_errno=False), call)
    whole.restype, whole.argtypes = ctypes.c_ssize_t, [ctypes.c_ssize_t] * 4
    left = [count]

    def counted(first: int, second: int, third: int, fourth: int) -> int:
        left[0] -= 1
        if left[0] == 0:
            if torn:
                whole(first, second, third // 2, fourth)
            die()
        return int(whole(first, second, third, fourth))

    replaced = _LONG(counted)
    _kept.append(replaced)
    done = [
        vfs.contents.set(
            ctypes.addressof(vfs.contents), known.encode(), ctypes.cast(replaced, ctypes.c_void_p)
        )
        for known in (call, f"{call}64")
    ]
    assert 0 in done
