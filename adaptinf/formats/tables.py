"""Tables that the readers are given as files, and errors that name them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from adaptinf.errors import LogValidationError, ParameterError, Problem
from adaptinf.formats.transport import read_transport
from adaptinf.log.storage.csvs import read_csv_table
from adaptinf.log.storage.log_files import check_regular
from adaptinf.log.storage.parquet import read_columns
from adaptinf.log.validation.frame_columns import Column, Labels, read_column, read_labels
from adaptinf.typing import IntArray


def read_table(subject: str, path: Path, text: Collection[str] = ()) -> pd.DataFrame:
    """Table of a file by the end of its name; the columns of `text` are text in a CSV whatever they hold."""
    readers: dict[str, Callable[[], pd.DataFrame]] = {
        ".xpt": lambda: read_transport(path),
        ".csv": lambda: read_csv_table(path, text),
        ".parquet": lambda: pd.DataFrame(read_columns(path).to_pandas(ignore_metadata=True)),
    }
    if path.suffix.lower() not in readers:
        raise ParameterError(subject, [f"the name must end in {', '.join(readers)}, got {path}"])
    check_regular(path, subject)
    try:
        return readers[path.suffix.lower()]()
    except ParameterError as error:
        raise ParameterError(subject, [f"{path} {problem}" for problem in error.problems]) from error
    except Exception as error:
        # Damaged bytes can make the libraries below raise nearly anything.
        raise ParameterError(subject, [f"{path} cannot be read: {error!s:.300}"]) from error


def column_of(frame: pd.DataFrame, name: str) -> Column:
    """Column of a name that is there once."""
    return read_column(frame, list(frame.columns).index(name))


def labels_of(frame: pd.DataFrame, name: str) -> Labels:
    """Labels of a column of a name that is there once."""
    return read_labels(column_of(frame, name))


@contextmanager
def log_of(source: str, rows: IntArray | None = None) -> Iterator[None]:
    """Name the source in an error of the log; `rows` are the places that rows of the log have in it."""
    try:
        yield
    except LogValidationError as error:
        problems = error.problems
        if rows is not None:
            problems = tuple(_moved(problem, rows) for problem in problems)
        raise LogValidationError(problems, source) from None


def _moved(problem: Problem, rows: IntArray) -> Problem:
    places = tuple(sorted(int(rows[row]) for row in problem.rows))
    return Problem(problem.code, problem.message, places, problem.total)


def names_problems(name: str, values: Any) -> list[str]:
    """Say what is wrong with one name of a column, or several."""
    if isinstance(values, str):
        return []
    if isinstance(values, Collection) and all(isinstance(value, str) for value in values):
        return []
    return [f"{name} must be a name of a column or a list of them, got {values!r:.60}"]
