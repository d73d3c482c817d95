"""CSV: a log's columns as text with its metadata in a sidecar.

The two files of a log are replaced one after the other, but a reader always finds either the old log or the
new one, wherever the writer is stopped. The sidecar contains the hash of its table, and a new sidecar is
stored under a separate name until the new table exists:

1. the new table is written under a temporary name: table old, sidecar old
2. the new sidecar is written as ``<path>.json.new``: table old, sidecar old, the new one waits
3. the new table is renamed: table new, sidecar old, the new one waits
4. the waiting sidecar is renamed: table new, sidecar new

Every step ends with a renaming, which is on disk before the next step begins. The reader uses the sidecar
whose hash is that of the table: the old sidecar up to step 2, the waiting one after step 3, and the new one
after step 4. A writer that finds a waiting sidecar of the existing table first completes step 4 of the
interrupted writer, so its own step 2 cannot overwrite the only sidecar of that table.
"""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.errors import ParameterError
from adaptinf.files import file_digest, publish, real, stage, told
from adaptinf.log.storage.delimited import field_texts, header_names
from adaptinf.log.storage.header import (
    check_table,
    check_version,
    encode_table,
    header_of,
    log_from,
    version_of,
)
from adaptinf.log.storage.stored import RestoredLog, StoredLog


def write_csv(path: Path, log: StoredLog, owner_only: bool = False) -> None:
    """Write a log as CSV, and its metadata as ``<path>.json``."""
    releases = encode_table(log.releases)
    header = header_of(log, releases)
    text = pd.DataFrame({name: _as_text(values) for name, values in log.columns.items()})
    with told(path, "written"):
        place = real(path)
        given = _sidecar(path)
        sidecar = real(given if given.exists() else _sidecar(place))
        waiting = _waiting(sidecar)
        _finish(place, sidecar, waiting)
        table = stage(
            place,
            lambda file: text.to_csv(
                file, index=False, na_rep="nan", lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
            ),
            owner_only=owner_only,
        )
        try:
            whole = header | {"sha256": file_digest(table), "releases": releases}
            # If others may not read the table, they may not read its metadata either.
            like = sidecar if sidecar.exists() else table
            publish(stage(waiting, lambda file: file.write(_json(whole)), like, owner_only), waiting)
            publish(table, place)
        finally:
            table.unlink(missing_ok=True)
        publish(waiting, sidecar)


def read_csv(path: Path, named: bool) -> RestoredLog | None:
    """A log written by adaptinf; None for other files."""
    # If the user has named the columns, a log of a version without a digest is treated like any other file.
    if not any(sidecar.exists() for sidecar in sidecars(path)):
        return None
    data = path.read_bytes()
    stored = _metadata(path, hashlib.sha256(data).hexdigest(), named)
    if stored is None:
        return None
    names = header_names(data)
    check_version(stored)
    frame = field_texts(data)
    dtypes = check_table(stored, len(frame), names)
    columns = {name: _from_text(frame.iloc[:, i], dtypes[name]) for i, name in enumerate(names)}
    said = {name: value for name, value in stored.items() if name not in ("sha256", "releases")}
    return log_from(said, stored["releases"], columns)


def sidecars(path: Path) -> list[Path]:
    """Possible names of a CSV's metadata: next to its name, and next to the target of a link."""
    beside = [_sidecar(path), _sidecar(real(path))]
    places = [place for sidecar in beside for place in (sidecar, real(sidecar))]
    return list(dict.fromkeys([*places, *map(_waiting, places)]))


def _sidecar(table: Path) -> Path:
    return table.with_name(f"{table.name}.json")


def _waiting(sidecar: Path) -> Path:
    return sidecar.with_name(f"{sidecar.name}.new")


def _finish(place: Path, sidecar: Path, waiting: Path) -> None:
    """Finish the work of a writer that was stopped before its waiting sidecar was renamed."""
    if waiting.exists() and _is_of(_content(waiting), file_digest(place)):
        publish(waiting, sidecar)


def _metadata(path: Path, digest: str, named: bool) -> Any:
    """The content of a table's sidecar; None if the table is treated as coming from another program."""
    found = {sidecar: _content(sidecar) for sidecar in sidecars(path) if sidecar.exists()}
    own = [stored for stored in found.values() if _is_of(stored, digest)]
    # A writer that was interrupted may have left a waiting sidecar whose table was never written.
    others = [(sidecar, stored) for sidecar, stored in found.items() if sidecar.suffix != ".new"]
    if own or not others:
        stored = own[0] if own else None
        return None if named and version_of(stored) == 1 else stored
    sidecar, stored = others[0]
    if named and version_of(stored) in (None, 1):
        return None
    check_version(stored)
    raise ParameterError(
        "file",
        [
            f"was changed after its sidecar {sidecar.name} was written; restore it, or "
            "delete the sidecar and name the columns yourself (action=, reward=, ...)"
        ],
    )


def _content(sidecar: Path) -> Any:
    """The content of a sidecar; None if it is not JSON."""
    try:
        return json.loads(sidecar.read_bytes())
    except (ValueError, RecursionError):
        return None


def _is_of(stored: Any, digest: str | None) -> bool:
    """Whether a sidecar belongs to the table with this hash."""
    return digest is not None and isinstance(stored, dict) and stored.get("sha256") == digest


def _as_text(values: NDArray[Any]) -> NDArray[Any]:
    """A column that pandas writes without losing a digit."""
    if values.dtype.kind == "M":
        return np.datetime_as_string(values).astype(object)
    if values.dtype.kind == "f":
        return values.astype(np.float64)
    return values


def _from_text(series: pd.Series[Any], dtype: str) -> NDArray[Any]:
    values = series.to_numpy(dtype=object)
    if np.dtype(dtype).kind == "b":
        if not set(values.tolist()) <= {"True", "False"}:
            raise ValueError(f"column {series.name!r} must contain True and False")
        return np.asarray(values == "True", dtype=bool)
    return values.astype(dtype)


def _json(value: object) -> bytes:
    return json.dumps(value, allow_nan=False, indent=1).encode()
