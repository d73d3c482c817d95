"""Sizes of column chunks as the footer of a Parquet file says them.

pyarrow ends the whole process where it is asked for the description of a chunk that is damaged: its `column`
lets an exception of C++ through, which its readers turn into an error. So the few numbers are read here, from
Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

_T = TypeVar("_T")
_MAGIC = b"PAR1"
_TRUE, _FALSE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 8, 9, 10, 12
_WHOLE = (4, 5, 6)
_FIXED = {3: 1, 7: 8}
"""Bytes of a byte and of a float."""
# Numbers of the fields in the structures FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_ROW_GROUPS, _COLUMNS, _CHUNK, _VALUES, _UNCOMPRESSED = 4, 1, 3, 5, 6


def chunk_sizes(path: Path) -> list[list[tuple[int, int]]]:
    """Number of values, and bytes before compression, of every column in every row group."""
    with path.open("rb") as file:
        file.seek(-8, 2)
        tail = file.read()
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or length > file.tell() - 8:
            raise ValueError("it does not end in a footer of Parquet")
        file.seek(-8 - length, 2)
        return _Thrift(file.read(length)).row_groups()


class _Thrift:
    """Thrift's compact protocol, read from the front; what is not asked for is skipped."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def row_groups(self) -> list[list[tuple[int, int]]]:
        for field, kind in self.fields():
            if field == _ROW_GROUPS and kind == _LIST:
                return self.listed(self.row_group)
            self.skip(kind)
        raise ValueError("its footer has no row groups")

    def row_group(self) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for field, kind in self.fields():
            if field == _COLUMNS and kind == _LIST:
                found = self.listed(self.column)
            else:
                self.skip(kind)
        return found

    def column(self) -> tuple[int, int]:
        found = (-1, -1)
        for field, kind in self.fields():
            if field == _CHUNK and kind == _STRUCT:
                sizes = {name: self.number(kind) for name, kind in self.fields()}
                found = sizes.get(_VALUES, -1), sizes.get(_UNCOMPRESSED, -1)
            else:
                self.skip(kind)
        return found

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and type of the fields of a structure; the caller reads, or skips, what each holds."""
        last = 0
        while head := self.byte():
            step = head >> 4
            last = last + step if step else self.zigzag()
            yield last, head & 15

    def listed(self, read: Callable[[], _T]) -> list[_T]:
        kind, size = self.list_head()
        if kind != _STRUCT:
            raise ValueError("its footer is damaged")
        return [read() for _ in range(size)]

    def list_head(self) -> tuple[int, int]:
        head = self.byte()
        return head & 15, (head >> 4 if head >> 4 < 15 else self.varint())

    def number(self, kind: int) -> int:
        """A whole number; -1 for anything else, which is skipped."""
        if kind in _WHOLE:
            return self.zigzag()
        self.skip(kind)
        return -1

    def skip(self, kind: int) -> None:
        if kind in (_TRUE, _FALSE):
            return
        if kind in _WHOLE:
            self.varint()
        elif kind in _FIXED:
            self.at += _FIXED[kind]
        elif kind == _BINARY:
            length = self.varint()  # which moves on by itself
            self.at += length
        elif kind in (_LIST, _SET):
            self.skip_entries(*self.list_head())
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        else:
            raise ValueError("its footer is damaged")

    def skip_entries(self, kind: int, size: int) -> None:
        for _ in range(size):
            if kind in (_TRUE, _FALSE):
                self.at += 1
            else:
                self.skip(kind)

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            head = self.byte()
            value |= (head & 127) << shift
            shift += 7
            if head < 128:
                return value

    def zigzag(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)
