"""The log as of an earlier round: its first rounds, with the outcomes known by then."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from adaptinf.claims.logs import readings as claims
from adaptinf.errors import ParameterError
from adaptinf.log.report import FIXED, STOPPINGS, Reading
from adaptinf.log.storage.view import LogColumns
from adaptinf.log.traits import ADDED, AMENDED, LEFT_OUT, LOOKS, PLANNED, REMOVED, STOP_REASON, SWITCHED
from adaptinf.log.validation import DesignRecord, LogArrays, arrays_of
from adaptinf.log.validation.check import MEANINGS
from adaptinf.parameters import OneOf, OrNone, problems_of, refuse
from adaptinf.texts import shown
from adaptinf.typing import BoolArray

_MISSING = OrNone(OneOf(*MEANINGS))
_STOPPING = OrNone(OneOf(*STOPPINGS))
_DAY = len("2026-03-01")


class Interim(LogColumns):
    """The state of a log at an earlier time."""

    __iter__ = None
    """Refuse iteration: a log is not a sequence of rows, although `log[:n]` is its beginning; use `frame`."""

    def until(self, round: Any, *, missing: str | None = None, stopping: str | None = None) -> Self:
        """The log as of an earlier round, for an interim analysis.

        Parameters
        ----------
        round : int, float, str, date or datetime
            The last round, counted or timed as in the log's ``round=``; a date includes the whole day. Times
            without a zone are taken to be in UTC if the log's times had zones.
        missing : {"drop", "bounds", "worst", "best"}, optional
            How to treat outcomes that were not yet known: required if the log has an ``outcome_round=`` and
            there are such outcomes. By default as in the log.
        stopping : {"fixed", "data-chosen", "planned"}, optional
            Why the analysis ends there, as for `AdaptiveLog`. By default ``"data-chosen"``, because a
            complete log could be cut at the most favourable round. Use ``"fixed"`` if the date of the
            analysis was set in advance, and ``"planned"`` if a stopping rule was set in advance.

        Returns
        -------
        AdaptiveLog
            The rounds up to that point, with all arms. Outcomes that became known later are missing, and
            releases made later are omitted. The original log is not changed.

        Raises
        ------
        ParameterError
            If arguments are inconsistent (the message lists every problem): no round had begun, `missing` is
            needed, or the log does not show which outcomes were known by then, because outcomes were amended
            or participants erased.

        See Also
        --------
        AdaptiveLog.public : What the guarantee covers.

        Notes
        -----
        ``log[:n]`` contains the first n rounds as of the time when the next one began.

        A guarantee for the whole log also covers its beginning, which is part of the same outputs, provided
        that the cut depends on rewards only through these outputs. A guarantee for persons counts only their
        rounds in this part of the log. The design's record keeps the planned number of rounds, on which its
        choices were based; information that was known only at the end, such as the recommended arm or a
        reason for stopping, is omitted. The numbers of rounds that could affect later actions and releases
        become upper bounds.

        The last batch may be incomplete. Only beginnings can be extracted, because later arms were chosen
        based on earlier rounds; to restrict a model to some rounds, use ``rounds=``.

        Examples
        --------
        >>> import adaptinf as ai
        >>> design = ai.designs.Thompson(floor=0.1)
        >>> log = design.run(ai.environments.BernoulliArms([0.3, 0.6]), horizon=1000, rng=0)
        >>> interim = log.until(500, stopping="fixed")
        >>> len(interim), interim.design.parameters["planned_rounds"], log[:500].stopping
        (500, 1000, 'data-chosen')
        """
        subject = "AdaptiveLog.until"
        problems = problems_of(missing=(missing, _MISSING), stopping=(stopping, _STOPPING))
        rounds = np.arange(1, self.n_rounds + 1) if self._rounds is None else self._rounds
        limit = _limit_of(rounds, round)
        if limit is None:
            kind = "a time or a date (2026-03-01T12:00)" if rounds.dtype.kind == "M" else "a finite number"
            problems.insert(0, f"round must be {kind}, like the log's rounds, got {shown(round)}")
        refuse(subject, problems)
        assert limit is not None
        count = int(np.count_nonzero(limit.holds(rounds)))
        if not count:
            first = rounds[0].item() if rounds.dtype.kind != "M" else str(rounds[0])
            raise ParameterError(
                subject, [f"no round had begun by {shown(round)}: the first round is {first}"]
            )
        if self._outcome_rounds is not None:
            pending = ~limit.holds(self._outcome_rounds[:count])
        else:
            pending = _pending(self.arrays, count)
        part: Self = _beginning(self, count, pending, subject, missing, stopping)
        return part

    def __getitem__(self, rounds: slice) -> Self:
        count = _slice_end(rounds, self.n_rounds)
        part: Self = _beginning(self, count, _pending(self.arrays, count), "AdaptiveLog", None, None)
        return part


_ONLY_BEGINNINGS = (
    "log[:n] is the log of the first n rounds; other slices are not available, because earlier rounds "
    "affected the propensities of later ones: use rounds= of a model to select rounds, or log.frame to "
    "select rows"
)


def _slice_end(rounds: object, n_rounds: int) -> int:
    """The number of rounds of a slice, which must begin with the first round."""
    if not isinstance(rounds, slice) or rounds.step not in (None, 1):
        raise ParameterError("AdaptiveLog", [_ONLY_BEGINNINGS])
    try:
        start, count, _ = rounds.indices(n_rounds)
    except TypeError:
        problem = "log[:n] requires a number of rounds, and log.until a time or a date"
        raise ParameterError("AdaptiveLog", [problem]) from None
    refuse(
        "AdaptiveLog",
        [_ONLY_BEGINNINGS] if start else [] if count else ["log[:n] must contain at least one round"],
    )
    return count


class _Limit:
    """A number or a time up to which values count."""

    def __init__(self, value: Any, inclusive: bool = True) -> None:
        self._value, self._inclusive = value, inclusive

    def holds(self, values: NDArray[Any]) -> BoolArray:
        """Whether each value is within the limit, an array of the same shape; False for missing values."""
        return np.asarray(values <= self._value if self._inclusive else values < self._value, dtype=bool)


def _limit_of(rounds: NDArray[Any], given: Any) -> _Limit | None:
    """The user's limit converted to the type of the rounds; None if it has another type."""
    if rounds.dtype.kind != "M":
        return _Limit(float(given)) if _is_number(given) else None
    if isinstance(given, np.datetime64):
        given = given.item() if isinstance(given.item(), date) else given.astype("datetime64[us]").item()
    whole = isinstance(given, date) and not isinstance(given, datetime)
    if isinstance(given, str):
        whole = len(given.strip()) <= _DAY
        try:
            given = datetime.fromisoformat(given.strip())
        except ValueError:
            return None
    if whole:
        day = datetime(given.year, given.month, given.day)
        return _Limit(np.datetime64(day + timedelta(days=1)), inclusive=False)
    if not isinstance(given, datetime):
        return None
    return _Limit(np.datetime64(given.astimezone(UTC).replace(tzinfo=None) if given.tzinfo else given))


def _is_number(value: object) -> bool:
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return real and math.isfinite(value)  # type: ignore[arg-type]


def _pending(arrays: LogArrays, count: int) -> BoolArray:
    """Which of the first `count` outcomes were unknown when the next round began, of shape (count,)."""
    return np.zeros(count, dtype=bool) if arrays.known is None else arrays.known[:count] > count


def _beginning(
    log: Any, count: int, pending: BoolArray, subject: str, missing: str | None, stopping: str | None
) -> Any:
    """The first rounds of a log, without pending outcomes; pending has shape (count,)."""
    if log.arrays.observed is not None:
        pending = pending & log.arrays.observed[:count]
    if count == log.n_rounds and not pending.any():
        return copy(log) if stopping is None else copy(log.stating(stopping))
    later = int(np.count_nonzero(pending))
    refuse(subject, _problems(log, count, later, missing or log.missing, stopping))
    part = copy(log)
    columns = {name: _first(values, count) for name, values in log.arrays.by_field().items()}
    reward = columns["reward"] = np.where(pending, np.nan, columns["reward"])
    if np.isnan(reward).all():
        raise ParameterError(subject, ["no outcome was known by then"])
    if columns["known"] is not None:
        columns["known"] = np.where(pending, count, np.minimum(columns["known"], count))
    part.arrays, part.n_rounds = arrays_of(columns), count
    stated = np.isnan(reward).any() or columns["observation"] is not None
    part.missing = (missing or log.missing) if stated else None
    part._rounds = _first(log._rounds, count)
    part.units, part.ids = _first(log.units, count), _first(log.ids, count)
    part._outcome_rounds = _known_only(_first(log._outcome_rounds, count), pending)
    part.feedback_rounds, part.released_rounds = _moving(log, columns["known"], count)
    part.recommended, part.stopping = None, stopping or "data-chosen"
    part.design = None if log.design is None else _record(log, log.design, count)
    made = log.releases["round"].isna() | (log.releases["round"] > count)
    part._releases, part._frame, part.kept = log.releases[~made].reset_index(drop=True), None, {}
    told = claims.BEGINNING(
        kept=count,
        rounds=log.n_rounds,
        pending=claims.PENDING(count=later) if later else "",
        releases=claims.LATER_RELEASES(count=int(made.sum())) if made.any() else "",
    )
    return part.read_from(log._source, [Reading("dropped", told)])


def _first(values: Any, count: int) -> Any:
    """The first entries of a column, or of each column in a mapping."""
    if isinstance(values, Mapping):
        return {name: column[:count] for name, column in values.items()}
    return None if values is None else values[:count]


def _known_only(rounds: NDArray[Any] | None, pending: BoolArray) -> NDArray[Any] | None:
    """Times at which outcomes became known, without those of pending outcomes; shapes (count,)."""
    if rounds is None or not pending.any():
        return rounds
    absent = np.datetime64("NaT") if rounds.dtype.kind == "M" else np.nan
    return np.where(pending, absent, rounds)


def _problems(log: Any, count: int, later: int, missing: str | None, stopping: str | None) -> list[str]:
    """Reasons why a log cannot show the outcomes known by then; `later` is the number of unknown ones."""
    told = {} if log.design is None else log.design.parameters
    problems = []
    if left_out := told.get(LEFT_OUT):
        problems.append(
            f"{left_out:,} rounds of erased participants are omitted, and the log does not record which: "
            'use trial.log(erased="keep")'
        )
    if amended := told.get(AMENDED):
        problems.append(
            f"{amended:,} outcomes were amended, and the log does not record when: use log(amended=False), "
            "which has the original values"
        )
    if stopping == "planned" and _by_releases(log) and count < log.n_rounds:
        problems.append(
            "stopping='planned' refers to the design's own stopping rule: use 'fixed' or 'data-chosen'"
        )
    few = "1 outcome was not known by then" if later == 1 else f"{later:,} outcomes were not known by then"
    if later and missing is None:
        problems.append(f'{few}: set log.until(..., missing="drop" or "bounds") to define what that means')
    if later and missing not in (None, "drop") and not np.isfinite(log.reward_range or np.nan).all():
        problems.append(f"missing={missing!r} requires a finite reward_range")
    if later and log.arrays.observation is not None:
        problems.append(
            f"{few}, but observation= contains the probabilities that outcomes are eventually observed"
        )
    if later and log.outcomes:
        names = ", ".join(map(repr, log.outcomes))
        problems.append(f"{few}, but every outcome in outcomes= ({names}) must be known")
    return problems


def _by_releases(log: Any) -> bool:
    """Whether the design's releases determine when the design ends."""
    traits = None if log.design is None else log.design.traits
    return traits is not None and traits.outputs is not None and traits.outputs.length == "releases"


def _moving(log: Any, known: NDArray[Any] | None, count: int) -> tuple[int | None, int | None]:
    """Upper bounds on the numbers of rewards that can have affected a later action, and a release."""
    actions, releases = log.feedback_rounds, log.released_rounds
    if actions is not None:
        last = count - 1 if known is None else int(np.count_nonzero(known < count))
        actions = min(actions, last)
    # The log states that it is adaptive for all of its rounds, which a count of 0 would contradict, so the
    # count is left unknown.
    if actions == 0 and log.adaptive:
        actions = None
    return actions, None if releases is None else min(releases, count)


def _record(log: Any, record: DesignRecord, count: int) -> DesignRecord:
    """The design's record as of that time, with the planned number of rounds."""
    dated = (REMOVED, ADDED, SWITCHED)
    told = {name: value for name, value in record.parameters.items() if name not in (STOP_REASON, *dated)}
    for name in dated:
        if changed := [[what, before] for what, before in record.parameters.get(name, ()) if before < count]:
            told[name] = changed
    if LOOKS in told:
        told[LOOKS] = [look for look in told[LOOKS] if look["rounds"] <= count]
    if log.stopping in (None, FIXED) or _by_releases(log):
        told.setdefault(PLANNED, log.n_rounds)
    return replace(record, parameters=told)
