"""Looks at a trial with a plan: each is computed once, recorded in a row, and may end the trial."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.log.stated_plans import GOES_ON, StatedPlan, ended, plan_from
from adaptinf.log.storage.stored import same_values
from adaptinf.log.traits import LOOKS, PLAN, STOP_REASON
from adaptinf.parameters import BOOLEAN, refuse
from adaptinf.sessions.participants import plain
from adaptinf.sessions.session_memory import first_rounds, logged
from adaptinf.texts import several
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.operator_actions import AMENDED_PLAN, FINISHED, LOOK, PAUSED, Acts, act_problems

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 12
_CLOSE = 1e-9
"""Largest relative difference that rounding may cause when a statistic or its bound is recomputed."""
NUMBERS = ("statistic", "bound")
ARMS = ("leading", "rejected", "dropped")
_COLUMNS = ("stage", "rounds", "time", *NUMBERS, *ARMS, "decision", "lost")
_BY = "the plan"
DAY = 86_400.0
"""Seconds of a day."""


class Due(NamedTuple):
    """A look that is due and its data: the participants up to it, all of whose outcomes have arrived."""

    plan: StatedPlan
    stage: int
    log: AdaptiveLog

    def computed(self) -> Ahead | None:
        """Compute the look, which may take a long time; None if it cannot be computed, as `take` explains."""
        try:
            return Ahead(self.log, self.plan.look(self.log, self.stage))
        except (ParameterError, InvalidForLog):
            return None


class Ahead(NamedTuple):
    """A look that was computed before the transaction that records it."""

    log: AdaptiveLog
    found: Any

    def serves(self, log: AdaptiveLog) -> bool:
        """Whether the look would use the same data now."""
        one, other = ({**log.arrays.by_field(), "units": log.units} for log in (self.log, log))
        return self.log.design == log.design and all(_same(one[name], other[name]) for name in one)


class PlannedLooks(Acts):
    """The looks of a trial, and their consequences."""

    recomputes = False
    """Whether looks are recomputed from the rows before them and compared with those recorded."""
    now = ""
    """The time, set by any caller that requests a change."""
    _read: tuple[Any, StatedPlan] | None = None
    """The plan, and the arguments from which it was made."""

    @property
    def by_date(self) -> bool:
        """Whether looks are due at times."""
        return self._clock == "date"

    @property
    def by_information(self) -> bool:
        """Whether looks are due at levels of information."""
        return self._clock == "information"

    @property
    def _clock(self) -> str:
        """What decides when looks are due; empty without a plan by date or information."""
        return str(self.declared.get(PLAN, {}).get("clock", ""))

    def noted(self, number: int, entry: Entry) -> None:
        """Also keep the times on which looks by date depend."""
        super().noted(number, entry)
        if not self.by_date or entry["kind"] not in ("assign", "record", "erase"):
            return
        at = _seconds(entry["time"])
        if entry["kind"] == "assign":
            if entry["round"] > len(self.moments):
                self.moments.append([at, math.inf])
            return
        one = self.moments[entry["decision"] - 1]
        if entry["kind"] == "record" or one[1] == math.inf:
            one[1] = at

    @cached_property
    def moments(self) -> list[list[float]]:
        """With looks by date: when each participant was assigned and each outcome recorded, in seconds."""
        return []

    @property
    def _begun(self) -> float | None:
        """When the trial began, in seconds; None before its first participant if the plan states no date."""
        moment = self._needed().start.moment
        if moment is not None:
            return float(moment.replace(tzinfo=UTC).timestamp())
        return self.moments[0][0] if self.moments else None

    @property
    def look_times(self) -> tuple[float, ...]:
        """When looks by date are due, in seconds; empty before the trial begins, and for other looks."""
        begun = self._begun if self.by_date else None
        return () if begun is None else tuple(begun + DAY * day for day in self.planned_at)

    def _complete(self, time: float = math.inf) -> int:
        """Number of participants before the first one whose outcome was pending at a time."""
        waiting = set(self.session.pending)
        for number, (arrived, known) in enumerate(self.moments):
            if number + 1 in waiting or max(arrived, known) > time:
                return number
        return len(self.moments)

    @property
    def plan(self) -> StatedPlan | None:
        """The trial's plan after its last change, if it has one."""
        stored = self.stated_plan
        if stored is not None and (self._read is None or self._read[0] != stored):
            self._read = stored, plan_from(stored, self.design)
        return None if stored is None or self._read is None else self._read[1]

    @property
    def stated_plan(self) -> dict[str, Any] | None:
        """Arguments of the plan, as last changed."""
        found: dict[str, Any] | None = self._planning.get(PLAN)
        return found

    @property
    def planned_at(self) -> list[Any]:
        """Numbers of participants, or days, at which the looks of the plan are due, after its last change."""
        found: list[Any] = self._planning.get(LOOKS, [])
        return found

    @property
    def _planning(self) -> Entry:
        """The entry that states the plan: that of its last change, or the first entry of the trial."""
        changed = [act for act in self.acts if act["kind"] == AMENDED_PLAN]
        return changed[-1] if changed else self.declared

    def amend_plan(self, looks: Any, reason: Any, by: Any, blinded: Any, changes: dict[str, Any]) -> Entry:
        """Change the looks that have not been taken, and return the row that states this."""
        problems = [*act_problems(reason, by), *BOOLEAN("blinded", blinded), *self._if_closed()]
        if self.state == FINISHED:
            problems.append("the trial is finished")
        plan = self._needed()
        if plan.arguments["law"] != "z":
            problems.append('only plans with law="z" can be changed')
        if ended(self.looks) is not None:
            problems.append("a look has ended the trial")
        elif self._due():
            problems.append("a look is due: take it first")
        if self._last_stage and blinded is not True:
            problems.append(
                "looks have been taken: blinded=True is required, because the level does not hold if results "
                "by arm determine later looks"
            )
        refuse("amend_plan", problems)
        stored: Any = plan
        changed = stored.amended(self._last_stage, looks, **changes)
        most = self.declared["horizon"]
        told = f"the trial can have at most {most:,} participants, got looks that need {changed.horizon:,}"
        refuse("amend_plan", [told] if changed.horizon > most else [])
        if changed.horizon < self.session.rounds:
            refuse("amend_plan", [f"{self.session.rounds:,} participants have been assigned already"])
        stated = {PLAN: changed.arguments, LOOKS: changed.looks.tolist(), "blinded": blinded}
        return {"kind": AMENDED_PLAN, **stated, "reason": reason, "by": by}

    def plan_amended_again(self, said: Entry) -> Entry:
        """The row of a change of the plan."""
        refuse(AMENDED_PLAN, act_problems(said["reason"], said["by"]))
        plan_from(said[PLAN], self.design)
        return said

    @property
    def looks(self) -> list[Entry]:
        """Looks so far, each with the action by which someone continued the trial that it had ended."""
        found: list[Entry] = []
        for act in self.acts:
            if act["kind"] == LOOK:
                found.append(
                    {**_as_look(act), "time": act["time"], "reason": act["reason"], "overridden": None}
                )
            elif act["kind"] == "resume" and found and found[-1]["decision"] != GOES_ON:
                found[-1]["overridden"] = found[-1]["overridden"] or act
        return found

    @property
    def ending(self) -> Entry | None:
        """The look at which the plan ended the trial, unless the trial was continued."""
        last: Any = ended(self.looks)
        return None if last is None or last["overridden"] else last

    @property
    def next_look(self) -> int | str | None:
        """Participants, time in UTC, or information at which the next look is due, if there is one."""
        taken, planned = self._last_stage, self.planned_at
        if len(planned) <= taken or ended(self.looks) is not None:
            return None
        if self.by_date:
            times = self.look_times
            return said_time(times[taken]) if times else None
        if self.by_information:
            return f"information {planned[taken]:g}"
        return int(planned[taken])

    @property
    def _last_stage(self) -> int:
        """Number of the last look."""
        return max((look["stage"] for look in self.looks), default=0)

    def due_look(self) -> Due | None:
        """The first look that is due after a number of participants and can be computed, if any."""
        plan = self._needed()
        due = [] if self.by_date or self.by_information else self._due()
        if not due or self._if_closed() or self._waiting(int(plan.looks[due[0] - 1])):
            return None
        return Due(plan, due[0], self._used(plan, due[0]))

    def take(self, ahead: Ahead | None = None) -> Iterator[tuple[Any, Entry | None]]:
        """The looks that are due, in order, each with its row; if none is due, the last look without a row.

        The first look may have been computed in advance, so that no one has to wait for it here.
        """
        plan = self._needed()
        refuse("look", self._if_closed())
        due = self._due()
        if not due:
            yield self._latest(plan), None
        for place, stage in enumerate(due):
            counted = not (self.by_date or self.by_information)
            waiting = self._waiting(int(plan.looks[stage - 1])) if counted else []
            if waiting and place:
                return
            refuse("look", self._waiting_told(stage, plan.looks[stage - 1], waiting))
            entry = self._look(plan, stage, None if place else ahead)
            self._decide(entry)
            found = plan.recorded(_as_look(entry))
            yield found, entry
            for arm in found.dropped:
                if arm not in self.removed:
                    _, row = self.remove_arm(arm, f"look {stage}: {arm}", entry["reason"], _BY)
                    yield found, row
            if entry["verdict"] != GOES_ON:
                return

    def _needed(self) -> StatedPlan:
        if self.plan is None:
            raise ParameterError("look", ["the trial has no plan: create it with Trial.create(path, plan)"])
        return self.plan

    def _due(self) -> list[int]:
        """Numbers of the looks that are due."""
        if self.by_date:
            # Once all outcomes of the horizon are known, nothing more can be, and the next look is the last.
            full = self._complete() >= self.declared["horizon"]
            now = _seconds(self.now)
            reached = sum(time <= now for time in self.look_times)
            reached = max(reached, self._last_stage + 1) if full else reached
        elif self.by_information:
            reached = self._informed()
        else:
            reached = sum(rounds <= self.session.rounds for rounds in self.planned_at)
        return [] if self.next_look is None else list(range(self._last_stage + 1, reached + 1))

    def _informed(self) -> int:
        """Number of looks by information that have been reached."""
        known = self._known() if self.next_look is not None else None
        return 0 if known is None else int(self._needed().look(self.planned(known)).stage)

    def _known(self) -> AdaptiveLog | None:
        """The log of the rounds before the first pending outcome; None if there are none."""
        rounds = min(self.session.pending, default=self.session.rounds + 1) - 1
        return first_rounds(logged(self.session, "drop", True, "keep"), rounds) if rounds else None

    def _latest(self, plan: StatedPlan) -> Any:
        """The last look, or a statement that there was none."""
        return plan.recorded([{"stage": 0, "rounds": 0, "decision": GOES_ON}, *self.looks][-1])

    def _waiting(self, rounds: int) -> list[int]:
        """Decisions among the first `rounds` rounds whose outcomes have not arrived."""
        return [decision for decision in self.session.pending if decision <= rounds]

    @staticmethod
    def _waiting_told(stage: int, rounds: Any, waiting: Sequence[int]) -> list[str]:
        if not waiting:
            return []
        one = len(waiting) == 1
        few, which = "outcome has" if one else "outcomes have", "decision" if one else "decisions"
        return [
            f"look {stage} is after {rounds:,} participants, and {len(waiting):,} {few} not arrived ({which} "
            f"{several(list(map(str, waiting)), _SHOWN)}): record each, as None if it will never arrive, and "
            "look again"
        ]

    def _used(self, plan: StatedPlan, stage: int, also: Sequence[Entry] = ()) -> AdaptiveLog:
        """The log that a look uses: rounds up to the look, even if others have begun, unless by date."""
        if self.by_information and (known := self._known()) is not None:
            return self.planned(known, also)
        log = logged(self.session, "drop", True, "keep")
        return self.planned(log if self.by_date else first_rounds(log, int(plan.looks[stage - 1])), also)

    def _look(self, plan: StatedPlan, stage: int, ahead: Ahead | None = None) -> Entry:
        """The row of a look."""
        found, lost = self._found(plan, stage, ahead)
        numbers = {name: float(getattr(found, name)) for name in NUMBERS}
        told = f"look {found.stage} of {len(plan.looks)}, {found.taken}: {found.decision}"
        return {
            "kind": LOOK,
            "stage": found.stage,
            "rounds": found.rounds,
            **{name: None if math.isnan(number) else number for name, number in numbers.items()},
            "verdict": found.decision,
            **{name: plain_list(getattr(found, name)) for name in ARMS},
            "lost": lost,
            "reason": told,
        }

    def _found(self, plan: StatedPlan, stage: int, ahead: Ahead | None) -> tuple[Any, int]:
        """A look, and the number of lost outcomes that it would have used."""
        also: list[Entry] = []
        if self.by_date:
            rounds = self._complete(self.look_times[stage - 1])
            told = {"stage": stage, "rounds": rounds, "decision": GOES_ON, "overridden": False}
            also = [told]
            if not rounds:
                last = "too few data" if stage == len(plan.looks) else GOES_ON
                return plan.recorded({**told, "decision": last}), 0
        log = self._used(plan, stage, also)
        found = ahead.found if ahead is not None and ahead.serves(log) else plan.look(log, stage)
        return found, int(np.count_nonzero(np.isnan(log.arrays.recorded[: found.rounds])))

    def _decide(self, entry: Entry) -> None:
        """Assign no more participants if the look ended the trial."""
        if entry["verdict"] != GOES_ON and self.state != FINISHED:
            self.state, self.reason = PAUSED, entry["reason"]

    def looked_again(self, said: Entry) -> Entry:
        """The row of a look, recomputed if requested."""
        plan = self._needed()
        refuse("look", act_problems(said["reason"], _BY))
        made = self._look(plan, self._last_stage + 1) if self.recomputes else said
        self._decide(said)
        close = all(_close(made[name], said[name]) for name in NUMBERS)
        return (
            said if close and all(made[name] == said[name] for name in made if name not in NUMBERS) else made
        )

    def turn(self, kind: str, reason: Any, by: Any = None) -> Entry | None:
        """Pause, resume or finish; the plan states the reason for finishing a trial that it ended."""
        ending = self.ending
        if kind == "finish" and reason is None and PLAN in self.declared:
            if ending is None:
                raise ParameterError(
                    "finish", ["reason is required: no look of the plan has ended the trial"]
                )
            reason = ending["reason"]
        if kind == "resume" and ending is not None and by is None:
            problem = f"by is required: {ending['reason']}, and someone must answer for continuing"
            refuse("resume", [problem])
        return super().turn(kind, reason, by)

    @property
    def cut_short(self) -> bool:
        """Whether the trial was finished early by hand, and not by its plan."""
        return super().cut_short and ended(self.looks) is None

    @property
    def ended(self) -> str:
        """Why no guarantee covers the number of rounds."""
        if not self.looks:
            return super().ended
        return (
            f"the trial's plan looked at outcomes after {self.looks[-1]['rounds']:,} participants to decide "
            "whether it continues"
        )

    def planned(self, log: AdaptiveLog, also: Sequence[Entry] = ()) -> AdaptiveLog:
        """The log with the plan, its looks and further looks; the same log if there is no plan."""
        if PLAN not in self.declared or log.design is None:
            return log
        kept = ("stage", "rounds", *NUMBERS, *ARMS, "decision")
        looks = [
            {**{name: look[name] for name in kept if name in look}, "overridden": bool(look["overridden"])}
            for look in self.looks
        ]
        told = {**log.design.parameters, PLAN: self.stated_plan, LOOKS: [*looks, *also]}
        if (last := ended(self.looks)) is not None:
            told[STOP_REASON] = last["reason"]
        made = copy(log if self.cut_short else log.stating("planned"))
        made.design, made.kept = replace(log.design, parameters=told), {}
        return made


def said_time(seconds: float) -> str:
    """A time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _same(one: Any, other: Any) -> bool:
    """Whether two columns, or groups of columns by name, have the same contents."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if one is None or other is None:
        return one is other
    return same_values(one, other)


def plain_list(value: Any) -> Any:
    """Labels in the form in which rows store them."""
    return [plain(one) for one in value] if isinstance(value, tuple) else plain(value)


def looks_frame(looks: Sequence[Entry]) -> pd.DataFrame:
    """Looks as a table."""
    import pandas as pd

    rows = [
        {
            **{name: look.get(name, math.nan) for name in _COLUMNS},
            "continued_by": look["overridden"] and look["overridden"]["by"],
            "continued_because": look["overridden"] and look["overridden"]["reason"],
        }
        for look in looks
    ]
    return pd.DataFrame(rows, columns=[*_COLUMNS, "continued_by", "continued_because"])


def _as_look(entry: Entry) -> Entry:
    """A look, from its row, in the form in which logs store it."""
    numbers = {name: entry[name] for name in NUMBERS if entry[name] is not None}
    known = {name: entry[name] for name in ("stage", "rounds", "lost", *ARMS)}
    return {**known, **numbers, "decision": entry["verdict"]}


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE) or one == other


class LookOperations:
    """The looks of a trial, as seen by its operator."""

    _requests: Any

    def look(self) -> Any:
        """Take the look of the plan that is due, record it, and follow its decision.

        A look uses the participants up to its round, all of whose outcomes must have arrived. If its decision
        ends the trial, no more participants are assigned; `finish` then ends it permanently, and `resume`
        continues against the plan, which all later tables state. Looks that were not taken in time are taken
        in order. While the first of them is computed, other processes can use the trial; while looks by date
        are computed, other processes wait.

        Returns
        -------
        Look
            The stage, the number of participants, the statistic, the critical value and the decision; it
            prints as a table. If no new look is due, the last one, as it was recorded; its stage is 0 if
            there was none.

        Raises
        ------
        ParameterError
            If the trial has no plan, it is a copy, or outcomes have not arrived. Nothing has changed in this
            case.
        InvalidForLog
            If the design records no propensities, or a comparison by rank lacks outcomes.
        FileError
            As in `assign`.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> plan = ai.Plan(ai.designs.Uniform(), arms=["A", "B"], treatment="B", control="A", looks=[2, 4])
        >>> with ai.Trial.create(f"{tempfile.mkdtemp()}/trial.db", plan) as trial:
        ...     print(trial.look())
        ...     made = trial.assign_many(["Ann", "Bob"], keys=["a1", "a2"])
        ...     told = trial.record_many([1, 2], [1.0, 0.0], keys=["r1", "r2"])
        ...     print(trial.look())
        No look yet: the first of 2 is after 2 participants
        Look 1 of 2, after 2 participants
          statistic  too few data for a test
          decision   continue
          next look  after 4 participants
        """
        due = self._requests.read(lambda replay: replay.due_look())
        ahead = None if due is None else due.computed()
        return self._requests.change_all(lambda replay: replay.take(ahead))[-1]

    def looks(self) -> pd.DataFrame:
        """The looks so far, for a data monitoring committee.

        Returns
        -------
        DataFrame
            One row per look: `stage`, `rounds`, `time`, `statistic`, `bound` and `decision`; `lost`, the
            number of outcomes that will never arrive; and `continued_by`, who continued the trial after a
            decision to end it, with `continued_because`.
        """
        return looks_frame(self._requests.read(lambda replay: replay.looks))

    def amend_plan(
        self, looks: Sequence[Any], *, reason: str, by: str, blinded: bool = False, **changes: Any
    ) -> None:
        """Change the looks that have not been taken, and with them the length of the trial.

        Alpha that earlier looks have spent stays spent, as in `Plan.amended`; the journal and the log state
        the change.

        Parameters
        ----------
        looks : sequence
            All looks; the first ones must be those that were taken. The last may be at most the trial's
            horizon, as given to `Trial.create`.
        reason, by : str
            The reason and the person responsible; the journal stores both.
        blinded : bool
            Whether no one who decided on the change had seen results by arm. Required once a look has been
            taken: the level does not hold if results by arm determine later looks.
        **changes
            As in `Plan.amended`, plain values.

        Raises
        ------
        ParameterError
            If the trial has no plan, is finished, a look has ended it, or one is due; if a look that was
            taken would change, or `blinded` is required. Nothing has changed in this case.
        FileError
            As in `assign`.

        Examples
        --------
        >>> import adaptinf as ai
        >>> import tempfile
        >>> plan = ai.Plan(ai.designs.Uniform(), arms=["A", "B"], treatment="B", control="A", looks=[2, 4])
        >>> with ai.Trial.create(f"{tempfile.mkdtemp()}/trial.db", plan, horizon=10) as trial:
        ...     trial.amend_plan([3, 6], reason="more sites join", by="the sponsor")
        ...     trial.status().next_look
        3
        """
        self._requests.change(lambda replay: (None, replay.amend_plan(looks, reason, by, blinded, changes)))
