"""Looks by date: days since the start of a trial, and the participants whose outcomes are known by then.

A look uses the participants before the first one whose outcome is pending. In the order of arrival,
the first participant with a pending outcome is a stopping time, however outcomes are related to delays, so
the score of the participants before is a martingale, as at any look.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adaptinf.log.stated_plans import looks_of, states_plan
from adaptinf.parameters import number_array, refuse
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

_DAY = len("2026-03-01")
_SECONDS = 86_400.0


class Known(NamedTuple):
    """Days since the start at which participants arrived and outcomes were known, (T,), infinite if pending.

    `ends` is the last day that the log contains.
    """

    arrival: FloatArray
    known: FloatArray
    ends: float

    def upto(self, days: FloatArray) -> IntArray:
        """Number of participants before the first pending outcome, at each day."""
        return complete(np.maximum(self.arrival, self.known), days)


def complete(known: FloatArray, days: FloatArray) -> IntArray:
    """Number of the first participants whose outcomes are all known, at each day; known has shape (T,)."""
    return np.searchsorted(np.maximum.accumulate(known), days, side="right").astype(np.int64)


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a trial; None stands for the arrival of its first participant."""

    moment: datetime | None

    def days(self, times: NDArray[Any], first: Any) -> FloatArray:
        """Times or days as days since the start; `first` is the time of the first participant."""
        if times.dtype.kind != "M":
            return np.asarray(times, dtype=np.float64) - (float(first) if self.moment is None else 0.0)
        begun = first if self.moment is None else np.datetime64(self.moment, "us")
        found = (times - begun) / np.timedelta64(1, "us") / (_SECONDS * 1e6)
        return np.asarray(found, dtype=np.float64)

    def of(self, log: AdaptiveLog) -> Known:
        """The times at which participants of a log arrived, and at which their outcomes were known."""
        rounds = log._rounds
        told = 'looks by date need the days or times of participants: AdaptiveLog(..., round="column")'
        refuse("Plan", [told] if rounds is None else [])
        assert rounds is not None
        arrival = self.days(rounds, rounds[0])
        known = arrival
        if log._outcome_rounds is not None:
            given = log._outcome_rounds
            absent = np.isnat(given) if given.dtype.kind == "M" else np.isnan(given)
            known = np.where(absent, np.inf, self.days(given, rounds[0]))
        last = max(float(arrival[-1]), float(known[np.isfinite(known)].max(initial=-np.inf)))
        return Known(arrival, known, _end_of_day(last))

    def reached(self, log: AdaptiveLog, looks: FloatArray, horizon: int, as_of: Any) -> IntArray:
        """Rounds up to each look that a log has reached as of a time, or that the log of a trial states.

        The look that completes the horizon is reached immediately, because nothing further can become known.
        """
        if as_of is None and states_plan(log):
            return np.array([look["rounds"] for look in looks_of(log)], dtype=np.int64)
        found = self.of(log)
        ends = np.minimum(found.upto(looks), horizon)
        last = found.ends if as_of is None else self._day(log, as_of)
        reached = int(np.searchsorted(looks, last, side="right"))
        full = np.flatnonzero(ends >= horizon)
        return ends[: max(reached, int(full[0]) + 1 if len(full) else 0)]

    def _day(self, log: AdaptiveLog, as_of: Any) -> float:
        """A time in days since the start."""
        begun = self.moment
        if begun is None and log._rounds is not None and log._rounds.dtype.kind == "M":
            begun = log._rounds[0].astype("datetime64[us]").item()
        day = days_of(as_of, begun)
        told = f"as_of must be a number of days since the start, or a date, got {as_of!r:.60}"
        refuse("Plan", [told] if math.isnan(day) else [])
        return day


def _end_of_day(last: float) -> float:
    """The end of the day of an event; a whole number is the day on which it happened."""
    return math.nextafter(last + 1.0, 0.0) if last == math.floor(last) else math.ceil(last)


def moment_of(given: Any) -> tuple[datetime | None, bool]:
    """A date or time without its zone, in UTC, and whether it is a whole day; None if it is neither."""
    if isinstance(given, np.datetime64):
        given = given.item()
    if isinstance(given, str):
        try:
            read = datetime.fromisoformat(given.strip())
        except ValueError:
            return None, False
        return _in_utc(read), len(given.strip()) <= _DAY
    if isinstance(given, datetime):
        return _in_utc(given), False
    if isinstance(given, date):
        return datetime(given.year, given.month, given.day), True
    return None, False


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def days_of(given: Any, start: Any) -> float:
    """A day or date as days since the start, which is required for dates; NaN if it is invalid.

    A date stands for the end of its day.
    """
    numbers = number_array(given)
    if numbers is not None:
        return float(numbers) if numbers.shape == () else math.nan
    moment, whole = moment_of(given)
    begun, _ = moment_of(start)
    if moment is None or begun is None:
        return math.nan
    passed = (moment - begun).total_seconds() / _SECONDS
    return math.nextafter(passed + 1.0, 0.0) if whole else passed


def look_days(looks: Any, start: Any) -> FloatArray | None:
    """Looks as days since the start, (k,); None if they are invalid."""
    if not isinstance(looks, (list, tuple, np.ndarray)) or not len(looks):
        return None
    found = np.array([days_of(one, start) for one in looks])
    return found if np.all(np.isfinite(found)) and found[0] > 0.0 and np.all(np.diff(found) > 0.0) else None


def date_problems(looks: Any, start: Any, horizon: Any, accrual: Any, law: Any) -> list[str]:
    """Problems with looks by date."""
    problems = []
    if start is not None and moment_of(start)[0] is None:
        problems.append(f"start must be a date or a time, such as 2026-03-01, got {start!r:.60}")
    elif look_days(looks, start) is None:
        problems.append(
            "looks by date must be ascending days since the first participant, or dates after start=, got "
            f"{looks!r:.60}"
        )
    if horizon is None and accrual is None:
        problems.append("looks by date require horizon, the largest number of participants, or accrual")
    if law != "z":
        problems.append(f'looks by date require law="z", got {law!r}')
    return problems


def horizon_of(looks: FloatArray, horizon: Any, accrual: Any, by_rounds: bool) -> int:
    """Rounds of a trial that does not stop: up to the last look, or as many as arrive by then on average."""
    if by_rounds:
        return int(looks[-1])
    return int(horizon) if horizon is not None else max(math.ceil(accrual * float(looks[-1])), 1)


def said_day(days: float) -> str:
    """A number of days in words."""
    return f"{round(days, 2):g}"
