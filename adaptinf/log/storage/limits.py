"""How large what a file says may become in memory: a small file must not fill the machine."""

from __future__ import annotations

from adaptinf.parameters import refuse

COLUMNS = 100_000
HEADER_CHARACTERS = 2**22
"""Of a CSV's first row."""
CHUNKS = 200_000
"""Columns times row groups of a Parquet file."""
FOOTER_VALUES = 8_000_000
_MEBIBYTE = 2**20
_DECODED = (1024 * _MEBIBYTE, 100)
_INFLATED = (16 * _MEBIBYTE, 10)


def most_decoded(file_bytes: int) -> int:
    """Bytes that the columns of a Parquet file of this size may have in memory."""
    return max(_DECODED[0], _DECODED[1] * file_bytes)


def most_inflated(compressed_bytes: int) -> int:
    """Bytes of JSON that a compressed table of releases of this size may hold."""
    return max(_INFLATED[0], _INFLATED[1] * compressed_bytes)


def most_nested(text_bytes: int) -> int:
    """Lists and objects that JSON of this size may hold: an empty one takes twenty times its text."""
    return 1_000_000 + text_bytes // 10


def check_size(what: str, size: int, most: int) -> None:
    """Refuse a size beyond its limit, and one below zero, which only a damaged file has."""
    if not 0 <= size <= most:
        refuse("file", [f"holds {size:,} {what}; from 0 to {most:,} are read"])
