"""The hour repeated when clocks go back: detected in times without a zone, resolved by a zone."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.log.validation.frame_columns import Findings
from adaptinf.log.validation.times.time_periods import UTC

_LEAST = np.timedelta64(30, "m")
"""Smaller decreases are treated as disorder, because clocks go back by an hour or half an hour."""
_MOST = 100
"""Maximum number of places at which clocks go back: two concatenated trials have no more."""
_USUAL = (
    *("Europe/Berlin", "Europe/London", "America/New_York", "America/Chicago", "America/Los_Angeles"),
    *("America/Denver", "America/Toronto", "America/Halifax", "Europe/Athens", "Europe/Lisbon"),
    *("Australia/Sydney", "Australia/Adelaide", "Pacific/Auckland", "Asia/Jerusalem", "America/Santiago"),
)
_SHOWN = 3


def clock_change(what: str, times: NDArray[Any]) -> str:
    """Message on times without a zone that decrease where clocks went back, and only there; otherwise empty.

    The times have shape (n,), in the order of the rows.
    """
    times = times.astype("datetime64[us]")
    back = np.flatnonzero(times[1:] < times[:-1])
    if not 0 < len(back) <= _MOST or np.any(times[back] - times[back + 1] < _LEAST):
        return ""
    pairs = [(times[place].item(), times[place + 1].item()) for place in back]
    zones = [zone for zone in _zones() if all(_twice(zone, time) for pair in pairs for time in pair)]
    if not zones:
        return ""
    usual = [zone for zone in zones if zone in _USUAL] or zones
    named = ", ".join(usual[:_SHOWN]) + (" and others" if len(zones) > min(_SHOWN, len(usual)) else "")
    before, after = pairs[0]
    return (
        f"{what} decreases from {before} to {after}, when the clocks of {named} went back: the repeated "
        "hour is in order, and sorting would mix it up. Set 'timezone' to the zone in which the times were "
        f"written, such as {usual[0]!r} (--timezone on the command line), or write them in UTC"
    )


def _zones() -> Iterator[str]:
    """Names of time zones, the most common first."""
    known = zoneinfo.available_timezones()
    yield from (zone for zone in _USUAL if zone in known)
    yield from sorted(zone for zone in known if zone not in _USUAL and "/" in zone)


def _twice(zone: str, time: datetime) -> bool:
    """Whether a zone's clock shows a time twice."""
    offset = zoneinfo.ZoneInfo(zone).utcoffset
    first, second = offset(time.replace(fold=0)), offset(time.replace(fold=1))
    return first is not None and second is not None and first > second


def in_utc(times: NDArray[Any], zone: str, what: str, role: str, found: Findings) -> NDArray[Any]:
    """Times on a zone's clock as instants in UTC, (T,); NaT, with a problem, if there is no such instant.

    In a repeated hour, the rows after the place at which the clock goes back belong to its second occurrence.
    """
    missing, (first, second) = np.isnat(times), _both(times, zone)
    skipped = np.isnat(first) & ~missing
    found.add_rows(f"bad-{role}", f"{what} has times that do not exist in {zone}", skipped)
    twice = np.flatnonzero((first != second) & ~missing & ~skipped)
    if not len(twice):
        return first
    newest_first = bool(times[~missing][0] > times[~missing][-1])
    twice = twice[::-1] if newest_first else twice
    instants, mixed = first.copy(), np.zeros(len(times), dtype=bool)
    days = times[twice].astype("datetime64[D]")
    for day in np.unique(days):
        rows = twice[days == day]
        back = np.flatnonzero(times[rows[1:]] < times[rows[:-1]]) + 1
        if len(back) > 1:
            mixed[rows] = True
        elif len(back):
            instants[rows[back[0] :]] = second[rows[back[0] :]]
    found.add_rows(
        f"bad-{role}",
        f"{what} is not in time order within an hour that occurred twice in {zone}, so the two occurrences "
        "cannot be distinguished: write the times in UTC",
        mixed,
    )
    return instants


def in_utc_from(
    times: NDArray[Any], starts: NDArray[Any], zone: str, what: str, role: str, found: Findings
) -> NDArray[Any]:
    """Instants in UTC for times in any order, none earlier than its row's start, shapes (T,)."""
    first, second = _both(times, zone)
    skipped = np.isnat(first) & ~np.isnat(times)
    found.add_rows(f"bad-{role}", f"{what} has times that do not exist in {zone}", skipped)
    return np.where(first < starts, second, first)


def _both(times: NDArray[Any], zone: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """First and second instants at which a zone's clock shows the given times, each of shape (T,)."""
    clock = pd.DatetimeIndex(times.astype("datetime64[us]"))
    first, second = (
        clock.tz_localize(zone, ambiguous=np.full(len(clock), early), nonexistent="NaT").tz_convert(UTC)
        for early in (True, False)
    )
    return np.asarray(first.tz_localize(None)), np.asarray(second.tz_localize(None))
