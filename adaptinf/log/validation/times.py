"""Dates and times that a column holds as text or as Python's own objects."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pandas as pd

from adaptinf.log.validation.columns import Column
from adaptinf.typing import BoolArray

ISO_EXAMPLES = "2024-03-01 or 2024-03-01T09:30"
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?P<zone>Z|[+-]\d\d:?\d\d)?)?", re.ASCII
)


def read_times(column: Column) -> tuple[Column, BoolArray]:
    """Read a column of ISO 8601 text, dates or datetimes as times; those with a zone become UTC.

    Returns shape bad (T,).
    """
    rows = zip(column.values, column.missing, strict=True)
    matches = [None if missing else _match(value) for value, missing in rows]
    zoned = np.array([match is not None and match["zone"] is not None for match in matches], dtype=bool)
    text = [None if match is None else match[0] for match in matches]
    times = pd.to_datetime(pd.Series(text, dtype="str"), format="ISO8601", errors="coerce", utc=True)
    values = times.dt.tz_localize(None).to_numpy()
    bad = np.isnat(values) | (~zoned & zoned.any())
    return Column(values, column.missing, column.dtype), bad & ~column.missing


def _match(value: object) -> re.Match[str] | None:
    if isinstance(value, datetime.date):
        value = value.isoformat()
    return _ISO.fullmatch(value.strip()) if isinstance(value, str) else None
