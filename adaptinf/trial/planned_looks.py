"""Looks at a trial with a plan: each is computed once, recorded in a row, and may end the trial."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.log.stated_plans import GOES_ON, StatedPlan, ended, plan_from
from adaptinf.log.traits import LOOKS, PLAN, STOP_REASON
from adaptinf.parameters import refuse
from adaptinf.sessions.participants import plain
from adaptinf.sessions.session_memory import logged
from adaptinf.texts import several
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.operator_actions import FINISHED, LOOK, PAUSED, Acts, act_problems

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 12
_CLOSE = 1e-9
"""Relative difference of a statistic, or of its bound, that rounding may make when it is recomputed."""
NUMBERS = ("statistic", "bound")
ARMS = ("leading", "rejected", "dropped")
_COLUMNS = ("stage", "rounds", "time", *NUMBERS, *ARMS, "decision", "lost")
_BY = "the plan"


class PlannedLooks(Acts):
    """The looks of a trial, and what follows from them."""

    recomputes = False
    """Whether looks are recomputed from the rows before them, and compared."""

    @cached_property
    def plan(self) -> StatedPlan | None:
        """The trial's plan, if it has one."""
        stored = self.declared.get(PLAN)
        return None if stored is None else plan_from(stored, self.design)

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
        """The look at which the plan ended the trial, unless someone continued it."""
        last: Any = ended(self.looks)
        return None if last is None or last["overridden"] else last

    @property
    def next_look(self) -> int | None:
        """Number of participants after which the next look is due; None if there is none."""
        taken, planned = self._last_stage, self.declared.get(LOOKS, [])
        done = len(planned) <= taken or ended(self.looks) is not None
        return None if done else int(planned[taken])

    @property
    def _last_stage(self) -> int:
        """Number of the last look."""
        return max((look["stage"] for look in self.looks), default=0)

    def take(self) -> Iterator[tuple[Any, Entry | None]]:
        """The looks that are due, in order, each with its row; or the last one again, without a row."""
        plan = self._needed()
        refuse("look", self._if_closed())
        due = self._due()
        if not due:
            yield self._latest(plan), None
        for place, stage in enumerate(due):
            waiting = self._waiting(int(plan.looks[stage - 1]))
            if waiting and place:
                return
            refuse("look", self._waiting_told(stage, int(plan.looks[stage - 1]), waiting))
            entry = self._look(plan, stage)
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
        reached = sum(rounds <= self.session.rounds for rounds in self.declared[LOOKS])
        return [] if self.next_look is None else list(range(self._last_stage + 1, reached + 1))

    def _latest(self, plan: StatedPlan) -> Any:
        """The last look, or that there was none."""
        return plan.recorded([{"stage": 0, "rounds": 0, "decision": GOES_ON}, *self.looks][-1])

    def _waiting(self, rounds: int) -> list[int]:
        """Decisions among the first rounds whose outcomes have not arrived."""
        return [decision for decision in self.session.pending if decision <= rounds]

    @staticmethod
    def _waiting_told(stage: int, rounds: int, waiting: Sequence[int]) -> list[str]:
        if not waiting:
            return []
        one = len(waiting) == 1
        few, which = "outcome has" if one else "outcomes have", "decision" if one else "decisions"
        return [
            f"look {stage} is after {rounds:,} participants, and {len(waiting):,} {few} not arrived ({which} "
            f"{several(list(map(str, waiting)), _SHOWN)}): record each, as None if it will never arrive, and "
            "look again"
        ]

    def _look(self, plan: StatedPlan, stage: int) -> Entry:
        """The row of a look."""
        log = self.planned(logged(self.session, "drop", True, "keep"))
        found = plan.look(log, stage)
        reward = log.arrays.recorded[: found.rounds]
        numbers = {name: float(getattr(found, name)) for name in NUMBERS}
        told = (
            f"look {found.stage} of {len(plan.looks)}, after {found.rounds:,} participants: {found.decision}"
        )
        return {
            "kind": LOOK,
            "stage": found.stage,
            "rounds": found.rounds,
            **{name: None if math.isnan(number) else number for name, number in numbers.items()},
            "verdict": found.decision,
            **{name: plain_list(getattr(found, name)) for name in ARMS},
            "lost": int(np.count_nonzero(np.isnan(reward))),
            "reason": told,
        }

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
            problem = f"by is required: {ending['reason']}, and someone has to answer for continuing"
            refuse("resume", [problem])
        return super().turn(kind, reason, by)

    @property
    def cut_short(self) -> bool:
        """Whether the trial was finished early by hand; not if its plan ended it."""
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

    def planned(self, log: AdaptiveLog) -> AdaptiveLog:
        """The log with the plan and its looks; the same log if there is no plan."""
        if PLAN not in self.declared or log.design is None:
            return log
        kept = ("stage", "rounds", *NUMBERS, *ARMS, "decision")
        looks = [
            {**{name: look[name] for name in kept if name in look}, "overridden": bool(look["overridden"])}
            for look in self.looks
        ]
        told = {**log.design.parameters, PLAN: self.declared[PLAN], LOOKS: looks}
        if (last := ended(self.looks)) is not None:
            told[STOP_REASON] = last["reason"]
        made = copy(log if self.cut_short else log.stating("planned"))
        made.design, made.kept = replace(log.design, parameters=told), {}
        return made


def plain_list(value: Any) -> Any:
    """Labels as rows store them."""
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
    """A look as logs store it, from its row."""
    numbers = {name: entry[name] for name in NUMBERS if entry[name] is not None}
    known = {name: entry[name] for name in ("stage", "rounds", "lost", *ARMS)}
    return {**known, **numbers, "decision": entry["verdict"]}


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE) or one == other
