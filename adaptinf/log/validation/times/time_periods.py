"""Times truncated to periods on a zone's clock, for rows of a log and for queries by `aggregate`."""

from __future__ import annotations

import zoneinfo
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.typing import IntArray

PERIODS = ("hour", "day", "week", "month")
"""Periods to which times are truncated; weeks begin on Monday."""
UTC = "UTC"


def zone_problem(timezone: object) -> str:
    """The reason why a value is not a time zone; empty if it is one."""
    if isinstance(timezone, str) and timezone in zoneinfo.available_timezones():
        return ""
    return f"'timezone' must be a name of the IANA database such as 'Europe/Berlin', got {timezone!r:.60}"


def clock_of(instants: NDArray[Any], zone: str | None) -> NDArray[Any]:
    """A zone's clock time at instants in UTC, in microseconds; shapes (T,)."""
    clock = instants.astype("datetime64[us]")
    if zone is None or zone == UTC:
        return clock
    local = pd.DatetimeIndex(clock).tz_localize(UTC).tz_convert(zone)
    return np.asarray(local.tz_localize(None)).astype("datetime64[us]")


def cut_to_periods(clock: NDArray[Any], every: str) -> tuple[NDArray[Any], IntArray]:
    """Starts of the periods that contain clock times, and pieces of these periods, each of shape (T,).

    Pieces are intervals of ten minutes within an hour, hours within a day, and days and hours within a week
    or a month.
    """
    hours, days, months = (clock.astype(f"datetime64[{unit}]") for unit in "hDM")
    # Day 0, 1 January 1970, was a Thursday, and weeks begin on Monday.
    weekday = (days.astype(np.int64) + 3) % 7
    hour = (hours - days).astype(np.int64)
    if every == "hour":
        start, within = hours, (clock - hours).astype("timedelta64[m]").astype(np.int64) // 10
    elif every == "day":
        start, within = days, hour
    elif every == "week":
        start, within = days - weekday.astype("timedelta64[D]"), 24 * (weekday + 1) + hour
    else:
        start, within = months, 24 * ((days - months).astype(np.int64) + 1) + hour
    return start.astype("datetime64[us]"), np.where(np.isnat(clock), 0, within)
