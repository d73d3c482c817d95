"""Alarms: conditions checked while a trial is served, whose beginning and end are rows of the journal."""

from __future__ import annotations

import asyncio
import math
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from adaptinf.errors import AdaptinfError
from adaptinf.inference.diagnostics import diagnose
from adaptinf.inference.diagnostics.choice_checks import ANYTIME, CALIBRATION, RATIO
from adaptinf.log import AdaptiveLog
from adaptinf.service.figures import Figures
from adaptinf.service.settings import Alarms
from adaptinf.service.writer import Writer
from adaptinf.sessions.session_memory import logged
from adaptinf.trial.access import events_of, snapshots_stuck
from adaptinf.trial.journal_rows import Rows
from adaptinf.trial.operator_actions import FINISHED
from adaptinf.trial.replay import Replay
from adaptinf.trial.served_rows import alarm_row

OVERDUE, DISK, SNAPSHOT, IMBALANCE, CHECKS = "overdue", "disk", "snapshot", "imbalance", "checks"
NAMES = (OVERDUE, DISK, SNAPSHOT, IMBALANCE, CHECKS)
BY_ARM = (IMBALANCE, CHECKS)
"""Alarms that concern arms, which only a statistician and an unblinder may see."""
_AT_ONCE, _GROWTH, _FEWEST = 1_000, 1.25, 20
_LEVEL = 0.001
"""Probability that each of the two alarms about arms is ever raised falsely in a trial."""
_DAY, _GIGABYTE = 86_400.0, 1e9


class Watch:
    """Checks a trial at regular intervals, through its writer and independently of requests."""

    def __init__(self, writer: Writer, figures: Figures, settings: Alarms) -> None:
        self._writer, self._figures, self._settings = writer, figures, settings
        self._times: list[float] = []
        self._read = self._checked = 0
        self._by_arm = dict.fromkeys(BY_ARM, False)

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            try:
                await self.check()
            except (AdaptinfError, OSError) as error:
                self._figures.failures.labels(type(error).__name__).inc()
            await asyncio.sleep(self._settings.every_seconds)

    async def check(self) -> None:
        """Check once, and write the rows."""
        while (await self._writer.ask([self._read_times]))[0] == _AT_ONCE:
            pass
        (log,) = await self._writer.ask([self._log])
        if isinstance(log, AdaptiveLog):
            self._by_arm = await asyncio.to_thread(wrong_about_arms, log)
            self._checked = log.n_rounds
        full = self._full()
        await self._writer.ask([lambda replay: self._alarms(replay, full)])

    def _read_times(self, replay: Replay) -> tuple[int, None]:
        """Read the times of decisions, a limited number of rows at a time so that requests need not wait."""
        rows = events_of(self._writer.trial, replay, self._read, _AT_ONCE)
        times = [entry["time"] for _, entry in rows if entry["kind"] == "assign"]
        self._times += [datetime.fromisoformat(time).timestamp() for time in times]
        self._read = rows[-1][0] if rows else self._read
        return len(rows), None

    def _log(self, replay: Replay) -> tuple[AdaptiveLog | None, None]:
        """The log, if it has grown enough to be checked again."""
        rounds = replay.session.rounds
        if rounds < max(_FEWEST, _GROWTH * self._checked) or replay.state == FINISHED:
            return None, None
        try:
            return logged(replay.session, "drop", True, "keep"), None
        except AdaptinfError:  # Such a trial has no log to be checked.
            return None, None

    def _alarms(self, replay: Replay, full: bool) -> tuple[None, Rows]:
        stuck = snapshots_stuck(self._writer.trial, replay)
        state = {OVERDUE: self._overdue(replay), DISK: full, SNAPSHOT: stuck, **self._by_arm}
        if replay.state == FINISHED:
            state = dict.fromkeys(state, False)
        rows = [alarm_row(replay, name, raised) for name, raised in state.items()]
        return None, iter([row for row in rows if row is not None])

    def _overdue(self, replay: Replay) -> bool:
        """Whether an outcome has been pending for longer than allowed."""
        if self._settings.overdue_days is None:
            return False
        latest = datetime.now(UTC).timestamp() - _DAY * self._settings.overdue_days
        known = len(self._times)
        return any(self._times[one - 1] < latest for one in replay.session.pending if one <= known)

    def _full(self) -> bool:
        """Whether the disk that contains the trial's file is nearly full."""
        path: Any = self._writer.trial._requests.journal.path
        if not isinstance(path, Path):
            return False
        return shutil.disk_usage(path.parent).free < _GIGABYTE * self._settings.free_gigabytes


def wrong_about_arms(log: AdaptiveLog) -> dict[str, bool]:
    """Whether arms were not chosen with the probabilities that the log states.

    The anytime test is valid at all times simultaneously. The other tests are made each time the log has
    grown by a quarter, at levels that sum to at most that of the alarm.
    """
    look = 1 + int(math.log(max(1.0, log.n_rounds / _FEWEST), _GROWTH))
    level = _LEVEL / (look * (look + 1))
    found = diagnose(log)
    wealth = [check.log_pvalue for check in found.check(ANYTIME)]
    others = [check.log_pvalue for check in found.checks if check.name in (CALIBRATION, RATIO)]
    tested = [p for p in others if not math.isnan(p)]
    return {
        IMBALANCE: any(p <= math.log(_LEVEL) for p in wealth),
        CHECKS: any(p <= math.log(level / len(tested)) for p in tested),
    }
