"""Rows about alarms and notified webhooks, which outlive the process that wrote them."""

from __future__ import annotations

from adaptinf.parameters import refuse
from adaptinf.trial.journal_rows import Entry
from adaptinf.trial.operator_actions import ALARM, SENT, Acts

_LONGEST = 100


def standing_alarms(acts: Acts) -> dict[str, Entry]:
    """Alarms that are raised, by name, each with the row that raised it."""
    found: dict[str, Entry] = {}
    for act in acts.acts:
        if act["kind"] == ALARM:
            found.pop(act["alarm"], None)
            if act["raised"]:
                found[act["alarm"]] = act
    return found


def alarm_row(acts: Acts, alarm: str, raised: bool) -> Entry | None:
    """The entry that raises or clears an alarm; None if nothing changes, or the file is a copy."""
    if acts.closed or raised == (alarm in standing_alarms(acts)):
        return None
    return {"kind": ALARM, "alarm": alarm, "raised": raised}


def told_until(acts: Acts, hook: str) -> int | None:
    """The last row of which a webhook was notified; None if the webhook is new."""
    return max(
        (act["notice"] for act in acts.acts if act["kind"] == SENT and act["hook"] == hook), default=None
    )


def sent_row(acts: Acts, hook: str, notice: int) -> Entry | None:
    """The entry that a webhook was told of all rows up to one; None if it was before, or for a copy."""
    known = told_until(acts, hook)
    if acts.closed or (known is not None and known >= notice):
        return None
    return {"kind": SENT, "hook": hook, "notice": notice}


def alarm_again(acts: Acts, said: Entry) -> Entry | None:
    """The entry of such a row, if it follows from the rows before it."""
    name = said["alarm" if said["kind"] == ALARM else "hook"]
    refuse(said["kind"], [] if isinstance(name, str) and 0 < len(name) <= _LONGEST else ["it has no name"])
    if said["kind"] == ALARM:
        return alarm_row(acts, name, bool(said["raised"]))
    return sent_row(acts, name, int(said["notice"]))
