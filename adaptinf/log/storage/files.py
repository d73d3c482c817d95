"""Files: Parquet with metadata in its schema, or CSV with a JSON sidecar."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adaptinf.errors import ParameterError
from adaptinf.log.storage.plain import decode, encode
from adaptinf.log.storage.stored import StoredLog
from adaptinf.parameters import refuse

_VERSION = 1
_KEY = b"adaptinf"
_RELEASES_KEY = b"adaptinf.releases"
_NOT_COVERED_KEY = b"adaptinf.not_covered"
_PARQUET_SUFFIXES = (".parquet", ".pq")
_CSV_SUFFIXES = (".csv",)
_FOOTER_LIMIT = 2**31 - 1


def _encode_releases(releases: pd.DataFrame) -> dict[str, Any]:
    return {
        str(name): {
            "dtype": str(series.dtype),
            "values": [None if item is pd.NA else encode(item) for item in series.tolist()],
        }
        for name, series in releases.items()
    }


def _decode_releases(stored: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            name: pd.Series([decode(item) for item in column["values"]], dtype=column["dtype"])
            for name, column in stored.items()
        }
    )


def write_parquet(path: Path, log: StoredLog) -> None:
    """Write a log with its metadata in the schema of the file."""
    _check_suffix(path, _PARQUET_SUFFIXES)
    _check_objects(log)
    table = pa.table({name: pa.array(values) for name, values in log.columns.items()})
    releases = zlib.compress(_to_json(_encode_releases(log.releases)))
    metadata = {_KEY: _to_json(_header(log)), _RELEASES_KEY: base64.b64encode(releases)}
    if log.not_covered:
        metadata[_NOT_COVERED_KEY] = _to_json(log.not_covered)
    pq.write_table(table.replace_schema_metadata(metadata), path)


def write_csv(path: Path, log: StoredLog) -> None:
    """Write a log as CSV, and its metadata beside it as ``<path>.json``."""
    _check_suffix(path, _CSV_SUFFIXES)
    _check_objects(log)
    text = pd.DataFrame({name: _as_text(values) for name, values in log.columns.items()})
    text.to_csv(
        path, index=False, na_rep="nan", lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC, encoding="utf-8"
    )
    header = _header(log) | {"sha256": _sha256(path), "releases": _encode_releases(log.releases)}
    if log.not_covered:
        header["not_covered"] = dict(log.not_covered)
    _sidecar(path).write_bytes(_to_json(header, indent=1))


def read_file(path: Path) -> StoredLog | pd.DataFrame:
    """Log that adaptinf wrote, or the bare frame of any other file."""
    if not path.exists():
        raise FileNotFoundError(f"read_log: there is no file {path}")
    _check_suffix(path, (*_PARQUET_SUFFIXES, *_CSV_SUFFIXES))
    if path.is_dir():
        raise ParameterError("read_log", [f"{path} is a directory; give one file"])
    try:
        if path.suffix.lower() in _PARQUET_SUFFIXES:
            return _read_parquet(path)
        return _read_own_csv(path) if _sidecar(path).exists() else _read_foreign_csv(path)
    except (pa.ArrowException, pd.errors.ParserError, pd.errors.ParserWarning, csv.Error) as error:
        raise _unreadable(path, error) from error
    except (
        pd.errors.EmptyDataError,
        UnicodeDecodeError,
        json.JSONDecodeError,
        KeyError,
        zlib.error,
    ) as error:
        raise _unreadable(path, error) from error


def _read_parquet(path: Path) -> StoredLog | pd.DataFrame:
    table = pq.read_table(
        path, thrift_string_size_limit=_FOOTER_LIMIT, thrift_container_size_limit=_FOOTER_LIMIT
    )
    metadata = table.schema.metadata or {}
    if _KEY not in metadata:
        frame: pd.DataFrame = table.to_pandas(ignore_metadata=True)
        return frame
    header = _checked_header(json.loads(metadata[_KEY]), table.num_rows, table.column_names, path)
    releases = json.loads(zlib.decompress(base64.b64decode(metadata[_RELEASES_KEY])))
    columns = {
        name: np.array(table.column(name).to_numpy(), dtype=dtype) for name, dtype in header["dtypes"].items()
    }
    return StoredLog(columns, header["log"], _decode_releases(releases))


def _read_own_csv(path: Path) -> StoredLog:
    stored = json.loads(_sidecar(path).read_bytes())
    if _sha256(path) != stored["sha256"]:
        raise ParameterError(
            "read_log",
            [
                f"{path} was changed after its sidecar {_sidecar(path).name} was written; restore it, or "
                "delete the sidecar and name the columns yourself (action=, reward=, ...)"
            ],
        )
    frame = pd.read_csv(path, dtype=str, na_filter=False, encoding="utf-8")
    header = _checked_header(stored, len(frame), list(frame.columns), path)
    columns = {name: _from_text(frame[name], dtype) for name, dtype in header["dtypes"].items()}
    return StoredLog(columns, header["log"], _decode_releases(stored["releases"]))


def _read_foreign_csv(path: Path) -> pd.DataFrame:
    with path.open(newline="", encoding="utf-8-sig") as file:
        names = next(csv.reader(file), [])
    with warnings.catch_warnings():
        # pandas warns where it drops the surplus fields of a row.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame = pd.read_csv(path, low_memory=False, index_col=False, encoding="utf-8-sig")
    # pandas renames repeated columns; the log has to see them.
    frame.columns = pd.Index(names)
    return frame


def _header(log: StoredLog) -> dict[str, Any]:
    return {
        "version": _VERSION,
        "n_rounds": len(next(iter(log.columns.values()))),
        "dtypes": {name: values.dtype.str for name, values in log.columns.items()},
        "log": encode(log.metadata),
    }


def _checked_header(stored: dict[str, Any], n_rounds: int, names: list[str], path: Path) -> dict[str, Any]:
    problems = []
    if stored["version"] != _VERSION:
        problems.append(f"{path} has format version {stored['version']}, this adaptinf reads {_VERSION}")
    if stored["n_rounds"] != n_rounds:
        problems.append(f"{path} has {n_rounds} rows, its metadata says {stored['n_rounds']}")
    if list(stored["dtypes"]) != names:
        problems.append(f"{path} has the columns {names}, its metadata says {list(stored['dtypes'])}")
    refuse("read_log", problems)
    return {"dtypes": stored["dtypes"], "log": decode(stored["log"])}


def _check_suffix(path: Path, known: tuple[str, ...]) -> None:
    if path.suffix.lower() not in known:
        raise ParameterError(
            "AdaptiveLog files", [f"the name must end in {' or '.join(known)}, got {path.name!r}"]
        )


def _check_objects(log: StoredLog) -> None:
    wrong = [
        f"column {name!r} holds values that are not strings; a file needs strings or numbers of one type"
        for name, values in log.columns.items()
        if values.dtype.kind == "O" and set(map(type, values)) - {str}
    ]
    refuse("AdaptiveLog", wrong)


def _as_text(values: NDArray[Any]) -> NDArray[Any]:
    """Column that pandas writes without losing a digit."""
    if values.dtype.kind == "M":
        return np.datetime_as_string(values).astype(object)
    if values.dtype.kind == "f":
        return values.astype(np.float64)
    return values


def _from_text(series: pd.Series[Any], dtype: str) -> NDArray[Any]:
    values = series.to_numpy(dtype=object)
    if np.dtype(dtype).kind == "b":
        return np.asarray(values == "True", dtype=bool)
    return values.astype(dtype)


def _to_json(value: object, indent: int | None = None) -> bytes:
    return json.dumps(value, allow_nan=False, indent=indent).encode()


def _sidecar(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unreadable(path: Path, error: Exception) -> ParameterError:
    kind = "Parquet" if path.suffix.lower() in _PARQUET_SUFFIXES else "CSV"
    return ParameterError("read_log", [f"{path} is not a readable {kind} file: {error}"])
