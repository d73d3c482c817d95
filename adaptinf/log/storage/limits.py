"""How large what a file says may become in memory: Parquet footers and compressed metadata.

Arrow's own objects for them end the process where some of their numbers are damaged. The footer is a
structure of Thrift's compact protocol; its fields have the numbers that Parquet's definition gives them.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from adaptinf.errors import ParameterError
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


def deflated(text: bytes) -> bytes:
    """Compressed text, as far as it may be inflated again, in the letters of base 64."""
    compressed = zlib.compress(text)
    kept = compressed if len(text) <= most_inflated(len(compressed)) else zlib.compress(text, level=0)
    return base64.b64encode(kept)


def inflated(encoded: bytes) -> bytes:
    """The text of `deflated`; ParameterError where it is cut, or larger than may be."""
    compressed = base64.b64decode(encoded, validate=True)
    most = most_inflated(len(compressed))
    inflater = zlib.decompressobj()
    text = inflater.decompress(compressed, most + 1)
    check_size("or more bytes of releases", len(text), most)
    if not inflater.eof or inflater.unused_data:
        raise ParameterError("file", ["has releases that are cut, or that something follows"])
    nested = text.count(b"[") + text.count(b"{")
    check_size("lists and objects in its releases", nested, most_nested(len(text)))
    return text


_MAGIC = b"PAR1"
_SCHEMA, _ROW_GROUPS = 2, 4
_TYPE, _TYPE_LENGTH, _NAME, _N_CHILDREN = 1, 2, 4, 5
_CHUNKS, _METADATA, _N_VALUES, _UNCOMPRESSED = 1, 3, 5, 6
_WIDTHS = (1, 4, 8, 12, 4, 8, 8)
"""Bytes of a value in memory: truth values, integers of 32, 64 and 96 bits, floats, doubles, texts."""
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_DEEPEST = 12


class Size(NamedTuple):
    """A column, and the bytes that it says that it has in memory or before it was compressed."""

    name: str
    size: int


def stated_sizes(path: Path) -> Iterator[Size]:
    """Sizes of the columns of each row group; ValueError where the footer is no footer."""
    fields = _Thrift(_footer(path)).structure(0)
    leaves = [element for element in fields[_SCHEMA] if not element.get(_N_CHILDREN)]
    check_size("columns", len(leaves), COLUMNS)
    check_size("column chunks", len(leaves) * len(fields[_ROW_GROUPS]), CHUNKS)
    for group in fields[_ROW_GROUPS]:
        for leaf, chunk in zip(leaves, group[_CHUNKS], strict=True):
            known, name = chunk[_METADATA], bytes(leaf[_NAME]).decode(errors="replace")
            width = _WIDTHS[leaf[_TYPE]] if leaf[_TYPE] < len(_WIDTHS) else leaf[_TYPE_LENGTH]
            yield Size(name, known[_N_VALUES] * width)
            yield Size(name, known[_UNCOMPRESSED])


def _footer(path: Path) -> bytes:
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(size - 8, 0))
        end = file.read(8)
        length = int.from_bytes(end[:4], "little")
        if end[4:] != _MAGIC or length > size - 12:
            raise ValueError("it does not end as a Parquet file does")
        file.seek(size - 8 - length)
        return file.read(length)


class _Thrift:
    """A reader of the compact protocol: structures as dicts by field number."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.values = 0

    def structure(self, depth: int) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        self.values += 1
        check_size("or more values in its footer", self.values, FOOTER_VALUES)
        if kind in _INTEGERS:
            return self._integer()
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind == _DOUBLE:
            return self._bytes(8)
        if depth > _DEEPEST or kind not in (_LIST, _SET, _STRUCT):
            raise ValueError(f"its footer has a value of kind {kind} at depth {depth}")
        if kind == _STRUCT:
            return self.structure(depth + 1)
        head = self._byte()
        length = self._varint() if head >> 4 == 15 else head >> 4
        return [self._value(head & 15, depth + 1) for _ in range(length)]

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _bytes(self, length: int) -> memoryview:
        if length > len(self.data) - self.at:
            raise ValueError("its footer is cut")
        self.at += length
        return memoryview(self.data)[self.at - length : self.at]

    def _varint(self) -> int:
        result = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            result |= (byte & 127) << shift
            if byte < 128:
                return result
        raise ValueError("its footer has a number of more than 64 bits")

    def _integer(self) -> int:
        folded = self._varint()
        return (folded >> 1) ^ -(folded & 1)
