"""Files: Parquet with metadata in its schema, or CSV with a JSON sidecar."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.errors import AdaptinfError, FileError, ParameterError
from adaptinf.files import as_path, same_file
from adaptinf.log.storage.csvs import read_csv, sidecars, write_csv
from adaptinf.log.storage.parquet import StoredPublic, read_parquet, write_parquet
from adaptinf.log.storage.stored import RestoredLog, StoredLog
from adaptinf.parameters import refuse

PARQUET = (".parquet", ".pq")
_CSV = (".csv",)


def write_file(path: Any, log: StoredLog, kind: str, owner_only: bool = False) -> None:
    """Write a log as ``"parquet"`` or ``"csv"``, completely or not at all."""
    place = as_path(f"AdaptiveLog.to_{kind}", "path", path)
    _check_suffix(place, PARQUET if kind == "parquet" else _CSV)
    write = write_parquet if kind == "parquet" else write_csv
    write(place, log, owner_only)


def read_own(path: Path, named: bool) -> RestoredLog | StoredPublic | pd.DataFrame | None:
    """A log written by adaptinf or its public part; the frame in another Parquet file; otherwise None."""
    # If the user has named the columns, a log of a version without a digest is treated like any other file.
    kind = path.suffix.lower()
    if os.path.isdir(path) or kind not in (*PARQUET, *_CSV):
        return None
    check_regular(path, "read_log")
    with naming(path, "Parquet" if kind in PARQUET else "CSV", "read_log"):
        return read_parquet(path, named) if kind in PARQUET else read_csv(path, named)


@contextmanager
def naming(name: object, kind: str, subject: str) -> Iterator[None]:
    """Convert any exception that a library raises on damaged bytes into one error that names the source."""
    try:
        with np.errstate(all="ignore"):
            yield
    except ParameterError as error:
        told = [each if str(name) in each else f"{name} {each}" for each in error.problems]
        raise ParameterError(subject, told) from error
    except AdaptinfError:
        raise
    except Exception as error:
        # A damaged file can make the libraries below raise nearly any exception, or request any amount of
        # memory.
        said = f"{type(error).__name__}: {error}"
        raise ParameterError(subject, [f"{name} is not a readable {kind} file: {said:.300}"]) from error


def output_problems(output: str | None, source: Path) -> list[str]:
    """Explain why output may not be written to a file: it is the file being read, or its metadata."""
    if output is None:
        return []
    place = Path(output)
    parts = [source, *(sidecars(source) if source.suffix.lower() in _CSV else [])]
    taken = [part for part in parts if "\0" not in f"{output}{source}" and same_file(place, part)]
    return [
        f"the output {output} would overwrite {part}, which is an input: choose another file name"
        for part in taken
    ]


def check_regular(path: Path, subject: str) -> None:
    """Refuse paths that are not readable files."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{subject}: file {path} does not exist") from None
    except OSError as error:
        raise FileError(str(path), "read", error.strerror or str(error)) from error
    if stat.S_ISDIR(mode):
        raise ParameterError(subject, [f"{path} is a directory; give one file"])
    if not stat.S_ISREG(mode):
        raise FileError(str(path), "read", "it is not a regular file")
    if not os.access(path, os.R_OK):
        raise FileError(str(path), "read", "permission denied")


def _check_suffix(path: Path, known: tuple[str, ...]) -> None:
    if path.suffix.lower() not in known:
        problem = f"the name must end in {' or '.join(known)}, got {path.name!r}"
        refuse("AdaptiveLog files", [problem])
