"""Logs as files, and the plain values that a file holds."""

from __future__ import annotations

from adaptinf.log.storage.files import read_file, write_csv, write_parquet
from adaptinf.log.storage.plain import decode, encode
from adaptinf.log.storage.stored import (
    PLAIN_FIELDS,
    StoredLog,
    restored_arrays,
    same_values,
    storable,
)
from adaptinf.log.storage.view import LogColumns

__all__ = [
    "PLAIN_FIELDS",
    "LogColumns",
    "StoredLog",
    "decode",
    "encode",
    "read_file",
    "restored_arrays",
    "same_values",
    "storable",
    "write_csv",
    "write_parquet",
]
