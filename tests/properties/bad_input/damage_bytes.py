"""Damage to the bytes of a file, whatever they mean."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import numpy as np

Rng = np.random.Generator
Damage = Callable[[Rng, bytes], bytes]

OTHERS = {
    "PNG": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 3,
    "zip": b"PK\x03\x04\x14\0\0\0\x08\0" + bytes(range(255, 0, -1)) * 2,
    "web page": b"<!DOCTYPE html>\n<html><body><h1>404 Not Found</h1>, sorry</body></html>\n",
    "JSON": b'{"error": {"code": 403, "message": "access denied"}}\n',
    "Excel": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512),
    "Parquet head": b"PAR1" + bytes(40) + b"PAR1",
    "huge Parquet footer": b"PAR1" + bytes(40) + b"\xff\xff\xff\x7fPAR1",
    "Git pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
}


def place(rng: Rng, data: bytes) -> int:
    """A place in the data."""
    return int(rng.integers(max(len(data), 1)))


def stretch(rng: Rng, data: bytes) -> tuple[int, int]:
    """A stretch of up to 40 bytes."""
    start = place(rng, data)
    return start, min(len(data), start + int(rng.integers(1, 41)))


def flip(rng: Rng, data: bytes, count: int) -> bytes:
    """Flip some bits."""
    changed = bytearray(data)
    for _ in range(count):
        if changed:
            changed[place(rng, data)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def overwritten(rng: Rng, data: bytes, new: bytes) -> bytes:
    at = place(rng, data)
    return data[:at] + new + data[at + len(new) :]


def inserted(rng: Rng, data: bytes, new: bytes) -> bytes:
    at = place(rng, data)
    return data[:at] + new + data[at:]


def cut_slice(rng: Rng, data: bytes) -> bytes:
    start, end = stretch(rng, data)
    return data[:start] + data[end:]


def doubled_slice(rng: Rng, data: bytes) -> bytes:
    start, end = stretch(rng, data)
    return data[:end] + data[start:end] + data[end:]


def swapped_slices(rng: Rng, data: bytes) -> bytes:
    (one, two), size = sorted((place(rng, data), place(rng, data))), 16
    first, second = data[one : one + size], data[two : two + size]
    return data[:one] + second + data[one + size : two] + first + data[two + size :]


def zeroed(rng: Rng, data: bytes) -> bytes:
    start, end = stretch(rng, data)
    return data[:start] + bytes(end - start) + data[end:]


def blanked(rng: Rng, data: bytes) -> bytes:
    start, end = stretch(rng, data)
    return data[:start] + b" " * (end - start) + data[end:]


ANYWHERE: dict[str, Damage] = {
    "cut at the end": lambda rng, data: data[: place(rng, data)],
    "last byte lost": lambda rng, data: data[:-1],
    "last bytes lost": lambda rng, data: data[: -int(rng.integers(2, 120))],
    "only the first bytes": lambda rng, data: data[: int(rng.integers(1, 12))],
    "first bytes lost": lambda rng, data: data[int(rng.integers(1, 12)) :],
    "empty file": lambda rng, data: b"",
    "one bit flipped": lambda rng, data: flip(rng, data, 1),
    "eight bits flipped": lambda rng, data: flip(rng, data, 8),
    "a byte overwritten": lambda rng, data: overwritten(rng, data, rng.bytes(1)),
    "bytes overwritten": lambda rng, data: overwritten(rng, data, rng.bytes(int(rng.integers(2, 30)))),
    "bytes inserted": lambda rng, data: inserted(rng, data, rng.bytes(int(rng.integers(1, 30)))),
    "a NUL written over": lambda rng, data: overwritten(rng, data, b"\0"),
    "a NUL inserted": lambda rng, data: inserted(rng, data, b"\0"),
    "a stretch lost": cut_slice,
    "a stretch twice": doubled_slice,
    "stretches swapped": swapped_slices,
    "a stretch of NULs": zeroed,
    "a stretch of blanks": blanked,
    "NULs at the end": lambda rng, data: data + bytes(int(rng.integers(1, 100))),
    "garbage at the end": lambda rng, data: data + rng.bytes(int(rng.integers(1, 100))),
    "garbage in front": lambda rng, data: rng.bytes(int(rng.integers(1, 100))) + data,
    "the file twice": lambda rng, data: data + data,
    "half of it reversed": lambda rng, data: data[: len(data) // 2] + data[len(data) // 2 :][::-1],
    "gzip": lambda rng, data: gzip.compress(data, mtime=0),
    "damaged gzip": lambda rng, data: flip(rng, gzip.compress(data, mtime=0), 3),
    "zlib": lambda rng, data: zlib.compress(data),
    "UTF-16": lambda rng, data: data.decode("latin-1").encode("utf-16"),
    "random bytes": lambda rng, data: rng.bytes(len(data)),
    **{f"another format: {name}": (lambda rng, data, other=other: other) for name, other in OTHERS.items()},
}
"""Of any file."""

TEXT: dict[str, Damage] = {
    "Windows code page": lambda rng, data: data.decode("utf-8").encode("cp1252"),
    "a byte that is not UTF-8": lambda rng, data: inserted(rng, data, bytes([int(rng.integers(128, 256))])),
    "UTF-16 without mark": lambda rng, data: data.decode("utf-8").encode("utf-16-le"),
    "UTF-32": lambda rng, data: data.decode("utf-8").encode("utf-32"),
    "encoded twice": lambda rng, data: data.decode("utf-8").encode("utf-8").decode("latin-1").encode("utf-8"),
    "a quote inserted": lambda rng, data: inserted(rng, data, b'"'),
    "two quotes inserted": lambda rng, data: inserted(rng, inserted(rng, data, b'"'), b'"'),
    "a comma inserted": lambda rng, data: inserted(rng, data, b","),
    "a newline inserted": lambda rng, data: inserted(rng, data, b"\n"),
    "a newline lost": lambda rng, data: data.replace(b"\n", b"", 1 + int(rng.integers(3))),
    "a carriage return inserted": lambda rng, data: inserted(rng, data, b"\r"),
    "a backslash inserted": lambda rng, data: inserted(rng, data, b"\\"),
    "a digit inserted": lambda rng, data: inserted(rng, data, b"7"),
    "a minus inserted": lambda rng, data: inserted(rng, data, b"-"),
    "an e inserted": lambda rng, data: inserted(rng, data, b"e"),
    "a blank inserted": lambda rng, data: inserted(rng, data, b" "),
    "a no-break space inserted": lambda rng, data: inserted(rng, data, "\u00a0".encode()),
    "control characters inserted": lambda rng, data: inserted(rng, data, b"\x1b[31m\x07"),
    "a full-width digit inserted": lambda rng, data: inserted(rng, data, "\uff17".encode()),
    "end-of-file mark of DOS": lambda rng, data: data + b"\x1a",
    "two byte-order marks": lambda rng, data: b"\xef\xbb\xbf\xef\xbb\xbf" + data,
}
"""Of text."""

HARMLESS: dict[str, Damage] = {
    "byte-order mark": lambda rng, data: b"\xef\xbb\xbf" + data,
    "newlines of Windows": lambda rng, data: data.replace(b"\n", b"\r\n"),
    "no newline at the end": lambda rng, data: data.rstrip(b"\n"),
    "newlines at the end": lambda rng, data: data + b"\n\n",
}
"""Of text, and no reason to refuse it."""
