"""A writer of SAS transport files (version 5), for tests: pandas reads them and writes none."""

from __future__ import annotations

import struct
from pathlib import Path

import pandas as pd

_DATE = "01JAN20:00:00:00"


def write_transport(path: Path, frame: pd.DataFrame, name: str = "ADSL") -> Path:
    """Write numbers as 8-byte IBM floats and everything else as text of the column's longest length."""
    texts = [not pd.api.types.is_numeric_dtype(frame[column]) for column in frame]
    lengths = [
        max([1, *(len(_text(value)) for value in frame[column])]) if text else 8
        for column, text in zip(frame, texts, strict=True)
    ]
    fields = b""
    position = 0
    for number, (column, text, length) in enumerate(zip(frame, texts, lengths, strict=True), 1):
        label = str(column).ljust(40).encode()
        head = (2 if text else 1, 0, length, number, str(column).ljust(8).encode(), label, b" " * 8)
        tail = (0, 0, 0, b"\0\0", b" " * 8, 0, 0, position, b"\0" * 52)
        fields += struct.pack(">hhhh8s40s8shhh2s8shhl52s", *head, *tail)
        position += length
    rows = b"".join(
        b"".join(
            _text(value).ljust(length) if text else _ibm(float(value))
            for value, text, length in zip(row, texts, lengths, strict=True)
        )
        for row in frame.itertuples(index=False)
    )
    zeros = "0" * 30
    parts = [
        _card(f"HEADER RECORD*******LIBRARY HEADER RECORD!!!!!!!{zeros}"),
        _card("SAS     SAS     SASLIB  9.4     X64_10PR" + " " * 24 + _DATE),
        _card(_DATE),
        _card("HEADER RECORD*******MEMBER  HEADER RECORD!!!!!!!000000000000000001600000000140"),
        _card(f"HEADER RECORD*******DSCRPTR HEADER RECORD!!!!!!!{zeros}"),
        _card(f"SAS     {name:<8}SASDATA 9.4     X64_10PR" + " " * 24 + _DATE),
        _card(_DATE),
        _card(f"HEADER RECORD*******NAMESTR HEADER RECORD!!!!!!!000000{frame.shape[1]:04d}" + "0" * 20),
        _padded(fields),
        _card(f"HEADER RECORD*******OBS     HEADER RECORD!!!!!!!{zeros}"),
        _padded(rows),
    ]
    path.write_bytes(b"".join(parts))
    return path


def _text(value: object) -> bytes:
    return b"" if value is None or value != value else str(value).encode()


def _card(text: str) -> bytes:
    return text.ljust(80).encode()


def _padded(data: bytes) -> bytes:
    return data + b" " * (-len(data) % 80)


def _ibm(value: float) -> bytes:
    """IBM double: a sign, an exponent of 16 and 56 bits of fraction."""
    if value == 0.0:
        return b"\0" * 8
    if value != value:
        return b"." + b"\0" * 7
    fraction, exponent = abs(value), 0
    while fraction >= 1.0:
        fraction, exponent = fraction / 16.0, exponent + 1
    while fraction < 1.0 / 16.0:
        fraction, exponent = fraction * 16.0, exponent - 1
    sign = 128 if value < 0 else 0
    return struct.pack(">Q", ((sign | (exponent + 64)) << 56) | int(fraction * 2**56))
