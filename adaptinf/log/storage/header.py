"""What a file says about its log: made when the log is written, checked when it is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.errors import AdaptinfError, ParameterError
from adaptinf.log.storage.restored import RestoredLog, restored
from adaptinf.log.storage.stored import StoredLog, decode, encode
from adaptinf.log.validation import RELEASE_COLUMNS
from adaptinf.parameters import refuse


def content_digest(header: Mapping[str, Any], releases: Any, columns: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over a header and releases as JSON, and over the names, types and values of the columns.

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
    # With its length, so that no two contents run together into the same bytes.
    digest.update(len(part).to_bytes(8))
    digest.update(part)


def _parts(values: NDArray[Any]) -> list[bytes]:
    if values.dtype.kind == "O":
        texts = [text.encode() for text in values.tolist()]
        return [np.array([len(text) for text in texts], dtype="<i8").tobytes(), b"".join(texts)]
    if values.dtype.kind == "f":
        # Every NaN is one value; text keeps no other bits of it.
        values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    return [np.ascontiguousarray(values).tobytes()]


VERSION = 2
_FIELDS = ("version", "n_rounds", "dtypes", "log", "not_covered", "digest")
_SIZES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (2, 4, 8), "M": (8,), "O": (8,)}
OTHERWISE = "restore the file from a copy, or read its columns with pandas and name them to AdaptiveLog"


def header_of(log: StoredLog, releases: Any) -> dict[str, Any]:
    """Plain values that a file keeps beside the columns, with a digest of everything; checked first."""
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
    """Version of the format that a header names; None where it is no header of a log."""
    return stored.get("version") if isinstance(stored, Mapping) and "dtypes" in stored else None


def check_version(stored: Any) -> None:
    """Refuse a header that this version did not write, by name."""
    version = version_of(stored)
    problem = ""
    if version == 1:
        problem = (
            "is a log of format version 1, which has no digest that would tell damage; write it anew, or "
            'read it like any other file, by naming its columns: read_log(path, action="action", '
            'reward="reward", ...)'
        )
    elif version is None:
        problem = f"has metadata that are not of adaptinf, or damaged; {OTHERWISE}"
    elif type(version) is not int or version != VERSION:
        problem = (
            f"has format version {version!r:.20}, this adaptinf reads {VERSION}: install the version that "
            "wrote it, or restore the file if it is damaged"
        )
    elif missing := [name for name in _FIELDS if name not in stored]:
        problem = f"has metadata without {' and '.join(missing)}; {OTHERWISE}"
    refuse("file", [problem] if problem else [])


def check_table(stored: Mapping[str, Any], n_rounds: int, names: list[str]) -> dict[str, str]:
    """Types of the columns as the header has them, which must be those that the file has."""
    problems = []
    dtypes = stored["dtypes"]
    if stored["n_rounds"] != n_rounds:
        problems.append(f"has {n_rounds} rows, its metadata says {stored['n_rounds']!r:.20}")
    if list(dtypes) != names:
        problems.append(f"has the columns {names!r:.200}, its metadata says {list(dtypes)!r:.200}")
    problems += [
        f"has column {name!r}, of which its metadata says the type {dtype!r:.40}"
        for name, dtype in dtypes.items()
        if not _is_known(dtype)
    ]
    refuse("file", problems)
    return dict(dtypes)


def log_from(stored: Mapping[str, Any], releases: Any, columns: dict[str, NDArray[Any]]) -> RestoredLog:
    """A log from the parts of a file, after the digest and every check that a user's frame goes through."""
    said = {name: value for name, value in stored.items() if name != "digest"}
    if content_digest(said, releases, columns) != stored["digest"]:
        refuse("file", [f"is damaged: what it holds does not match its digest; {OTHERWISE}"])
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
        raise ParameterError("file", [f"holds no valid log: {error}"]) from error


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
    """A table from what `encode_table` returned."""
    return pd.DataFrame(
        {
            name: pd.Series([decode(item) for item in column["values"]], dtype=column["dtype"])
            for name, column in stored.items()
        }
    )


def _is_known(dtype: Any) -> bool:
    """Whether a column may have a type of this text; other texts could ask for any amount of memory."""
    if not isinstance(dtype, str) or len(dtype) > 20:
        return False
    known = np.dtype(dtype)
    if known.kind == "U":
        return known.itemsize <= 4 * 2**16
    return known.itemsize in _SIZES.get(known.kind, ()) and known.str == dtype


def _check_text(log: StoredLog) -> None:
    wrong = [
        f"column {name!r} holds values that are not strings; a file needs strings or numbers of one type"
        for name, values in log.columns.items()
        if values.dtype.kind == "O" and set(map(type, values)) - {str}
    ]
    refuse("AdaptiveLog", wrong)
    texts = {name: values.tolist() for name, values in log.columns.items() if values.dtype.kind in "OU"}
    for name, values in {**texts, "names of the columns": list(log.columns)}.items():
        try:
            "".join(values).encode()
        except UnicodeEncodeError as error:
            refuse("AdaptiveLog", [f"{name!r} holds text that UTF-8 cannot write: {error}"])
