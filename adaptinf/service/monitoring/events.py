"""Events of a trial, which are the rows of its journal, and its looks, as each role may see them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.log.stated_plans import GOES_ON, ended
from adaptinf.log.traits import LOOKS
from adaptinf.service.monitoring.alarms import BY_ARM, NAMES
from adaptinf.service.problems import closed_code, refused
from adaptinf.service.requested import Act
from adaptinf.trial import Trial
from adaptinf.trial.access import events_of
from adaptinf.trial.journal_rows import Entry, Rows
from adaptinf.trial.operator_actions import ALARM, FINISHED, SENT
from adaptinf.trial.planned_looks import ARMS, NUMBERS, Ahead, Due
from adaptinf.trial.replay import Replay
from adaptinf.trial.served_rows import standing_alarms

MONITOR, STATISTICIAN = "monitor", "statistician"
OTHER = "other"
"""The kind that is shown in place of kinds that concern arms."""
_SEES_ARMS = (STATISTICIAN, "unblinder")
_ALARM = ("alarm", "raised")
_TOKENS = {"token": ("token", "role", "by"), "revoke": ("token", "by")}
_SUPPLIES = {"add_site": ("site", "by"), "add_kits": ("site", "by"), "retire_kit": ("kit", "by")}
_STATED = dict.fromkeys(
    ("pause", "resume", "restore", "moved", "rekey", "migrate", "amend_plan"), ("reason", "by")
)
_DETAILS: dict[str, dict[str, tuple[str, ...]]] = {
    MONITOR: {ALARM: _ALARM},
    "operator": {
        ALARM: _ALARM,
        SENT: ("hook",),
        **_SUPPLIES,
        **_TOKENS,
        **_STATED,
        **dict.fromkeys(("amend", "unblind", "erase", "add_arm", "remove_arm", "finish"), ("by",)),
    },
    STATISTICIAN: {
        ALARM: _ALARM,
        SENT: ("hook",),
        **_SUPPLIES,
        **_TOKENS,
        **_STATED,
        "finish": ("reason", "by"),
        "assign": ("round", "arm", "site"),
        "record": ("decision", "reward"),
        "amend": ("decision", "reward", "by"),
        "add_arm": ("arm", "reason", "by"),
        "remove_arm": ("arm", "reason", "by"),
        "unblind": ("decision", "by"),
        "erase": ("decision", "by"),
    },
}
"""The fields of an event other than its time and kind; they never include a participant's name, a key or a
context. The reason for ending the trial may state the finding of a look."""
_LOOK = ("lost", *NUMBERS, *ARMS)


def events(trial: Trial, role: str, after: int, most: int) -> Act:
    """Events after a given one, and the number from which to continue."""

    def act(replay: Replay) -> tuple[Any, None]:
        rows = events_of(trial, replay, after, most)
        told = [_event(number, entry, role) for number, entry in rows]
        return {"events": told, "after": rows[-1][0] if rows else after}, None

    return act


def _event(number: int, entry: Entry, role: str) -> Entry:
    kind = entry["kind"]
    told = {"event": number, "time": entry["time"], "kind": kind}
    if _conceals(entry, role):
        return {**told, "kind": OTHER}
    if kind == "look":
        return {**told, **_look({**entry, "decision": entry["verdict"]}, role)}
    names = _DETAILS[role].get(kind, ())
    return {**told, **{name: entry[name] for name in names if name in entry}}


def _conceals(entry: Entry, role: str) -> bool:
    """Whether an event concerns arms, and the role must not see that it happened."""
    if entry["kind"] == ALARM:
        return entry["alarm"] in BY_ARM and role not in _SEES_ARMS
    return entry["kind"] in ("add_arm", "remove_arm", SENT) and role == MONITOR


def alarms(role: str, on: bool) -> Act:
    """Raised alarms that the role may see."""

    def act(replay: Replay) -> tuple[Any, None]:
        found = standing_alarms(replay).items()
        told = [{"alarm": name, "since": row["time"]} for name, row in found if not _conceals(row, role)]
        return {"on": on, "alarms": told}, None

    return act


def alarm_states(role: str, on: bool) -> Act:
    """Whether each alarm that the role may see is raised; empty if this service raises no alarms."""
    seen = [name for name in NAMES if on and (name not in BY_ARM or role in _SEES_ARMS)]
    return lambda replay: ({name: name in standing_alarms(replay) for name in seen}, None)


def _look(entry: Entry, role: str) -> Entry:
    """A look; the trial's state also shows whether it ended the trial, but not its finding."""
    told = {"stage": entry["stage"], "rounds": entry["rounds"], "ends": entry["decision"] != GOES_ON}
    if role != STATISTICIAN:
        return told
    return {**told, "decision": entry["decision"], **{name: entry.get(name) for name in _LOOK}}


def looks(role: str) -> Act:
    """Looks so far, and the number of participants at the next look."""

    def act(replay: Replay) -> tuple[Any, None]:
        _needs_plan(replay)
        return _told(replay, replay.looks, role), None

    return act


def _told(replay: Replay, found: list[Entry], role: str) -> Entry:
    told = []
    for look in found:
        over = look["overridden"]
        whose = {"continued_by": over and over["by"], "continued_because": over and over["reason"]}
        told.append({**_look(look, role), "time": look["time"], **(whose if role == STATISTICIAN else {})})
    return {"looks": told, "next": replay.next_look}


def look_due(replay: Replay) -> tuple[Due | None, None]:
    """The look that is due, to be computed in advance."""
    _needs_plan(replay)
    return replay.due_look(), None


def look_taken(role: str, ahead: Ahead | None) -> Act:
    """Take the looks that are due, the first one as computed; the answer contains the looks of this call."""

    def act(replay: Replay) -> tuple[Any, Rows]:
        _needs_plan(replay)
        before, taken = len(replay.looks), replay.take(ahead)
        try:
            _, first = next(taken)
        except ParameterError:
            raise refused(closed_code(replay) or "outcomes-pending") from None
        except InvalidForLog:
            raise refused("look-impossible") from None
        answer: Entry = {}

        def rows() -> Iterator[Entry]:
            if first is not None:
                yield first
                yield from _further(taken)
            answer.update(_told(replay, replay.looks[before:], role))

        return answer, rows()

    return act


def plan_amended(looks: list[Any], reason: str, by: str, blinded: bool, horizon: int | None) -> Act:
    """Change the looks that have not been taken."""
    changes = {} if horizon is None else {"horizon": horizon}

    def act(replay: Replay) -> tuple[Any, Entry]:
        _needs_plan(replay)
        try:
            entry = replay.amend_plan(looks, reason, by, blinded, changes)
        except ParameterError:
            raise refused(_unamended(replay, blinded)) from None
        answer: Entry = {"looks": entry[LOOKS]}
        return answer, entry

    return act


def _unamended(replay: Replay, blinded: bool) -> str:
    """The reason why the plan was not changed."""
    if replay.closed:
        return closed_code(replay)
    if replay.state == FINISHED:
        return "finished"
    if replay.plan is not None and replay.plan.arguments["law"] != "z":
        return "plan-fixed"
    if ended(replay.looks) is not None:
        return "plan-ended"
    if replay._due():
        return "look-due"
    return "plan-unfit" if blinded or not replay.looks else "not-blind"


def _further(taken: Iterator[tuple[Any, Entry | None]]) -> Iterator[Entry]:
    """Rows after the first; if a later look cannot be computed, the earlier ones are kept."""
    try:
        yield from (row for _, row in taken if row is not None)
    except (ParameterError, InvalidForLog):
        return


def _needs_plan(replay: Replay) -> None:
    if replay.plan is None:
        raise refused("no-plan")
