"""A trial in memory, as its journal tells it: every decision is a function of the rows before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adaptinf.designs import Design
from adaptinf.errors import JournalError, ParameterError
from adaptinf.parameters import check, refuse
from adaptinf.sessions import Decision, Outcome
from adaptinf.sessions.keeping import decision_of, has_key, marks_of, memory_of, part_of, restore
from adaptinf.sessions.requests import identity, plain
from adaptinf.sessions.rounds import Marks
from adaptinf.trial.history import ACTS, act_problems
from adaptinf.trial.journal import Entry
from adaptinf.trial.nodes import NODE, Nodes
from adaptinf.trial.opening import session_of
from adaptinf.trial.snapshots import Snapshot, pack

OPEN, PAUSED, FINISHED = "open", "paused", "finished"
_STATES = {"pause": PAUSED, "resume": OPEN, "finish": FINISHED}


class Replay:
    """The session of a trial, its keys, and whether it takes requests."""

    def __init__(self, path: str, first: Entry, design: Design) -> None:
        self.path, self.declared, self.design = path, first, design
        self.nodes = Nodes(path)
        self.session, self._coins = session_of(first, design, self.nodes)
        self.state, self.reason = OPEN, ""
        self.acts: list[Entry] = []

    def assign(self, unit: Any, context: Any, key: Any) -> tuple[Decision, Entry | None]:
        """Assign an arm; with the entry to write where the key is new."""
        fresh = self._fresh("assign", key, refused=(PAUSED, FINISHED))
        check("assign", unit=(unit, _named))
        self._coins.set("assign", self.session.rounds + 1)
        decision = self.session.assign(unit, context, key)
        if not fresh:
            return decision, None
        return decision, {
            "kind": "assign",
            "key": plain(key),
            "unit": plain(unit),
            "context": _kept(context),
            "round": decision.round,
            "arm": decision.arm,
            "propensities": _listed(self.session.propensities(decision.id)),
        }

    def record(self, decision_id: Any, reward: Any, key: Any) -> tuple[Outcome, Entry | None]:
        """Record an outcome; with the entry to write where the key is new."""
        fresh = self._fresh("record", key, refused=(FINISHED,))
        self._coins.set("record", decision_id if isinstance(decision_id, int) else 0)
        outcome = self.session.record(decision_id, reward, key)
        if not fresh:
            return outcome, None
        return outcome, {
            "kind": "record",
            "key": plain(key),
            "decision": outcome.id,
            "reward": outcome.reward,
        }

    def amend(
        self, decision_id: Any, reward: Any, key: Any, reason: Any, by: Any
    ) -> tuple[Outcome, Entry | None]:
        """Correct an outcome; with the entry to write where the key is new."""
        refuse("amend", act_problems(reason, by))
        fresh = self._fresh("amend", key, refused=(FINISHED,))
        outcome = self.session.amend(decision_id, reward, key)
        if not fresh:
            return outcome, None
        return outcome, {
            "kind": "amend",
            "key": plain(key),
            "decision": outcome.id,
            "reward": outcome.reward,
            "reason": reason,
            "by": by,
        }

    def unblind(self, unit: Any, reason: Any, by: Any) -> tuple[Decision, Entry]:
        """The decision of a unit, with the entry that says who asked for it."""
        refuse("unblind", [*_named("unit", unit), *act_problems(reason, by)])
        decision = decision_of(self.session, plain(unit))
        if decision is None:
            raise ParameterError("unblind", [f"unit {plain(unit)!r:.60} was not assigned"])
        return decision, {"kind": "unblind", "decision": decision.id, "reason": reason, "by": by}

    def turn(self, kind: str, reason: Any, by: Any = None) -> Entry | None:
        """Pause, resume or finish; None where that is how things stand."""
        refuse(kind, act_problems(reason, "nobody" if by is None else by))
        if self.state == FINISHED and kind != "finish":
            raise ParameterError(kind, [f"the trial is finished: {self.reason:.200}"])
        if self.state == _STATES[kind]:
            return None
        self.state, self.reason = _STATES[kind], reason if kind != "resume" else ""
        return {"kind": kind, "reason": reason, **({} if by is None else {"by": by})}

    def noted(self, number: int, entry: Entry) -> None:
        """Remember a row of what somebody did to the trial."""
        if entry["kind"] in ACTS:
            self.acts.append({"row": number, **entry})

    def _fresh(self, subject: str, key: Any, refused: tuple[str, ...]) -> bool:
        """Whether a key is new; refused where the trial takes no new requests of this kind."""
        check(subject, key=(key, _named))
        fresh = not has_key(self.session, plain(key))
        if fresh and self.state in refused:
            raise ParameterError(subject, [f"the trial is {self.state}: {self.reason:.200}"])
        return fresh

    def image(self, since: Marks) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """What came since then, and how things stand; None of a design of one's own.

        The code of such a design may have changed since a snapshot, which only a replay can tell.
        """
        if self.declared["own"]:
            return None
        memory = memory_of(self.session, session_of(self.declared, self.design, self.nodes)[0])
        standing = {"state": self.state, "reason": self.reason, "acts": self.acts}
        state = {"marks": marks_of(self.session), "memory": memory, "standing": standing}
        return part_of(self.session, since), state

    def resume(self, snapshot: Snapshot) -> None:
        """Go on, with a session that was just opened, where an image was made."""
        restore(self.session, snapshot.parts, snapshot.state["memory"])
        standing = snapshot.state["standing"]
        self.state, self.reason, self.acts = standing["state"], standing["reason"], standing["acts"]

    def is_as(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot of the row that was followed last comes to the same."""
        other = Replay(self.path, self.declared, self.design)
        other.resume(snapshot)
        mine, theirs = self.image(Marks()), other.image(Marks())
        return mine is not None and theirs is not None and all(map(_same, mine, theirs))

    def follow(self, path: str, number: int, entry: Entry) -> None:
        """Do what a row says was done; the row of a node waits for that of its request.

        Raises
        ------
        JournalError
            If the same request has another answer now.
        """
        if entry["kind"] == NODE:
            self.nodes.expect(entry)
            return
        try:
            with self.nodes.following():
                again = self._again(entry)
        except (ParameterError, KeyError, TypeError) as error:
            raise JournalError(path, f"row {number} cannot be followed: {error}") from error
        said = {name: value for name, value in entry.items() if name != "time"}
        if again != said:
            told = "is not what its design decides on the rows before it, in this version of adaptinf"
            raise JournalError(path, f"row {number} {told}")
        self.noted(number, entry)

    def _looked_up(self, entry: Entry) -> Entry:
        """The entry of an unblinding, which names its decision and no unit."""
        names = "decision", "reason", "by"
        refuse("unblind", act_problems(entry["reason"], entry["by"]))
        self.session.propensities(entry["decision"])  # refused where there is no such decision
        return {"kind": "unblind", **{name: entry[name] for name in names}}

    def _again(self, entry: Entry) -> Entry | None:
        requests: dict[str, Callable[[], tuple[Any, Entry | None]]] = {
            "assign": lambda: self.assign(entry["unit"], entry["context"], entry["key"]),
            "record": lambda: self.record(entry["decision"], entry["reward"], entry["key"]),
            "amend": lambda: self.amend(
                entry["decision"], entry["reward"], entry["key"], entry["reason"], entry["by"]
            ),
        }
        if entry["kind"] == "unblind":
            return self._looked_up(entry)
        if entry["kind"] in requests:
            return requests[entry["kind"]]()[1]
        return self.turn(entry["kind"], entry["reason"], entry.get("by"))


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return pack(one) == pack(other)


def _named(name: str, value: Any) -> list[str]:
    """What is wrong with a unit or a key, which is needed."""
    return identity(name, plain(value)) if value is not None else [f"{name} is needed"]


def _kept(context: Any) -> Any:
    """A context as a journal keeps it: a label, or numbers in lists."""
    value = plain(context)
    if value is None or isinstance(value, (str, int, float)):
        return value
    return np.asarray(value, dtype=np.float64).tolist()


def _listed(propensities: tuple[float, ...] | None) -> list[float] | None:
    return None if propensities is None else list(propensities)
