"""The header of a log's file: created on writing, checked on reading, and limited in size.

Arrow's own objects for Parquet footers and compressed metadata terminate the process if some of their numbers
are damaged. The footer is a structure of Thrift's compact protocol; its fields have the numbers defined by
Parquet.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.errors import AdaptinfError, ParameterError
from adaptinf.log.storage.stored import RestoredLog, StoredLog, decode, encode, restored
from adaptinf.log.validation import RELEASE_COLUMNS
from adaptinf.parameters import refuse

COLUMNS = 100_000
HEADER_CHARACTERS = 2**22
"""Largest number of characters in the first row of a CSV."""
CHUNKS = 200_000
"""Largest number of columns times row groups in a Parquet file."""
FOOTER_VALUES = 8_000_000
_MEBIBYTE = 2**20
_DECODED = (1024 * _MEBIBYTE, 100)
_INFLATED = (16 * _MEBIBYTE, 10)


def most_decoded(file_bytes: int) -> int:
    """Number of bytes in memory allowed for the columns of a Parquet file of this size."""
    return max(_DECODED[0], _DECODED[1] * file_bytes)


def most_inflated(compressed_bytes: int) -> int:
    """Number of bytes of JSON allowed in a compressed table of releases of this size."""
    return max(_INFLATED[0], _INFLATED[1] * compressed_bytes)


def most_nested(text_bytes: int) -> int:
    """Number of lists and objects allowed in JSON of this size; an empty one takes twenty times its text."""
    return 1_000_000 + text_bytes // 10


def check_size(what: str, size: int, most: int) -> None:
    """Refuse a size beyond its limit, or a negative size, which occurs only in damaged files."""
    if not 0 <= size <= most:
        refuse("file", [f"contains {size:,} {what}; from 0 to {most:,} are allowed"])


def deflated(text: bytes) -> bytes:
    """Text in base 64, compressed unless its size would exceed the limit on decompression."""
    compressed = zlib.compress(text)
    kept = compressed if len(text) <= most_inflated(len(compressed)) else zlib.compress(text, level=0)
    return base64.b64encode(kept)


def inflated(encoded: bytes) -> bytes:
    """The text in `deflated`; ParameterError if it is truncated or too large."""
    compressed = base64.b64decode(encoded, validate=True)
    most = most_inflated(len(compressed))
    inflater = zlib.decompressobj()
    text = inflater.decompress(compressed, most + 1)
    check_size("or more bytes of releases", len(text), most)
    if not inflater.eof or inflater.unused_data:
        raise ParameterError("file", ["has releases that are truncated or followed by other data"])
    nested = text.count(b"[") + text.count(b"{")
    check_size("lists and objects in its releases", nested, most_nested(len(text)))
    return text


_MAGIC = b"PAR1"
_SCHEMA, _ROW_GROUPS = 2, 4
_TYPE, _TYPE_LENGTH, _NAME, _N_CHILDREN = 1, 2, 4, 5
_CHUNKS, _METADATA, _N_VALUES, _UNCOMPRESSED = 1, 3, 5, 6
_WIDTHS = (1, 4, 8, 12, 4, 8, 8)
"""Bytes per value in memory: booleans, integers of 32, 64 and 96 bits, floats, doubles, texts."""
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_DEEPEST = 12


class Size(NamedTuple):
    """A column, with its stated size in memory or before compression, in bytes."""

    name: str
    size: int


def stated_sizes(path: Path) -> Iterator[Size]:
    """Sizes of the columns in each row group; ValueError if the footer is not valid."""
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
            raise ValueError("it does not end like a Parquet file")
        file.seek(size - 8 - length)
        return file.read(length)


class _Thrift:
    """A reader for the compact protocol: structures as dicts keyed by field number."""

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
            raise ValueError("its footer is truncated")
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


def content_digest(header: Mapping[str, Any], releases: Any, columns: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of a header and releases as JSON, and of the columns' names, types and values.

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
    # The length precedes the content, so that different parts cannot run together into the same bytes.
    digest.update(len(part).to_bytes(8))
    digest.update(part)


def _parts(values: NDArray[Any]) -> list[bytes]:
    if values.dtype.kind == "O":
        texts = [text.encode() for text in values.tolist()]
        return [np.array([len(text) for text in texts], dtype="<i8").tobytes(), b"".join(texts)]
    if values.dtype.kind == "f":
        # All NaN count as one value, because text does not preserve their bits.
        values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    return [np.ascontiguousarray(values).tobytes()]


VERSION = 2
_FIELDS = ("version", "n_rounds", "dtypes", "log", "not_covered", "digest")
SIZES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "M": (8,), "O": (8,)}
OTHERWISE = (
    "restore the file from a copy, or read its columns with pandas and pass their names to AdaptiveLog"
)


def header_of(log: StoredLog, releases: Any) -> dict[str, Any]:
    """Plain values that a file stores with the columns, after checks, with a digest of everything."""
    _check_text(log)
    restored(log)
    header = {
        "version": VERSION,
        "n_rounds": len(next(iter(log.columns.values()))),
        "dtypes": {name: values.dtype.str for name, values in log.columns.items()},
        "log": encode(log.metadata),
        "not_covered": dict(log.not_covered),
        "report": log.report,
    }
    return header | {"digest": content_digest(header, releases, log.columns)}


def version_of(stored: Any) -> Any:
    """Version of the format named in a header; None if it is not the header of a log."""
    return stored.get("version") if isinstance(stored, Mapping) and "dtypes" in stored else None


def check_version(stored: Any) -> None:
    """Refuse a header that this version did not write, and report its version."""
    version = version_of(stored)
    problem = ""
    if version == 1:
        problem = (
            "is a log of format version 1, which has no digest to reveal damage; write it again, or "
            'read it like any other file by naming its columns: read_log(path, action="action", '
            'reward="reward", ...)'
        )
    elif version is None:
        problem = f"has metadata that are damaged or were not written by adaptinf; {OTHERWISE}"
    elif type(version) is not int or version != VERSION:
        problem = (
            f"has format version {version!r:.20}, but this version of adaptinf reads {VERSION}: install the "
            f"version "
            "that wrote it, or restore the file if it is damaged"
        )
    elif missing := [name for name in _FIELDS if name not in stored]:
        problem = f"has metadata without {' and '.join(missing)}; {OTHERWISE}"
    refuse("file", [problem] if problem else [])


def check_table(stored: Mapping[str, Any], n_rounds: int, names: list[str]) -> dict[str, str]:
    """Types of the columns in the header, which must match those in the file."""
    problems = []
    dtypes = stored["dtypes"]
    if stored["n_rounds"] != n_rounds:
        problems.append(f"has {n_rounds} rows, but its metadata state {stored['n_rounds']!r:.20}")
    if list(dtypes) != names:
        problems.append(f"has the columns {names!r:.200}, but its metadata state {list(dtypes)!r:.200}")
    problems += [
        f"has column {name!r}, but its metadata state the unknown type {dtype!r:.40} for it"
        for name, dtype in dtypes.items()
        if not _is_known(dtype)
    ]
    refuse("file", problems)
    return dict(dtypes)


def log_from(stored: Mapping[str, Any], releases: Any, columns: dict[str, NDArray[Any]]) -> RestoredLog:
    """A log from the parts of a file, after the digest and all checks of a user's frame."""
    said = {name: value for name, value in stored.items() if name != "digest"}
    if content_digest(said, releases, columns) != stored["digest"]:
        refuse("file", [f"is damaged: its content does not match its digest; {OTHERWISE}"])
    try:
        return restored(
            StoredLog(
                columns,
                decode(stored["log"]),
                decode_table(releases)[list(RELEASE_COLUMNS)],
                report=stored.get("report"),
            )
        )
    except AdaptinfError as error:
        raise ParameterError("file", [f"contains no valid log: {error}"]) from error


def encode_table(table: pd.DataFrame) -> dict[str, Any]:
    """A table as plain values."""
    return {
        str(name): {
            "dtype": str(series.dtype),
            "values": [None if item is pd.NA else encode(item) for item in series.tolist()],
        }
        for name, series in table.items()
    }


def decode_table(stored: Mapping[str, Any]) -> pd.DataFrame:
    """The inverse of `encode_table`."""
    return pd.DataFrame(
        {
            name: pd.Series([decode(item) for item in column["values"]], dtype=column["dtype"])
            for name, column in stored.items()
        }
    )


def _is_known(dtype: Any) -> bool:
    """Whether a column may have this type; other texts could request any amount of memory."""
    if not isinstance(dtype, str) or len(dtype) > 20:
        return False
    known = np.dtype(dtype)
    if known.kind == "U":
        return known.itemsize <= 4 * 2**16
    return known.itemsize in SIZES.get(known.kind, ()) and known.str == dtype


def _check_text(log: StoredLog) -> None:
    wrong = [
        f"column {name!r} contains values that are not strings; a file requires strings or numbers of one "
        "type"
        for name, values in log.columns.items()
        if values.dtype.kind == "O" and set(map(type, values)) - {str}
    ]
    refuse("AdaptiveLog", wrong)
    texts = {name: values.tolist() for name, values in log.columns.items() if values.dtype.kind in "OU"}
    for name, values in {**texts, "names of the columns": list(log.columns)}.items():
        try:
            "".join(values).encode()
        except UnicodeEncodeError as error:
            refuse("AdaptiveLog", [f"{name!r} contains text that UTF-8 cannot encode: {error}"])
