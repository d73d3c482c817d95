"""Parquet: a log's metadata in the schema of its file, and tables from other programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adaptinf.errors import ParameterError
from adaptinf.files import atomic_write
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log.storage.header import (
    CHUNKS,
    OTHERWISE,
    check_size,
    check_table,
    check_version,
    content_digest,
    decode_table,
    deflated,
    encode_table,
    header_of,
    inflated,
    log_from,
    most_decoded,
    stated_sizes,
    version_of,
)
from adaptinf.log.storage.stored import RestoredLog, StoredLog, decode, encode
from adaptinf.log.validation import RELEASE_COLUMNS
from adaptinf.parameters import refuse

KEY = b"adaptinf.public"
TABLES = b"adaptinf.public.tables"
VERSION = 1
_FIELDS = ("version", "statement", "guarantee", "facts", "parts", "digest")
_FACTS = ("design", "parameters", "traits", "arms", "contexts", "guarantee_source", "noise", "n_rounds")


@dataclass(frozen=True, slots=True)
class StoredPublic:
    """Public part of a log as stored in a file; each part is a name, whether it is covered, and a reason."""

    guarantee: PrivacyGuarantee
    facts: dict[str, Any]
    releases: pd.DataFrame
    rounds: pd.DataFrame | None
    parts: tuple[tuple[str, bool, str], ...]
    statement: str

    def told(self) -> dict[str, Any]:
        """Everything except the tables, as stored in JSON."""
        return {
            "version": VERSION,
            "statement": self.statement,
            "guarantee": encode(self.guarantee.to_dict()),
            "facts": encode(self.facts),
            "parts": [list(part) for part in self.parts],
        }

    def tables(self) -> dict[str, Any]:
        """The releases, and the rounds if there are any, as stored in JSON."""
        rounds = None if self.rounds is None else encode_table(self.rounds)
        return {"releases": encode_table(self.releases), "rounds": rounds}


def write_public(path: Path, public: StoredPublic) -> None:
    """Write one file, from which `read_public` restores the public part."""
    told, tables = public.told(), public.tables()
    told["digest"] = content_digest(told, tables, {})
    metadata = {KEY: json.dumps(told).encode(), TABLES: deflated(json.dumps(tables).encode())}
    whole = _rows(public.releases).replace_schema_metadata(metadata)
    atomic_write(path, lambda file: pq.write_table(whole, file))


def read_public(table: pa.Table, metadata: Mapping[bytes, bytes]) -> StoredPublic:
    """The inverse of `write_public`; refused if anything in the file has changed."""
    told = json.loads(metadata[KEY])
    version = told.get("version") if isinstance(told, dict) else None
    problem = ""
    if version != VERSION:
        problem = f"is a public part of version {version!r:.20}, but this version of adaptinf reads {VERSION}"
    elif missing := [name for name in _FIELDS if name not in told]:
        problem = f"is a public part without {' and '.join(missing)}; {OTHERWISE}"
    elif TABLES not in metadata:
        problem = f"is a public part without {TABLES.decode()}; {OTHERWISE}"
    refuse("file", [problem] if problem else [])
    tables = json.loads(inflated(metadata[TABLES]))
    said = {name: value for name, value in told.items() if name != "digest"}
    damaged = f"is damaged: its content does not match its digest; {OTHERWISE}"
    refuse("file", [damaged] if content_digest(said, tables, {}) != told["digest"] else [])
    releases = decode_table(tables["releases"])[list(RELEASE_COLUMNS)]
    refuse("file", [damaged] if not _rows(releases).equals(table.replace_schema_metadata(None)) else [])
    rounds = None if tables["rounds"] is None else decode_table(tables["rounds"])
    facts = decode(told["facts"])
    lacking = [name for name in _FACTS if name not in facts]
    refuse("file", [f"is a public part without {', '.join(lacking)}; {OTHERWISE}"] if lacking else [])
    parts = tuple((str(name), bool(covered), str(reason)) for name, covered, reason in told["parts"])
    guarantee = PrivacyGuarantee.from_dict(decode(told["guarantee"]))
    return StoredPublic(guarantee, facts, releases, rounds, parts, str(told["statement"]))


def _rows(frame: pd.DataFrame) -> pa.Table:
    """A table for other programs, with labels of mixed types as text."""
    return pa.table({str(name): pa.array(plain_column(values)) for name, values in frame.items()})


def plain_column(values: pd.Series[Any]) -> Any:
    """Values of a single type, converted to text if types are mixed."""
    plain = values.to_numpy()
    mixed = plain.dtype.kind == "O" and len(set(map(type, plain))) > 1
    return np.array([str(value) for value in plain], dtype=object) if mixed else plain


_KEY = b"adaptinf"
_RELEASES_KEY = b"adaptinf.releases"


def write_parquet(path: Path, log: StoredLog, owner_only: bool = False) -> None:
    """Write a log with its metadata in the schema of the file."""
    releases = encode_table(log.releases)
    header = header_of(log, releases)
    try:
        table = pa.table({name: pa.array(values) for name, values in log.columns.items()})
    except pa.ArrowException as error:
        raise ParameterError("AdaptiveLog.to_parquet", [f"Parquet cannot store a column: {error}"]) from error
    metadata = {_KEY: _json(header), _RELEASES_KEY: deflated(_json(releases))}
    table = table.replace_schema_metadata(metadata)
    atomic_write(path, lambda file: pq.write_table(table, file), owner_only)


def read_parquet(path: Path, named: bool) -> RestoredLog | StoredPublic | pd.DataFrame:
    """A log written by adaptinf, the public part of one, or the frame in any other file."""
    # If the user has named the columns, a log of a version without a digest is treated like any other file.
    table = read_columns(path)
    metadata = table.schema.metadata or {}
    if KEY in metadata:
        return read_public(table, metadata)
    stored: Any = json.loads(metadata[_KEY]) if _KEY in metadata else None
    if _KEY not in metadata or (named and version_of(stored) == 1):
        frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
        return frame
    check_version(stored)
    dtypes = check_table(stored, table.num_rows, table.column_names)
    releases = json.loads(inflated(metadata[_RELEASES_KEY]))
    return log_from(stored, releases, _columns(table, dtypes))


def read_columns(path: Path) -> pa.Table:
    """All columns, once their sizes are known to be within limits."""
    size = path.stat().st_size
    most, total = most_decoded(size), 0
    for stated in stated_sizes(path):
        check_size(f"bytes in column {stated.name!r:.80}", stated.size, most)
        total += stated.size
    check_size("bytes in all columns", total, 2 * most)
    # These limits bound the memory for a damaged footer: no text is longer than the file, and no list has
    # more entries than a file may have chunks.
    options = {"thrift_string_size_limit": size + 1, "thrift_container_size_limit": 2 * CHUNKS}
    with pq.ParquetFile(path, **options) as file:
        schema, metadata = file.schema_arrow, file.metadata
        columns = [file.schema.column(index) for index in range(len(file.schema))]
    texts = [each.path for each in columns if each.path == each.name and each.physical_type == "BYTE_ARRAY"]
    # Text is read as codes first, because a long text that a million rows share is then stored only once.
    with pq.ParquetFile(path, metadata=metadata, read_dictionary=texts, **options) as file:
        table = file.read()
    check_size("bytes of text", _text_bytes(table), most)
    # Invalid UTF-8 would otherwise cause an error only when the text is first used.
    table.validate(full=True)
    for position, field in enumerate(schema):
        if table.schema.field(position).type != field.type:
            table = table.set_column(position, field, _decoded(table.column(position), field.type))
    return table.replace_schema_metadata(schema.metadata)


def _columns(table: pa.Table, dtypes: dict[str, str]) -> dict[str, NDArray[Any]]:
    """Columns in the types stated in the header, which must be those in which they were written."""
    problems = []
    for name, dtype in dtypes.items():
        column = table.column(name)
        kind = np.dtype(dtype).kind
        written = pa.string() if kind in "OU" else pa.array(np.empty(0, dtype)).type
        if column.type != written:
            problems.append(f"has column {name!r} as {column.type}, but its metadata state {dtype}")
        elif column.null_count and kind != "M":
            # Only missing outcomes lack a time, so times may be missing (NaT).
            row = pc.index(column.is_null(), True).as_py()
            problems.append(f"has no value in column {name!r}, first in row {row}")
    refuse("file", problems)
    return {name: np.array(table.column(name).to_numpy(), dtype=dtype) for name, dtype in dtypes.items()}


def _text_bytes(table: pa.Table) -> int:
    """Size in bytes of columns of codes once every row contains its own text."""
    total = 0
    for column in table.columns:
        if pa.types.is_dictionary(column.type):
            for chunk in column.chunks:
                lengths = np.asarray(pc.fill_null(pc.binary_length(chunk.dictionary), 0), dtype=np.int64)
                rows = np.bincount(np.asarray(chunk.indices.drop_null()), minlength=len(lengths))
                total += int(lengths @ rows)
    return total


def _decoded(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return column.cast(column.type.value_type).cast(kind)


def _json(value: object) -> bytes:
    return json.dumps(value, allow_nan=False).encode()
