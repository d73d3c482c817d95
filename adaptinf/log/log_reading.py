"""Logs from files: those that adaptinf wrote, and any others whose columns are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.files import owners_alone
from adaptinf.log.log import AdaptiveLog
from adaptinf.log.public import PublicLog
from adaptinf.log.report import Reading
from adaptinf.log.storage.csvs import as_written, merged_problems, mixed_problems
from adaptinf.log.storage.log_files import read_file
from adaptinf.log.storage.parquet import StoredPublic
from adaptinf.log.storage.stored import RestoredLog
from adaptinf.log.validation import nested_options
from adaptinf.parameters import refuse

_LABELS = ("action", "assigned", "unit", "phase")


def read_log(path: str | PathLike[str], **options: Any) -> Any:
    """Read a log from a file.

    Parameters
    ----------
    path : path
        A Parquet file (``.parquet``, ``.pq``) or CSV (``.csv``).
    **options
        For files that adaptinf did not write: the arguments of `AdaptiveLog`, such as ``action="arm"``. What
        stands in its `columns`, `reading` and `about` may stand alone here, such as ``sort=True``.

    Returns
    -------
    AdaptiveLog or PublicLog
        Equal to the one that was written; or a log that was validated like any frame.

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
    user's frame when it is read. A file of `PublicLog.to_parquet` is a public part again.

    In a CSV from elsewhere pandas decides the types, and text such as ``NA`` is a missing value; but labels
    stay as they are written: in a column of arms or units that holds 01 or 1.50, and in a context of whole
    numbers that holds 01234, everything is text.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import tempfile
    >>> from pathlib import Path
    >>> log = ai.designs.Uniform().run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=50, rng=0)
    >>> path = Path(tempfile.mkdtemp()) / "trial.parquet"
    >>> log.to_parquet(path)
    >>> ai.read_log(path).n_rounds
    50
    """
    content = read_file(path, named=bool(options))
    if isinstance(content, (RestoredLog, StoredPublic)):
        if options:
            problem = f"{path} says itself what its columns are; leave out {', '.join(options)}"
            raise ParameterError("read_log", [problem])
        return _made(Path(path), content)
    missing = [f"{name}=" for name in ("action", "reward") if name not in options]
    if missing:
        raise ParameterError("read_log", [f"{path} needs {' and '.join(missing)}, the names of its columns"])
    frame, kept = written_frame(Path(path), content, options)
    return named_log(Path(path), frame, options, kept)


def _made(path: Path, content: RestoredLog | StoredPublic) -> AdaptiveLog | PublicLog:
    if isinstance(content, RestoredLog):
        log = AdaptiveLog._restored(content)
        log.owner_only = owners_alone(path) is True
        return log
    try:
        return PublicLog._restored(content)
    except ParameterError as error:
        raise ParameterError("read_log", [f"{path} {problem}" for problem in error.problems]) from None


def written_frame(
    path: Path, frame: pd.DataFrame, options: Mapping[str, Any]
) -> tuple[pd.DataFrame, list[Reading]]:
    """The frame of a file of other people with its labels as written, and what was kept so."""
    labels, batch = _names(options, *_LABELS), _names(options, "batch")
    context = _context_names(options.get("context"))
    success = options.get("success")
    asked = list(success) if isinstance(success, Mapping) else [success]
    texts = _names(options, "reward") if all(isinstance(label, str) for label in asked) else []
    problems = mixed_problems(path, frame, context)
    refuse("read_log", problems + merged_problems(path, frame, labels, batch))
    frame, kept = as_written(path, frame, labels, context, texts)
    return frame, [Reading("labels", told) for told in kept]


def named_log(
    path: Path, frame: pd.DataFrame, options: Mapping[str, Any], kept: Sequence[Reading] = ()
) -> AdaptiveLog:
    """The log that a frame of a file is by these arguments of `AdaptiveLog`; errors name the file."""
    try:
        log = AdaptiveLog(frame, **nested_options(options))
    except LogValidationError as error:
        raise LogValidationError(error.problems, f"the log in {path}") from None
    kind = "CSV file" if path.suffix.lower() == ".csv" else "Parquet file"
    unused = [str(name) for name in frame.columns if name not in log.columns]
    left = [Reading("left out", claims.UNUSED(names=", ".join(unused)))] if unused else []
    log.owner_only = owners_alone(path) is True
    return log.read_from(f"{kind} {path.name}", [*kept, *left])


def _names(options: Mapping[str, Any], *roles: str) -> list[str]:
    return [name for role in roles if isinstance(name := options.get(role), str)]


def _context_names(context: Any) -> list[str]:
    """Names of contexts as far as they are some; the log says what is wrong with others."""
    listed = [context] if isinstance(context, str) else context
    return [name for name in listed if isinstance(name, str)] if isinstance(listed, (list, tuple)) else []
