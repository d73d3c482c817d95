"""Logs from files: those written by adaptinf, and any others whose columns are named."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import LogValidationError, ParameterError
from adaptinf.files import as_path, owners_alone
from adaptinf.log.log import AdaptiveLog
from adaptinf.log.public import PublicLog
from adaptinf.log.report import Reading
from adaptinf.log.storage.dialects import OPTIONS as DIALECT
from adaptinf.log.storage.dialects import Dialect, dialect_of
from adaptinf.log.storage.log_files import read_own
from adaptinf.log.storage.parquet import StoredPublic
from adaptinf.log.storage.stored import RestoredLog
from adaptinf.log.storage.table_sources import STANDARD_INPUT, TableSource, parquet_source, read_table
from adaptinf.log.storage.text_columns import Use
from adaptinf.log.validation import nested_options
from adaptinf.parameters import refuse

_USES: dict[str, Use] = {
    **dict.fromkeys(("action", "assigned", "unit", "id", "phase"), "label"),
    **dict.fromkeys(("reward", "propensity", "observation"), "number"),
    **dict.fromkeys(("batch", "round", "outcome_round"), "order"),
    "randomised": "flag",
}
"""Uses of the columns that have a single role."""


def read_log(path: Any, **options: Any) -> Any:
    """Read a log from a file or from any other table.

    Parameters
    ----------
    path : path, list of paths, "-", bytes or frame
        A Parquet (``.parquet``, ``.pq``), CSV (``.csv``, ``.tsv``), JSON lines (``.jsonl``, ``.ndjson``,
        ``.json``) or Arrow (``.arrow``, ``.feather``, ``.ipc``) file, all but Parquet also compressed
        (``.gz``, ``.zst``, ``.bz2``); a folder of such files, which are read in the order of their names; a
        list of files, in its order; ``"-"``, standard input; bytes or a byte stream; or a frame from pandas,
        Polars, Arrow, DuckDB or Dask.
    **options
        For files not written by adaptinf: the arguments of `AdaptiveLog`, such as ``action="arm"``. The keys
        of its `columns`, `reading` and `about` may be given directly, such as ``sort=True``; and for text
        ``sep``, one character between fields, ``decimal``, ``"."`` or ``","``, ``encoding``, such as
        ``"cp1252"``, all detected by default, and ``missing_values``, the texts that represent missing values
        in every column.

    Returns
    -------
    AdaptiveLog or PublicLog
        A log equal to the one that was written, or one that was validated like any frame.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    FileError
        If the operating system does not permit reading the file.
    ParameterError
        If the file is damaged, too large or in another version of the format, is ambiguous, or needs other
        options.
    LogValidationError
        If a file not written by adaptinf is not a valid log.

    Notes
    -----
    A file written by adaptinf has a digest of its entire content, and is validated like a user's frame when
    it is read. A file of `PublicLog.to_parquet` is read as a public part.

    In text from other sources, columns are converted according to their roles. In columns of labels, only
    empty text counts as a missing value; in columns of numbers, text such as ``NA`` does, too. Labels are
    kept as written: if a column of arms or units contains 01 or 1.50, or a context of whole numbers contains
    01234, all its values are text. The log's report states how text was split and decoded.

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
    dialect, options = dialect_from("read_log", options)
    content = open_source(path, dialect, options)
    if isinstance(content, (RestoredLog, StoredPublic)):
        return own_log(Path(path), content)
    missing = [f"{name}=" for name in ("action", "reward") if name not in options]
    if missing:
        raise ParameterError(
            "read_log", [f"{content.name} requires {' and '.join(missing)}, the names of its columns"]
        )
    return named_log(content, options)


def dialect_from(subject: str, options: Mapping[str, Any]) -> tuple[Dialect, dict[str, Any]]:
    """Options on the text of a file, given separately or in `reading`, and the other options."""
    inside = options.get("reading")
    nested = dict(inside) if isinstance(inside, Mapping) else {}
    dialect, problems = dialect_of({**nested, **options})
    refuse(subject, problems)
    others = {name: value for name, value in options.items() if name not in DIALECT}
    if nested:
        others["reading"] = {name: value for name, value in nested.items() if name not in DIALECT}
    return dialect, others


def flat_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options given separately, including those of `columns` and `reading`."""
    inside = [given for group in ("columns", "reading") if isinstance(given := options.get(group), Mapping)]
    return {name: value for given in (*inside, options) for name, value in given.items()}


def open_source(
    source: Any, dialect: Dialect, options: Mapping[str, Any], spelt: Callable[[str], str] = str
) -> RestoredLog | StoredPublic | TableSource:
    """A log written by adaptinf, the public part of one, or the table in any other source."""
    if isinstance(source, (str, PathLike)) and str(source) != STANDARD_INPUT:
        path = as_path("read_log", "path", source)
        own = read_own(path, bool(options or dialect.said))
        if isinstance(own, pd.DataFrame):
            return parquet_source(own, f"file {path.name}", str(path), path, dialect, "read_log")
        if isinstance(own, (RestoredLog, StoredPublic)):
            given = [*options, *dialect.said]
            named = ", ".join(map(spelt, given))
            problem = (
                f"{path} already states the roles of its columns: omit {named}, or write the file again "
                f"from its source"
            )
            refuse("read_log", [problem] if given else [])
            return own
    return read_table(source, dialect, named_columns(options))


def own_log(path: Path, content: RestoredLog | StoredPublic) -> AdaptiveLog | PublicLog:
    """The log, or the public part of one, in the content of a file written by adaptinf."""
    if isinstance(content, RestoredLog):
        log = AdaptiveLog._restored(content)
        log.owner_only = owners_alone(path) is True
        return log
    try:
        return PublicLog._restored(content)
    except ParameterError as error:
        raise ParameterError("read_log", [f"{path} {problem}" for problem in error.problems]) from None


def named_log(table: TableSource, options: Mapping[str, Any]) -> AdaptiveLog:
    """The log that these arguments of `AdaptiveLog` create from a table; errors name the table and lines."""
    uses = uses_of(options, table.columns)
    frame, told = table.typed(uses, _labels_of(flat_options(options).get("success")))
    try:
        log = AdaptiveLog(frame, **nested_options(options))
    except LogValidationError as error:
        raise table.located(error) from None
    unused = [str(name) for name in table.columns if name not in log.read_columns]
    left = [Reading("left out", claims.UNUSED(names=", ".join(unused)))] if unused else []
    log.owner_only = table.path is not None and owners_alone(table.path) is True
    return log.read_from(table.source, [*told, *left])


def named_columns(options: Mapping[str, Any]) -> list[str]:
    """Columns that the arguments of a log name individually."""
    flat = flat_options(options)
    roles = (*_USES, "context", "outcomes")
    return list(dict.fromkeys(name for role in roles for name in _listed(flat.get(role))))


def uses_of(options: Mapping[str, Any], columns: Collection[Any] | None) -> dict[str, Use]:
    """The use of each column of a table, or of each named column if `columns` is None."""
    uses: dict[str, Use] = {}
    options = flat_options(options)
    for name in columns or ():
        if isinstance(name, str) and _is_propensity(name, options.get("propensities")):
            uses[name] = "number"
    for role, use in _USES.items():
        for name in _listed(options.get(role)):
            uses[name] = use
    uses |= dict.fromkeys(_listed(options.get("outcomes")), "number")
    uses |= dict.fromkeys(_listed(options.get("context")), "context")
    if isinstance(options.get("action"), (list, tuple)):  # A list names one column of 0 and 1 for each arm.
        uses |= dict.fromkeys(_listed(options["action"]), "number")
    # Such a column contains lists or objects, which files store as text.
    if options.get("propensities") in (columns or ()):
        uses[str(options["propensities"])] = "text"
    if _labels_of(options.get("success")):
        uses |= dict.fromkeys(_listed(options.get("reward")), "text")
    return {name: use for name, use in uses.items() if columns is None or name in columns}


def _is_propensity(name: str, propensities: Any) -> bool:
    """Whether a column contains the propensity of an arm, judging by the names."""
    if isinstance(propensities, Mapping):
        return name in [column for column in propensities.values() if isinstance(column, str)]
    pattern = propensities if isinstance(propensities, str) else "propensity_{arm}"
    before, holder, after = pattern.partition("{arm}")
    if name == pattern:  # A single column of this name contains lists of all arms' propensities.
        return False
    return name.startswith(before) and name.endswith(after) and (bool(holder) or propensities is not None)


def _listed(given: Any) -> list[str]:
    """Valid names of columns; the log reports problems with the others."""
    names = [given] if isinstance(given, str) else given
    return [name for name in names if isinstance(name, str)] if isinstance(names, (list, tuple)) else []


def _labels_of(success: Any) -> list[str]:
    """Texts that the user lists as outcomes; empty if outcomes are numbers."""
    asked = list(success) if isinstance(success, Mapping) else [success]
    return asked if all(isinstance(label, str) for label in asked) else []
