"""Tables from other libraries, in memory or lazy, as frames from which a log can be read."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd

from adaptinf.errors import AdaptinfError, LogValidationError, Problem
from adaptinf.log.validation.frame_columns import frame_kind


def in_memory(table: Any) -> Any:
    """A table as a pandas or Polars frame, read completely if it is lazy; None if it is not a table."""
    if frame_kind(table) is not None:
        return table
    try:
        return _converted(table)
    except AdaptinfError:
        raise
    except Exception as error:
        # Database engines raise exceptions of their own types.
        said = f"{type(error).__name__}: {next(iter(str(error).splitlines()), ''):.200}"
        told = f"the {type(table).__name__} cannot be read into memory ({said}): pass a pandas DataFrame"
        raise LogValidationError([Problem("engine-stopped", told)], "the table") from error


def table_name(table: Any) -> str:
    """The name of a table in a report."""
    kind = type(table)
    return f"a {kind.__module__.partition('.')[0]} {kind.__name__}"


@contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress narwhals' warning, in conversions, about a Dask package that is not yet available."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Dask support is moving", FutureWarning)
        yield


def _converted(table: Any) -> Any:
    import narwhals as nw  # narwhals is loaded only if a table belongs to neither pandas nor Polars.

    with without_warnings():
        known = nw.from_native(table, pass_through=True)
        if isinstance(known, nw.LazyFrame):
            own = known.implementation in (nw.Implementation.DASK, nw.Implementation.POLARS)
            found = known.collect().to_native() if own else known.collect("pyarrow").to_native()
        elif isinstance(known, nw.DataFrame):
            found = known.to_native()
        elif hasattr(table, "__arrow_c_stream__") and hasattr(table, "schema"):
            found = _arrow_table(table)
        else:
            return None
    return found if frame_kind(found) is not None else arrow_frame(_arrow_table(found))


def _arrow_table(table: Any) -> Any:
    import pyarrow as pa

    return table if isinstance(table, pa.Table) else pa.table(table)


def without_texts(frame: Any, texts: Collection[str]) -> Any:
    """A frame in which these texts are missing values."""
    import narwhals as nw

    if frame_kind(frame) == "pandas":
        if frame.columns.duplicated().any():  # Repeated names are reported by the check of names.
            return frame
        wanted = [name for name in frame if frame[name].dtype.kind not in "biufcmM"]
        return frame.assign(**{name: frame[name].mask(frame[name].isin(list(texts))) for name in wanted})
    rows = nw.from_native(frame)
    kinds = (nw.String, nw.Categorical, nw.Enum)
    wanted = [name for name, kind in rows.schema.items() if isinstance(kind, kinds)]
    known = [
        nw.when(~nw.col(name).cast(nw.String()).is_in(list(texts))).then(nw.col(name)) for name in wanted
    ]
    return rows.with_columns(*known).to_native() if known else frame


def arrow_frame(table: Any) -> pd.DataFrame:
    """An Arrow table as a frame whose columns keep Arrow types: no number changes."""
    return pd.DataFrame(table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True))
