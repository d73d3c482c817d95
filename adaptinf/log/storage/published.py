"""The public part of a log as one Parquet file: its releases as rows, all else in the schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from adaptinf.files import atomic_write
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log.storage.digest import content_digest
from adaptinf.log.storage.header import OTHERWISE, decode_table, encode_table
from adaptinf.log.storage.inflating import deflated, inflated
from adaptinf.log.storage.plain import decode, encode
from adaptinf.log.validation import RELEASE_COLUMNS
from adaptinf.parameters import refuse

KEY = b"adaptinf.public"
TABLES = b"adaptinf.public.tables"
VERSION = 1
_FIELDS = ("version", "statement", "guarantee", "facts", "parts", "digest")
_FACTS = ("design", "parameters", "traits", "arms", "contexts", "guarantee_source", "noise", "n_rounds")


@dataclass(frozen=True, slots=True)
class StoredPublic:
    """The public part of a log as it stands in a file; parts are names, whether covered, and reasons."""

    guarantee: PrivacyGuarantee
    facts: dict[str, Any]
    releases: pd.DataFrame
    rounds: pd.DataFrame | None
    parts: tuple[tuple[str, bool, str], ...]
    statement: str

    def told(self) -> dict[str, Any]:
        """Everything but the tables, as JSON holds it."""
        return {
            "version": VERSION,
            "statement": self.statement,
            "guarantee": encode(self.guarantee.to_dict()),
            "facts": encode(self.facts),
            "parts": [list(part) for part in self.parts],
        }

    def tables(self) -> dict[str, Any]:
        """The releases, and the rounds where there are any, as JSON holds them."""
        rounds = None if self.rounds is None else encode_table(self.rounds)
        return {"releases": encode_table(self.releases), "rounds": rounds}


def write_public(path: Path, public: StoredPublic) -> None:
    """Write one file, which `read_public` turns back into the same."""
    told, tables = public.told(), public.tables()
    told["digest"] = content_digest(told, tables, {})
    metadata = {KEY: json.dumps(told).encode(), TABLES: deflated(json.dumps(tables).encode())}
    whole = _rows(public.releases).replace_schema_metadata(metadata)
    atomic_write(path, lambda file: pq.write_table(whole, file))


def read_public(table: pa.Table, metadata: Mapping[bytes, bytes]) -> StoredPublic:
    """What `write_public` wrote; refused where anything in the file is not as it was then."""
    told = json.loads(metadata[KEY])
    version = told.get("version") if isinstance(told, dict) else None
    problem = ""
    if version != VERSION:
        problem = f"is a public part of version {version!r:.20}, this adaptinf reads {VERSION}"
    elif missing := [name for name in _FIELDS if name not in told]:
        problem = f"is a public part without {' and '.join(missing)}; {OTHERWISE}"
    elif TABLES not in metadata:
        problem = f"is a public part without {TABLES.decode()}; {OTHERWISE}"
    refuse("file", [problem] if problem else [])
    tables = json.loads(inflated(metadata[TABLES]))
    said = {name: value for name, value in told.items() if name != "digest"}
    damaged = f"is damaged: what it holds does not match its digest; {OTHERWISE}"
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
    """A table for other programs, with labels of several types as text."""
    return pa.table({str(name): pa.array(plain_column(values)) for name, values in frame.items()})


def plain_column(values: pd.Series[Any]) -> Any:
    """Values of one type, as text where they are of several."""
    plain = values.to_numpy()
    mixed = plain.dtype.kind == "O" and len(set(map(type, plain))) > 1
    return np.array([str(value) for value in plain], dtype=object) if mixed else plain
