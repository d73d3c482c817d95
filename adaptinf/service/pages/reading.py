"""The data of a trial that pages show: read in one turn of its writer, and processed outside it."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import AdaptiveLog
from adaptinf.log.traits import LOOKS, PLAN
from adaptinf.service.pages.parts import moment
from adaptinf.service.problems import Problem
from adaptinf.service.requested import Act, status_of, unblinded
from adaptinf.service.supply_requests import stock_seen
from adaptinf.service.writer import Writer
from adaptinf.sessions.session_memory import decision_of, unit_of
from adaptinf.trial import Trial
from adaptinf.trial.journal_rows import Rows
from adaptinf.trial.operator_actions import Act as Done
from adaptinf.trial.operator_actions import act_of
from adaptinf.trial.replay import Replay
from adaptinf.trial.supplies.supply import named_at

_Answer = TypeVar("_Answer")
_ROWS = 500
"""Number of rows whose times are read in one turn, so that requests need not wait for all rows."""
_WHOLE = re.compile(r"-?[0-9]{1,15}")
_FIRST = 1
"""The row that declares the trial."""
_TURNS = ("pause", "resume", "finish")
_DECLARED = (
    *("design", "parameters", "arms", "horizon", "features", "dimension", "per_arm", "reward_range"),
    *("outcome_window", "in_time", "versions", PLAN, LOOKS),
)
"""Facts that are known to a reader of the protocol; never the seed."""


class Asker(NamedTuple):
    """The sender of a request: the digest of a token, and the roles, one of which it must have."""

    digest: str
    roles: tuple[str, ...]


class Stand(NamedTuple):
    """The head of the journal, the log so far (None before the first participant), and pending decisions."""

    head: str
    log: AdaptiveLog | None
    pending: tuple[int, ...]


@dataclass(frozen=True)
class Facts:
    """Facts about a trial that reveal neither arms nor outcomes."""

    status: dict[str, Any]
    """State and counts, as reported by the service."""
    pending: tuple[int, ...]
    window: int | None
    looks: tuple[int, ...]
    """Participants at each planned look; empty for other looks."""
    dates: tuple[float, ...] | None
    """Times of looks by date, in seconds, empty before the trial begins; None for other looks."""
    levels: tuple[float, ...]
    """Information at each planned look; empty for other looks."""
    taken: int
    promised: PrivacyGuarantee | None
    """The guarantee of a private design when the trial began."""
    turns: tuple[Done, ...]
    """When the trial was paused, resumed and finished."""

    @property
    def planned(self) -> list[tuple[str, bool]]:
        """Participants, information or time at each planned look, and whether it is known to be reached."""
        rounds, now = self.status["rounds"], time.time()
        by_rounds = [(f"{after:,}", after <= rounds) for after in self.looks]
        by_information = [(f"{level:g}", False) for level in self.levels]
        return by_rounds or by_information or [(moment(when), when <= now) for when in self.dates or ()]

    @property
    def overdue(self) -> tuple[int, ...]:
        """Pending decisions whose window has ended."""
        if self.window is None:
            return ()
        return tuple(one for one in self.pending if one <= self.status["rounds"] - 1 - self.window)


def facts_of(trial: Trial) -> Act:
    """State and counts, without arms."""
    counted = status_of(trial)

    def act(replay: Replay) -> tuple[Facts, None]:
        status, _ = counted(replay)
        planned = tuple(replay.planned_at)
        levels = planned if replay.by_information else ()
        stated = () if replay.by_date or levels else planned
        promised = replay.design.guarantee(replay.declared["horizon"], len(replay.session.arms))
        turns = tuple(act_of(one) for one in replay.acts if one["kind"] in _TURNS)
        window, taken = replay.declared.get("outcome_window"), len(replay.looks)
        counts = window, stated, replay.look_times if replay.by_date else None, levels, taken
        return Facts(status, replay.session.pending, *counts, promised, turns), None

    return act


def looks_taken(replay: Replay) -> tuple[list[dict[str, Any]], None]:
    """The looks so far, with their decisions."""
    return replay.looks, None


def declared(replay: Replay) -> tuple[dict[str, Any], None]:
    """The declaration made when the trial was created."""
    return {name: replay.declared[name] for name in _DECLARED if name in replay.declared}, None


def supplied(role: str) -> Act:
    """Kits at each site, in the detail that a role may see; None if the trial is not blinded."""
    return lambda replay: (stock_seen(replay, role) if replay.blinded else None, None)


def sites_of(replay: Replay) -> tuple[list[str], None]:
    """The sites of the trial."""
    return list(replay.supply.sites), None


def revealed(text: str, reason: str, by: str, site: str | None) -> Act:
    """Reveal the arm of the participant whose name was entered, which is a text or a whole number."""

    def act(replay: Replay) -> tuple[Any, Rows]:
        known = decision_of(replay.session, named_at(site, text)) is not None
        unit = int(text) if not known and _WHOLE.fullmatch(text) else text
        return unblinded(unit, reason, by, site)(replay)

    return act


def units_of(decisions: tuple[int, ...]) -> Act:
    """Participants of some decisions."""
    return lambda replay: ([unit_of(replay.session, one) for one in decisions], None)


class Reading:
    """Answers of the writer, and quantities computed from the log, once for each state of the trial."""

    def __init__(self, trial: Trial, writer: Writer) -> None:
        self.trial, self._writer = trial, writer
        self._times: list[float] = []
        self._read = _FIRST
        self._stand = Stand("", None, ())
        self._kept: dict[str, tuple[str, Any]] = {}
        # Matplotlib can be used by one thread at a time.
        self._pool = ThreadPoolExecutor(1, "trial pages")
        self._turn = asyncio.Lock()

    async def ask(self, act: Act, asker: Asker) -> Any:
        """The answer to one action; a `Problem` if it was refused."""
        (answer,) = await self._writer.ask([act], asker.digest, asker.roles)
        return answer

    async def times(self, asker: Asker) -> list[float] | Problem:
        """The time at which each participant was assigned, in seconds; rows are read only once."""
        while True:
            more = await self.ask(self._some_times, asker)
            if isinstance(more, Problem):
                return more
            if not more:
                return self._times

    def _some_times(self, _: Replay) -> tuple[bool, None]:
        journal = self.trial._requests.journal
        if journal.rows < self._read:  # A server that was restored has fewer rows.
            self._times, self._read = [], _FIRST
        rows = journal.between(self._read + 1, min(self._read + _ROWS, journal.rows))
        self._times += [
            datetime.fromisoformat(entry["time"]).timestamp()
            for _, entry in rows
            if entry["kind"] == "assign" and entry["round"] > len(self._times)
        ]
        self._read = rows[-1][0] if rows else self._read
        return len(rows) == _ROWS, None

    async def stand(self, asker: Asker) -> Stand | Problem:
        """The log so far, in which pending outcomes are missing."""

        def act(replay: Replay) -> tuple[Stand, None]:
            head, session = self.trial._requests.journal.head, replay.session
            if self._stand.head != head:
                made = self.trial._logged(replay, "drop", True, "keep") if session.rounds else None
                self._stand = Stand(head, made, session.pending)
            return self._stand, None

        found: Stand | Problem = await self.ask(act, asker)
        return found

    async def computed(self, name: str, head: str, compute: Callable[[], _Answer]) -> _Answer:
        """A quantity that depends on the state of the trial, computed in a separate thread."""
        async with self._turn:
            known, value = self._kept.get(name, ("", None))
            if known != head:
                value = await asyncio.get_running_loop().run_in_executor(self._pool, compute)
                self._kept[name] = head, value
            found: _Answer = value
            return found
