"""Consecutive rounds grouped in a plot over time: days, batches, or a number of rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from adaptinf.log import AdaptiveLog
from adaptinf.log.validation.times.time_periods import PERIODS, cut_to_periods
from adaptinf.parameters import COUNT, OneOf
from adaptinf.plots.style import date_axis, round_axis
from adaptinf.sums import Sums
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A plot that chooses its own steps has at most and at least these numbers of them, so that lines stay
# readable.
_MOST, _FEWEST = 60, 4


@dataclass(frozen=True, slots=True)
class Stretches:
    """Stretches of a log's rounds; `place` gives each round's stretch, shape (T,).

    `start` and `end`, shape (s,), are the positions at which a stretch begins and ends on the axis: dates,
    midpoints between the numbers of batches, or the rounds at its ends.
    """

    place: IntArray
    start: NDArray[Any]
    end: NDArray[Any]
    axis: str
    name: str

    def label(self, ax: Axes) -> None:
        """Label the horizontal axis."""
        if self.axis == "date":
            date_axis(ax)
        elif self.axis == "batch":
            from matplotlib.ticker import MaxNLocator

            ax.set_xlabel("batch")
            ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        else:
            round_axis(ax, float(self.end[-1]))


def every_problem(every: Any, log: Any) -> list[str]:
    """Explain why rounds cannot be grouped this way."""
    if every is None:
        return []
    if isinstance(every, str):
        problems = OneOf("batch", *PERIODS)("every", every)
        if not problems and every == "batch" and log.arrays.batch is None:
            problems = ["every='batch' requires a log with batches (batch=)"]
        if not problems and every in PERIODS and log.dates is None:
            problems = [f"every={every!r} requires a log whose round= is a column of dates or times"]
        return problems
    problems = COUNT("every", every)
    return problems or (
        [] if every <= log.n_rounds else [f"every must be at most {log.n_rounds:,}, the number of rounds"]
    )


def stretches(log: AdaptiveLog, every: int | str | None = None, most: int = _MOST) -> Stretches:
    """The requested stretches, or the finest ones within the maximum number."""
    dates, batch = log.dates, log.arrays.batch
    if every is None and dates is not None:
        found = _readable(dates, most)
        if found is not None:
            return found
    if every == "batch" or (every is None and dates is None and batch is not None and batch[-1] < most):
        assert batch is not None
        return _of_batches(batch, dates)
    if isinstance(every, str):
        assert dates is not None
        return _of_dates(dates, every)
    return even_stretches(log.n_rounds, every, dates, most)


def even_stretches(
    n_rounds: int, every: int | None = None, dates: NDArray[Any] | None = None, most: int = _MOST
) -> Stretches:
    """Stretches of `every` rounds, or of a round number of rounds that gives at most half of `most`."""
    size = _width(n_rounds, most // 2) if every is None else int(every)
    place = np.arange(n_rounds, dtype=np.int64) // size
    name = "round" if size == 1 else f"{size:,} rounds"
    if dates is not None:
        return _between(place, dates, name)
    start = np.arange(0, n_rounds, size, dtype=np.float64)
    return Stretches(place, start, np.minimum(start + size, n_rounds), "round", name)


def steps_of_sums(sums: Sums) -> Stretches:
    """The batches in sums, whose single rounds are not known."""
    batches, none = np.asarray(sums.batches), np.zeros(0, dtype=np.int64)
    if batches.dtype.kind == "M":
        return _between(np.arange(batches.size), batches, "batch")
    numbers = np.arange(batches.size, dtype=np.float64)
    return Stretches(none, numbers + 0.5, numbers + 1.5, "batch", "batch")


def _readable(dates: NDArray[Any], most: int) -> Stretches | None:
    """Periods in the finest unit that gives at most `most` of them; None if the log is too short."""
    for every in PERIODS:
        found = _of_dates(dates, every)
        span = (found.end[-1] - found.start[0]) / (found.end[0] - found.start[0])
        if span <= most:
            return found if found.start.size >= _FEWEST else None
    return found


def _of_dates(dates: NDArray[Any], every: str) -> Stretches:
    begun = cut_to_periods(dates.astype("datetime64[us]"), every)[0]
    start, place = np.unique(begun, return_inverse=True)
    if every == "month":
        end = (start.astype("datetime64[M]") + 1).astype(start.dtype)
    else:
        end = start + {"hour": 3_600, "day": 86_400, "week": 604_800}[every] * np.timedelta64(1_000_000, "us")
    return Stretches(place.astype(np.int64), start, end, "date", every)


def _of_batches(batch: IntArray, dates: NDArray[Any] | None) -> Stretches:
    place = np.unique(batch, return_inverse=True)[1].astype(np.int64)
    if dates is None:
        numbers = np.arange(place[-1] + 1, dtype=np.float64)
        return Stretches(place, numbers + 0.5, numbers + 1.5, "batch", "batch")
    return _between(place, dates, "batch")


def _between(place: IntArray, dates: NDArray[Any], name: str) -> Stretches:
    """Stretches from each first date to the next; the last is no shorter than usual."""
    begun = dates.astype("datetime64[us]")[np.flatnonzero(np.diff(place, prepend=-1))]
    usual = np.median(np.diff(begun).astype(np.int64)) if begun.size > 1 else 0
    last = dates[-1].astype("datetime64[us]")
    least = begun[-1] + max(int(usual), 1_000_000) * np.timedelta64(1, "us")
    end = np.append(begun[1:], last if begun.size == 1 and last > begun[-1] else max(last, least))
    return Stretches(place, begun, end, "date", name)


def _width(n_rounds: int, steps: int) -> int:
    """Number of rounds per step, a multiple that is easy to read and limits the number of steps."""
    least = max(1.0, n_rounds / steps)
    power = 10 ** int(np.floor(np.log10(least)))
    return int(next(step * power for step in (1, 2, 5, 10) if step * power >= least))


def step_path(table: pd.DataFrame, columns: tuple[str, ...]) -> tuple[NDArray[Any], list[FloatArray]]:
    """A step line through a frame with start and end: three points per step, with gaps where needed.

    Returns the positions of the points on the axis, and each column at these points; the middle point of a
    step is for markers.
    """
    start, end = table["start"].to_numpy(), table["end"].to_numpy()
    middle = start + (end - start) / 2
    x = np.stack([start, middle, end], axis=1)
    values = [np.repeat(table[name].to_numpy(dtype=np.float64), 3) for name in columns]
    gaps = 3 * (np.flatnonzero(start[1:] != end[:-1]) + 1)
    at = np.insert(x.ravel(), gaps, end[gaps // 3 - 1])
    return at, [np.insert(value, gaps, np.nan) for value in values]
