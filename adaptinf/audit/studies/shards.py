"""Files of a study: Parquet written at once or not at all, with digests that tell damage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from adaptinf.audit.simulation.engine import Chunk, Kept
from adaptinf.audit.simulation.measures import PARTS, BlockSums, Gap, Key
from adaptinf.errors import AdaptinfError
from adaptinf.files import atomic_write

_KEY = b"adaptinf.study"
_KEY_FIELDS = [
    pa.field("block", pa.int64()),
    pa.field("analysis", pa.string()),
    pa.field("term", pa.string()),
    pa.field("truth", pa.float64()),
    pa.field("null", pa.float64()),
    pa.field("gap", pa.string()),
    pa.field("gaps", pa.int64()),
    pa.field("reason", pa.string()),
]
_BLOCK_SCHEMA = pa.schema([*_KEY_FIELDS, *(pa.field(name, pa.float64()) for name in PARTS)])


class Damaged(AdaptinfError):
    """A file of a study is missing, cut short, altered, or of another study."""


def write_parquet(path: Path, table: pa.Table, metadata: Mapping[str, Any]) -> None:
    """Write a table with metadata and a digest of both; the file appears complete or not at all."""
    stored = {**metadata, "digest": _digest(table, metadata)}
    whole = table.replace_schema_metadata({_KEY: json.dumps(stored).encode()})
    atomic_write(path, lambda file: pq.write_table(whole, file, compression="zstd", write_page_checksum=True))


def read_parquet(path: Path, fingerprint: str) -> tuple[pa.Table, dict[str, Any]]:
    """Read a table back, with its metadata."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise Damaged(f"{path} is missing") from error
    try:
        table = pq.read_table(pa.BufferReader(data), page_checksum_verification=True)
        metadata = json.loads(table.schema.metadata[_KEY])
        table = table.replace_schema_metadata(None)
        whole = metadata.pop("digest") == _digest(table, metadata)
    except Exception as error:
        # Damaged bytes can make the reader raise nearly anything.
        raise Damaged(f"{path} cannot be read: {error!r:.200}") from error
    if not whole:
        raise Damaged(f"{path} is damaged: its digest does not match")
    if metadata["fingerprint"] != fingerprint:
        raise Damaged(f"{path} belongs to another study")
    return table, metadata


def write_json(path: Path, value: Any) -> None:
    """Write plain values as JSON; the file appears complete or not at all."""
    text = json.dumps(value, indent=1, allow_nan=False) + "\n"
    atomic_write(path, lambda file: file.write(text.encode()))


def _digest(table: pa.Table, metadata: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, column in zip(table.column_names, table.columns, strict=True):
        digest.update(f"{name} {column.type} {len(column)} {column.null_count}".encode())
        if pa.types.is_floating(column.type) and column.null_count == 0:
            digest.update(np.ascontiguousarray(column.to_numpy()).tobytes())
        else:
            digest.update(json.dumps(column.to_pylist()).encode())
    return digest.hexdigest()


def block_table(chunk: Chunk) -> pa.Table:
    """Sums of a chunk: of each block its regret, then a row per term, then a row per gap and its reason."""
    rows: list[tuple[Any, ...]] = []
    for block, sums in enumerate(chunk.blocks):
        rows.append((block, *[None] * 7, *sums.regret.tolist()))
        for key, parts in sums.parts.items():
            rows.append((block, *key, None, None, None, *parts.tolist()))
        for (kind, analysis, term), reasons in sums.gaps.items():
            for reason, runs in reasons.items():
                rows.append((block, analysis, term, None, None, kind, runs, reason, *[0.0] * len(PARTS)))
    columns = list(zip(*rows, strict=True)) or [()] * len(_BLOCK_SCHEMA)
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, _BLOCK_SCHEMA, strict=True)]
    return pa.table(arrays, schema=_BLOCK_SCHEMA)


def sums_of(table: pa.Table) -> list[BlockSums]:
    """The blocks of a chunk from its table."""
    data = table.to_pydict()
    parts = np.column_stack([np.array(data[name], dtype=np.float64) for name in PARTS])
    blocks = [BlockSums() for _ in range(1 + max(data["block"], default=-1))]
    for row, block in enumerate(data["block"]):
        analysis, term = data["analysis"][row], data["term"][row]
        if analysis is None:
            blocks[block].regret = parts[row]
        elif data["gap"][row] is None:
            blocks[block].parts[Key(analysis, term, data["truth"][row], data["null"][row])] = parts[row]
        else:
            gap = Gap(data["gap"][row], analysis, term)
            blocks[block].add_gap(gap, data["reason"][row], data["gaps"][row])
    return blocks


def kept_table(kept: Sequence[Kept]) -> pa.Table:
    """Numbers of single runs, one row per run, analysis and term."""
    labels: dict[str, list[Any]] = {"analysis": [], "term": []}
    dictionaries: dict[str, dict[str, int]] = {"analysis": {}, "term": {}}
    runs: list[Any] = [np.zeros(0, np.int64)]
    values: list[Any] = [np.zeros((0, 5))]
    for part in kept:
        n_terms = len(part.keys)
        for field, known in dictionaries.items():
            codes = [known.setdefault(getattr(key, field), len(known)) for key in part.keys]
            labels[field].append(np.tile(np.array(codes, dtype=np.int32), part.runs.size))
        runs.append(np.repeat(part.runs, n_terms))
        values.append(part.values.reshape(-1, 5))
    numbers = np.concatenate(values)
    columns: dict[str, Any] = {"run": np.concatenate(runs)}
    for field, codes_of in labels.items():
        column_codes = np.concatenate([np.zeros(0, np.int32), *codes_of])
        names = pa.array(list(dictionaries[field]), pa.string())
        columns[field] = pa.DictionaryArray.from_arrays(pa.array(column_codes), names)
    for column, name in enumerate(("estimate", "std_error", "low", "high", "pvalue")):
        columns[name] = np.ascontiguousarray(numbers[:, column])
    return pa.table(columns)
