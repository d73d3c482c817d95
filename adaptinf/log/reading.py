"""Logs from files: those that adaptinf wrote, and any others whose columns are named."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.log.log import AdaptiveLog
from adaptinf.log.storage.files import read_file
from adaptinf.log.storage.foreign import merged_problems, mixed_problems
from adaptinf.log.storage.restored import RestoredLog
from adaptinf.parameters import refuse

_LABELS = ("action", "batch", "unit", "phase")


def read_log(path: str | PathLike[str], **options: Any) -> AdaptiveLog:
    """Read a log from a file.

    Parameters
    ----------
    path : path
        A Parquet file (``.parquet``, ``.pq``) or CSV (``.csv``).
    **options
        For files that adaptinf did not write: the arguments of `AdaptiveLog`, such as ``action="arm"``.

    Returns
    -------
    AdaptiveLog
        Equal to the one that was written; or validated like any frame.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileError
        If the system does not let it be read.
    ParameterError
        If the file is damaged, too large, of another version of the format, or needs other options.
    LogValidationError
        If a file that adaptinf did not write is not a valid log.

    Notes
    -----
    A file that adaptinf wrote has a digest of everything that it holds, and goes through the checks of a
    user's frame when it is read. In a CSV of other origin pandas decides the types: text such as ``NA`` is a
    missing value.
    """
    content = read_file(path, named=bool(options))
    if isinstance(content, RestoredLog):
        if options:
            problem = f"{path} says itself what its columns are; leave out {', '.join(options)}"
            raise ParameterError("read_log", [problem])
        return AdaptiveLog._restored(content)
    missing = [f"{name}=" for name in ("action", "reward") if name not in options]
    if missing:
        raise ParameterError("read_log", [f"{path} needs {' and '.join(missing)}, the names of its columns"])
    labels = [name for role in _LABELS if isinstance(name := options.get(role), str)]
    problems = mixed_problems(Path(path), content, _context_names(options.get("context")))
    refuse("read_log", problems + merged_problems(Path(path), content, labels))
    try:
        return AdaptiveLog(content, **options)
    except LogValidationError as error:
        raise LogValidationError(error.problems, f"the log in {path}") from None


def _context_names(context: Any) -> list[str]:
    """Names of contexts as far as they are some; the log says what is wrong with others."""
    listed = [context] if isinstance(context, str) else context
    return [name for name in listed if isinstance(name, str)] if isinstance(listed, (list, tuple)) else []
